/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/memory.h"
#include "head/output/line_fold.h"
#include "lib/said.h"
#include "lib/unit.h"

static struct line_fold *f;

static void note_line(void *ctx UNUSED, const struct folded_line *line)
{
        CLEANUP(free_textp) char *ranks = intlist_fold(&line->ranks);

        buf_printf(&said, "%s:%.*s ", ranks, (int)line->len, line->text);
}

static void begin(int ranks, size_t lines, size_t bytes)
{
        f = line_fold_create(ranks, lines, bytes, note_line, NULL);
}

static int end(void **state UNUSED)
{
        line_fold_destroy(f);
        buf_finish(&said);
        return 0;
}

#define TEST_FOLD(name) TEST_WITH(NULL, end, name)

static void add_line(int64_t us, int rank, const char *text)
{
        line_fold_add(f, us, rank, 1, text, strlen(text));
}

TEST_FOLD(equal_lines_become_one)
{
        begin(8, 4, 1000);
        add_line(10, 7, "a");
        add_line(11, 2, "b");
        add_line(12, 3, "a");
        add_line(13, 2, "a");
        assert_int_equal(line_fold_oldest(f), 11);
        line_fold_end_until(f, 10);
        expect_said("");
        line_fold_end_until(f, 11);
        expect_said("2:b 2-3,7:a ");
        assert_true(line_fold_oldest(f) == INT64_MAX);
}

TEST_FOLD(a_rank_keeps_its_order)
{
        begin(2, 3, 1000);
        add_line(1, 0, "a");
        add_line(2, 0, "b");
        add_line(3, 0, "a");
        add_line(4, 1, "b");
        add_line(5, 1, "a");
        line_fold_end_rank(f, 1);
        expect_said("0:a 0-1:b 0-1:a ");
        add_line(6, 0, "x");
        add_line(6, 0, "y");
        add_line(6, 1, "y");
        add_line(6, 1, "x");
        line_fold_end_all(f);
        expect_said("0:x 0-1:y 1:x ");
        add_line(6, 0, "c");
        line_fold_end_rank(f, 1);
        expect_said("");
}

TEST_FOLD(lines_behind_different_lines_fold)
{
        begin(3, 4, 1000);
        for (int r = 0; r < 3; r++) {
                char own[] = { (char)('0' + r), '\0' };

                add_line(r, r, own);
                add_line(r, r, "ready");
        }
        line_fold_end_all(f);
        expect_said("0:0 1:1 2:2 0-2:ready ");
        add_line(10, 0, "twice");
        add_line(10, 0, "twice");
        line_fold_end_all(f);
        expect_said("0:twice 0:twice ");
        add_line(10, 0, "late");
        add_line(LINE_FOLD_US + 10, 1, "own");
        add_line(LINE_FOLD_US + 10, 1, "late");
        line_fold_end_all(f);
        expect_said("0:late 1:own 1:late ");
}

TEST_FOLD(a_line_of_all_ranks_ends_at_once)
{
        begin(2, 2, 1000);
        add_line(1, 0, "a");
        add_line(1, 1, "a");
        expect_said("0-1:a ");
        add_line(1, 0, "mine");
        add_line(1, 0, "b");
        add_line(1, 1, "b");
        expect_said("");
        line_fold_end_until(f, 1);
        expect_said("0:mine 0-1:b ");
}

TEST_FOLD(kinds_and_bytes_are_compared)
{
        begin(3, 3, 1000);
        line_fold_add(f, 1, 0, 1, "x\0y", 3);
        line_fold_add(f, 1, 1, 2, "x\0y", 3);
        line_fold_add(f, 1, 2, 1, "x\0z", 3);
        line_fold_end_all(f);
        assert_int_equal(buf_len(&said), 0 + 3 * strlen("0:x "));
}

TEST_FOLD(what_is_held_is_bounded)
{
        char text[16];

        begin(2, 2, 10);
        add_line(1, 0, "12345");
        add_line(1, 0, "67890");
        expect_said("");
        add_line(1, 0, "+");
        expect_said("0:12345 ");
        add_line(1, 0, "longer than all");
        expect_said("0:67890 0:+ 0:longer than all ");
        line_fold_destroy(f);

        begin(2, 2, 100000);
        for (int i = 0; i < 1000; i++) {
                snprintf(text, sizeof(text), "%d", i);
                add_line(i, 0, text);
        }
        assert_int_equal(line_fold_oldest(f), 1000 - 256);
}
