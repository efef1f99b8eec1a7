/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/endpoint_msg.h"

#include <errno.h>

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/codec.h"
#include "wire/msg.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static struct endpoint_order make_endpoint(uint8_t mode)
{
        struct endpoint_order m = {
                .mode = mode, .token = TOKEN, .value_max = 1 << 30, .ask_owners = true
        };

        strv_push(&m.peers, "10.0.0.1");
        strv_push(&m.peers, "fe80::1");
        return m;
}

static uint32_t ports[] = { 1, 65535 };

TEST(an_endpoint_order_comes_back_as_sent)
{
        for (uint8_t mode = ENDPOINT_LOOPBACK; mode <= ENDPOINT_NETWORK; mode++) {
                struct endpoint_order sent = make_endpoint(mode), m;

                ASSERT_ONLY_WHOLE(endpoint_order, MSG_ENDPOINT, &sent);
                ASSERT_COMES_BACK(endpoint_order, MSG_ENDPOINT, &m, &sent);
                assert_int_equal(m.mode, mode);
                assert_string_equal(m.token, TOKEN);
                assert_int_equal(m.value_max, 1 << 30);
                assert_true(m.ask_owners);
                assert_int_equal(m.peers.n, 2);
                assert_string_equal(m.peers.v[1], "fe80::1");
                endpoint_order_finish(&m);
                strv_finish(&sent.peers);
        }
}

TEST(an_unknown_mode_is_malformed)
{
        static const uint8_t modes[] = { 0, ENDPOINT_NETWORK + 1 };

        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                struct endpoint_order sent = make_endpoint(modes[i]), m;
                struct error err;
                struct frame f;

                f = CARRY(endpoint_order, MSG_ENDPOINT, &sent);
                assert_int_equal(endpoint_order_decode(&m, &f, &err), -EPROTO);
                assert_string_equal(err.text, "malformed ENDPOINT message");
                strv_finish(&sent.peers);
        }
}

/* One more character than a token has. */
TEST(a_long_token_is_malformed)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct endpoint_order m;
        struct frame f;
        size_t mark = frame_begin(&b, MSG_ENDPOINT);

        put_u8(&b, ENDPOINT_NETWORK);
        put_str(&b, TOKEN "x");
        put_u32(&b, 0);
        put_u8(&b, 0);
        put_u32(&b, 0);
        frame_end(&b, mark);
        f = only_frame(&b, MSG_ENDPOINT);
        assert_int_equal(endpoint_order_decode(&m, &f, NULL), -EPROTO);
}

TEST(an_opened_endpoint_comes_back_as_sent)
{
        struct endpoint_opened in = { .port = 65535, .text = "no port is free" }, out;

        ASSERT_ONLY_WHOLE(endpoint_opened, MSG_ENDPOINT_OPENED, &in);
        ASSERT_COMES_BACK(endpoint_opened, MSG_ENDPOINT_OPENED, &out, &in);
        assert_int_equal(out.port, 65535);
        assert_string_equal(out.text, in.text);
}

TEST(held_ports_come_back_as_sent)
{
        const struct ports_held sent = { ports, ARRAY_SIZE(ports), "" };
        CLEANUP(ports_held_finish) struct ports_held m;

        ASSERT_ONLY_WHOLE(ports_held, MSG_PORTS_HELD, &sent);
        ASSERT_COMES_BACK(ports_held, MSG_PORTS_HELD, &m, &sent);
        assert_int_equal(m.n, 2);
        assert_memory_equal(m.numbers, ports, sizeof(ports));
}

TEST(numbers_that_are_no_ports_are_malformed)
{
        uint32_t many[PORT_NUMBERS_MAX + 1], wrong[] = { 0, 65536, UINT32_MAX };
        struct ports_held m = { .numbers = many, .n = ARRAY_SIZE(many) };

        for (size_t i = 0; i < ARRAY_SIZE(many); i++)
                many[i] = 1;
        ASSERT_MALFORMED(ports_held, MSG_PORTS_HELD, &m);
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                ASSERT_MALFORMED(ports_held, MSG_PORTS_HELD,
                                 &(struct ports_held){ .numbers = &wrong[i], .n = 1 });
}

TEST(a_probe_comes_back_as_sent)
{
        struct probe_order sent = { .token = TOKEN, .port = 29400, .timeout_ms = 5000 }, m;

        strv_push(&sent.addrs, "10.0.0.1");
        strv_push(&sent.addrs, "2001:db8::1");
        ASSERT_ONLY_WHOLE(probe_order, MSG_PROBE, &sent);
        ASSERT_COMES_BACK(probe_order, MSG_PROBE, &m, &sent);
        assert_string_equal(m.token, TOKEN);
        assert_int_equal(m.port, 29400);
        assert_int_equal(m.timeout_ms, 5000);
        assert_int_equal(m.addrs.n, 2);
        assert_string_equal(m.addrs.v[0], "10.0.0.1");
        probe_order_finish(&m);
        strv_finish(&sent.addrs);
}

TEST(results_come_back_as_sent)
{
        struct probe_result results[] = { { 0, "ib0", 120 }, { ECONNREFUSED, "", 7000000 } };
        const struct probed sent = { .results = results, .n = ARRAY_SIZE(results) };
        CLEANUP(probed_finish) struct probed m;

        ASSERT_ONLY_WHOLE(probed, MSG_PROBED, &sent);
        ASSERT_COMES_BACK(probed, MSG_PROBED, &m, &sent);
        assert_int_equal(m.n, 2);
        for (uint32_t i = 0; i < m.n; i++) {
                assert_int_equal(m.results[i].error, results[i].error);
                assert_string_equal(m.results[i].iface, results[i].iface);
                assert_int_equal(m.results[i].us, results[i].us);
        }
}

TEST(a_question_about_owners_comes_back_as_sent)
{
        struct owners_request sent = { .number = 7, .port = 29400, .ports = ports, .n = 2 }, m;

        memset(sent.ends.from, 1, sizeof(sent.ends.from));
        memset(sent.ends.to, 2, sizeof(sent.ends.to));
        ASSERT_ONLY_WHOLE(owners_request, MSG_OWNERS_REQUEST, &sent);
        ASSERT_COMES_BACK(owners_request, MSG_OWNERS_REQUEST, &m, &sent);
        assert_int_equal(m.number, 7);
        assert_int_equal(m.ends.from[15], 1);
        assert_int_equal(m.ends.to[0], 2);
        assert_int_equal(m.port, 29400);
        assert_int_equal(m.n, 2);
        assert_memory_equal(m.ports, ports, sizeof(ports));
        owners_request_finish(&m);
}

TEST(owners_come_back_as_sent)
{
        struct owner owners[] = { { OWNER_USER, 0 }, { OWNER_OTHER, 65533 }, { OWNER_UNKNOWN, 0 } };
        const struct owners sent = { 7, "node002", owners, ARRAY_SIZE(owners) };
        CLEANUP(owners_finish) struct owners m;

        ASSERT_ONLY_WHOLE(owners, MSG_OWNERS, &sent);
        ASSERT_COMES_BACK(owners, MSG_OWNERS, &m, &sent);
        assert_int_equal(m.number, 7);
        assert_string_equal(m.nodes, "node002");
        assert_int_equal(m.n, ARRAY_SIZE(owners));
        for (uint32_t i = 0; i < m.n; i++) {
                assert_int_equal(m.owners[i].verdict, owners[i].verdict);
                assert_int_equal(m.owners[i].uid, owners[i].uid);
        }
}

TEST(an_unknown_verdict_is_malformed)
{
        static const uint8_t verdicts[] = { 0, OWNER_VERDICTS };

        for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
                struct owner one = { .verdict = verdicts[i] };

                ASSERT_MALFORMED(owners, MSG_OWNERS, &(struct owners){ 7, "", &one, 1 });
        }
}

/* The counts stand for more than may be asked at once. */
TEST(too_many_candidates_are_malformed)
{
        struct probe_order m = { .token = TOKEN };
        struct probe_result many[ENDPOINT_CANDIDATES_MAX + 1] = { 0 };

        for (int i = 0; i <= ENDPOINT_CANDIDATES_MAX; i++)
                strv_push(&m.addrs, "10.0.0.1");
        ASSERT_MALFORMED(probe_order, MSG_PROBE, &m);
        strv_finish(&m.addrs);
        ASSERT_MALFORMED(probed, MSG_PROBED,
                         &(struct probed){ .results = many, .n = ARRAY_SIZE(many) });
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
