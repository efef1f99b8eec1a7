/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/model/step_lines.h"
#include "lib/unit.h"
#include "wire/msg.h"

#define STEPS "([0-9]+)/([0-9]+)"

static void note_step(void *ctx, int rank, int64_t step, int64_t total)
{
        buf_clear(ctx);
        buf_printf(ctx, "%d:%lld/%lld", rank, (long long)step, (long long)total);
}

/* Puts @len bytes in pieces of @piece and expects the last step. */
static void expect_steps(const char *re, const char *data, size_t len, size_t piece,
                         const char *want)
{
        struct buf seen = BUF_INIT;
        struct step_lines *s = step_lines_create(re, 4, note_step, &seen);
        CLEANUP(free_textp) char *text = NULL;

        for (size_t at = 0; at < len; at += piece)
                step_lines_put(s, 2, MSG_STDOUT, data + at, MIN(piece, len - at));
        step_lines_destroy(s);
        text = buf_steal(&seen);
        assert_string_equal(text ? text : "", want);
}

TEST(a_line_has_step_and_total)
{
        static const char lines[] = "step 1/10\nnothing here\nstep 2/10\r\n\nstep 3/10";
        static const char bar[] = "\r 0%| | 0/8\r10%|# | 1/8\r20%|##| 2/8";

        for (size_t piece = 1; piece <= sizeof(lines); piece++) {
                expect_steps("step " STEPS, lines, sizeof(lines) - 1, piece, "2:2/10");
                expect_steps(STEPS, bar, sizeof(bar) - 1, piece, "2:1/8");
        }
}

TEST(groups_without_a_number_are_passed_over)
{
        static const char lines[] = "Epoch 3, iter 7\nstep x of y\nstep 99999999999999999999\n";

        expect_steps("(step|iter) ([0-9a-z]+)", lines, sizeof(lines) - 1, 7, "2:7/0");
}

TEST(a_long_line_is_passed_over)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        for (size_t len = STEP_LINE_MAX - 5; len < STEP_LINE_MAX + 5; len++) {
                buf_clear(&b);
                buf_appends(&b, "3/4\n1/2 ");
                while (buf_len(&b) < len + 4)
                        buf_appends(&b, ".");
                buf_appends(&b, "\n\n");
                for (size_t piece = 1; piece < 2 * STEP_LINE_MAX; piece += piece < 4 ? 1 : 997)
                        expect_steps(STEPS, (const char *)buf_data(&b), buf_len(&b), piece,
                                     len > STEP_LINE_MAX ? "2:3/4" : "2:1/2");
        }
}

TEST(of_a_flood_the_newest_lines_are_matched)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        buf_appends(&b, "first\n1/9\n");
        for (int i = 0; i < STEP_LINES_AT_ONCE - 1; i++)
                buf_appends(&b, "line\n");
        expect_steps(STEPS, (const char *)buf_data(&b), buf_len(&b), SIZE_MAX / 2, "2:1/9");
        buf_appends(&b, "line\n");
        expect_steps(STEPS, (const char *)buf_data(&b), buf_len(&b), SIZE_MAX / 2, "");
        expect_steps(STEPS, (const char *)buf_data(&b), buf_len(&b), 100, "2:1/9");
}

TEST(streams_have_lines_of_their_own)
{
        CLEANUP(buf_finish) struct buf seen = BUF_INIT;
        struct step_lines *s = step_lines_create(STEPS, 2, note_step, &seen);

        step_lines_put(s, 0, MSG_STDOUT, "1", 1);
        step_lines_put(s, 1, MSG_STDOUT, "5", 1);
        step_lines_put(s, 0, MSG_STDERR, "7", 1);
        step_lines_put(s, 0, MSG_STDOUT, "2/20\n", 5);
        assert_memory_equal(buf_data(&seen), "0:12/20", 7);
        step_lines_put(s, 1, MSG_STDOUT, "/6\n", 3);
        assert_memory_equal(buf_data(&seen), "1:5/6", 5);
        step_lines_put(s, 0, MSG_STDERR, "/8\r", 3);
        step_lines_put(s, 2, MSG_STDOUT, "9/9\n", 4);
        assert_memory_equal(buf_data(&seen), "0:7/8", 5);
        step_lines_destroy(s);
        step_lines_put(NULL, 0, MSG_STDOUT, "9/9\n", 4);
}

TEST(a_wrong_expression_is_told)
{
        struct error err;

        assert_int_equal(step_lines_check("step ([0-9]+", &err), -EINVAL);
        assert_string_not_equal(err.text, "");
        assert_int_equal(step_lines_check("step [0-9]+", &err), -EINVAL);
        assert_string_equal(err.text, "it has no group for the step");
        assert_int_equal(step_lines_check(STEPS, &err), 0);
}
