/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of ranks; durations as messages show them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "head/options/export_env.h"

static void test_session_and_host_variables_stay_home(void **state UNUSED)
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

static void test_exports_are_laid_over_in_order(void **state UNUSED)
{
        char *from[] = { (char *)"PATH=/bin", (char *)"HOSTNAME=here", (char *)"A=1",
                         (char *)"AB=2",      (char *)"SLURM_X=3",     NULL };
        struct options o = { 0 };
        struct strv env = STRV_INIT, unset = STRV_INIT;
        struct diags d = DIAGS_INIT;

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
        diags_finish(&d);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_session_and_host_variables_stay_home),
                cmocka_unit_test(test_exports_are_laid_over_in_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
