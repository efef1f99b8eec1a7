/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/endpoint_msg.h"

#include <errno.h>
#include <stdio.h>

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/codec.h"
#include "wire/msg.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static void put_endpoint(struct buf *b, uint8_t mode, const char *token)
{
        struct endpoint_order m = { .mode = mode, .value_max = 1 << 30, .ask_owners = true };

        snprintf(m.token, sizeof(m.token), "%s", token);
        strv_push(&m.peers, "10.0.0.1");
        strv_push(&m.peers, "fe80::1");
        endpoint_order_encode(b, &m);
        strv_finish(&m.peers);
}

static void put_probe(struct buf *b)
{
        struct probe_order m = { .token = TOKEN, .port = 29400, .timeout_ms = 5000 };

        strv_push(&m.addrs, "10.0.0.1");
        strv_push(&m.addrs, "2001:db8::1");
        probe_order_encode(b, &m);
        strv_finish(&m.addrs);
}

static struct probe_result results[] = { { 0, "ib0", 120 }, { ECONNREFUSED, "", 7000000 } };

static void put_probed(struct buf *b)
{
        probed_encode(b, &(struct probed){ .results = results, .n = ARRAY_SIZE(results) });
}

static uint32_t ports[] = { 1, 65535 };
static struct owner owners[] = { { OWNER_USER, 0 }, { OWNER_OTHER, 65533 }, { OWNER_UNKNOWN, 0 } };

static void put_owners_request(struct buf *b)
{
        struct owners_request m = { .number = 7, .port = 29400, .ports = ports, .n = 2 };

        memset(m.ends.from, 1, sizeof(m.ends.from));
        memset(m.ends.to, 2, sizeof(m.ends.to));
        owners_request_encode(b, &m);
}

static void put_owners(struct buf *b)
{
        owners_encode(b, &(struct owners){ 7, "node002", owners, ARRAY_SIZE(owners) });
}

TEST(an_endpoint_order_comes_back_as_sent)
{
        for (uint8_t mode = ENDPOINT_LOOPBACK; mode <= ENDPOINT_NETWORK; mode++) {
                struct buf b = BUF_INIT;
                struct endpoint_order m;
                struct frame f;

                put_endpoint(&b, mode, TOKEN);
                f = only_frame(&b, MSG_ENDPOINT);
                assert_int_equal(endpoint_order_decode(&m, &f, NULL), 0);
                assert_int_equal(m.mode, mode);
                assert_string_equal(m.token, TOKEN);
                assert_int_equal(m.value_max, 1 << 30);
                assert_true(m.ask_owners);
                assert_int_equal(m.peers.n, 2);
                assert_string_equal(m.peers.v[1], "fe80::1");
                endpoint_order_finish(&m);
                buf_finish(&b);
        }
}

TEST(an_unknown_mode_is_malformed)
{
        static const uint8_t modes[] = { 0, ENDPOINT_NETWORK + 1 };

        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                struct buf b = BUF_INIT;
                struct endpoint_order m;
                struct error err;
                struct frame f;

                put_endpoint(&b, modes[i], TOKEN);
                f = only_frame(&b, MSG_ENDPOINT);
                assert_int_equal(endpoint_order_decode(&m, &f, &err), -EPROTO);
                assert_string_equal(err.text, "malformed ENDPOINT message");
                buf_finish(&b);
        }
}

/* One more character than a token has. */
TEST(a_long_token_is_malformed)
{
        struct buf b = BUF_INIT;
        struct endpoint_order m;
        struct error err;
        struct frame f;
        size_t mark = frame_begin(&b, MSG_ENDPOINT);

        put_u8(&b, ENDPOINT_NETWORK);
        put_str(&b, TOKEN "x");
        put_u32(&b, 0);
        put_u8(&b, 0);
        put_u32(&b, 0);
        frame_end(&b, mark);
        f = only_frame(&b, MSG_ENDPOINT);
        assert_int_equal(endpoint_order_decode(&m, &f, &err), -EPROTO);
        buf_finish(&b);
}

TEST(an_opened_endpoint_comes_back_as_sent)
{
        struct endpoint_opened in = { .port = 65535, .text = "no port is free" }, out;
        struct buf b = BUF_INIT;
        struct frame f;

        endpoint_opened_encode(&b, &in);
        f = only_frame(&b, MSG_ENDPOINT_OPENED);
        assert_int_equal(endpoint_opened_decode(&out, &f, NULL), 0);
        assert_int_equal(out.port, 65535);
        assert_string_equal(out.text, in.text);
        buf_finish(&b);
}

static void put_ports(struct buf *b)
{
        ports_held_encode(b, &(struct ports_held){ ports, ARRAY_SIZE(ports), "" });
}

TEST(held_ports_come_back_as_sent)
{
        struct buf b = BUF_INIT;
        struct ports_held m;
        struct frame f;

        put_ports(&b);
        f = only_frame(&b, MSG_PORTS_HELD);
        assert_int_equal(ports_held_decode(&m, &f, NULL), 0);
        assert_int_equal(m.n, 2);
        assert_memory_equal(m.numbers, ports, sizeof(ports));
        ports_held_finish(&m);
        buf_finish(&b);
}

TEST(numbers_that_are_no_ports_are_malformed)
{
        uint32_t many[PORT_NUMBERS_MAX + 1], wrong[] = { 0, 65536, UINT32_MAX };
        struct ports_held m = { .numbers = many, .n = ARRAY_SIZE(many) }, got;
        struct buf b = BUF_INIT;
        struct error err;
        struct frame f;

        for (size_t i = 0; i < ARRAY_SIZE(many); i++)
                many[i] = 1;
        ports_held_encode(&b, &m);
        f = only_frame(&b, MSG_PORTS_HELD);
        assert_int_equal(ports_held_decode(&got, &f, &err), -EPROTO);
        buf_clear(&b);
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                ports_held_encode(&b, &(struct ports_held){ .numbers = &wrong[i], .n = 1 });
                f = only_frame(&b, MSG_PORTS_HELD);
                assert_int_equal(ports_held_decode(&got, &f, &err), -EPROTO);
                buf_clear(&b);
        }
        buf_finish(&b);
}

TEST(a_probe_comes_back_as_sent)
{
        struct buf b = BUF_INIT;
        struct probe_order m;
        struct frame f;

        put_probe(&b);
        f = only_frame(&b, MSG_PROBE);
        assert_int_equal(probe_order_decode(&m, &f, NULL), 0);
        assert_string_equal(m.token, TOKEN);
        assert_int_equal(m.port, 29400);
        assert_int_equal(m.timeout_ms, 5000);
        assert_int_equal(m.addrs.n, 2);
        assert_string_equal(m.addrs.v[0], "10.0.0.1");
        probe_order_finish(&m);
        buf_finish(&b);
}

TEST(results_come_back_as_sent)
{
        struct buf b = BUF_INIT;
        struct probed m;
        struct frame f;

        put_probed(&b);
        f = only_frame(&b, MSG_PROBED);
        assert_int_equal(probed_decode(&m, &f, NULL), 0);
        assert_int_equal(m.n, 2);
        for (uint32_t i = 0; i < m.n; i++) {
                assert_int_equal(m.results[i].error, results[i].error);
                assert_string_equal(m.results[i].iface, results[i].iface);
                assert_int_equal(m.results[i].us, results[i].us);
        }
        probed_finish(&m);
        buf_finish(&b);
}

TEST(a_question_about_owners_comes_back_as_sent)
{
        struct buf b = BUF_INIT;
        struct owners_request m;
        struct frame f;

        put_owners_request(&b);
        f = only_frame(&b, MSG_OWNERS_REQUEST);
        assert_int_equal(owners_request_decode(&m, &f, NULL), 0);
        assert_int_equal(m.number, 7);
        assert_int_equal(m.ends.from[15], 1);
        assert_int_equal(m.ends.to[0], 2);
        assert_int_equal(m.port, 29400);
        assert_int_equal(m.n, 2);
        assert_memory_equal(m.ports, ports, sizeof(ports));
        owners_request_finish(&m);
        buf_finish(&b);
}

TEST(owners_come_back_as_sent)
{
        struct buf b = BUF_INIT;
        struct owners m;
        struct frame f;

        put_owners(&b);
        f = only_frame(&b, MSG_OWNERS);
        assert_int_equal(owners_decode(&m, &f, NULL), 0);
        assert_int_equal(m.number, 7);
        assert_string_equal(m.nodes, "node002");
        assert_int_equal(m.n, ARRAY_SIZE(owners));
        for (uint32_t i = 0; i < m.n; i++) {
                assert_int_equal(m.owners[i].verdict, owners[i].verdict);
                assert_int_equal(m.owners[i].uid, owners[i].uid);
        }
        owners_finish(&m);
        buf_finish(&b);
}

TEST(an_unknown_verdict_is_malformed)
{
        static const uint8_t verdicts[] = { 0, OWNER_VERDICTS };

        for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
                struct owner one = { .verdict = verdicts[i] };
                struct buf b = BUF_INIT;
                struct owners m;
                struct error err;
                struct frame f;

                owners_encode(&b, &(struct owners){ 7, "", &one, 1 });
                f = only_frame(&b, MSG_OWNERS);
                assert_int_equal(owners_decode(&m, &f, &err), -EPROTO);
                buf_finish(&b);
        }
}

/* The counts stand for more than may be asked at once. */
TEST(too_many_candidates_are_malformed)
{
        struct probe_order m = { .token = TOKEN }, got;
        struct probe_result many[ENDPOINT_CANDIDATES_MAX + 1] = { 0 };
        struct buf b = BUF_INIT;
        struct probed results_got;
        struct error err;
        struct frame f;

        for (int i = 0; i <= ENDPOINT_CANDIDATES_MAX; i++)
                strv_push(&m.addrs, "10.0.0.1");
        probe_order_encode(&b, &m);
        f = only_frame(&b, MSG_PROBE);
        assert_int_equal(probe_order_decode(&got, &f, &err), -EPROTO);
        strv_finish(&m.addrs);
        buf_clear(&b);
        probed_encode(&b, &(struct probed){ .results = many, .n = ARRAY_SIZE(many) });
        f = only_frame(&b, MSG_PROBED);
        assert_int_equal(probed_decode(&results_got, &f, &err), -EPROTO);
        buf_finish(&b);
}

#define DECODE_OWNING(name)                                                                        \
        {                                                                                          \
                struct name m;                                                                     \
                int r = name##_decode(&m, f, err);                                                 \
                                                                                                   \
                if (r == 0)                                                                        \
                        name##_finish(&m);                                                         \
                return r;                                                                          \
        }

/* Decodes a frame of any of the seven types, and frees the result. */
static int decode(const struct frame *f, struct error *err)
{
        struct endpoint_opened opened;

        switch (f->type) {
        case MSG_ENDPOINT:
                DECODE_OWNING(endpoint_order)
        case MSG_PROBE:
                DECODE_OWNING(probe_order)
        case MSG_PROBED:
                DECODE_OWNING(probed)
        case MSG_OWNERS_REQUEST:
                DECODE_OWNING(owners_request)
        case MSG_OWNERS:
                DECODE_OWNING(owners)
        case MSG_PORTS_HELD:
                DECODE_OWNING(ports_held)
        default:
                return endpoint_opened_decode(&opened, f, err);
        }
}

TEST(addresses_have_one_form)
{
        static const unsigned char four[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
                                   six[16] = { [15] = 1 };
        unsigned char got[16];

        assert_true(owner_ends_address("10.0.0.1", got));
        assert_memory_equal(got, four, sizeof(four));
        assert_true(owner_ends_address("::ffff:10.0.0.1", got));
        assert_memory_equal(got, four, sizeof(four));
        assert_true(owner_ends_address("::1", got));
        assert_memory_equal(got, six, sizeof(six));
        assert_false(owner_ends_address("node001", got));
        assert_false(owner_ends_address("beef", got));
        assert_false(owner_ends_address("", got));
}

TEST(every_shorter_or_longer_message_is_malformed)
{
        struct buf b[7] = { BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT };

        put_endpoint(&b[0], ENDPOINT_NETWORK, TOKEN);
        put_probe(&b[1]);
        put_probed(&b[2]);
        endpoint_opened_encode(&b[3], &(struct endpoint_opened){ .text = "why" });
        put_owners_request(&b[4]);
        put_owners(&b[5]);
        put_ports(&b[6]);
        for (size_t i = 0; i < ARRAY_SIZE(b); i++) {
                struct error err;
                struct frame f;
                size_t len;

                assert_int_equal(frame_peek(&b[i], &f, &err), 1);
                assert_int_equal(decode(&f, &err), 0);
                len = f.len;
                for (f.len = 0; f.len < len; f.len++)
                        assert_int_equal(decode(&f, &err), -EPROTO);
                put_u8(&b[i], 0);
                f.body = buf_data(&b[i]) + FRAME_HEADER;
                f.len = len + 1;
                assert_int_equal(decode(&f, &err), -EPROTO);
                buf_finish(&b[i]);
        }
}
