/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tree_msg.h"

#include <errno.h>

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/codec.h"
#include "wire/msg.h"

static void put_order(struct buf *b, uint32_t options_at)
{
        struct child_agent_order m = { .number = 9,
                                       .options_at = options_at,
                                       .lent_agent = true,
                                       .alias = (char *)"gpu7",
                                       .known_hosts = (char *)"gpu7 ssh-ed25519 AAAA\n" };

        strv_push(&m.argv, "ssh");
        strv_push(&m.argv, "gpu7");
        child_agent_order_encode(b, &m);
        strv_finish(&m.argv);
}

TEST(an_order_comes_back_as_sent)
{
        struct buf b = BUF_INIT;
        struct child_agent_order m;
        struct frame f;

        put_order(&b, 1);
        f = only_frame(&b, MSG_CHILD_AGENT);
        assert_int_equal(child_agent_order_decode(&m, &f, NULL), 0);
        assert_int_equal(m.number, 9);
        assert_int_equal(m.options_at, 1);
        assert_true(m.lent_agent);
        assert_int_equal(m.argv.n, 2);
        assert_string_equal(m.argv.v[1], "gpu7");
        assert_string_equal(m.alias, "gpu7");
        assert_string_equal(m.known_hosts, "gpu7 ssh-ed25519 AAAA\n");
        child_agent_order_finish(&m);
        for (size_t cut = 0; cut < f.len; cut++) {
                struct frame part = { .type = f.type, .body = f.body, .len = cut };

                assert_int_equal(child_agent_order_decode(&m, &part, NULL), -EPROTO);
        }
        buf_finish(&b);
}

TEST(options_stand_behind_a_program)
{
        static const uint32_t wrong[] = { 0, 3, UINT32_MAX };
        struct child_agent_order m;

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                struct buf b = BUF_INIT;
                struct frame f;

                put_order(&b, wrong[i]);
                f = only_frame(&b, MSG_CHILD_AGENT);
                assert_int_equal(child_agent_order_decode(&m, &f, NULL), -EPROTO);
                buf_finish(&b);
        }
}

TEST(an_order_without_words_is_one_for_the_agents_own_program)
{
        struct child_agent_order m = { .number = 9 };
        struct buf b = BUF_INIT;
        struct frame f;

        child_agent_order_encode(&b, &m);
        f = only_frame(&b, MSG_CHILD_AGENT);
        assert_int_equal(child_agent_order_decode(&m, &f, NULL), 0);
        assert_int_equal(m.number, 9);
        assert_int_equal(m.argv.n, 0);
        child_agent_order_finish(&m);
        buf_finish(&b);
        m = (struct child_agent_order){ .number = 9, .options_at = 1 };
        child_agent_order_encode(&b, &m);
        f = only_frame(&b, MSG_CHILD_AGENT);
        assert_int_equal(child_agent_order_decode(&m, &f, NULL), -EPROTO);
        buf_finish(&b);
}

TEST(a_tunnel_has_bytes_or_a_number)
{
        for (uint8_t kind = 0; kind < TUNNEL_KINDS; kind++) {
                bool offset = kind == TUNNEL_CLOCK || kind == TUNNEL_COMMON;
                bool number = offset || kind == TUNNEL_TOOK || kind == TUNNEL_ENDED ||
                              kind == TUNNEL_WATCH || kind == TUNNEL_HEARD;
                bool bytes = !number && kind != TUNNEL_UPLOAD;
                struct tunnel m = { .child = 3,
                                    .kind = kind,
                                    .number = 77,
                                    .offset = 1ULL << 40,
                                    .data = (const unsigned char *)"a\0b",
                                    .len = bytes ? 3 : 0 },
                              got;
                struct buf b = BUF_INIT;
                struct frame f;

                tunnel_encode(&b, &m);
                f = only_frame(&b, MSG_TUNNEL);
                assert_int_equal(tunnel_decode(&got, &f, NULL), 0);
                assert_int_equal(got.child, 3);
                assert_int_equal(got.kind, kind);
                assert_int_equal(got.number, number ? 77 : 0);
                assert_int_equal(got.offset, offset ? 1ULL << 40 : 0);
                assert_int_equal(got.len, m.len);
                if (bytes)
                        assert_memory_equal(got.data, "a\0b", 3);
                buf_append(&b, "more", 4);
                f = (struct frame){ f.type, buf_data(&b) + FRAME_HEADER, f.len + 4 };
                assert_int_equal(tunnel_decode(&got, &f, NULL), bytes ? 0 : -EPROTO);
                buf_finish(&b);
        }
}

TEST(an_unknown_kind_is_malformed)
{
        struct buf b = BUF_INIT;
        struct tunnel m;
        struct frame f;

        tunnel_encode(&b, &(struct tunnel){ .child = 1, .kind = TUNNEL_KINDS });
        f = only_frame(&b, MSG_TUNNEL);
        assert_int_equal(tunnel_decode(&m, &f, NULL), -EPROTO);
        buf_finish(&b);
}

TEST(a_prune_names_its_child)
{
        struct buf b = BUF_INIT;
        uint32_t number;
        struct frame f;

        number_encode(&b, MSG_PRUNE, 12);
        f = only_frame(&b, MSG_PRUNE);
        assert_int_equal(number_decode(&number, &f, NULL), 0);
        assert_int_equal(number, 12);
        f.len--;
        assert_int_equal(number_decode(&number, &f, NULL), -EPROTO);
        buf_finish(&b);
}
