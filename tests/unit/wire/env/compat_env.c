/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of other launchers, and Slurm's list of nodes. */
#include <stdio.h>

#include "lib/unit.h"
#include "wire/env/compat_env.h"

enum { MANY = 64 };

static uint32_t gpus0[] = { 0, 1 }, gpus1[] = { 1, 2 };
static struct launch_rank ranks[] = {
        { .rank = 5, .local_rank = 0, .gpus = gpus0, .n_gpus = 2 },
        { .rank = 9, .local_rank = 1, .gpus = gpus1, .n_gpus = 2 },
};

/* The third of four nodes with 3, 2, 2 and 1 ranks. */
static struct compat_node nodes[] = { { (char *)"gpu08", 3 },
                                      { (char *)"gpu09", 2 },
                                      { (char *)"gpu10", 2 },
                                      { (char *)"login", 1 } };

static struct launch_port ports[] = { { "ray", 4711 }, { COMPAT_JAX_PORT, 4712 } };

static struct launch_order order_of(enum compat_family family)
{
        return (struct launch_order){ .run_id = "k3f9",
                                      .world_size = 8,
                                      .num_nodes = 4,
                                      .node_rank = 2,
                                      .first_node = { "10.0.0.1", ports, 2 },
                                      .compat = { (uint8_t)family, nodes, 4 },
                                      .ranks = ranks,
                                      .n_ranks = 2 };
}

struct variable {
        const char *name, *want;
};

/* All variables of the second rank are those of the table, and no others. */
static void expect_all(const struct launch_order *l, const struct variable *table, size_t n)
{
        struct strv own = STRV_INIT, given = STRV_INIT;
        const char *got;

        compat_env_set(&own, &given, l, &ranks[1], 13);
        for (size_t i = 0; i < n; i++) {
                got = strv_env_get(&own, table[i].name);
                if (!got || strcmp(got, table[i].want) != 0)
                        fail_msg("%s is '%s' instead of '%s'", table[i].name, got ? got : "(unset)",
                                 table[i].want);
        }
        assert_int_equal(own.n, n);
        strv_finish(&own);
}

TEST(no_family_has_no_variables)
{
        struct launch_order none = order_of(COMPAT_NONE), deepspeed = order_of(COMPAT_DEEPSPEED);

        expect_all(&none, NULL, 0);
        expect_all(&deepspeed, NULL, 0);
}

TEST(open_mpi)
{
        static const struct variable table[] = {
                { "OMPI_COMM_WORLD_RANK", "9" },
                { "OMPI_COMM_WORLD_SIZE", "8" },
                { "OMPI_COMM_WORLD_LOCAL_RANK", "1" },
                { "OMPI_COMM_WORLD_LOCAL_SIZE", "2" },
                { "OMPI_COMM_WORLD_NODE_RANK", "1" },
                { "OMPI_UNIVERSE_SIZE", "8" },
                { "OMPI_MCA_orte_hnp_uri", "0.0;tcp://10.0.0.1:4712" },
                { "JAX_COORDINATOR_ADDRESS", "10.0.0.1:4712" },
                { "JAX_COORDINATOR_PORT", "4712" },
                { "JAX_LOCAL_DEVICE_IDS", "1,2" },
        };
        struct launch_order l = order_of(COMPAT_OMPI);

        expect_all(&l, table, ARRAY_SIZE(table));
}

TEST(mpich)
{
        static const struct variable table[] = {
                { "PMI_RANK", "9" },
                { "PMI_SIZE", "8" },
                { "MPI_LOCALRANKID", "1" },
                { "MPI_LOCALNRANKS", "2" },
        };
        struct launch_order l = order_of(COMPAT_MPICH);

        expect_all(&l, table, ARRAY_SIZE(table));
}

TEST(horovod_counts_the_ranks_with_the_same_local_rank)
{
        static const struct variable table[] = {
                { "HOROVOD_RANK", "9" },         { "HOROVOD_SIZE", "8" },
                { "HOROVOD_LOCAL_RANK", "1" },   { "HOROVOD_LOCAL_SIZE", "2" },
                { "HOROVOD_CROSS_RANK", "2" },   { "HOROVOD_CROSS_SIZE", "3" },
                { "HOROVOD_HOSTNAME", "gpu10" },
        };
        struct launch_order l = order_of(COMPAT_HOROVOD);

        expect_all(&l, table, ARRAY_SIZE(table));
}

TEST(slurm)
{
        static const struct variable table[] = {
                { "SLURM_PROCID", "9" },
                { "SLURM_LOCALID", "1" },
                { "SLURM_NODEID", "2" },
                { "SLURM_GTIDS", "5,9" },
                { "SLURM_NTASKS", "8" },
                { "SLURM_NPROCS", "8" },
                { "SLURM_STEP_NUM_TASKS", "8" },
                { "SLURM_NNODES", "4" },
                { "SLURM_JOB_NUM_NODES", "4" },
                { "SLURM_STEP_NUM_NODES", "4" },
                { "SLURM_NODELIST", "gpu[08-10],login" },
                { "SLURM_JOB_NODELIST", "gpu[08-10],login" },
                { "SLURM_STEP_NODELIST", "gpu[08-10],login" },
                { "SLURMD_NODENAME", "gpu10" },
                { "SLURM_TASKS_PER_NODE", "3,2(x2),1" },
                { "SLURM_STEP_TASKS_PER_NODE", "3,2(x2),1" },
                { "SLURM_NTASKS_PER_NODE", "3" },
                { "SLURM_CPUS_ON_NODE", "13" },
                { "SLURM_CPUS_PER_TASK", "6" },
                { "SLURM_GPUS_ON_NODE", "3" },
                { "SLURM_JOB_ID", "40408454" },
                { "SLURM_JOBID", "40408454" },
                { "SLURM_JOB_NAME", "hnlaunch" },
                { "SLURM_STEP_ID", "0" },
                { "SLURM_STEPID", "0" },
                { "SLURM_RESTART_COUNT", "2" },
                { "JAX_COORDINATOR_ADDRESS", "10.0.0.1:4712" },
                { "JAX_COORDINATOR_PORT", "4712" },
                { "JAX_LOCAL_DEVICE_IDS", "1,2" },
        };
        struct launch_order l = order_of(COMPAT_SLURM);

        l.restart = 2;
        expect_all(&l, table, ARRAY_SIZE(table));
}

/* An order is checked for its form only: its numbers may contradict each other. */
TEST(values_that_an_order_does_not_tell_are_left_out)
{
        struct launch_order l = order_of(COMPAT_SLURM);
        struct strv own = STRV_INIT, given = STRV_INIT;

        l.node_rank = 7;
        compat_env_set(&own, &given, &l, &ranks[1], 0);
        assert_null(strv_env_get(&own, "SLURMD_NODENAME"));
        assert_non_null(strv_env_get(&own, "SLURM_NODELIST"));
        assert_string_equal(strv_env_get(&own, "SLURM_CPUS_PER_TASK"), "1");
        assert_null(strv_env_get(&own, "SLURM_RESTART_COUNT"));
        strv_finish(&own);
        l.compat.n_nodes = 0;
        compat_env_set(&own, &given, &l, &ranks[1], 0);
        assert_null(strv_env_get(&own, "SLURM_NODELIST"));
        assert_string_equal(strv_env_get(&own, "SLURM_PROCID"), "9");
        strv_finish(&own);
}

TEST(jax_meets_at_the_port_that_was_kept)
{
        struct launch_order l = order_of(COMPAT_OMPI);
        struct strv own = STRV_INIT, given = STRV_INIT;

        snprintf(l.first_node.addr, sizeof(l.first_node.addr), "2001:db8::7");
        compat_env_set(&own, &given, &l, &ranks[1], 0);
        assert_string_equal(strv_env_get(&own, "JAX_COORDINATOR_ADDRESS"), "[2001:db8::7]:4712");
        assert_string_equal(strv_env_get(&own, "OMPI_MCA_orte_hnp_uri"),
                            "0.0;tcp6://[2001:db8::7]:4712");
        strv_finish(&own);
        strv_push(&given, "JAX_COORDINATOR_ADDRESS=mine:1");
        strv_push(&given, "OMPI_COMM_WORLD_RANK=77");
        compat_env_set(&own, &given, &l, &ranks[1], 0);
        assert_null(strv_env_get(&own, "JAX_COORDINATOR_ADDRESS")); /* the user's stays */
        assert_string_equal(strv_env_get(&own, "OMPI_COMM_WORLD_RANK"), "9");
        strv_finish(&own);
        strv_finish(&given);
        l.first_node.n_ports = 1; /* no port for JAX: it is not told of mpirun */
        compat_env_set(&own, &given, &l, &ranks[1], 0);
        assert_null(strv_env_get(&own, "OMPI_MCA_orte_hnp_uri"));
        assert_null(strv_env_get(&own, "JAX_COORDINATOR_PORT"));
        strv_finish(&own);
}

/* CUDA counts the devices that a process sees from 0. */
TEST(jax_is_told_the_positions_of_devices)
{
        uint32_t first[] = { 6, 2 }, second[] = { 4, 2 };
        struct launch_rank pair[] = { { 0, 0, first, 2 }, { 1, 1, second, 2 } };
        static const struct {
                bool own, subset;
                const char *want;
        } table[] = {
                { false, false, "1,0" }, /* of 2, 4, 6 */
                { false, true, "2,1" },  /* of CUDA_VISIBLE_DEVICES=6,2,4 */
                { true, true, "0,1" },   /* of CUDA_VISIBLE_DEVICES=4,2 */
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct launch_order l = order_of(COMPAT_OMPI);
                struct strv own = STRV_INIT, given = STRV_INIT;

                l.ranks = pair;
                l.gpu_visibility_own = table[i].own;
                l.set_visible = table[i].subset;
                compat_env_set(&own, &given, &l, &pair[1], 0);
                assert_string_equal(strv_env_get(&own, "JAX_LOCAL_DEVICE_IDS"), table[i].want);
                strv_finish(&own);
        }
}

TEST(neighbours_are_folded_in_a_list)
{
        static const struct {
                const char *names, *want;
        } table[] = {
                { "", "" },
                { "gpu001", "gpu001" },
                { "gpu001 gpu002 gpu003", "gpu[001-003]" },
                { "gpu001 gpu003 gpu004", "gpu[001,003-004]" },
                { "n9 n10 n11", "n[9-11]" },
                { "n09 n10 n011", "n[09-10,011]" },
                { "n99 n100", "n[99-100]" },
                { "n1 m2", "n1,m2" },
                { "n2 n1", "n[2,1]" },
                { "n1 n1", "n[1,1]" },
                { "login gpu1 gpu2 login", "login,gpu[1-2],login" },
                { "10.0.0.1 10.0.0.2", "10.0.0.[1-2]" },
                { "1 2 3", "[1-3]" },
                { "n1.site n2.site", "n1.site,n2.site" },
                { "n1234567890 n1234567891", "n1234567890,n1234567891" },
                { "n999999999 n1000000000", "n999999999,n1000000000" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct compat_node many[MANY];
                struct launch_compat c = { .nodes = many };
                char *text = xstrdup(table[i].names), *save = NULL, *list;

                for (char *name = strtok_r(text, " ", &save); name;
                     name = strtok_r(NULL, " ", &save))
                        many[c.n_nodes++] = (struct compat_node){ name, 1 };
                list = compat_env_node_list(&c);
                assert_string_equal(list, table[i].want);
                free(list);
                free(text);
        }
}
