/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sodium.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "wire/noise/dial.h"

static struct dial_stream node, head;
static struct buf wire;

static void meet_streams(void)
{
        uint8_t psk[NOISE_KEY], first[DIAL_GREETING], second[DIAL_GREETING];

        dial_psk(psk, "0123456789abcdef");
        dial_greet(&node, psk, first);
        assert_int_equal(dial_answer(&head, psk, first, second), 0);
        assert_int_equal(dial_take_answer(&node, second), 0);
        buf_clear(&wire);
}

TEST(greetings_tell_a_wrong_secret_from_a_wrong_service)
{
        uint8_t psk[NOISE_KEY], other[NOISE_KEY], first[DIAL_GREETING], second[DIAL_GREETING];

        dial_psk(psk, "0123456789abcdef0123456789abcdef");
        dial_psk(other, "0123456789abcdef0123456789abcdeF");
        dial_greet(&node, psk, first);
        assert_int_equal(dial_answer(&head, other, first, second), -EBADMSG);
        first[0] = 'G';
        assert_int_equal(dial_answer(&head, psk, first, second), -EPROTO);
        memcpy(second, "HTTP/1.1 400 Bad", 16);
        assert_int_equal(dial_take_answer(&node, second), -EPROTO);
}

TEST(each_connection_has_a_hash_of_its_own)
{
        uint8_t other[NOISE_HASH];

        meet_streams();
        assert_memory_equal(node.hash, head.hash, NOISE_HASH);
        memcpy(other, head.hash, sizeof(other));
        meet_streams();
        assert_memory_equal(node.hash, head.hash, NOISE_HASH);
        assert_memory_not_equal(other, head.hash, NOISE_HASH);
}

TEST(records_come_out_whole_from_any_pieces)
{
        CLEANUP(buf_finish) struct buf in = BUF_INIT;
        struct dial_record r;

        meet_streams();
        dial_put(&node, DIAL_DATA, "hello", 5, &wire);
        dial_put(&node, DIAL_WELCOME, NULL, 0, &wire);
        for (size_t i = 0; i + 1 < buf_len(&wire); i++) {
                buf_append(&in, buf_data(&wire) + i, 1);
                if (dial_take(&head, &in, &r) == 1) {
                        assert_int_equal(r.type, DIAL_DATA);
                        assert_int_equal(r.len, 5);
                        assert_memory_equal(r.body, "hello", 5);
                        buf_consume(&in, r.whole);
                }
        }
        buf_append(&in, buf_data(&wire) + buf_len(&wire) - 1, 1);
        assert_int_equal(dial_take(&head, &in, &r), 1);
        assert_int_equal(r.type, DIAL_WELCOME);
        assert_int_equal(r.len, 0);
}

TEST(long_data_is_split_and_joined)
{
        size_t len = 3 * DIAL_DATA_MAX + 7, got = 0;
        unsigned char *data = xcalloc(1, len);
        struct dial_record r;

        for (size_t i = 0; i < len; i++)
                data[i] = (unsigned char)(i * 7 >> 3);
        meet_streams();
        dial_put(&head, DIAL_DATA, data, len, &wire);
        while (dial_take(&node, &wire, &r) == 1) {
                assert_true(got + r.len <= len);
                assert_memory_equal(r.body, data + got, r.len);
                got += r.len;
                buf_consume(&wire, r.whole);
        }
        assert_int_equal(got, len);
        assert_int_equal(buf_len(&wire), 0);
        free(data);
}

TEST(a_changed_record_ends_the_stream)
{
        struct dial_record r;

        meet_streams();
        dial_put(&node, DIAL_DATA, "hello", 5, &wire);
        wire.mem[wire.start + 4] ^= 1;
        assert_int_equal(dial_take(&head, &wire, &r), -EBADMSG);
        buf_clear(&wire);
        buf_append(&wire, "\1\0", 2); /* too short for a type and a tag */
        assert_int_equal(dial_take(&head, &wire, &r), -EBADMSG);
}

TEST(a_join_is_judged)
{
        struct dial_join m = { .version = 5, .rank = 2, .nodes = 4, .name = "gpu 02\n" }, got;
        struct dial_record r;

        meet_streams();
        dial_join_put(&node, &m, &wire);
        assert_int_equal(dial_take(&head, &wire, &r), 1);
        assert_int_equal(dial_join_decode(&got, &r), 0);
        assert_int_equal(got.rank, 2);
        assert_int_equal(got.nodes, 4);
        assert_string_equal(got.name, "gpu_02_");
        r.len--;
        assert_int_equal(dial_join_decode(&got, &r), -EPROTO);
        buf_clear(&wire);
        dial_put(&node, DIAL_JOIN, "\5\0\0\0\2\0\0\0\4\0\0\0\3\0\0\0a\033b", 19, &wire);
        assert_int_equal(dial_take(&head, &wire, &r), 1);
        assert_int_equal(dial_join_decode(&got, &r), -EPROTO);
}

TEST(an_end_carries_code_and_text)
{
        struct dial_end m = { .code = 7, .text = "failed: rank 3" }, got;
        struct dial_record r;

        meet_streams();
        dial_end_put(&head, DIAL_END, &m, &wire);
        assert_int_equal(dial_take(&node, &wire, &r), 1);
        assert_int_equal(dial_end_decode(&got, &r), 0);
        assert_int_equal(got.code, 7);
        assert_string_equal(got.text, "failed: rank 3");
        r.type = DIAL_JOIN;
        assert_int_equal(dial_end_decode(&got, &r), -EPROTO);
}

static int setup_sodium(void **state UNUSED)
{
        return sodium_init() < 0;
}

static int finish_wire(void **state UNUSED)
{
        buf_finish(&wire);
        return 0;
}

UNIT_MAIN(setup_sodium, finish_wire)
