/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A script language drives the engine: one step is a request of a rank and what the engine says at
 * once, as "tag:STATUS:number:value:text" of all replies in order.
 */
#include "store/engine/store.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "lib/said.h"
#include "lib/store_text.h"
#include "lib/unit.h"
#include "store/engine/rank_list.h"

static struct buf said;
static size_t n_said;

static void note(void *ctx UNUSED, uint64_t owner, const struct store_reply *r)
{
        n_said++;
        if (buf_len(&said))
                buf_appends(&said, " | ");
        buf_printf(&said, "%" PRIu64 " %s", owner, store_status_word(r->status));
        if (r->number)
                buf_printf(&said, " %" PRId64, r->number);
        if (r->value.len)
                buf_printf(&said, " '%.*s'", (int)r->value.len, (const char *)r->value.p);
        for (uint32_t i = 0; i < r->n_parts; i++)
                buf_printf(&said, "%s'%.*s'", i ? "," : " ", (int)r->parts[i].len,
                           r->parts[i].len ? (const char *)r->parts[i].p : "");
        if (r->text.len)
                buf_printf(&said, " %.*s", (int)r->text.len, (const char *)r->text.p);
        for (uint32_t i = 0; i < r->n_ranks; i++)
                buf_printf(&said, "%s%u", i ? "," : " #", r->ranks[i]);
        for (uint32_t i = 0; i < r->n_whom; i++)
                buf_printf(&said, "%s%u", i ? "," : " to ", r->whom[i]);
}

/* Two ranks on each node. */
static const char *host_of(void *ctx UNUSED, int rank)
{
        static char name[4][16];

        snprintf(name[rank / 2 % 4], sizeof(name[0]), "node%d", rank / 2);
        return name[rank / 2 % 4];
}

static struct store *fresh(int world)
{
        struct store *s =
                store_create((struct store_ops){ .reply = note, .host_of = host_of }, NULL, world);

        assert_non_null(s);
        buf_clear(&said);
        return s;
}

struct step {
        int rank; /* also the owner and, but for CANCEL, the tag */
        uint8_t op;
        const char *key, *value, *expect;
        int64_t number;
        const char *said;
};

static void play(struct store *s, const struct step *steps, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct step *t = &steps[i];
                struct bytes keys[8];
                char list[64];
                struct store_request req = { .op = t->op,
                                             .tag = 1,
                                             .key = bytes_of(t->key),
                                             .value = bytes_of(t->value),
                                             .expect = bytes_of(t->expect),
                                             .number = t->number,
                                             .root = (uint32_t)t->number,
                                             .keys = keys };

                if (t->op == STORE_WAIT || t->op == STORE_CHECK || t->op == STORE_FETCH)
                        req.n_keys = store_words(keys, list, sizeof(list), t->key);
                store_request(s, (uint64_t)t->rank, t->rank, &req);
                expect_said(t->said);
        }
}

#define PLAY(s, ...)                                                                               \
        play(s, (struct step[]){ __VA_ARGS__ }, ARRAY_SIZE(((struct step[]){ __VA_ARGS__ })))

TEST(values_are_kept)
{
        CLEANUP(destroy_store) struct store *s = fresh(2);

        PLAY(s, { 0, STORE_SET, "a", "x", .said = "0 ok" },
             { 1, STORE_GET, "a", .said = "1 ok 'x'" },
             { 0, STORE_SET, "a", "longer", .said = "0 ok" },
             { 1, STORE_GET, "a", .said = "1 ok 'longer'" },
             { 1, STORE_APPEND, "a", "!", .said = "1 ok 7" },
             { 1, STORE_APPEND, "new", "abc", .said = "1 ok 3" },
             { 1, STORE_GET, "a", .said = "1 ok 'longer!'" },
             { 1, STORE_NUM_KEYS, "", .said = "1 ok 2" },
             { 1, STORE_NUM_KEYS, "ne", .said = "1 ok 1" },
             { 1, STORE_CHECK, "a new", .said = "1 ok 1" },
             { 1, STORE_CHECK, "a old", .said = "1 ok" },
             { 1, STORE_DELETE, "a", .said = "1 ok 1" }, { 1, STORE_DELETE, "a", .said = "1 ok" },
             { 1, STORE_NUM_KEYS, "", .said = "1 ok 1" });
        assert_true(store_has(s, bytes_of("new")));
        assert_false(store_has(s, bytes_of("a")));
        assert_false(store_has(s, bytes_of("ne")));
        PLAY(s, { 1, STORE_GET, "late", .said = "" },
             { 1, STORE_PUSH, "queue", "x", .said = "1 ok 1" });
        assert_false(store_has(s, bytes_of("late"))); /* only waited for */
        assert_true(store_has(s, bytes_of("queue")));
}

TEST(counters_are_decimal_text)
{
        CLEANUP(destroy_store) struct store *s = fresh(1);

        PLAY(s, { 0, STORE_ADD, "n", .number = 5, .said = "0 ok 5" },
             { 0, STORE_ADD, "n", .number = -7, .said = "0 ok -2" },
             { 0, STORE_GET, "n", .said = "0 ok '-2'" },
             { 0, STORE_SET, "n", "41", .said = "0 ok" },
             { 0, STORE_ADD, "n", .number = 1, .said = "0 ok 42" },
             { 0, STORE_SET, "n", "4x", .said = "0 ok" },
             { 0, STORE_ADD, "n", .number = 1,
               .said = "0 invalid key `n` is not a number that can take 1" },
             { 0, STORE_SET, "n", "9223372036854775807", .said = "0 ok" },
             { 0, STORE_ADD, "n", .number = 1,
               .said = "0 invalid key `n` is not a number that can take 1" },
             { 0, STORE_GET, "n", .said = "0 ok '9223372036854775807'" });
}

TEST(compare_set_creates_when_nothing_is_expected)
{
        CLEANUP(destroy_store) struct store *s = fresh(1);

        PLAY(s, { 0, STORE_COMPARE_SET, "k", "v", "x", .said = "0 ok -1" },
             { 0, STORE_COMPARE_SET, "k", "v", "", .said = "0 ok 1 'v'" },
             { 0, STORE_COMPARE_SET, "k", "w", "", .said = "0 ok 'v'" },
             { 0, STORE_COMPARE_SET, "k", "w", "v", .said = "0 ok 1 'w'" },
             { 0, STORE_NUM_KEYS, "", .said = "0 ok 1" });
}

TEST(a_set_answers_every_waiter)
{
        CLEANUP(destroy_store) struct store *s = fresh(4);

        PLAY(s, { 1, STORE_GET, "k", .said = "" }, { 2, STORE_WAIT, "k other", .said = "" },
             { 3, STORE_GET, "k", .said = "" }, { 1, STORE_NUM_KEYS, "", .said = "1 ok" },
             { 0, STORE_SET, "k", "v", .said = "1 ok 'v' | 3 ok 'v' | 0 ok" },
             { 0, STORE_ADD, "other", .number = 1, .said = "2 ok | 0 ok 1" });
        assert_int_equal(store_waiting(s), 0);
}

TEST(a_wait_counts_what_is_missing_when_it_comes)
{
        CLEANUP(destroy_store) struct store *s = fresh(2);

        PLAY(s, { 1, STORE_WAIT, "a b a", .said = "" }, { 0, STORE_SET, "a", "1", .said = "0 ok" },
             { 0, STORE_DELETE, "a", .said = "0 ok 1" },
             { 0, STORE_SET, "b", "1", .said = "1 ok | 0 ok" });
        assert_int_equal(store_waiting(s), 0);
}

TEST(cancel_tells_what_is_missing)
{
        CLEANUP(destroy_store) struct store *s = fresh(6);

        PLAY(s, { 1, STORE_GET, "k", .said = "" },
             { 1, STORE_CANCEL, .said = "1 timeout key `k` is not there" },
             { 1, STORE_CANCEL, .said = "" }, /* answered already */
             { 1, STORE_WAIT, "a b", .said = "" },
             { 1, STORE_CANCEL, .said = "1 timeout 2 keys, `a` first, are not there" },
             { 0, STORE_BARRIER, "world", .said = "" }, { 4, STORE_BARRIER, "world", .said = "" },
             { 0, STORE_CANCEL,
               .said = "0 timeout barrier `world`: ranks 1 (node0), 2,3 (node1), 5 (node2) missing "
                       "#1,2,3,5" },
             { 4, STORE_CANCEL,
               .said = "4 timeout barrier `world`: ranks 0,1 (node0), 2,3 (node1), 5 (node2) "
                       "missing "
                       "#0,1,2,3,5" },
             { 1, STORE_NUM_KEYS, "", .said = "1 ok" });
        assert_int_equal(store_waiting(s), 0);
}

TEST(a_meeting_ends_for_all_with_the_last)
{
        CLEANUP(destroy_store) struct store *s = fresh(3);

        for (int turn = 0; turn < 2; turn++)
                PLAY(s, { 2, STORE_BARRIER, "w", .said = "" },
                     { 0, STORE_BARRIER, "w", .said = "" },
                     { 1, STORE_BARRIER, "w", .said = "2 ok | 0 ok | 1 ok" });
        PLAY(s, { 2, STORE_GATHER, "w", "cc", .said = "" },
             { 0, STORE_GATHER, "w", "aa", .said = "" },
             { 1, STORE_GATHER, "w", "bb",
               .said = "2 ok 'aabbcc' | 0 ok 'aabbcc' | 1 ok 'aabbcc'" },
             { 2, STORE_BROADCAST, "w", .number = 1, .said = "" },
             { 1, STORE_BROADCAST, "w", "news", .number = 1, .said = "" },
             { 0, STORE_BROADCAST, "w", .number = 1,
               .said = "2 ok 'news' | 1 ok 'news' | 0 ok 'news'" });
}

TEST(members_who_differ_are_named_to_all)
{
        CLEANUP(destroy_store) struct store *s = fresh(3);

        PLAY(s, { 0, STORE_BARRIER, "w", .said = "" },
             { 2, STORE_GATHER, "w", "x",
               .said = "2 differ barrier `w`: rank 2 (node1) calls all_gather where rank 0 calls "
                       "barrier #2 | 0 differ barrier `w`: rank 2 (node1) calls all_gather where "
                       "rank 0 calls barrier #2" },
             { 1, STORE_GATHER, "w", "xx", .said = "" },
             { 0, STORE_GATHER, "w", "x",
               .said = "0 differ all_gather `w`: rank 0 (node0) passes 1 bytes where rank 1 "
                       "passes 2 #0 | 1 differ all_gather `w`: rank 0 (node0) passes 1 bytes "
                       "where rank 1 passes 2 #0" });
        assert_int_equal(store_waiting(s), 0);
}

/* In a collective of their own the others would wait for those that have an answer. */
TEST(all_ranks_of_a_request_differ)
{
        struct store_request req = { .op = STORE_BARRIER,
                                     .tag = 1,
                                     .key = { "w", 1 },
                                     .ranks = (uint32_t[]){ 1, 2, 3 },
                                     .n_ranks = 3 };
        CLEANUP(destroy_store) struct store *s = fresh(4);

        PLAY(s, { 0, STORE_GATHER, "w", "x", .said = "" });
        store_request(s, 9, -1, &req);
        expect_said("9 differ all_gather `w`: rank 1 (node0) calls barrier where rank 0 calls "
                    "all_gather #1,2,3 to 1,2,3 | 0 differ all_gather `w`: rank 1 (node0) calls "
                    "barrier where rank 0 calls all_gather #1,2,3");
        assert_int_equal(store_waiting(s), 0);
        /* The name is free again, for the same ranks as well. */
        store_request(s, 9, -1, &req);
        expect_said("");
        PLAY(s, { 0, STORE_BARRIER, "w", .said = "9 ok to 1,2,3 | 0 ok" });
}

static void ask(struct store *s, int rank, const uint32_t *members, uint32_t n, const char *want)
{
        store_request(s, (uint64_t)rank, rank,
                      &(struct store_request){ .op = STORE_BARRIER,
                                               .tag = 1,
                                               .key = { "g", 1 },
                                               .members = (uint32_t *)members,
                                               .n_members = n });
        expect_said(want);
}

TEST(a_group_is_its_members_only)
{
        static const uint32_t g[] = { 3, 1 }, h[] = { 1, 3 }, far[] = { 0, 9 }, all[] = { 1, 2, 3 };
        CLEANUP(destroy_store) struct store *s = fresh(4);

        ask(s, 0, g, 2, "0 invalid rank 0 is not a member");
        ask(s, 0, far, 2, "0 invalid there is no rank 9");
        ask(s, 1, g, 2, "");
        ask(s, 1, g, 2, "1 invalid barrier `g`: rank 1 has come already");
        ask(s, 3, g, 2, "1 ok | 3 ok");
        ask(s, 1, g, 2, "");
        ask(s, 3, h, 2,
            "3 differ barrier `g`: rank 3 (node1) lists members 1,3 where rank 1 lists 3,1 #3 | "
            "1 differ barrier `g`: rank 3 (node1) lists members 1,3 where rank 1 lists 3,1 #3");
        ask(s, 1, g, 2, "");
        ask(s, 2, all, 3,
            "2 differ barrier `g`: rank 2 (node1) lists members 1,2,3 where rank 1 lists 3,1 #2 "
            "| "
            "1 differ barrier `g`: rank 2 (node1) lists members 1,2,3 where rank 1 lists 3,1 #2");
}

TEST(long_lists_of_members_are_told_by_their_first_difference)
{
        uint32_t most[20], other[20];
        CLEANUP(destroy_store) struct store *s = fresh(32);

        for (uint32_t i = 0; i < ARRAY_SIZE(most); i++)
                most[i] = other[i] = i;
        other[18] = 30;
        ask(s, 0, most, 20, "");
        ask(s, 1, other, 20,
            "1 differ barrier `g`: rank 1 (node0) lists 20 members where rank 0 lists 20: "
            "member 18 is rank 30 instead of 18 #1 | "
            "0 differ barrier `g`: rank 1 (node0) lists 20 members where rank 0 lists 20: "
            "member 18 is rank 30 instead of 18 #1");
        ask(s, 0, most, 20, "");
        ask(s, 1, most, 19,
            "1 differ barrier `g`: rank 1 (node0) lists 19 members where rank 0 lists 20: "
            "the first 19 are the same #1 | "
            "0 differ barrier `g`: rank 1 (node0) lists 19 members where rank 0 lists 20: "
            "the first 19 are the same #1");
}

TEST(a_failed_rank_ends_every_wait)
{
        CLEANUP(destroy_store) struct store *s = fresh(4);
        static const uint32_t survivors[] = { 0, 1 };

        PLAY(s, { 0, STORE_GET, "k", .said = "" }, { 1, STORE_BARRIER, "w", .said = "" });
        store_rank_failed(s, 3, "rank 3 (node1) was killed by signal 9");
        expect_said("1 peer barrier `w`: rank 3 (node1) was killed by signal 9 #3 | "
                    "0 peer rank 3 (node1) was killed by signal 9 #3");
        PLAY(s, { 0, STORE_GET, "k", .said = "0 peer rank 3 (node1) was killed by signal 9 #3" },
             { 0, STORE_BARRIER, "w",
               .said = "0 peer barrier `w`: rank 3 (node1) was killed by signal 9 #3" },
             { 0, STORE_SET, "k", "v", .said = "0 ok" }, { 0, STORE_GET, "k", .said = "0 ok 'v'" });
        ask(s, 0, survivors, 2, "");
        ask(s, 1, survivors, 2, "0 ok | 1 ok");
        /* Who left because of it is not the reason for those who come later. */
        store_rank_exited(s, 0);
        PLAY(s, { 1, STORE_BARRIER, "w",
                  .said = "1 peer barrier `w`: rank 3 (node1) was killed by signal 9 #3" });
        ask(s, 1, survivors, 2, "1 peer barrier `g`: rank 0 (node0) has already exited #0");
}

TEST(an_exited_rank_ends_collectives_of_its_members)
{
        CLEANUP(destroy_store) struct store *s = fresh(4);

        PLAY(s, { 0, STORE_GET, "k", .said = "" }, { 1, STORE_BARRIER, "w", .said = "" });
        store_rank_exited(s, 2);
        expect_said("1 peer barrier `w`: rank 2 (node1) has already exited #2");
        PLAY(s,
             { 3, STORE_BARRIER, "w",
               .said = "3 peer barrier `w`: rank 2 (node1) has already exited #2" },
             { 1, STORE_SET, "k", "v", .said = "0 ok 'v' | 1 ok" });
}

TEST(a_forgotten_owner_is_not_answered)
{
        CLEANUP(destroy_store) struct store *s = fresh(3);

        PLAY(s, { 0, STORE_GET, "k", .said = "" }, { 1, STORE_GET, "k", .said = "" },
             { 1, STORE_BARRIER, "w", .said = "" });
        store_forget(s, 1);
        assert_int_equal(store_waiting(s), 1);
        PLAY(s, { 2, STORE_SET, "k", "v", .said = "0 ok 'v' | 2 ok" },
             { 0, STORE_BARRIER, "w", .said = "" }, { 2, STORE_BARRIER, "w", .said = "" },
             { 1, STORE_BARRIER, "w", .said = "0 ok | 2 ok | 1 ok" });
        store_forget(s, 1);
}

TEST(values_have_a_limit)
{
        static char big[STORE_VALUE_MAX];
        CLEANUP(destroy_store) struct store *s = fresh(2);
        struct store_request req = { .op = STORE_SET,
                                     .key = { "k", 1 },
                                     .value = { big, sizeof(big) } };

        store_request(s, 0, 0, &req);
        expect_said("0 ok");
        req.op = STORE_APPEND;
        req.value.len = 1;
        store_request(s, 0, 0, &req);
        expect_said("0 big the value would be larger than 16777216 bytes");
        req.op = STORE_GATHER;
        req.value.len = sizeof(big) / 2 + 1;
        store_request(s, 0, 0, &req);
        expect_said("0 big 2 times 8388609 bytes are more than 16777216");
        req.op = STORE_SET;
        req.key = (struct bytes){ big, STORE_KEY_MAX + 1 };
        store_request(s, 0, 0, &req);
        expect_said("0 big a key or value is too large");
}

TEST(thousands_wait_for_one_key)
{
        enum { WAITERS = 20000 };
        struct store *s = fresh(WAITERS);
        struct store_request get = { .op = STORE_GET, .key = { "id", 2 } };
        struct store_request set = { .op = STORE_SET, .key = { "id", 2 }, .value = { "x", 1 } };

        for (uint64_t i = 0; i < WAITERS; i++)
                store_request(s, i, (int)i, &get);
        assert_int_equal(store_waiting(s), WAITERS);
        n_said = 0;
        store_request(s, 0, 0, &set);
        assert_int_equal(n_said, WAITERS + 1);
        assert_int_equal(store_waiting(s), 0);
        store_destroy(s);
        buf_finish(&said);
}

TEST(ranks_are_described_by_host)
{
        static const struct {
                uint32_t ranks[20], n;
                const char *text;
        } cases[] = {
                { { 3 }, 1, "rank 3 (node1)" },
                { { 2, 3 }, 2, "ranks 2,3 (node1)" },
                { { 0, 1, 2, 5 }, 4, "ranks 0,1 (node0), 2 (node1), 5 (node2)" },
                { { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 19 },
                  11,
                  "ranks 0 (node0), 2 (node1), 4 (node2), 6 (node3), 8 (node4), 10 (node5), 12 "
                  "(node6), 14 (node7) and 3 more" },
        };
        char text[256], small[12];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                rank_list_describe(text, sizeof(text), cases[i].ranks, cases[i].n, host_of, NULL);
                assert_string_equal(text, cases[i].text);
        }
        rank_list_describe(small, sizeof(small), cases[3].ranks, 11, host_of, NULL);
        assert_string_equal(small, "ranks 0 (no");
}
