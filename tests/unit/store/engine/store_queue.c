/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine as PyTorch's store: queues, counts, many keys at once. Requests of one owner are told
 * apart by their tags, as those of a node's relay are.
 */
#include "store/engine/store.h"

#include <stdio.h>

#include "lib/said.h"
#include "lib/store_text.h"
#include "lib/unit.h"
#include "wire/store_msg.h"

enum { NODE = 7 }; /* the owner, if none is named */

static void note(void *ctx UNUSED, uint64_t owner, const struct store_reply *r)
{
        if (buf_len(&said))
                buf_appends(&said, " | ");
        if (owner != NODE)
                buf_printf(&said, "%u/", (unsigned)owner);
        buf_printf(&said, "%u %s", r->tag, store_status_word(r->status));
        if (r->number)
                buf_printf(&said, " %d", (int)r->number);
        if (r->value.p)
                buf_printf(&said, " '%.*s'", (int)r->value.len, (const char *)r->value.p);
        for (uint32_t i = 0; i < r->n_parts; i++)
                buf_printf(&said, "%s'%.*s'", i ? "," : " ", (int)r->parts[i].len,
                           r->parts[i].len ? (const char *)r->parts[i].p : "");
        if (r->text.len)
                buf_printf(&said, " %.*s", (int)r->text.len, (const char *)r->text.p);
}

static struct store *fresh(void)
{
        struct store *s = store_create(
                (struct store_ops){ .reply = note, .host_of = store_one_host }, NULL, 4);

        assert_non_null(s);
        buf_clear(&said);
        return s;
}

static bool has_keys(uint8_t op)
{
        return op == STORE_WAIT || op == STORE_CHECK || op == STORE_FETCH || op == STORE_SET_MANY;
}

struct step {
        uint32_t tag;
        uint8_t op;
        const char *key, *value; /* words where the op has many */
        int64_t number, total;
        const char *said;
        uint64_t owner; /* 0 = NODE */
};

static void play(struct store *s, const struct step *steps, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct step *t = &steps[i];
                struct bytes keys[8], values[8];
                char key_room[64], value_room[64];
                struct store_request req = { .op = t->op,
                                             .tag = t->tag,
                                             .key = bytes_of(t->key),
                                             .value = bytes_of(t->value),
                                             .number = t->number,
                                             .total = t->total };

                if (has_keys(t->op)) {
                        req.keys = keys;
                        req.n_keys = store_words(keys, key_room, sizeof(key_room), t->key);
                }
                if (t->op == STORE_SET_MANY) {
                        req.values = values;
                        store_words(values, value_room, sizeof(value_room), t->value);
                }
                store_request(s, t->owner ? t->owner : NODE, -1, &req);
                expect_said(t->said);
        }
}

#define PLAY(s, ...)                                                                               \
        play(s, (struct step[]){ __VA_ARGS__ }, ARRAY_SIZE(((struct step[]){ __VA_ARGS__ })))

TEST(a_queue_is_first_in_first_out)
{
        CLEANUP(destroy_store) struct store *s = fresh();

        PLAY(s, { 1, STORE_PUSH, "q", "a", .said = "1 ok 1" },
             { 2, STORE_PUSH, "q", "", .said = "2 ok 2" },
             { 3, STORE_PUSH, "q", "c", .said = "3 ok 3" },
             { 4, STORE_QUEUE_LEN, "q", .said = "4 ok 3" },
             { 5, STORE_POP, "q", .said = "5 ok 3 'a'" },
             { 6, STORE_POP, "q", .said = "6 ok 2 ''" },
             { 7, STORE_POP, "q", .said = "7 ok 1 'c'" }, { 8, STORE_POP, "q", .said = "8 ok" },
             { 9, STORE_QUEUE_LEN, "q", .said = "9 ok" },
             { 10, STORE_PUSH, "q", "left behind", .said = "10 ok 1" });
}

TEST(a_queue_is_there_for_check_and_wait_but_is_no_key)
{
        CLEANUP(destroy_store) struct store *s = fresh();

        PLAY(s, { 1, STORE_CHECK, "q", .said = "1 ok" },
             { 2, STORE_PUSH, "q", "x", .said = "2 ok 1" },
             { 3, STORE_CHECK, "q", .said = "3 ok 1" }, { 4, STORE_WAIT, "q", .said = "4 ok -1" },
             { 5, STORE_NUM_KEYS, "", .said = "5 ok" }, { 6, STORE_NUM_KEYS, "q", .said = "6 ok" },
             { 7, STORE_LIST, .said = "7 ok" }, { 8, STORE_FETCH, "q", .said = "8 ok ''" },
             { 9, STORE_DELETE, "q", .said = "9 ok" }, { 10, STORE_GET, "q", .said = "" },
             { 11, STORE_SET, "q", "v", .said = "10 ok 'v' | 11 ok" },
             { 12, STORE_WAIT, "q", .said = "12 ok" }, { 13, STORE_DELETE, "q", .said = "13 ok 1" },
             { 14, STORE_POP, "q", .said = "14 ok 1 'x'" },
             { 15, STORE_CHECK, "q", .said = "15 ok" });
}

TEST(a_push_ends_the_wait_of_one)
{
        CLEANUP(destroy_store) struct store *s = fresh();

        PLAY(s, { 1, STORE_GET, "q", .said = "" }, { 2, STORE_WAIT, "q", .said = "" },
             { 3, STORE_WAIT, "q other", .said = "" }, { 4, STORE_WAIT, "q", .said = "" },
             { 5, STORE_PUSH, "q", "a", .said = "2 ok -1 | 5 ok 1" },
             { 6, STORE_PUSH, "q", "b", .said = "6 ok 2" },
             { 7, STORE_PUSH, "q", "c", .said = "4 ok -1 | 7 ok 3" },
             { 8, STORE_SET, "other", "x", .said = "3 ok -1 | 8 ok" },
             { 1, STORE_CANCEL, .said = "1 timeout key `q` is not there" });
        assert_int_equal(store_met(s), 3);
        assert_int_equal(store_waiting(s), 0);
}

TEST(a_value_ends_the_wait_of_all)
{
        CLEANUP(destroy_store) struct store *s = fresh();

        PLAY(s, { 1, STORE_WAIT, "k", .said = "" }, { 2, STORE_WAIT, "k", .said = "" },
             { 3, STORE_SET_MANY, "k l", "x y", .said = "1 ok | 2 ok | 3 ok" });
}

TEST(many_values_come_at_once)
{
        CLEANUP(destroy_store) struct store *s = fresh();

        PLAY(s, { 1, STORE_WAIT, "a b", .said = "" }, { 2, STORE_GET, "b", .said = "" },
             { 3, STORE_SET_MANY, "a b a", "1 2 3", .said = "2 ok '2' | 1 ok | 3 ok" },
             { 4, STORE_FETCH, "b nothing a", .said = "4 ok 2 '2','','3'" },
             { 5, STORE_FETCH, "", .said = "5 ok" }, { 6, STORE_SET_MANY, "", "", .said = "6 ok" },
             { 7, STORE_APPEND, "b", "22", .said = "7 ok 3" },
             { 8, STORE_LIST, .said = "8 ok 2 'a','b'" },
             { 9, STORE_NUM_KEYS, "", .said = "9 ok 2" });
}

TEST(a_count_ends_for_all_at_its_number)
{
        CLEANUP(destroy_store) struct store *s = fresh();

        PLAY(s, { 1, STORE_COUNT, "c", .number = 3, .said = "" },
             { 2, STORE_COUNT, "c", .number = 3, .said = "", .owner = 9 },
             { 3, STORE_FETCH, "c", .said = "3 ok 1 '2'" },
             { 4, STORE_COUNT, "c", .number = 3, .said = "1 ok 3 | 9/2 ok 3 | 4 ok 3" },
             { 5, STORE_COUNT, "c", .number = 3, .said = "5 ok 4" },
             { 6, STORE_COUNT, "c", .number = 8, .said = "" },
             { 7, STORE_COUNT, "c", .number = 7, .said = "" },
             { 8, STORE_COUNT, "c", .number = 8, .said = "7 ok 7" },
             { 9, STORE_ADD, "c", .number = 1, .said = "6 ok 8 | 8 ok 8 | 9 ok 8" },
             { 1, STORE_COUNT, "d", .number = 7, .total = 4, .said = "" },
             { 2, STORE_COUNT, "d", .number = 7, .total = 3, .said = "1 ok 7 | 2 ok 7" });
        assert_int_equal(store_waiting(s), 0);
}

TEST(a_count_needs_a_number)
{
        CLEANUP(destroy_store) struct store *s = fresh();

        PLAY(s, { 1, STORE_SET, "c", "x", .said = "1 ok" },
             { 2, STORE_COUNT, "c", .number = 2,
               .said = "2 invalid key `c` is not a number that can take 1" },
             { 3, STORE_DELETE, "c", .said = "3 ok 1" },
             { 4, STORE_COUNT, "c", .number = 2, .said = "" },
             { 4, STORE_CANCEL, .said = "4 timeout the count `c` is 1, 2 are awaited" },
             { 5, STORE_COUNT, "c", .number = 3, .said = "" },
             { 6, STORE_DELETE, "c", .said = "6 ok 1" },
             { 7, STORE_COUNT, "c", .number = 1, .said = "7 ok 1" },
             { 8, STORE_SET, "c", "3", .said = "5 ok 3 | 8 ok" });
        assert_int_equal(store_waiting(s), 0);
}

TEST(joins_before_the_end_are_counted)
{
        CLEANUP(destroy_store) struct store *s = fresh();

        PLAY(s, { 1, STORE_JOIN, .said = "" }, { 1, STORE_WAIT, "k", .said = "" },
             { 1, STORE_JOIN, .said = "" }, { 1, STORE_JOIN, .said = "" },
             { 1, STORE_JOIN, .said = "", .owner = 9 },
             { 2, STORE_SET, "k", "v", .said = "1 ok 2 | 2 ok" },
             { 1, STORE_JOIN, .said = "" }, /* too late */
             { 3, STORE_WAIT, "k", .said = "3 ok" }, { 4, STORE_WAIT, "x", .said = "" },
             { 4, STORE_JOIN, .said = "" }, { 5, STORE_COUNT, "c", .number = 2, .said = "" },
             { 5, STORE_JOIN, .said = "" });
        store_rank_failed(s, 2, "rank 2 is dead");
        expect_said("4 peer 1 rank 2 is dead | 5 peer rank 2 is dead");
        PLAY(s, { 6, STORE_COUNT, "d", .number = 2, .said = "6 peer rank 2 is dead" });
}

TEST(a_join_after_a_key_has_gone_is_not_covered)
{
        CLEANUP(destroy_store) struct store *s = fresh();

        PLAY(s, { 1, STORE_WAIT, "a b", .said = "" }, { 1, STORE_JOIN, .said = "" },
             { 2, STORE_SET, "a", "1", .said = "2 ok" }, { 1, STORE_JOIN, .said = "" },
             { 3, STORE_DELETE, "a", .said = "3 ok 1" }, { 1, STORE_JOIN, .said = "" },
             { 4, STORE_SET, "a", "1", .said = "4 ok" }, { 1, STORE_JOIN, .said = "" },
             { 5, STORE_SET, "b", "1", .said = "1 ok 2 | 5 ok" });
}

TEST(what_is_forgotten_gets_no_answer)
{
        CLEANUP(destroy_store) struct store *s = fresh();

        PLAY(s, { 1, STORE_WAIT, "k", .said = "" },
             { 2, STORE_COUNT, "c", .number = 3, .said = "" },
             { 3, STORE_COUNT, "c", .number = 3, .said = "", .owner = 9 },
             { 4, STORE_WAIT, "k", .said = "", .owner = 9 });
        store_forget(s, NODE);
        assert_int_equal(store_waiting(s), 2);
        assert_int_equal(store_met(s), 0);
        PLAY(s, { 5, STORE_SET, "k", "v", .said = "9/4 ok | 5 ok" },
             { 6, STORE_COUNT, "c", .number = 2, .said = "9/3 ok 3 | 6 ok 3" });
        assert_int_equal(store_met(s), 3);
}

TEST(a_client_without_rank_joins_no_collective)
{
        CLEANUP(destroy_store) struct store *s = fresh();

        PLAY(s, { 1, STORE_BARRIER, "b", .said = "1 invalid only a rank can be a member" },
             { 2, STORE_GATHER, "b", "x", .said = "2 invalid only a rank can be a member" });
}

TEST(an_answer_has_a_limit)
{
        static char big[STORE_VALUE_MAX];
        CLEANUP(destroy_store) struct store *s = fresh();
        struct bytes keys[] = { { "a", 1 }, { "a", 1 } };
        struct store_request req = { .op = STORE_SET,
                                     .tag = 1,
                                     .key = { "a", 1 },
                                     .value = { big, STORE_ANSWER_MAX / 2 - 8 } };

        store_request(s, NODE, -1, &req);
        expect_said("1 ok");
        req = (struct store_request){ .op = STORE_FETCH, .tag = 2, .keys = keys, .n_keys = 2 };
        store_request(s, NODE, -1, &req);
        assert_memory_equal(buf_data(&said), "2 ok 2 '", 8);
        buf_clear(&said);
        req = (struct store_request){
                .op = STORE_APPEND, .tag = 3, .key = { "a", 1 }, .value = { "x", 1 }
        };
        store_request(s, NODE, -1, &req);
        expect_said("3 ok 12582905");
        req = (struct store_request){ .op = STORE_FETCH, .tag = 4, .keys = keys, .n_keys = 2 };
        store_request(s, NODE, -1, &req);
        expect_said("4 big the answer would be larger than 25165824 bytes");
}

TEST(a_list_has_a_limit)
{
        static char key[STORE_KEY_MAX];
        CLEANUP(destroy_store) struct store *s = fresh();
        struct store_request req = { .op = STORE_SET, .tag = 1, .key = { key, sizeof(key) } };

        for (int i = 0; i < STORE_ANSWER_MAX / STORE_KEY_MAX; i++) {
                snprintf(key, sizeof(key), "%d", i);
                store_request(s, NODE, -1, &req);
                expect_said("1 ok");
        }
        PLAY(s, { 2, STORE_LIST, .said = "2 big the answer would be larger than 25165824 bytes" });
}

TEST(too_much_in_many_is_refused_whole)
{
        static char big[STORE_VALUE_MAX + 1];
        CLEANUP(destroy_store) struct store *s = fresh();
        struct bytes keys[] = { { "a", 1 }, { "b", 1 } }, values[] = { { "1", 1 }, { big, 0 } };
        struct store_request req = {
                .op = STORE_SET_MANY, .tag = 1, .keys = keys, .values = values, .n_keys = 2
        };

        values[1].len = sizeof(big);
        store_request(s, NODE, -1, &req);
        expect_said("1 big a key or value is too large");
        PLAY(s, { 2, STORE_NUM_KEYS, "", .said = "2 ok" });
}

TEST(keys_in_sentences_are_cut_and_printable)
{
        static char key[STORE_KEY_MAX];
        CLEANUP(destroy_store) struct store *s = fresh();
        struct store_request req = { .op = STORE_WAIT,
                                     .tag = 1,
                                     .keys = (struct bytes[]){ { "a\0\n\xff`", 5 } },
                                     .n_keys = 1 };
        char text[KEY_FORMAT_SIZE];

        store_request(s, NODE, -1, &req);
        PLAY(s, { 1, STORE_CANCEL, .said = "1 timeout key `a\\x00\\x0a\\xff`` is not there" });
        memset(key, 'k', sizeof(key));
        for (size_t len = 0; len < sizeof(key); len = len < 200 ? len + 1 : 2 * len) {
                key_format(text, (struct bytes){ key, len });
                assert_int_equal(strlen(text),
                                 len <= KEY_FORMAT_SIZE - 4 ? len : KEY_FORMAT_SIZE - 1);
        }
        assert_string_equal(text + KEY_FORMAT_SIZE - 6, "kk...");
}

TEST(a_node_may_have_thousands_of_pending_requests)
{
        enum { N = 50000 };
        CLEANUP(destroy_store) struct store *s = fresh();
        struct bytes key = { "late", 4 };
        struct store_request req = { .op = STORE_WAIT, .keys = &key, .n_keys = 1 };

        for (req.tag = 0; req.tag < N; req.tag++)
                store_request(s, NODE, -1, &req);
        req.op = STORE_JOIN;
        for (req.tag = 0; req.tag < N; req.tag++)
                store_request(s, NODE, -1, &req);
        req.op = STORE_CANCEL;
        for (req.tag = 0; req.tag < N - 1; req.tag++) {
                store_request(s, NODE, -1, &req);
                buf_clear(&said);
        }
        PLAY(s, { 1, STORE_SET, "late", "x", .said = "49999 ok 1 | 1 ok" });
}
