/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of the store: each request that needs memory is refused there and changes nothing, what
 * is freed can be used again, and after any history all memory has come back.
 */
#include "store/engine/store.h"

#include <stdio.h>

#include "lib/dice.h"
#include "lib/store_text.h"
#include "lib/unit.h"

enum { RANKS = 8, KEYS = 12, OWNERS = 6, STEPS = 40000, LIMIT = 20000, BIG = 4096 };

static unsigned answered[STORE_STATUSES];
static char text[STORE_TEXT_MAX + 1];
static char bytes[BIG];

static void note(void *ctx UNUSED, uint64_t owner UNUSED, const struct store_reply *r)
{
        answered[r->status]++;
        snprintf(text, sizeof(text), "%.*s", (int)r->text.len, (const char *)r->text.p);
}

static struct store *limited(size_t bytes_at_most)
{
        struct store *s = store_create(
                (struct store_ops){ .reply = note, .host_of = store_one_host }, NULL, RANKS);

        assert_non_null(s);
        store_limit(s, bytes_at_most);
        memset(answered, 0, sizeof(answered));
        return s;
}

static void ask(struct store *s, int rank, struct store_request req)
{
        req.tag = 1;
        store_request(s, (uint64_t)rank, rank, &req);
}

static struct bytes filler(size_t n)
{
        return (struct bytes){ bytes, n };
}

TEST(each_request_is_refused_and_changes_nothing)
{
        struct bytes key = bytes_of("another"), value = filler(100);
        struct store_request requests[] = {
                { .op = STORE_SET, .key = key, .value = value },
                { .op = STORE_APPEND, .key = key, .value = value },
                { .op = STORE_APPEND, .key = bytes_of("full"), .value = filler(BIG) },
                { .op = STORE_ADD, .key = key, .number = 1 },
                { .op = STORE_COMPARE_SET, .key = key, .value = value },
                { .op = STORE_SET_MANY, .keys = &key, .values = &value, .n_keys = 1 },
                { .op = STORE_PUSH, .key = key, .value = value },
                { .op = STORE_GET, .key = key },
                { .op = STORE_WAIT, .keys = &key, .n_keys = 1 },
                { .op = STORE_COUNT, .key = key, .number = 2 },
                { .op = STORE_BARRIER, .key = key },
                { .op = STORE_GATHER, .key = key, .value = value },
                { .op = STORE_BROADCAST, .key = key, .value = value },
        };
        struct store *s = limited(SIZE_MAX);
        size_t used;

        ask(s, 0,
            (struct store_request){
                    .op = STORE_SET, .key = bytes_of("full"), .value = filler(BIG) });
        used = store_used(s);
        assert_in_range(used, BIG, BIG + 512);
        for (size_t room = 0; room < 64; room += 9) {
                store_limit(s, used + room);
                for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                        memset(answered, 0, sizeof(answered));
                        ask(s, 1, requests[i]);
                        assert_int_equal(answered[STORE_FULL], 1);
                        assert_non_null(strstr(text, "the store is full: "));
                        assert_int_equal(store_used(s), used);
                        assert_int_equal(store_waiting(s), 0);
                }
        }
        /* What needs no more memory goes on, and what is freed can be used. */
        memset(answered, 0, sizeof(answered));
        ask(s, 0,
            (struct store_request){
                    .op = STORE_SET, .key = bytes_of("full"), .value = filler(BIG) });
        ask(s, 0, (struct store_request){ .op = STORE_DELETE, .key = bytes_of("full") });
        assert_int_equal(store_used(s), 0);
        ask(s, 1, requests[0]);
        assert_int_equal(answered[STORE_OK], 3);
        store_destroy(s);
}

static void play_one(struct store *s)
{
        static const uint8_t ops[] = {
                STORE_SET,   STORE_ADD,   STORE_APPEND,  STORE_COMPARE_SET, STORE_DELETE,
                STORE_GET,   STORE_WAIT,  STORE_BARRIER, STORE_GATHER,      STORE_BROADCAST,
                STORE_PUSH,  STORE_POP,   STORE_COUNT,   STORE_SET_MANY,    STORE_CANCEL,
                STORE_FETCH, STORE_LEAVE, STORE_JOIN,
        };
        static char names[KEYS][8];
        struct bytes keys[4], values[4];
        uint32_t members[] = { 1, 3, 5 }, ranks[3] = { dice(RANKS), dice(RANKS), dice(RANKS) };
        struct store_request req = { .op = ops[dice(ARRAY_SIZE(ops))], .tag = 1 + dice(3) };

        for (uint32_t i = 0; i < KEYS; i++)
                snprintf(names[i], sizeof(names[i]), "key%u", i);
        for (uint32_t i = 0; i < ARRAY_SIZE(keys); i++) {
                keys[i] = bytes_of(names[dice(KEYS)]);
                values[i] = filler(dice(4) ? dice(64) : dice(BIG));
        }
        req.key = keys[0];
        req.value = values[0];
        req.keys = keys;
        req.values = values;
        req.n_keys = dice(ARRAY_SIZE(keys) + 1);
        req.number = 1 + dice(5);
        req.n_members = dice(2) ? ARRAY_SIZE(members) : 0;
        req.members = req.n_members ? members : NULL;
        req.ranks = ranks;
        req.n_ranks = 1 + dice(3);
        store_request(s, dice(OWNERS), dice(2) ? -1 : (int)dice(RANKS), &req);
}

static void empty(struct store *s)
{
        char name[8];

        for (uint64_t owner = 0; owner < OWNERS; owner++)
                store_forget(s, owner);
        for (uint32_t i = 0; i < KEYS; i++) {
                struct bytes key;

                snprintf(name, sizeof(name), "key%u", i);
                key = bytes_of(name);
                ask(s, 0, (struct store_request){ .op = STORE_DELETE, .key = key });
                for (int n = 0; n < LIMIT / 32; n++)
                        ask(s, 0, (struct store_request){ .op = STORE_POP, .key = key });
        }
}

TEST(all_memory_comes_back)
{
        struct store *s = limited(LIMIT);

        for (seed = 1; seed < 4; seed++) {
                const uint64_t first = seed;

                for (int i = 0; i < STEPS; i++) {
                        play_one(s);
                        assert_true(store_used(s) <= LIMIT);
                        if (dice(2000) == 0)
                                empty(s);
                }
                empty(s);
                assert_int_equal(store_used(s), 0);
                seed = first;
        }
        assert_true(answered[STORE_OK] > 1000 && answered[STORE_FULL] > 1000);
        store_destroy(s);
}
