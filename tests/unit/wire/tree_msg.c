/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tree_msg.h"

#include <errno.h>

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/codec.h"
#include "wire/msg.h"

static char *words[] = { (char *)"ssh", (char *)"gpu7" };

static struct child_agent_order make_order(uint32_t options_at)
{
        return (struct child_agent_order){ .number = 9,
                                           .options_at = options_at,
                                           .lent_agent = true,
                                           .argv = { .v = words, .n = ARRAY_SIZE(words) },
                                           .alias = (char *)"gpu7",
                                           .known_hosts = (char *)"gpu7 ssh-ed25519 AAAA\n" };
}

TEST(an_order_comes_back_as_sent)
{
        const struct child_agent_order sent = make_order(1);
        CLEANUP(child_agent_order_finish) struct child_agent_order m;

        ASSERT_ONLY_WHOLE(child_agent_order, MSG_CHILD_AGENT, &sent);
        ASSERT_COMES_BACK(child_agent_order, MSG_CHILD_AGENT, &m, &sent);
        assert_int_equal(m.number, 9);
        assert_int_equal(m.options_at, 1);
        assert_true(m.lent_agent);
        assert_int_equal(m.argv.n, 2);
        assert_string_equal(m.argv.v[1], "gpu7");
        assert_string_equal(m.alias, "gpu7");
        assert_string_equal(m.known_hosts, "gpu7 ssh-ed25519 AAAA\n");
}

TEST(options_stand_behind_a_program)
{
        static const uint32_t wrong[] = { 0, 3, UINT32_MAX };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                const struct child_agent_order sent = make_order(wrong[i]);

                ASSERT_MALFORMED(child_agent_order, MSG_CHILD_AGENT, &sent);
        }
}

TEST(an_order_without_words_is_one_for_the_agents_own_program)
{
        struct child_agent_order m = { .number = 9 };

        ASSERT_COMES_BACK(child_agent_order, MSG_CHILD_AGENT, &m, &m);
        assert_int_equal(m.number, 9);
        assert_int_equal(m.argv.n, 0);
        child_agent_order_finish(&m);
        m = (struct child_agent_order){ .number = 9, .options_at = 1 };
        ASSERT_MALFORMED(child_agent_order, MSG_CHILD_AGENT, &m);
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
                CLEANUP(buf_finish) struct buf b = BUF_INIT;
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
        }
}

TEST(an_unknown_kind_is_malformed)
{
        ASSERT_MALFORMED(tunnel, MSG_TUNNEL, &(struct tunnel){ .child = 1, .kind = TUNNEL_KINDS });
}

TEST(a_prune_names_its_child)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        uint32_t number;
        struct frame f;

        number_encode(&b, MSG_PRUNE, 12);
        f = only_frame(&b, MSG_PRUNE);
        assert_int_equal(number_decode(&number, &f, NULL), 0);
        assert_int_equal(number, 12);
        f.len--;
        assert_int_equal(number_decode(&number, &f, NULL), -EPROTO);
}
