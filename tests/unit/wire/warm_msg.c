/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/warm_msg.h"

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/msg_type.h"

TEST(an_order_to_prepare_comes_back_as_sent)
{
        struct warm_order sent = { .word = (char[]){ "python3" },
                                   .modules = { .v = (char *[]){ (char[]){ "torch" },
                                                                 (char[]){ "numpy" } },
                                                .n = 2 },
                                   .slots = 8,
                                   .bind = (char[]){ "numa" },
                                   .cwd = (char[]){ "/data" },
                                   .env = { .v = (char *[]){ (char[]){ "A=1" } }, .n = 1 },
                                   .unset = { .v = (char *[]){ (char[]){ "B*" } }, .n = 1 } },
                          m;

        ASSERT_COMES_BACK(warm_order, MSG_WARM, &m, &sent);
        assert_string_equal(m.word, "python3");
        assert_string_equal(m.modules.v[1], "numpy");
        assert_int_equal(m.slots, 8);
        assert_string_equal(m.bind, "numa");
        assert_string_equal(m.cwd, "/data");
        assert_string_equal(m.env.v[0], "A=1");
        assert_string_equal(m.unset.v[0], "B*");
        warm_order_finish(&m);
}

TEST(an_order_without_program_modules_or_slots_is_malformed)
{
        for (int i = 0; i < 5; i++) {
                char *modules[] = { (char[]){ "json" } };
                struct warm_order sent = { .word = i == 0 ? (char[]){ "" } : (char[]){ "python3" },
                                           .modules = { .v = modules, .n = i != 1 },
                                           .slots = i == 2   ? 0
                                                    : i == 3 ? WARM_SLOTS_MAX + 1
                                                             : WARM_SLOTS_MAX,
                                           .bind = (char[]){ "" },
                                           .cwd = (char[]){ "" } },
                                  m;
                CLEANUP(buf_finish) struct buf b = BUF_INIT;
                struct frame f;

                warm_order_encode(&b, &sent);
                f = first_frame(&b);
                assert_int_equal(warm_order_decode(&m, &f, NULL) == 0, i == 4);
                if (i == 4)
                        warm_order_finish(&m);
        }
}

TEST(an_answer_to_a_preparation_comes_back_as_sent)
{
        struct warmed sent = { .slots = 8, .mib = 230, .ms = 1500, .text = "no module named x" }, m;

        ASSERT_COMES_BACK(warmed, MSG_WARMED, &m, &sent);
        assert_int_equal(m.slots, 8);
        assert_int_equal(m.mib, 230);
        assert_int_equal(m.ms, 1500);
        assert_string_equal(m.text, "no module named x");
}
