/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/measure_msg.h"

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/msg_type.h"

TEST(an_order_to_measure_comes_back_as_sent)
{
        struct measure_target to = { .port = 4711 };
        struct measure_order sent = { .number = 3,
                                      .token = "abcdefghijkmnpqrstuvwxyz23456789",
                                      .listen = true,
                                      .timeout_ms = 1800,
                                      .send_ms = 150,
                                      .send_bytes = 32 << 20,
                                      .targets = &to,
                                      .n_targets = 1 },
                             m;

        strv_push(&to.addrs, "10.0.0.2");
        strv_push(&to.addrs, "fd00::2");
        ASSERT_COMES_BACK(measure_order, MSG_MEASURE, &m, &sent);
        assert_int_equal(m.number, 3);
        assert_string_equal(m.token, sent.token);
        assert_true(m.listen);
        assert_int_equal(m.timeout_ms, 1800);
        assert_int_equal(m.send_ms, 150);
        assert_int_equal(m.send_bytes, 32 << 20);
        assert_int_equal(m.n_targets, 1);
        assert_int_equal(m.targets[0].port, 4711);
        assert_string_equal(m.targets[0].addrs.v[1], "fd00::2");
        measure_order_finish(&m);
        strv_finish(&to.addrs);
}

TEST(an_order_has_bounds)
{
        struct measure_target to = { .port = 1 };
        struct measure_order sent = { .targets = &to, .n_targets = 1 };

        for (int i = 0; i < 4; i++) {
                to.port = i == 0 ? 0 : i == 1 ? 65536 : 1;
                sent.send_ms = i == 2 ? MEASURE_MS_MAX + 1 : 0;
                sent.send_bytes = i == 3 ? MEASURE_BYTES_MAX + 1 : 0;
                ASSERT_MALFORMED(measure_order, MSG_MEASURE, &sent);
        }
}

TEST(results_come_back_as_sent)
{
        struct measured_target results[2] = {
                { .latency_us = 150, .addr = 1, .sent = 117000000, .received = 12500000000 },
                { .error = 111 }
        };
        struct measured sent = {
                .number = 4, .port = 40000, .text = "no", .results = results, .n_results = 2
        };
        CLEANUP(measured_finish) struct measured m;

        ASSERT_COMES_BACK(measured, MSG_MEASURED, &m, &sent);
        assert_int_equal(m.number, 4);
        assert_int_equal(m.port, 40000);
        assert_string_equal(m.text, "no");
        assert_int_equal(m.n_results, 2);
        assert_int_equal(m.results[0].latency_us, 150);
        assert_int_equal(m.results[0].addr, 1);
        assert_true(m.results[0].sent == 117000000 && m.results[0].received == 12500000000);
        assert_int_equal(m.results[1].error, 111);
        ASSERT_MALFORMED(measured, MSG_MEASURED, &(struct measured){ .port = 65536 });
}
