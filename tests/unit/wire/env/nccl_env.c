/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "lib/unit.h"
#include "wire/env/nccl_env.h"

static const struct nccl_values values = { "127.0.0.1:5000", "/run/job/" NCCL_DUMP_NAME,
                                           "/tmp/job.rank_" };

/* In the order in which they are set; the older ones follow. */
static const char *const names[] = {
        "NCCL_RAS_ADDR",
        "TORCH_FR_BUFFER_SIZE",
        "TORCH_FR_DUMP_TEMP_FILE",
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        "TORCH_NCCL_TRACE_BUFFER_SIZE",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
        "TORCH_NCCL_DUMP_ON_TIMEOUT",
        "NCCL_ASYNC_ERROR_HANDLING",
};
enum { N_NEW = 5 };

/* Builds the environment of a rank whose user gives @given (NULL = nothing) and unsets @unset, with
 * all names. */
static void build(struct strv *env, const char *given, const char *unset,
                  const struct nccl_values *v)
{
        struct launch_order l = { .world_size = 1 };

        if (given)
                strv_push(env, given);
        if (unset)
                strv_push(&l.unset, unset);
        nccl_env_build_all(env, &l, v);
        strv_finish(&l.unset);
}

TEST(all_names_of_every_release_are_set)
{
        static const char *const want[ARRAY_SIZE(names)] = {
                "127.0.0.1:5000",
                "2000",
                "/run/job/nccl_trace_rank_",
                "/tmp/job.rank_",
                "3",
                "2000",
                "/run/job/nccl_trace_rank_",
                "1",
                "1",
        };
        CLEANUP(strv_finish) struct strv env = STRV_INIT;

        build(&env, NULL, NULL, &values);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                assert_string_equal(strv_env_get(&env, names[i]), want[i]);
        assert_int_equal(env.n, ARRAY_SIZE(names));
}

/* Whether @env has the variable. */
static bool has_name(char *const *env, const char *name)
{
        for (; *env; env++)
                if (!strncmp(*env, name, strlen(name)) && (*env)[strlen(name)] == '=')
                        return true;
        return false;
}

/* Asserts which of the older names are left for @torch: a letter for each, in the order of names[],
 * "-" = not left. */
static void assert_left(const char *given, unsigned torch, const char *want)
{
        struct launch_order l = { .world_size = 1 };
        CLEANUP(strv_finish) struct strv env = STRV_INIT;
        char *left[ARRAY_SIZE(names) + 2], got[] = "BTDA";
        unsigned set;

        if (given)
                strv_push(&env, given);
        set = nccl_env_build_all(&env, &l, &values);
        assert_true(env.n < ARRAY_SIZE(left));
        memcpy(left, env.v, (env.n + 1) * sizeof(*left));
        nccl_env_fit(left, set, torch);
        for (size_t i = 0; i < N_NEW && !given; i++)
                assert_true(has_name(left, names[i]));
        for (size_t i = N_NEW; i < ARRAY_SIZE(names); i++)
                if (!has_name(left, names[i]))
                        got[i - N_NEW] = '-';
        assert_string_equal(got, want);
}

TEST(older_names_are_for_older_releases)
{
        assert_left(NULL, 0, "----"); /* not known */
        assert_left(NULL, TORCH_VERSION(1, 13), "---A");
        assert_left(NULL, TORCH_VERSION(2, 1), "---A");
        assert_left(NULL, TORCH_VERSION(2, 2), "BTD-");
        assert_left(NULL, TORCH_VERSION(2, 7), "BTD-");
        assert_left(NULL, TORCH_VERSION(2, 8), "----");
        assert_left(NULL, TORCH_VERSION(2, 15), "----");
        assert_left(NULL, TORCH_VERSION(3, 0), "----");
}

TEST(the_users_older_name_stays)
{
        assert_left("TORCH_NCCL_TRACE_BUFFER_SIZE=7", TORCH_VERSION(2, 15), "B---");
        assert_left("NCCL_ASYNC_ERROR_HANDLING=0", TORCH_VERSION(2, 6), "BTDA");
        assert_left("TORCH_FR_BUFFER_SIZE=7", TORCH_VERSION(2, 6), "-TD-");
}

TEST(a_plan_has_the_newest_names)
{
        struct launch_order l = { .world_size = 1 };
        CLEANUP(strv_finish) struct strv env = STRV_INIT;

        nccl_env_build(&env, &l, &values);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                assert_true((i < N_NEW) == (strv_env_get(&env, names[i]) != NULL));
}

/* The old name must not win against the user's new one, nor the other way round. */
TEST(the_user_wins_under_either_name)
{
        static const struct {
                const char *given, *stays_away;
        } table[] = {
                { "NCCL_RAS_ENABLE=0", "NCCL_RAS_ADDR" },
                { "TORCH_FR_BUFFER_SIZE=0", "TORCH_NCCL_TRACE_BUFFER_SIZE" },
                { "TORCH_NCCL_TRACE_BUFFER_SIZE=0", "TORCH_FR_BUFFER_SIZE" },
                { "TORCH_FR_DUMP_TEMP_FILE=/d/", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE" },
                { "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/d/", "TORCH_FR_DUMP_TEMP_FILE" },
                { "NCCL_ASYNC_ERROR_HANDLING=0", "TORCH_NCCL_ASYNC_ERROR_HANDLING" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                CLEANUP(strv_finish) struct strv env = STRV_INIT;

                build(&env, table[i].given, NULL, &values);
                assert_string_equal(env.v[0], table[i].given);
                assert_null(strv_env_get(&env, table[i].stays_away));
        }
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                CLEANUP(strv_finish) struct strv env = STRV_INIT;
                char given[64];

                snprintf(given, sizeof(given), "%s=mine", names[i]);
                build(&env, given, NULL, &values);
                assert_string_equal(strv_env_get(&env, names[i]), "mine");
        }
}

TEST(what_the_user_unsets_stays_away)
{
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                CLEANUP(strv_finish) struct strv env = STRV_INIT;

                build(&env, NULL, names[i], &values);
                assert_null(strv_env_get(&env, names[i]));
                assert_true(env.n > 0);
        }
}

TEST(enabled_ras_and_missing_values)
{
        CLEANUP(strv_finish) struct strv env = STRV_INIT;

        build(&env, "NCCL_RAS_ENABLE=1", NULL, &values);
        assert_non_null(strv_env_get(&env, "NCCL_RAS_ADDR"));
        strv_finish(&env);
        env = (struct strv)STRV_INIT;
        build(&env, NULL, NULL, &(struct nccl_values){ NULL, NULL, NULL });
        assert_int_equal(env.n, 5); /* of numbers and switches */
        assert_null(strv_env_get(&env, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"));
}
