/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The barrier that PyTorch makes of its store, ROUNDS times: each rank adds one to a key, the last
 * one sets another key, for which all wait. Every value seen must be possible. "ok" in the last
 * rank. Ranks below FIRST end at once.
 *
 *     counted_barriers ROUNDS [FIRST]
 *     counted_barriers release            once: all wait for a megabyte set by the last rank
 */
#include <string.h>
#include <unistd.h>

#include "claim.h"

static void meet(hn_store *store, int round, int members)
{
        char counter[32], done[32], value[32];
        size_t len = sizeof(value);
        int64_t n;

        snprintf(counter, sizeof(counter), "count/%d", round);
        snprintf(done, sizeof(done), "done/%d", round);
        CLAIM(hn_store_add(store, counter, 1, &n) == HN_OK);
        CLAIM(n >= 1 && n <= members);
        if (n == members)
                CLAIM(hn_store_set(store, done, counter, strlen(counter)) == HN_OK);
        CLAIM(hn_store_get(store, done, value, &len, PATIENCE_MS) == HN_OK);
        CLAIM(len == strlen(counter) && memcmp(value, counter, len) == 0);
        CLAIM(hn_store_add(store, counter, 0, &n) == HN_OK && n == members);
}

/* When all have most likely arrived: they wait. */
static void release(hn_store *store)
{
        enum { LEN = 1 << 20 };
        static char value[LEN], got[LEN];
        size_t len = sizeof(got);

        memset(value, 'x', sizeof(value));
        if (hn_rank() == hn_world_size() - 1) {
                sleep(1);
                CLAIM(hn_store_set(store, "release", value, sizeof(value)) == HN_OK);
                return;
        }
        CLAIM(hn_store_get(store, "release", got, &len, PATIENCE_MS) == HN_OK);
        CLAIM(len == sizeof(value) && memcmp(value, got, len) == 0);
}

int main(int argc, char **argv)
{
        int rounds = argc > 1 ? atoi(argv[1]) : 0, first = argc > 2 ? atoi(argv[2]) : 0;

        CLAIM(hn_init(NULL) == HN_OK);
        if (hn_rank() < first)
                return hn_finalize();
        if (argc > 1 && !strcmp(argv[1], "release"))
                release(hn_store_default());
        for (int i = 0; i < rounds; i++)
                meet(hn_store_default(), i, hn_world_size() - first);
        if (hn_rank() == hn_world_size() - 1)
                puts("ok");
        return hn_finalize();
}
