/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "head/model/dial_env.h"
#include "lib/unit.h"

/* Finds NAME in "NAME=VALUE|NAME=VALUE"; values have no bar. */
static const char *find_value(void *ctx, const char *name)
{
        static char values[16][200]; /* the newest answers stay, as those of getenv() do */
        static size_t next;
        char *value = values[next++ % ARRAY_SIZE(values)];
        size_t len = strlen(name);

        for (const char *p = ctx; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
                if (!strncmp(p, name, len) && p[len] == '=') {
                        size_t n = strcspn(p + len + 1, "|");

                        memcpy(value, p + len + 1, n);
                        value[n] = '\0';
                        return value;
                }
        return NULL;
}

static int read_env(struct dial_place *p, const char *env, struct error *err)
{
        return dial_env_read(p, find_value, (void *)(uintptr_t)env, err);
}

TEST(each_platform_is_read)
{
        static const struct {
                const char *env, *source, *host;
                int port, rank, nodes;
        } cases[] = {
                { "PET_NNODES=4|PET_NODE_RANK=2|PET_MASTER_ADDR=job-node-0-0.job|"
                  "PET_MASTER_PORT=29500",
                  "Kubeflow Trainer", "job-node-0-0.job", 29500, 2, 4 },
                { "PET_NNODES=2|JOB_COMPLETION_INDEX=1|PET_MASTER_ADDR=a", "Kubeflow Trainer", "a",
                  DIAL_PORT, 1, 2 },
                { "SLURM_JOB_ID=77|SLURM_STEP_ID=1|SLURM_PROCID=3|SLURM_LOCALID=0|"
                  "SLURM_STEP_NUM_TASKS=4|SLURM_STEP_NUM_NODES=4|"
                  "SLURM_STEP_NODELIST=rack[0-1]-n[08-09],x7",
                  "Slurm", "rack0-n08", 20000 + 77 * 16 + 1, 3, 4 },
                { "SLURM_JOB_ID=2000000000|SLURM_STEP_ID=0|SLURM_PROCID=0|SLURM_STEP_NUM_TASKS=1|"
                  "SLURM_STEP_NUM_NODES=1|SLURM_STEP_NODELIST=n1",
                  "Slurm", "n1", 20000 + 2000000000L * 16 % 10000, 0, 1 },
                { "LWS_LEADER_ADDRESS=lws-0.lws.default|LWS_GROUP_SIZE=2|LWS_WORKER_INDEX=1",
                  "LeaderWorkerSet", "lws-0.lws.default", DIAL_PORT, 1, 2 },
                { "SM_HOSTS=[\"algo-1\",\"algo-2\"]|SM_CURRENT_HOST=algo-2", "SageMaker", "algo-1",
                  DIAL_PORT, 1, 2 },
                { "AZ_BATCH_MASTER_NODE=10.0.0.4:6000|AZUREML_NODE_COUNT=2|NODE_RANK=1", "Azure ML",
                  "10.0.0.4", DIAL_PORT, 1, 2 },
                { "AZ_BATCHAI_MPI_MASTER_NODE=10.0.0.4|OMPI_COMM_WORLD_SIZE=1|"
                  "OMPI_COMM_WORLD_RANK=0",
                  "Azure ML", "10.0.0.4", DIAL_PORT, 0, 1 },
                { "MASTER_ADDR=dlc-0|MASTER_PORT=23456|RANK=1|WORLD_SIZE=2", "MASTER_ADDR", "dlc-0",
                  23456, 1, 2 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct error err = { 0 };
                struct dial_place p;

                if (read_env(&p, cases[i].env, &err) < 0)
                        fail_msg("%s: %s", cases[i].env, err.text);
                assert_string_equal(p.source, cases[i].source);
                assert_string_equal(p.host, cases[i].host);
                assert_int_equal(p.port, cases[i].port);
                assert_int_equal(p.rank, cases[i].rank);
                assert_int_equal(p.nodes, cases[i].nodes);
        }
}

TEST(mistakes_are_named)
{
        static const struct {
                const char *env, *text;
        } cases[] = {
                { "PET_NNODES=1:4|PET_NODE_RANK=0|PET_MASTER_ADDR=a", "PET_NNODES=1:4" },
                { "PET_NNODES=4|PET_MASTER_ADDR=a", "JOB_COMPLETION_INDEX is not set" },
                { "PET_NNODES=4|PET_NODE_RANK=4|PET_MASTER_ADDR=a", "node 4 of 4" },
                { "PET_NNODES=4|PET_NODE_RANK=0", "PET_MASTER_ADDR is not set" },
                { "PET_NNODES=4|PET_NODE_RANK=0|PET_MASTER_ADDR=a|PET_MASTER_PORT=65536",
                  "PET_MASTER_PORT=65536" },
                { "SLURM_JOB_ID=7|SLURM_STEP_ID=0|SLURM_PROCID=1|SLURM_LOCALID=1|"
                  "SLURM_STEP_NUM_TASKS=4|SLURM_STEP_NUM_NODES=2|SLURM_STEP_NODELIST=n[1-2]",
                  "--ntasks-per-node=1" },
                { "SLURM_JOB_ID=7|SLURM_STEP_ID=0|SLURM_PROCID=1|SLURM_LOCALID=0|"
                  "SLURM_STEP_NUM_TASKS=2|SLURM_STEP_NUM_NODES=2|SLURM_STEP_NODELIST=n[1-2",
                  "is no list of hosts" },
                { "SM_HOSTS=[\"a\",\"b\"]|SM_CURRENT_HOST=c", "SM_CURRENT_HOST=c is not in" },
                { "SM_HOSTS=a,b|SM_CURRENT_HOST=a", "is no list of hosts" },
                { "AZ_BATCH_MASTER_NODE=10.0.0.4:6000|NODE_RANK=1", "OMPI_COMM_WORLD_SIZE" },
                { "MASTER_ADDR=a|RANK=1|WORLD_SIZE=2|LOCAL_RANK=0", "LOCAL_RANK is set" },
                { "MASTER_ADDR=a|RANK=-1|WORLD_SIZE=2", "RANK=-1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct error err = { 0 };
                struct dial_place p;

                assert_int_equal(read_env(&p, cases[i].env, &err), -EINVAL);
                if (!strstr(err.text, cases[i].text))
                        fail_msg("%s: %s", cases[i].env, err.text);
        }
}

TEST(a_job_has_a_name_that_is_a_file)
{
        static const struct {
                const char *env, *name;
        } cases[] = {
                { "SLURM_JOB_ID=77|SLURM_STEP_ID=1|SLURM_CLUSTER_NAME=a/b", "slurm-77.1.a-b" },
                { "SLURM_JOB_ID=77", "slurm-77.." },
                { "PBS_JOBID=12[3].server", "pbs-12-3-.server" },
                { "LSB_JOBID=5|LSB_JOBINDEX=2", "lsf-5.2" },
                { "FLUX_JOB_ID=\303\206x", "flux---x" },
                { "SGE_ROOT=/opt|JOB_ID=9|SGE_TASK_ID=undefined", "sge-9.undefined" },
                { "PBS_JOBID=0123456789012345678901234567890123456789",
                  "pbs-012345678901234567890123456789" },
                { "JOB_ID=9", NULL },
                { "SLURM_JOB_ID=", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char name[DIAL_JOB_MAX];
                int r = dial_env_job(find_value, (void *)(uintptr_t)cases[i].env, name);

                assert_int_equal(r, cases[i].name ? 0 : -ENOENT);
                if (cases[i].name)
                        assert_string_equal(name, cases[i].name);
        }
}

TEST(no_platform_is_no_mistake)
{
        static const char *const envs[] = {
                "PATH=/bin",
                "MASTER_ADDR=a|WORLD_SIZE=2",
                /* a batch script, no step */
                "SLURM_JOB_ID=7|SLURM_PROCID=0|SLURM_NTASKS=8|SLURM_NNODES=2|SLURM_STEP_ID=0",
                "PET_NNODES=|RANK=1",
        };
        struct dial_place p;
        struct error err;

        for (size_t i = 0; i < ARRAY_SIZE(envs); i++)
                assert_int_equal(read_env(&p, envs[i], &err), -ENOENT);
}
