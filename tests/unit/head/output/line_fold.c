/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/output/line_fold.h"
#include "lib/unit.h"

static void note_line(void *ctx, const struct folded_line *line)
{
        CLEANUP(free_textp) char *ranks = intlist_fold(&line->ranks);

        buf_printf(ctx, "%s:%.*s ", ranks, (int)line->len, line->text);
}

static void add_line(struct line_fold *f, int64_t us, int rank, const char *text)
{
        line_fold_add(f, us, rank, 1, text, strlen(text));
}

static void assert_seen(struct buf *seen, const char *want)
{
        buf_append(seen, "", 1);
        assert_string_equal((const char *)buf_data(seen), want);
        buf_clear(seen);
}

TEST(equal_lines_become_one)
{
        CLEANUP(buf_finish) struct buf seen = BUF_INIT;
        struct line_fold *f = line_fold_create(8, 4, 1000, note_line, &seen);

        add_line(f, 10, 7, "a");
        add_line(f, 11, 2, "b");
        add_line(f, 12, 3, "a");
        add_line(f, 13, 2, "a");
        assert_int_equal(line_fold_oldest(f), 11);
        line_fold_end_until(f, 10);
        assert_seen(&seen, "");
        line_fold_end_until(f, 11);
        assert_seen(&seen, "2:b 2-3,7:a ");
        assert_true(line_fold_oldest(f) == INT64_MAX);
        line_fold_destroy(f);
}

TEST(a_rank_keeps_its_order)
{
        CLEANUP(buf_finish) struct buf seen = BUF_INIT;
        struct line_fold *f = line_fold_create(2, 3, 1000, note_line, &seen);

        add_line(f, 1, 0, "a");
        add_line(f, 2, 0, "b");
        add_line(f, 3, 0, "a");
        add_line(f, 4, 1, "b");
        add_line(f, 5, 1, "a");
        line_fold_end_rank(f, 1);
        assert_seen(&seen, "0:a 0-1:b 0-1:a ");
        add_line(f, 6, 0, "x");
        add_line(f, 6, 0, "y");
        add_line(f, 6, 1, "y");
        add_line(f, 6, 1, "x");
        line_fold_end_all(f);
        assert_seen(&seen, "0:x 0-1:y 1:x ");
        add_line(f, 6, 0, "c");
        line_fold_end_rank(f, 1);
        assert_seen(&seen, "");
        line_fold_destroy(f);
}

TEST(lines_behind_different_lines_fold)
{
        CLEANUP(buf_finish) struct buf seen = BUF_INIT;
        struct line_fold *f = line_fold_create(3, 4, 1000, note_line, &seen);

        for (int r = 0; r < 3; r++) {
                char own[] = { (char)('0' + r), '\0' };

                add_line(f, r, r, own);
                add_line(f, r, r, "ready");
        }
        line_fold_end_all(f);
        assert_seen(&seen, "0:0 1:1 2:2 0-2:ready ");
        add_line(f, 10, 0, "twice");
        add_line(f, 10, 0, "twice");
        line_fold_end_all(f);
        assert_seen(&seen, "0:twice 0:twice ");
        add_line(f, 10, 0, "late");
        add_line(f, LINE_FOLD_US + 10, 1, "own");
        add_line(f, LINE_FOLD_US + 10, 1, "late");
        line_fold_end_all(f);
        assert_seen(&seen, "0:late 1:own 1:late ");
        line_fold_destroy(f);
}

TEST(a_line_of_all_ranks_ends_at_once)
{
        CLEANUP(buf_finish) struct buf seen = BUF_INIT;
        struct line_fold *f = line_fold_create(2, 2, 1000, note_line, &seen);

        add_line(f, 1, 0, "a");
        add_line(f, 1, 1, "a");
        assert_seen(&seen, "0-1:a ");
        add_line(f, 1, 0, "mine");
        add_line(f, 1, 0, "b");
        add_line(f, 1, 1, "b");
        assert_seen(&seen, "");
        line_fold_end_until(f, 1);
        assert_seen(&seen, "0:mine 0-1:b ");
        line_fold_destroy(f);
}

TEST(kinds_and_bytes_are_compared)
{
        CLEANUP(buf_finish) struct buf seen = BUF_INIT;
        struct line_fold *f = line_fold_create(3, 3, 1000, note_line, &seen);

        line_fold_add(f, 1, 0, 1, "x\0y", 3);
        line_fold_add(f, 1, 1, 2, "x\0y", 3);
        line_fold_add(f, 1, 2, 1, "x\0z", 3);
        line_fold_end_all(f);
        assert_int_equal(buf_len(&seen), 0 + 3 * strlen("0:x "));
        line_fold_destroy(f);
}

TEST(what_is_held_is_bounded)
{
        CLEANUP(buf_finish) struct buf seen = BUF_INIT;
        struct line_fold *f = line_fold_create(2, 2, 10, note_line, &seen);
        char text[16];

        add_line(f, 1, 0, "12345");
        add_line(f, 1, 0, "67890");
        assert_seen(&seen, "");
        add_line(f, 1, 0, "+");
        assert_seen(&seen, "0:12345 ");
        add_line(f, 1, 0, "longer than all");
        assert_seen(&seen, "0:67890 0:+ 0:longer than all ");
        line_fold_destroy(f);

        f = line_fold_create(2, 2, 100000, note_line, &seen);
        for (int i = 0; i < 1000; i++) {
                snprintf(text, sizeof(text), "%d", i);
                add_line(f, i, 0, text);
        }
        assert_int_equal(line_fold_oldest(f), 1000 - 256);
        line_fold_destroy(f);
}
