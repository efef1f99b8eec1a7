/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/env/worker_env.h"

#include "lib/unit.h"

static uint32_t gpus0[] = { 2, 3 }, gpus1[] = { 6, 3 };
static struct launch_rank ranks[] = {
        { .rank = 8, .local_rank = 0, .gpus = gpus0, .n_gpus = 2 },
        { .rank = 9, .local_rank = 1, .gpus = gpus1, .n_gpus = 2 },
};

static struct launch_port ports[] = { { "jax", 40001 }, { "a_1", 40002 } };

static struct launch_order order(void)
{
        return (struct launch_order){ .run_id = "job7",
                                      .world_size = 10,
                                      .num_nodes = 5,
                                      .node_rank = 4,
                                      .restart = 1,
                                      .max_restarts = 3,
                                      .master_addr = "10.0.0.1",
                                      .master_port = 4711,
                                      .first_node = { "10.0.0.2", ports, 2 },
                                      .ranks = ranks,
                                      .n_ranks = 2 };
}

static struct strv env = STRV_INIT;
static struct launch_order l;

/* Begins with an empty environment, and the order as it was. */
static int begin(void **state UNUSED)
{
        strv_finish(&env);
        l = order();
        return 0;
}

static int end(void **state UNUSED)
{
        strv_finish(&env);
        return 0;
}

static void expect(const char *name, const char *want)
{
        const char *got = strv_env_get(&env, name);

        if (!want && got)
                fail_msg("%s is '%s' instead of unset", name, got);
        if (want && (!got || strcmp(got, want)))
                fail_msg("%s is '%s' instead of '%s'", name, got ? got : "(unset)", want);
}

TEST_WITH(begin, end, every_promised_variable_is_set)
{
        static const struct {
                const char *name, *want;
        } table[] = {
                { "HN_RANK", "9" },
                { "HN_WORLD_SIZE", "10" },
                { "HN_LOCAL_RANK", "1" },
                { "HN_LOCAL_WORLD_SIZE", "2" },
                { "HN_NODE_RANK", "4" },
                { "HN_NUM_NODES", "5" },
                { "HN_RUN_ID", "job7" },
                { "HN_RESTART", "1" },
                { "HN_STORE", "/run/store" },
                { "HN_MASTER_ADDR", "10.0.0.2" },
                { "HN_PORT_JAX", "40001" },
                { "HN_PORT_A_1", "40002" },
                { "RANK", "9" },
                { "WORLD_SIZE", "10" },
                { "LOCAL_RANK", "1" },
                { "LOCAL_WORLD_SIZE", "2" },
                { "GROUP_RANK", "4" },
                { "GROUP_WORLD_SIZE", "5" },
                { "NODE_RANK", "4" },
                { "ROLE_NAME", "default" },
                { "ROLE_RANK", "9" },
                { "ROLE_WORLD_SIZE", "10" },
                { "MASTER_ADDR", "10.0.0.1" },
                { "MASTER_PORT", "4711" },
                { "TORCHELASTIC_RUN_ID", "job7" },
                { "TORCHELASTIC_RESTART_COUNT", "1" },
                { "TORCHELASTIC_MAX_RESTARTS", "3" },
                { "TORCHELASTIC_USE_AGENT_STORE", "False" },
                { "TORCHELASTIC_ERROR_FILE", "/run/error" },
                { "OMP_NUM_THREADS", "6" },
                { "PYTHONUNBUFFERED", "1" },
                { "PYTHONFAULTHANDLER", "1" },
                { "CROSS_RANK", "4" },
                { "CROSS_SIZE", "5" },
                { "LOCAL_SIZE", "2" },
                { "PMI_RANK", "9" },
                { "PMI_SIZE", "10" },
                { "MPI_LOCALRANKID", "1" },
                { "MPI_LOCALNRANKS", "2" },
        };

        worker_env_build(&env, &l, &ranks[1], "/run/store", "/run/error", 13);
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                expect(table[i].name, table[i].want);
        assert_int_equal(env.n, ARRAY_SIZE(table));
}

TEST_WITH(begin, end, mpi_can_be_left_out)
{
        l.mpi.kind = MPI_PMI2;
        worker_env_build(&env, &l, &ranks[1], NULL, NULL, 1);
        expect("PMI_RANK", "9");
        expect("PMI_JOBID", "job7");
        strv_finish(&env);
        l.mpi.kind = MPI_NONE;
        worker_env_build(&env, &l, &ranks[1], NULL, NULL, 1);
        assert_null(strv_env_get(&env, "PMI_RANK"));
        assert_null(strv_env_get(&env, "MPI_LOCALRANKID"));
}

TEST_WITH(begin, end, what_a_rank_is_replaces_what_was_said_before)
{
        strv_push(&env, "RANK=77");
        strv_push(&env, "OTHER=kept");
        worker_env_build(&env, &l, &ranks[0], NULL, NULL, 8);
        expect("RANK", "8");
        expect("OTHER", "kept");
        expect("HN_STORE", NULL);
        expect("TORCHELASTIC_ERROR_FILE", NULL);
}

TEST_WITH(begin, end, a_process_that_starts_ranks_is_no_rank)
{
        static const struct {
                const char *name, *want;
        } table[] = {
                { "HN_RANK", "8" },           { "HN_WORLD_SIZE", "10" },
                { "HN_LOCAL_RANK", "0" },     { "HN_LOCAL_WORLD_SIZE", "2" },
                { "HN_NODE_RANK", "4" },      { "HN_NUM_NODES", "5" },
                { "HN_RUN_ID", "job7" },      { "HN_RESTART", "1" },
                { "HN_STORE", "/run/store" }, { "HN_MASTER_ADDR", "10.0.0.2" },
                { "HN_PORT_JAX", "40001" },   { "HN_PORT_A_1", "40002" },
                { "NODE_RANK", "4" },         { "MASTER_ADDR", "10.0.0.1" },
                { "MASTER_PORT", "4711" },    { "PYTHONUNBUFFERED", "1" },
                { "RANKS", "kept" },          { "PYTHONFAULTHANDLER", "1" },
        };
        static const char *const stale[] = {
                "RANK",           "WORLD_SIZE", "LOCAL_RANK",      "LOCAL_WORLD_SIZE",
                "GROUP_RANK",     "ROLE_NAME",  "ROLE_WORLD_SIZE", "TORCHELASTIC_USE_AGENT_STORE",
                "TORCHELASTIC_X", "CROSS_RANK", "LOCAL_SIZE",
        };

        l.per_node = true;
        l.mpi.kind = MPI_NONE;
        for (size_t i = 0; i < ARRAY_SIZE(stale); i++)
                strv_env_set(&env, stale[i], "77");
        strv_env_set(&env, "RANKS", "kept");
        worker_env_build(&env, &l, &ranks[0], "/run/store", "/run/error", 13);
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                expect(table[i].name, table[i].want);
        assert_int_equal(env.n, ARRAY_SIZE(table));
}

TEST_WITH(begin, end, preferences_of_the_user_win)
{
        strv_push(&env, "OMP_NUM_THREADS=5");
        strv_push(&env, "PYTHONUNBUFFERED=");
        worker_env_build(&env, &l, &ranks[0], NULL, NULL, 8);
        expect("OMP_NUM_THREADS", "5");
        expect("PYTHONUNBUFFERED", "");
}

TEST_WITH(begin, end, what_the_user_unsets_stays_away)
{
        static const char *const patterns[] = { "PYTHONUNBUFFERED", "PYTHON*", "*" };

        for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
                begin(NULL);
                strv_push(&l.unset, "PYTHON");
                strv_push(&l.unset, patterns[i]);
                worker_env_build(&env, &l, &ranks[0], NULL, NULL, 8);
                expect("PYTHONUNBUFFERED", NULL);
                expect("PYTHONFAULTHANDLER", i ? NULL : "1");
                strv_finish(&l.unset);
        }
}

TEST_WITH(begin, end, threads_are_at_least_one)
{
        worker_env_build(&env, &l, &ranks[0], NULL, NULL, 1);
        expect("OMP_NUM_THREADS", "1");
}

TEST_WITH(begin, end, an_agents_store_and_the_way_to_it_are_told)
{
        static const struct {
                bool agent_store;
                const char *iface;
                uint32_t nodes;
                const char *user, *store, *gloo, *nccl;
        } cases[] = {
                { false, "", 5, NULL, "False", NULL, NULL },
                { true, "", 5, NULL, "True", NULL, NULL },
                { true, "ib0", 5, NULL, "True", "ib0", "=ib0" },
                { true, "lo", 1, NULL, "True", "lo", NULL },
                { true, "ib0", 5, "eth7", "True", "eth7", "eth7" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                begin(NULL);
                l.agent_store = cases[i].agent_store;
                l.num_nodes = cases[i].nodes;
                strcpy(l.iface, cases[i].iface);
                if (cases[i].user) {
                        strv_env_set(&env, "GLOO_SOCKET_IFNAME", cases[i].user);
                        strv_env_set(&env, "NCCL_SOCKET_IFNAME", cases[i].user);
                }
                worker_env_build(&env, &l, &ranks[1], NULL, NULL, 8);
                expect("TORCHELASTIC_USE_AGENT_STORE", cases[i].store);
                expect("GLOO_SOCKET_IFNAME", cases[i].gloo);
                expect("NCCL_SOCKET_IFNAME", cases[i].nccl);
        }
}

TEST_WITH(begin, end, devices_are_named_only_when_needed)
{
        static const struct {
                bool subset, own;
                const char *login, *want, *order;
        } cases[] = {
                { false, false, NULL, NULL, NULL },
                { false, false, "7", "7", NULL },
                { true, false, "7", "2,3,6", "PCI_BUS_ID" },
                { true, true, NULL, "6,3", "PCI_BUS_ID" },
                { false, true, NULL, "6,3", "PCI_BUS_ID" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                begin(NULL);
                l.set_visible = cases[i].subset;
                l.gpu_visibility_own = cases[i].own;
                if (cases[i].login)
                        strv_env_set(&env, "CUDA_VISIBLE_DEVICES", cases[i].login);
                worker_env_build(&env, &l, &ranks[1], NULL, NULL, 8);
                expect("CUDA_VISIBLE_DEVICES", cases[i].want);
                expect("CUDA_DEVICE_ORDER", cases[i].order);
        }
}

TEST_WITH(begin, end, a_role_without_devices_sees_none_beside_others)
{
        struct launch_program program = { .role = (char *)"router" };
        struct launch_rank bare = { .rank = 0 };

        l.ranks = &bare;
        l.n_ranks = 1;
        l.programs = &program;
        l.n_programs = 1;
        for (int i = 0; i < 4; i++) {
                strv_finish(&env);
                l.set_visible = i != 0;
                l.gpu_visibility_own = i == 2;
                if (i == 3)
                        strv_env_set(&program.env, "CUDA_VISIBLE_DEVICES", "7"); /* -x */
                strv_env_set(&env, "CUDA_VISIBLE_DEVICES", i == 3 ? "7" : "0,1");
                worker_env_build(&env, &l, &bare, NULL, NULL, 8);
                expect("CUDA_VISIBLE_DEVICES", i == 0 ? "0,1" : i == 3 ? "7" : "");
        }
        strv_finish(&program.env);
}

TEST_WITH(begin, end, ranks_without_devices_name_none)
{
        struct launch_rank bare = { .rank = 0 };

        l.ranks = &bare;
        l.n_ranks = 1;
        l.set_visible = l.gpu_visibility_own = true;
        worker_env_build(&env, &l, &bare, NULL, NULL, 8);
        expect("CUDA_VISIBLE_DEVICES", NULL);
}
