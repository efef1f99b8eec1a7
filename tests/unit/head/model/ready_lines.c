/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/ready_lines.h"
#include "base/memory.h"
#include "lib/unit.h"
#include "wire/msg.h"

static bool put(struct ready_lines *r, int rank, uint8_t stream, const char *text)
{
        return ready_lines_put(r, rank, stream, text, strlen(text));
}

TEST(a_line_may_come_in_pieces)
{
        struct ready_lines *r = ready_lines_create("^server (is )?up$", 2);

        assert_false(put(r, 0, MSG_STDOUT, "loading\nserver"));
        assert_false(put(r, 1, MSG_STDOUT, " up\n")); /* of another rank */
        assert_false(put(r, 0, MSG_STDERR, " up\n")); /* of another stream */
        assert_false(put(r, 0, MSG_STDOUT, ""));
        assert_false(put(r, 0, MSG_STDOUT, " is up")); /* not ended */
        assert_true(put(r, 0, MSG_STDOUT, "\r"));
        assert_true(put(r, 1, MSG_STDERR, "a\nb\nserver up\nc\n"));
        assert_false(put(r, 1, MSG_STDERR, "server up!\n"));
        ready_lines_destroy(r);
}

TEST(colours_and_long_lines_are_matched)
{
        struct ready_lines *r = ready_lines_create("^INFO: up|^y*$", 1);
        CLEANUP(free_textp) char *text = xcalloc(1, 5000);

        assert_true(put(r, 0, MSG_STDERR, "\033[32mINFO\033[0m: up at 8000\n"));
        memset(text, 'x', 4000);
        assert_false(put(r, 0, MSG_STDERR, text));
        assert_false(put(r, 0, MSG_STDERR, "INFO: up\n"));
        assert_true(put(r, 0, MSG_STDERR, "INFO: up\n"));
        memset(text, 'y', 4000);
        strcpy(text + 4000, "z\n"); /* the first READY_LINE_MAX bytes count */
        assert_true(put(r, 0, MSG_STDERR, text));
        ready_lines_destroy(r);
}

TEST(no_line_of_a_flood_is_passed_over)
{
        struct ready_lines *r = ready_lines_create("ready", 1);
        CLEANUP(free_textp) char *text = xcalloc(1, 20000);

        for (int i = 0; i < 2000; i++)
                strcat(text + 5 * i, i == 3 ? "ready\n" : "line\n");
        assert_true(put(r, 0, MSG_STDOUT, text));
        ready_lines_destroy(r);
}
