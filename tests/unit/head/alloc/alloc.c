/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors for the readers: variables and the text of a file in, "host:slots ..." or the first error
 * out. The readers open nothing, so that the managers need not be there.
 */

#include "head/alloc/alloc.h"
#include "base/buf.h"

#include "base/memory.h"
#include "lib/unit.h"

enum { VARIABLES = 12 };

struct vector {
        const char *env[VARIABLES];
        const char *text; /* of the file */
        const char *want; /* "n1:2 n2:auto", or "HN151: the message" */
        const char *host; /* of this machine, NULL = "login" */
        const char *cgroup;
        bool asked, ppn;
};

static struct alloc_input input_of(const struct vector *v)
{
        return (struct alloc_input){ .env = (char *const *)(uintptr_t)v->env,
                                     .host = v->host ? v->host : "login",
                                     .cgroup = v->cgroup,
                                     .now = 1000000,
                                     .asked = v->asked,
                                     .ppn = v->ppn,
                                     .path = v->text ? "nodefile" : NULL,
                                     .text = v->text,
                                     .len = v->text ? strlen(v->text) : 0 };
}

/* Returns the result as text, malloc'ed. */
static char *read_vector(enum alloc_from from, const struct vector *v)
{
        const struct alloc_input in = input_of(v);
        struct hosts h = HOSTS_INIT;
        struct diags d = DIAGS_INIT;
        struct buf out = BUF_INIT;

        if (alloc_read(from, &in, &h, &d) == 0) {
                assert_int_equal(diags_errors(&d), 0);
                assert_non_null(h.source);
                for (size_t i = 0; i < h.n; i++) {
                        buf_printf(&out, "%s%s:", i ? " " : "", h.v[i].name);
                        if (h.v[i].slots)
                                buf_printf(&out, "%d", h.v[i].slots);
                        else
                                buf_appends(&out, "auto");
                        if (h.v[i].local)
                                buf_appends(&out, "(local)");
                }
        } else {
                assert_true(diags_errors(&d) > 0);
                buf_printf(&out, "HN%d: %s", diags_first_error(&d)->id,
                           diags_first_error(&d)->fact);
        }
        hosts_finish(&h);
        diags_finish(&d);
        return buf_steal(&out);
}

static void check_vectors(enum alloc_from from, const struct vector *v, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                CLEANUP(free_textp) char *got = read_vector(from, &v[i]);

                assert_string_equal(got, v[i].want);
        }
}

#define CHECK_VECTORS(from, v) check_vectors(from, v, ARRAY_SIZE(v))
#define SLURM(nodes, tasks)                                                                        \
        "SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=" nodes, "SLURM_TASKS_PER_NODE=" tasks

TEST(slurm_lists_of_nodes)
{
        static const struct vector vectors[] = {
                { .env = { SLURM("n1", "1") }, .want = "n1:auto" },
                { .env = { SLURM("n1 n2", "2(x2)") }, .want = "n1:2 n2:2" },
                { .env = { SLURM("n1\tn2\nn3,", "2(x3)") }, .want = "n1:2 n2:2 n3:2" },
                { .env = { SLURM("a[1-2]b[3-4]", "2(x4)") },
                  .want = "a1b3:2 a1b4:2 a2b3:2 a2b4:2" },
                { .env = { SLURM("rack[0-1]-n[08-10]", "2(x6)") },
                  .want = "rack0-n08:2 rack0-n09:2 rack0-n10:2 rack1-n08:2 rack1-n09:2 "
                          "rack1-n10:2" },
                { .env = { SLURM("n[0-1][0-1]", "2(x4)") }, .want = "n00:2 n01:2 n10:2 n11:2" },
                { .env = { SLURM("n[001-002,5]", "2(x3)") }, .want = "n001:2 n002:2 n5:2" },
                { .env = { SLURM("n[9-11]", "2(x3)") }, .want = "n9:2 n10:2 n11:2" },
                { .env = { SLURM("n[1-2].cluster", "2(x2)") },
                  .want = "n1.cluster:2 n2.cluster:2" },
                { .env = { SLURM("[1-3]", "2(x3)") }, .want = "1:2 2:2 3:2" },
                { .env = { SLURM("n[1,1]", "2(x2)") }, .want = "n1:4" },
                { .env = { SLURM("b2,a1", "2,3") }, .want = "b2:2 a1:3" },
                { .env = { SLURM("n[3-1]", "1") }, .want = "HN113: the range runs backwards" },
                { .env = { SLURM("n[a-b]", "1") }, .want = "HN113: expected a number" },
                { .env = { SLURM("n[]", "1") }, .want = "HN113: a number is missing here" },
                { .env = { SLURM("n[1-2", "1") }, .want = "HN113: this `[` has no `]`" },
                { .env = { SLURM("n[1-3:2]", "1") },
                  .want = "HN113: numbers are written 1-4, 7 or 1,2,5-8" },
                { .env = { SLURM("n[1x4]", "1") },
                  .want = "HN113: numbers are written 1-4, 7 or 1,2,5-8" },
                { .env = { SLURM("n[1-99999]", "1") },
                  .want = "HN113: the range has more than 65536 names" },
                { .env = { SLURM("root@n1", "1") },
                  .want = "HN151: expected names of nodes and nothing else" },
                { .env = { SLURM("n1:8", "1") },
                  .want = "HN151: expected names of nodes and nothing else" },
                { .env = { SLURM("-oProxyCommand", "1") },
                  .want = "HN112: a host name must not begin with `-`" },
                { .env = { SLURM(",", "1") }, .want = "HN151: no node is named" },
        };

        CHECK_VECTORS(ALLOC_SLURM, vectors);
}

TEST(slurm_counts)
{
        static const struct vector vectors[] = {
                { .env = { SLURM("n[1-4]", "2(x3),1") }, .want = "n1:2 n2:2 n3:2 n4:1" },
                { .env = { SLURM("n[1-2]", "4(x2),9") }, .want = "n1:4 n2:4" },
                { .env = { SLURM("n[1-2]", "1(x2)") }, .want = "n1:auto n2:auto" },
                { .env = { SLURM("n[1-2]", "") }, .want = "n1:auto n2:auto" },
                { .env = { SLURM("n[1-2]", "8(x2)") }, .ppn = true, .want = "n1:auto n2:auto" },
                { .env = { SLURM("n[1-3]", "2(x2)") },
                  .want = "HN152: 2 counts for the 3 nodes of SLURM_JOB_NODELIST" },
                { .env = { SLURM("n[1-3]", "2(x3)"), "SLURM_JOB_NUM_NODES=4" },
                  .want = "HN152: 3 nodes here, but SLURM_JOB_NUM_NODES is 4" },
                { .env = { SLURM("n[1-3]", "2(x3)"), "SLURM_JOB_NUM_NODES=three" },
                  .want = "HN151: expected a number" },
                { .env = { SLURM("n1", "2(3)") },
                  .want = "HN151: counts are written 2, 2(x3) or 2(x3),1" },
                { .env = { SLURM("n1", "2(x3") }, .want = "HN151: `)` is missing here" },
                { .env = { SLURM("n1", "2,") }, .want = "HN151: a number is missing here" },
                { .env = { SLURM("n1", "0") }, .want = "HN151: the number must be 1 to 1024" },
                { .env = { SLURM("n1", "1(x65536),1") },
                  .want = "HN151: there are more than 65536 counts" },
                { .env = { SLURM("n1", "99999999999999999999") },
                  .want = "HN151: the number must be 1 to 1024" },
                { .env = { SLURM("n[1,1]", "1000(x2)") },
                  .want = "HN151: n1 has more than 1024 tasks" },
        };

        CHECK_VECTORS(ALLOC_SLURM, vectors);
}

TEST(slurm_half_set)
{
        static const struct vector vectors[] = {
                { .env = { "SLURM_JOB_ID=7", "SLURM_NODELIST=n[1-2]" }, .want = "n1:auto n2:auto" },
                { .env = { "SLURM_JOB_ID=7" },
                  .want = "HN150: SLURM_JOB_NODELIST is not set or empty, but SLURM_JOB_ID is "
                          "set" },
                { .env = { "SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=" },
                  .want = "HN150: SLURM_JOB_NODELIST is not set or empty, but SLURM_JOB_ID is "
                          "set" },
                { .env = { "SLURM_JOB_NODELIST=n1" },
                  .want = "HN153: --scheduler slurm, but this is no Slurm allocation: SLURM_JOB_ID "
                          "is "
                          "not "
                          "set" },
                { .env = { "SLURM_JOB_ID=7", "SLURM_HET_SIZE=2",
                           "SLURM_JOB_NODELIST_HET_GROUP_0=n1" },
                  .want = "HN150: SLURM_JOB_NODELIST_HET_GROUP_1 is not set or empty, but "
                          "SLURM_HET_SIZE is set" },
        };

        CHECK_VECTORS(ALLOC_SLURM, vectors);
}

TEST(slurm_heterogeneous_jobs)
{
        static const struct vector vectors[] = {
                { .env = { "SLURM_JOB_ID=7", "SLURM_HET_SIZE=2",
                           "SLURM_JOB_NODELIST_HET_GROUP_0=big1",
                           "SLURM_TASKS_PER_NODE_HET_GROUP_0=4",
                           "SLURM_JOB_NODELIST_HET_GROUP_1=n[1-2]",
                           "SLURM_TASKS_PER_NODE_HET_GROUP_1=2(x2)",
                           "SLURM_JOB_NUM_NODES_HET_GROUP_1=2", "SLURM_JOB_NODELIST=big1",
                           "SLURM_TASKS_PER_NODE=4" },
                  .want = "big1:4 n1:2 n2:2" },
                { .env = { "SLURM_JOB_ID=7", "SLURM_PACK_SIZE=1",
                           "SLURM_JOB_NODELIST_PACK_GROUP_0=n1",
                           "SLURM_TASKS_PER_NODE_PACK_GROUP_0=3" },
                  .want = "n1:3" },
                { .env = { "SLURM_JOB_ID=7", "SLURM_HET_SIZE=129" },
                  .want = "HN151: the number must be 1 to 128" },
        };

        CHECK_VECTORS(ALLOC_SLURM, vectors);
}

/* Inside a step SLURM_TASKS_PER_NODE describes the step: seen with Slurm 22.05. */
TEST(slurm_steps)
{
        static const struct vector vectors[] = {
                { .env = { SLURM("n[1-2]", "1"), "SLURM_STEP_ID=0", "SLURM_STEP_TASKS_PER_NODE=1",
                           "SLURM_JOB_CPUS_PER_NODE=4(x2)", "SLURM_NNODES=1",
                           "SLURM_JOB_NUM_NODES=2" },
                  .want = "n1:4 n2:4" },
                { .env = { SLURM("n[1-2]", "1"), "SLURM_STEP_ID=0", "SLURM_CPUS_PER_TASK=2",
                           "SLURM_JOB_CPUS_PER_NODE=4(x2)" },
                  .want = "n1:2 n2:2" },
                { .env = { SLURM("n[1-2]", "1"), "SLURM_STEP_ID=0",
                           "SLURM_JOB_CPUS_PER_NODE=96(x2)", "SLURM_GPUS_ON_NODE=8" },
                  .want = "n1:8 n2:8" },
                { .env = { SLURM("n[1-2]", "1"), "SLURM_STEP_ID=0" }, .want = "n1:auto n2:auto" },
                { .env = { SLURM("n1", "1"), "SLURM_STEP_ID=0", "SLURM_JOB_CPUS_PER_NODE=4" },
                  .want = "n1:auto" },
                { .env = { SLURM("n[1-2]", "4(x2)"), "SLURM_STEP_ID=4294967290",
                           "SLURM_STEP_TASKS_PER_NODE=1", "SLURM_JOB_CPUS_PER_NODE=64(x2)" },
                  .want = "n1:4 n2:4" },
                { .env = { SLURM("n[1-2]", "1"), "SLURM_STEP_ID=0", "SLURM_JOB_CPUS_PER_NODE=4" },
                  .want = "HN152: 1 count for the 2 nodes of SLURM_JOB_NODELIST" },
                /* srun -N2 -n8 --pty bash */
                { .env = { SLURM("n[1-2]", "4(x2)"), "SLURM_STEP_ID=0", "SLURM_PROCID=0",
                           "SLURM_STEP_TASKS_PER_NODE=4(x2)", "SLURM_STEP_NUM_TASKS=8",
                           "SLURM_PTY_PORT=40001", "SLURM_JOB_CPUS_PER_NODE=8(x2)" },
                  .want = "n1:4 n2:4" },
                { .env = { SLURM("n[1-2]", "1(x2)"), "SLURM_STEP_ID=0", "SLURM_PROCID=1",
                           "SLURM_STEP_NUM_TASKS=2" },
                  .want = "HN156: srun starts 2 copies of hnlaunch, and each would start the whole "
                          "job" },
                { .env = { SLURM("n[1-2]", "1(x2)"), "SLURM_STEP_ID=0", "SLURM_PROCID=1",
                           "SLURM_STEP_NUM_TASKS=2" },
                  .asked = true,
                  .want = "n1:auto n2:auto" },
        };

        CHECK_VECTORS(ALLOC_SLURM, vectors);
}

TEST(slurm_gpus)
{
        static const struct vector vectors[] = {
                { .env = { SLURM("n[1-2]", "1(x2)"), "SLURM_GPUS_PER_NODE=4" },
                  .want = "n1:4 n2:4" },
                { .env = { SLURM("n[1-2]", "1(x2)"), "SLURM_GPUS_PER_NODE=h100:4" },
                  .want = "n1:4 n2:4" },
                { .env = { SLURM("n1", "1"), "SLURM_GPUS_PER_NODE=h100:2,a100:1" },
                  .want = "n1:3" },
                { .env = { SLURM("n[1-2]", "2(x2)"), "SLURM_GPUS_PER_NODE=4" },
                  .want = "n1:2 n2:2" },
                { .env = { SLURM("n[1-2]", "2(x2)"), "SLURM_GPUS_PER_NODE=4" },
                  .ppn = true,
                  .want = "n1:4 n2:4" },
                { .env = { SLURM("n[1-2]", "1(x2)"), "SLURM_GPUS_ON_NODE=4" },
                  .want = "n1:4 n2:4" },
                { .env = { SLURM("n[1-2]", "1(x2)"), "SLURM_GPUS_ON_NODE=4", "SLURM_GPUS=6" },
                  .want = "n1:auto n2:auto" },
                { .env = { SLURM("n1", "1"), "SLURM_GPUS_ON_NODE=0" }, .want = "n1:auto" },
                { .env = { SLURM("n1", "1"), "SLURM_GPUS_PER_NODE=h100" },
                  .want = "HN151: expected a number" },
                { .env = { SLURM("n1", "1"), "SLURM_GPUS_PER_NODE=h100:2x" },
                  .want = "HN151: GPUs are written 4 or h100:4, 1024 at most" },
        };

        CHECK_VECTORS(ALLOC_SLURM, vectors);
}

/* Variables can come along with ssh, or stay behind in a shell. */
TEST(slurm_variables_of_elsewhere)
{
#define OF_LOGIN2 "SLURM_SUBMIT_HOST=login2.cluster"
        static const struct vector vectors[] = {
                { .env = { SLURM("n[1-2]", "2(x2)"), OF_LOGIN2 },
                  .host = "login2",
                  .want = "n1:2 n2:2" },
                { .env = { SLURM("n[1-2]", "2(x2)"), OF_LOGIN2 },
                  .host = "n1",
                  .want = "n1:2(local) n2:2" },
                { .env = { SLURM("n[1-2]", "2(x2)"), OF_LOGIN2 },
                  .host = "N2.cluster",
                  .want = "n1:2 n2:2(local)" },
                { .env = { SLURM("n[1-2]", "2(x2)"), OF_LOGIN2 },
                  .host = "login",
                  .want = "HN155: the variables SLURM_* were set on another machine" },
                { .env = { SLURM("n[1-2]", "2(x2)"), OF_LOGIN2 },
                  .host = "login2.other",
                  .want = "HN155: the variables SLURM_* were set on another machine" },
                { .env = { SLURM("n[1-2]", "2(x2)"), OF_LOGIN2 },
                  .host = "login",
                  .asked = true,
                  .want = "n1:2 n2:2" },
                { .env = { SLURM("n[1-2]", "2(x2)"), "SLURMD_NODENAME=n1", OF_LOGIN2 },
                  .host = "ip-10-0-0-1",
                  .cgroup = "0::/system.slice/slurmstepd.scope/job_7/step_b\n",
                  .want = "n1:2 n2:2" },
                { .env = { SLURM("n[1-2]", "2(x2)"), "SLURMD_NODENAME=n1", OF_LOGIN2 },
                  .host = "ip-10-0-0-1",
                  .cgroup = "3:freezer:/slurm/uid_0/job_77/step_0\n",
                  .want = "HN155: the variables SLURM_* were set on another machine" },
                { .env = { SLURM("n1", "2"), "SLURM_JOB_END_TIME=1000001" }, .want = "n1:2" },
                { .env = { SLURM("n1", "2"), "SLURM_JOB_END_TIME=999000" },
                  .want = "HN155: the time of Slurm job 7 ended 1000 s ago" },
                { .env = { SLURM("n1", "2"), "SLURM_JOB_END_TIME=999000" },
                  .asked = true,
                  .want = "n1:2" },
        };

        CHECK_VECTORS(ALLOC_SLURM, vectors);
}

#define PBS "PBS_ENVIRONMENT=PBS_BATCH", "PBS_JOBID=7.pbs", "PBS_NODEFILE=nodefile"

TEST(pbs)
{
        static const struct vector vectors[] = {
                { .env = { PBS }, .text = "n1\nn2\n", .want = "n1:auto n2:auto" },
                { .env = { PBS }, .text = "n2\nn1\nn2\n", .want = "n2:2 n1:1" },
                { .env = { PBS },
                  .text = "n1.cluster\r\nn1.cluster",
                  .host = "n1",
                  .want = "n1.cluster:2(local)" },
                { .env = { PBS }, .text = "n1\nn1\nn2\n", .ppn = true, .want = "n1:auto n2:auto" },
                { .env = { PBS, "PBS_PPN=4" }, .text = "n1\nn2\n", .want = "n1:4 n2:4" },
                { .env = { PBS, "PBS_PPN=4" }, .text = "n1\nn1\n", .want = "n1:2" },
                { .env = { PBS, "PBS_PPN=four" },
                  .text = "n1\n",
                  .want = "HN151: expected a number" },
                { .env = { PBS }, .text = "", .want = "HN108: no hosts in nodefile" },
                { .env = { PBS },
                  .text = "-n1\n",
                  .want = "HN112: a host name must not begin with `-`" },
                { .env = { "PBS_ENVIRONMENT=x", "PBS_JOBID=7" },
                  .want = "HN150: PBS_NODEFILE is not set or empty, but PBS_JOBID is set" },
                { .env = { "PBS_JOBID=7" },
                  .want = "HN153: --scheduler pbs, but this is no PBS allocation: PBS_ENVIRONMENT "
                          "is "
                          "not "
                          "set" },
        };

        CHECK_VECTORS(ALLOC_PBS, vectors);
}

TEST(lsf)
{
        static const struct vector vectors[] = {
                { .env = { "LSB_JOBID=3", "LSB_MCPU_HOSTS=h2 2 h1 1 h2 1" },
                  .host = "h1",
                  .want = "h2:3 h1:1(local)" },
                { .env = { "LSB_JOBID=3", "LSB_MCPU_HOSTS=h1 1 h2 1 " },
                  .host = "h1",
                  .want = "h1:auto(local) h2:auto" },
                { .env = { "LSB_JOBID=3", "LSB_MCPU_HOSTS=h1 1", "LSB_DJOB_HOSTFILE=nodefile" },
                  .text = "h3\n",
                  .host = "h1",
                  .want = "h1:auto(local)" },
                { .env = { "LSB_JOBID=3", "LSB_DJOB_HOSTFILE=nodefile", "LSB_HOSTS=h9" },
                  .text = "h1\nh1\nh2\n",
                  .host = "h2",
                  .want = "h1:2 h2:1(local)" },
                { .env = { "LSB_JOBID=3", "LSB_HOSTS=h1 h1 h2" },
                  .host = "h2.c",
                  .want = "h1:2 h2:1(local)" },
                { .env = { "LSB_JOBID=3", "LSB_MCPU_HOSTS=h1 2" },
                  .want = "HN155: the variables LSB_* were set on another machine" },
                { .env = { "LSB_JOBID=3", "LSB_MCPU_HOSTS=h1 2" }, .asked = true, .want = "h1:2" },
                { .env = { "LSB_JOBID=3", "LSB_MCPU_HOSTS=h1" },
                  .host = "h1",
                  .want = "HN151: a number is missing here" },
                { .env = { "LSB_JOBID=3", "LSB_MCPU_HOSTS=h1 h2" },
                  .host = "h1",
                  .want = "HN151: expected a number" },
                { .env = { "LSB_JOBID=3", "LSB_MCPU_HOSTS= " },
                  .host = "h1",
                  .want = "HN151: no host is named" },
                { .env = { "LSB_JOBID=3" },
                  .want = "HN150: LSB_MCPU_HOSTS is not set or empty, but LSB_JOBID is set" },
        };

        CHECK_VECTORS(ALLOC_LSF, vectors);
}

#define SGE "SGE_ROOT=/sge", "ARC=lx-amd64", "JOB_ID=5", "PE_HOSTFILE=nodefile"

TEST(grid_engine)
{
        static const struct vector vectors[] = {
                { .env = { SGE },
                  .text = "n1 4 all.q@n1 UNDEFINED\nn2.c 2 all.q@n2 0,0:0,1\n",
                  .want = "n1:4 n2.c:2" },
                { .env = { SGE },
                  .text = "n1 1 a.q@n1 <NULL>\n\n n2 1\r\nn1 2 b.q@n1 x",
                  .want = "n1:3 n2:1" },
                { .env = { SGE }, .text = "n1 1 q p\nn2 1 q p\n", .want = "n1:auto n2:auto" },
                { .env = { SGE }, .text = "n1\n", .want = "HN151: expected a number" },
                { .env = { SGE },
                  .text = "n1 4x\n",
                  .want = "HN151: lines are written HOST SLOTS QUEUE PROCESSORS" },
                { .env = { SGE },
                  .text = "n1 9999 q p\n",
                  .want = "HN151: the number must be 1 to 1024" },
                { .env = { SGE },
                  .text = "-x 4 q p\n",
                  .want = "HN112: a host name must not begin with `-`" },
                { .env = { SGE }, .text = "\n\n", .want = "HN151: no host is named" },
                { .env = { "SGE_ROOT=/sge", "ARC=lx", "JOB_ID=5" },
                  .want = "HN153: --scheduler sge, but this is no Grid Engine allocation: "
                          "PE_HOSTFILE "
                          "is "
                          "not set" },
        };

        CHECK_VECTORS(ALLOC_SGE, vectors);
}

#define FLUX "FLUX_URI=local:///tmp/flux"
#define R_OF(lite, nodes)                                                                          \
        "{\"version\":1,\"execution\":{\"R_lite\":[" lite "],\"nodelist\":[" nodes "]}}"

TEST(flux)
{
        static const struct vector vectors[] = {
                { .env = { FLUX },
                  .text = R_OF("{\"rank\":\"0-1\",\"children\":{\"core\":\"0-7\"}}", "\"n[1-2]\""),
                  .want = "n1:8 n2:8" },
                { .env = { FLUX },
                  .text = R_OF("{\"rank\":\"0-1\",\"children\":{\"core\":\"0-7\"}}", "\"n[1-2]\""),
                  .ppn = true,
                  .want = "n1:auto n2:auto" },
                { .env = { FLUX },
                  .text = R_OF("{\"rank\":\"0,2\",\"children\":{\"core\":\"0-3\",\"gpu\":\"0-1\"}},"
                               "{\"rank\":\"1\",\"children\":{\"core\":\"[0-3]\",\"gpu\":\"0\"}}",
                               "\"n[1-2]\",\"m1\""),
                  .want = "n1:2 n2:1 m1:2" },
                { .env = { FLUX },
                  .text = R_OF("{\"rank\":\"0-3\",\"children\":{\"core\":\"0-1\"}}",
                               "\"vm,vm,vm,vm\""),
                  .host = "vm",
                  .want = "vm:8(local)" },
                { .env = { FLUX },
                  .text = R_OF("{\"rank\":\"0-2\",\"children\":{\"core\":\"0\"}}", "\"n[1-2]\""),
                  .want = "HN152: the Flux instance has 3 ranks, but 2 hosts" },
                { .env = { FLUX },
                  .text = R_OF("{\"rank\":\"2-0\",\"children\":{\"core\":\"0\"}}", "\"n[1-2]\""),
                  .want = "HN151: cannot read the resources of the Flux instance: R_lite has no "
                          "ranks, cores and GPUs" },
                { .env = { FLUX },
                  .text = R_OF("{\"rank\":\"0\",\"children\":{\"core\":\"0\"}}", "\"n[1-\""),
                  .want = "HN113: this `[` has no `]`" },
                { .env = { FLUX },
                  .text = "{\"version\":2}",
                  .want = "HN151: cannot read the resources of the Flux instance: their version is "
                          "not 1" },
                { .env = { FLUX },
                  .text = "{\"version\":1}",
                  .want = "HN151: cannot read the resources of the Flux instance: nodelist has no "
                          "hosts" },
                { .env = { FLUX },
                  .text = "no such key",
                  .want = "HN151: cannot read the resources of the Flux instance: they are no JSON "
                          "text" },
                { .env = { FLUX, "FLUX_TASK_RANK=1", "FLUX_JOB_SIZE=4" },
                  .text = "",
                  .want = "HN156: flux starts 4 copies of hnlaunch, and each would start the whole "
                          "job" },
        };

        CHECK_VECTORS(ALLOC_FLUX, vectors);
}

TEST(mpi_operator)
{
#define LAUNCHER "K_MPI_JOB_ROLE=launcher"
        static const struct vector vectors[] = {
                { .env = { LAUNCHER },
                  .text = "pi-worker-0.pi.ns.svc slots=2\npi-worker-1.pi.ns.svc slots=2\n",
                  .want = "pi-worker-0.pi.ns.svc:2 pi-worker-1.pi.ns.svc:2" },
                { .env = { LAUNCHER },
                  .text = "pi-worker-0.pi.ns.svc:2\npi-worker-1.pi.ns.svc:2\n",
                  .want = "pi-worker-0.pi.ns.svc:2 pi-worker-1.pi.ns.svc:2" },
                { .env = { LAUNCHER },
                  .text = "pi-launcher.pi.ns.svc:1\npi-worker-0.pi.ns.svc:1\n",
                  .host = "pi-launcher",
                  .want = "pi-launcher.pi.ns.svc:auto(local) pi-worker-0.pi.ns.svc:auto" },
                { .env = { "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile" },
                  .text = "job-node-0-0.job slots=8\n",
                  .want = "job-node-0-0.job:8" },
                { .env = { LAUNCHER }, .text = "", .want = "HN108: no hosts in nodefile" },
                { .env = { LAUNCHER },
                  .text = "w slots=x\n",
                  .want = "HN111: `slots` must be a number from 1 to 1024" },
                { .env = { "K_MPI_JOB_ROLE=worker" },
                  .want = "HN153: --scheduler mpi-operator, but this is no MPI Operator "
                          "allocation: "
                          "K_MPI_JOB_ROLE=launcher is not set" },
        };

        CHECK_VECTORS(ALLOC_MPI_OPERATOR, vectors);
}

TEST(sagemaker)
{
#define ALGO "SM_HOSTS=[\"algo-1\",\"algo-2\"]", "SM_CURRENT_HOST=algo-1"
        static const struct vector vectors[] = {
                { .env = { ALGO, "SM_NUM_GPUS=8" }, .want = "algo-1:8(local) algo-2:8" },
                { .env = { ALGO, "SM_NUM_GPUS=0" }, .want = "algo-1:auto(local) algo-2:auto" },
                { .env = { ALGO, "SM_NUM_GPUS=x" }, .want = "HN151: expected a number" },
                { .env = { "SM_HOSTS=[\"algo-1\",\"algo-2\"]", "SM_CURRENT_HOST=algo-2" },
                  .want = "HN156: SageMaker starts hnlaunch on every host, and this is algo-2" },
                { .env = { "TRAINING_JOB_ARN=arn:x" },
                  .text = "{\"current_host\":\"algo-1\",\"hosts\":[\"algo-1\",\"algo-2\"]}",
                  .want = "algo-1:auto(local) algo-2:auto" },
                { .env = { "TRAINING_JOB_ARN=arn:x" },
                  .text = "{}",
                  .want = "HN151: expected a list of host names" },
                { .env = { "SM_HOSTS=algo-1", "SM_CURRENT_HOST=algo-1" },
                  .want = "HN151: expected a JSON text" },
                { .env = { "SM_HOSTS=[1]", "SM_CURRENT_HOST=algo-1" },
                  .want = "HN151: expected a list of host names" },
                { .env = { "SM_HOSTS=[\"-x\"]", "SM_CURRENT_HOST=algo-1" },
                  .want = "HN112: a host name must not begin with `-`" },
        };

        CHECK_VECTORS(ALLOC_SAGEMAKER, vectors);
}

TEST(ray)
{
#define RAY_NODES(nodes) "{\"version\":1,\"nodes\":[" nodes "]}"
#define RAY_NODE(name, gpus, cpus)                                                                 \
        "{\"name\":\"" name "\",\"address\":\"10.0.0.1\",\"id\":\"24b7\",\"gpus\":" gpus           \
        ",\"cpus\":" cpus "}"
        static const struct vector vectors[] = {
                { .text = RAY_NODES(RAY_NODE("n1", "2", "8") "," RAY_NODE("n2", "4", "8")),
                  .want = "n1:2 n2:4" },
                { .text = RAY_NODES(RAY_NODE("n1", "2", "8")), .ppn = true, .want = "n1:2" },
                { .text = RAY_NODES(RAY_NODE("login", "0", "8") "," RAY_NODE("n2", "4", "8")),
                  .want = "n2:4" },
                { .text = RAY_NODES(RAY_NODE("login", "0", "0") "," RAY_NODE("n2", "0", "8")),
                  .want = "n2:8" },
                { .text = RAY_NODES(RAY_NODE("n1", "0", "2") "," RAY_NODE("n2", "0", "8")),
                  .ppn = true,
                  .want = "n1:auto n2:auto" },
                { .text = RAY_NODES(RAY_NODE("login", "0", "1")), .want = "login:auto(local)" },
                { .text = RAY_NODES(RAY_NODE("10.0.0.1", "1", "1")), .want = "10.0.0.1:1" },
                { .text = RAY_NODES(RAY_NODE("n1", "0", "0")),
                  .want = "HN152: no node of the Ray cluster has GPUs or CPUs" },
                { .text = RAY_NODES(""),
                  .want = "HN152: no node of the Ray cluster has GPUs or CPUs" },
                { .text = RAY_NODES(RAY_NODE("n1", "-1", "0")),
                  .want = "HN151: cannot read the nodes of the Ray cluster: a node has no name, "
                          "gpus "
                          "and cpus" },
                { .text = RAY_NODES("7"),
                  .want = "HN151: cannot read the nodes of the Ray cluster: a node has no name, "
                          "gpus "
                          "and cpus" },
                { .text = RAY_NODES(RAY_NODE("n[1-2]", "1", "0")),
                  .want = "HN151: cannot read the nodes of the Ray cluster: a name is a list of "
                          "names" },
                { .text = RAY_NODES(RAY_NODE("-n", "1", "0")),
                  .want = "HN112: a host name must not begin with `-`" },
                { .text = "{\"version\":2,\"nodes\":[]}",
                  .want = "HN151: cannot read the nodes of the Ray cluster: their version is not "
                          "1" },
                { .text = "ray is not up",
                  .want = "HN151: cannot read the nodes of the Ray cluster: they are no JSON "
                          "text" },
        };

        CHECK_VECTORS(ALLOC_RAY, vectors);
}

TEST(files_and_commands)
{
        static const char *const sge[] = { SGE, NULL }, *const flux[] = { FLUX, NULL },
                                 *const mpich[] = { LAUNCHER, "HYDRA_HOST_FILE=/h", NULL },
                                 *const none[] = { "PBS_NODEFILE=x", NULL };
#define ENV(v) ((char *const *)(uintptr_t)(v))
        assert_string_equal(alloc_path(ALLOC_SGE, ENV(sge)), "nodefile");
        assert_string_equal(alloc_path(ALLOC_MPI_OPERATOR, ENV(mpich)), "/h");
        assert_null(alloc_path(ALLOC_PBS, ENV(none)));
        assert_null(alloc_path(ALLOC_FLUX, ENV(flux)));
        assert_string_equal(alloc_command(ALLOC_FLUX, ENV(flux))[0], "flux");
        assert_null(alloc_command(ALLOC_FLUX, ENV(none)));
        assert_null(alloc_command(ALLOC_SGE, ENV(sge)));
        assert_string_equal(alloc_command(ALLOC_RAY, ENV(none))[0], "python3");
}

TEST(the_manager_is_found)
{
        static const struct {
                const char *env[VARIABLES];
                enum alloc_from want;
        } cases[] = {
                { { "PATH=/bin" }, ALLOC_NONE },
                { { "SLURM_JOB_ID=" }, ALLOC_NONE },
                { { "XSLURM_JOB_ID=7", "SLURM_JOB_IDX=7" }, ALLOC_NONE },
                { { "SLURM_JOB_ID=7" }, ALLOC_SLURM },
                { { "PBS_JOBID=7" }, ALLOC_NONE },
                { { PBS }, ALLOC_PBS },
                { { PBS, "SLURM_JOB_ID=7" }, ALLOC_SLURM },
                { { FLUX, "SLURM_JOB_ID=7" }, ALLOC_FLUX },
                { { "LSB_JOBID=7" }, ALLOC_LSF },
                { { SGE }, ALLOC_SGE },
                { { "SGE_ROOT=/sge", "JOB_ID=7" }, ALLOC_NONE },
                { { LAUNCHER }, ALLOC_MPI_OPERATOR },
                { { "K_MPI_JOB_ROLE=worker" }, ALLOC_NONE },
                { { "OMPI_MCA_orte_default_hostfile=mine" }, ALLOC_NONE },
                { { ALGO }, ALLOC_SAGEMAKER },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_int_equal(alloc_find((char *const *)(uintptr_t)cases[i].env), cases[i].want);
}

TEST(origins_are_named)
{
        static const struct vector v = { .env = { SLURM("n[1-2]", "2(x2)") } };
        const struct alloc_input in = input_of(&v);
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        assert_int_equal(alloc_read(ALLOC_SLURM, &in, &h, &d), 0);
        assert_string_equal(h.source, "Slurm job 7");
        assert_string_equal(h.slots_source, "SLURM_TASKS_PER_NODE");
        assert_string_equal(h.v[1].file, "$SLURM_JOB_NODELIST");
        assert_int_equal(h.v[1].col, 1);
}
