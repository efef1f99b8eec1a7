/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include "base/memory.h"
#include "lib/unit.h"

TEST(bytes_come_out_in_the_order_they_went_in)
{
        struct buf b = BUF_INIT;

        assert_int_equal(buf_append(&b, "abc", 3), 0);
        assert_int_equal(buf_appends(&b, "def"), 0);
        assert_int_equal(buf_printf(&b, "%d%s", 42, "!"), 0);
        assert_int_equal(buf_len(&b), 9);
        assert_memory_equal(buf_data(&b), "abcdef42!", 9);
        buf_finish(&b);
        assert_int_equal(buf_len(&b), 0);
}

TEST(consume_drops_only_the_front)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        buf_appends(&b, "hello world");
        buf_consume(&b, 6);
        assert_int_equal(buf_len(&b), 5);
        assert_memory_equal(buf_data(&b), "world", 5);
        buf_consume(&b, 5);
        assert_int_equal(buf_len(&b), 0);
}

TEST(a_queue_keeps_its_bytes_while_it_moves_and_grows)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        uint32_t in = 0, out = 0;

        for (int round = 0; round < 2000; round++) {
                for (int i = 0; i < round % 37; i++, in++)
                        assert_int_equal(buf_append(&b, &in, sizeof(in)), 0);
                for (int i = 0; i < round % 31 && buf_len(&b); i++, out++) {
                        uint32_t got;

                        memcpy(&got, buf_data(&b), sizeof(got));
                        assert_int_equal(got, out);
                        buf_consume(&b, sizeof(got));
                }
        }
        assert_int_equal(buf_len(&b), (in - out) * sizeof(in));
}

TEST(a_short_queue_that_is_used_for_long_stays_small)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        char block[100] = { 0 };

        buf_append(&b, block, sizeof(block));
        for (int i = 0; i < 100000; i++) {
                buf_append(&b, block, sizeof(block));
                buf_consume(&b, sizeof(block));
        }
        assert_true(b.cap <= 4096);
}

TEST(reserved_space_holds_the_bytes_asked_for)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        char *to;

        buf_appends(&b, "x");
        to = buf_reserve(&b, 100000);
        assert_non_null(to);
        memset(to, 'y', 100000);
        buf_advance(&b, 100000);
        assert_int_equal(buf_len(&b), 100001);
        assert_int_equal(buf_data(&b)[0], 'x');
        assert_int_equal(buf_data(&b)[100000], 'y');
}

TEST(clear_empties_and_keeps_the_memory)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        size_t cap;

        buf_printf(&b, "%0500d", 1);
        cap = b.cap;
        buf_clear(&b);
        assert_int_equal(buf_len(&b), 0);
        assert_int_equal(b.cap, cap);
}

TEST(steal_gives_a_string_and_leaves_a_new_buffer)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        CLEANUP(free_textp) char *text = NULL;

        buf_appends(&b, "skip this");
        buf_consume(&b, 5);
        text = buf_steal(&b);
        assert_string_equal(text, "this");
        free(text);
        assert_int_equal(buf_len(&b), 0);
        text = buf_steal(&b);
        assert_string_equal(text, "");
}

TEST(appending_nothing_is_fine)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        assert_int_equal(buf_append(&b, NULL, 0), 0);
        assert_non_null(buf_data(&b));
        assert_int_equal(buf_len(&b), 0);
        assert_false(buf_failed(&b));
}

TEST(truncate_drops_only_the_end)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        buf_appends(&b, "head and tail");
        buf_consume(&b, 1);
        buf_truncate(&b, 3);
        assert_int_equal(buf_len(&b), 3);
        assert_memory_equal(buf_data(&b), "ead", 3);
        buf_truncate(&b, 0);
        assert_int_equal(buf_len(&b), 0);
        buf_appends(&b, "new");
        assert_memory_equal(buf_data(&b), "new", 3);
}
