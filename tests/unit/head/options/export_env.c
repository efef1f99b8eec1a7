/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of ranks; durations as messages show them. */
#include <errno.h>

#include "head/options/export_env.h"
#include "lib/unit.h"

TEST(session_and_host_variables_stay_home)
{
        static const char *const home[] = { "HOSTNAME=x", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR",
                                            "PWD",        "SLURM_JOB_ID",  "CUDA_VISIBLE_DEVICES",
                                            "DISPLAY",    "PMI_RANK",      "OMPI_COMM_WORLD_RANK",
                                            "SHLVL",      "RANK" };
        static const char *const away[] = { "PATH",       "LD_LIBRARY_PATH=/x", "NCCL_DEBUG",
                                            "LANG",       "PYTHONPATH",         "HOSTNAMES",
                                            "MY_SSH_KEY", "OMP_NUM_THREADS" };

        for (size_t i = 0; i < ARRAY_SIZE(home); i++)
                assert_true(export_env_is_ours(home[i]));
        for (size_t i = 0; i < ARRAY_SIZE(away); i++)
                assert_false(export_env_is_ours(away[i]));
}

TEST(exports_are_laid_over_in_order)
{
        char *from[] = { (char *)"PATH=/bin", (char *)"HOSTNAME=here", (char *)"A=1",
                         (char *)"AB=2",      (char *)"SLURM_X=3",     NULL };
        struct options o = { 0 };
        struct strv env = STRV_INIT, unset = STRV_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        strv_push(&o.exports, "SLURM_X");
        strv_push(&o.exports, "A=9=9");
        strv_push(&o.unset, "AB");
        assert_int_equal(export_env_collect(&o, from, &env, &unset, &d), 0);
        assert_string_equal(strv_env_get(&env, "PATH"), "/bin");
        assert_string_equal(strv_env_get(&env, "A"), "9=9");
        assert_string_equal(strv_env_get(&env, "SLURM_X"), "3");
        assert_null(strv_env_get(&env, "HOSTNAME"));
        assert_null(strv_env_get(&env, "AB"));
        assert_true(strv_has(&unset, "AB"));
        strv_finish(&env);
        strv_finish(&unset);
        strv_finish(&o.exports);
        strv_finish(&o.unset);
}

/* Collects with @list as --export; @want are the pairs, joined by blanks. */
static void check_export(const char *list, const char *want, const char *warning)
{
        char *from[] = { (char *)"PATH=/bin", (char *)"HOSTNAME=here", (char *)"A=1",
                         (char *)"FOO=shell", NULL };
        struct options o = { .export_mode = (char *)list };
        CLEANUP(strv_finish) struct strv env = STRV_INIT, unset = STRV_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        char got[200] = "";

        assert_int_equal(export_env_collect(&o, from, &env, &unset, &d), 0);
        for (size_t i = 0; i < env.n; i++) {
                strcat(got, i ? " " : "");
                strcat(got, env.v[i]);
        }
        assert_string_equal(got, want);
        assert_int_equal(d.n, warning ? 1 : 0);
        if (warning) {
                assert_int_equal(d.v[0].id, 123);
                assert_non_null(strstr(d.v[0].fact, warning));
        }
}

TEST(lists_of_export_are_read_as_srun_reads_them)
{
        check_export("ALL,NEW=bar", "PATH=/bin A=1 FOO=shell NEW=bar", NULL);
        check_export("FOO=bar,all", "PATH=/bin A=1 FOO=bar", NULL);
        check_export("FOO=bar", "FOO=bar", NULL);
        check_export("A,FOO=bar", "A=1 FOO=bar", NULL);
        check_export("ALL,HOSTNAME", "PATH=/bin A=1 FOO=shell HOSTNAME=here", NULL);
        check_export("NONE,FOO=bar", "FOO=bar", NULL);
        check_export("nil", "", NULL);
        check_export("A, F*", "A=1 FOO=shell", NULL);
        check_export("A FOO", "A=1 FOO=shell", NULL);
        check_export("FOO=a b,A", "FOO=a b A=1", NULL);
        check_export("A,NOSUCH", "A=1", "--export NOSUCH: not set in this shell");
        check_export("FOO=a,b", "FOO=a", "--export b: not set");
        check_export("\"FOO=a,b\",A", "FOO=a,b A=1", NULL);
        check_export("FOO='a,b',A", "FOO='a,b' A=1", NULL);
        check_export("A,,FOO=,", "A=1 FOO=", NULL);
}

TEST(lists_of_export_that_say_nothing_are_errors)
{
        static const char *const wrong[] = { "",          ",",  "  ",  "ALL,NONE",
                                             "nil,A,all", "=1", "A,=", "A='b,c" };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                CLEANUP(strv_finish) struct strv words = STRV_INIT;
                struct error err = { 0 };

                assert_int_equal(export_env_split(wrong[i], &words, &err), -EINVAL);
                assert_true(*err.text);
        }
}
