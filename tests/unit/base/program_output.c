/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "base/program_output.h"
#include "lib/unit.h"

enum { LONG_MS = 600000, MAX = 200000 };

static int run_shell(const char *script, int timeout_ms, char **ret, struct error *err)
{
        const char *const argv[] = { "sh", "-c", script, NULL };
        size_t len = 0;
        int r;

        *err = (struct error){ 0 };
        r = program_output(argv, SPAWN_NULL, timeout_ms, MAX, ret, &len, err);
        if (r == 0)
                assert_int_equal(strlen(*ret), len);
        errno = 0;
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
        assert_int_equal(errno, ECHILD);
        return r;
}

TEST(the_output_is_returned)
{
        struct error err;
        CLEANUP(free_textp) char *text = NULL;

        assert_int_equal(run_shell("echo a; echo b >&2; echo c", LONG_MS, &text, &err), 0);
        assert_string_equal(text, "a\nc\n");
        free(text);
        assert_int_equal(run_shell("head -c 150000 /dev/zero | tr '\\0' x", LONG_MS, &text, &err),
                         0);
        assert_int_equal(strlen(text), 150000);
        free(text);
        assert_int_equal(run_shell(":", LONG_MS, &text, &err), 0);
        assert_string_equal(text, "");
}

TEST(failures_are_told)
{
        const char *const none[] = { "no-such-program-here", NULL };
        struct error err;
        size_t len;
        char *text;

        assert_int_equal(run_shell("echo one >&2; printf '\\033two\\n\\n' >&2; exit 3", LONG_MS,
                                   &text, &err),
                         -EIO);
        assert_string_equal(err.text, "sh exited with code 3: \\x1btwo");
        assert_int_equal(run_shell("exit 4", LONG_MS, &text, &err), -EIO);
        assert_string_equal(err.text, "sh exited with code 4");
        assert_int_equal(run_shell("kill -KILL $$", LONG_MS, &text, &err), -EIO);
        assert_string_equal(err.text, "sh was killed by signal 9");
        assert_int_equal(run_shell("cat /dev/zero | head -c 300000", LONG_MS, &text, &err), -EFBIG);
        assert_string_equal(err.text, "sh printed more than 200000 bytes");
        assert_int_equal(program_output(none, SPAWN_NULL, LONG_MS, MAX, &text, &len, &err),
                         -ENOENT);
        assert_string_equal(err.text, "cannot find 'no-such-program-here' in PATH");
}

/* One keeps its output open, one closes it, one hands it to a child. */
TEST(a_program_that_hangs_is_ended)
{
        static const char *const scripts[] = { "sleep 600", "exec >&- 2>&-; sleep 600",
                                               "sleep 600 & exit 0" };
        struct error err;
        char *text;

        for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
                assert_int_equal(run_shell(scripts[i], 1000, &text, &err), -ETIMEDOUT);
                assert_string_equal(err.text, "sh has not ended after 1 s");
        }
}
