/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corner cases of a store: one winner among equals, values that grow concurrently, waits that end,
 * collectives that do not match. "ok" in rank 0.
 *
 *     store_corners fail      rank 1 reports why and exits with 3, the others sleep
 *     store_corners again     joins twice
 *     store_corners short     has one second to join
 */
#include <string.h>
#include <unistd.h>

#include "claim.h"

static void one_wins(hn_store *s)
{
        int64_t sum = 0;
        int swapped = 0;

        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_compare_set(s, "lock", "", 0, "locked", 6, &swapped) == HN_OK);
        CLAIM(hn_store_add(s, "winners", swapped, NULL) == HN_OK);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_add(s, "winners", 0, &sum) == HN_OK && sum == 1);
        CLAIM(hn_store_compare_set(s, "lock", "open", 4, "x", 1, &swapped) == HN_OK && !swapped);
        CLAIM(hn_store_compare_set(s, "absent", "open", 4, "x", 1, &swapped) == HN_OK && !swapped);
}

/* Swapped-in counters go on counting. */
static void grow(hn_store *s)
{
        void *value;
        size_t len = 0;
        int64_t n;

        CLAIM(hn_store_append(s, "text", "abc", 3) == HN_OK);
        if (hn_rank() == 0)
                CLAIM(hn_store_compare_set(s, "from 40", "", 0, "40", 2, NULL) == HN_OK);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_get_alloc(s, "text", &value, &len, 0) == HN_OK);
        CLAIM(len == 3 * (size_t)hn_world_size() && strncmp(value, "abcabc", 6) == 0);
        hn_free(value);
        CLAIM(hn_store_add(s, "from 40", 1, NULL) == HN_OK);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_add(s, "from 40", 0, &n) == HN_OK && n == 40 + hn_world_size());
        CLAIM(hn_store_add(s, "text", 1, &n) == HN_ERR_INVALID);
}

/* A value as large as both launchers take, and an empty value. */
static void carry(hn_store *s)
{
        enum { BIG = 4 << 20 };
        char *big = calloc(1, BIG);
        void *got;
        size_t len;

        CLAIM(big);
        memset(big, 'b', BIG);
        if (hn_rank() == 0) {
                CLAIM(hn_store_set(s, "big", big, BIG) == HN_OK);
                CLAIM(hn_store_set(s, "empty", NULL, 0) == HN_OK);
        }
        CLAIM(hn_store_get_alloc(s, "big", &got, &len, PATIENCE_MS) == HN_OK && len == BIG);
        CLAIM(memcmp(big, got, BIG) == 0);
        hn_free(got);
        CLAIM(hn_store_get_alloc(s, "empty", &got, &len, PATIENCE_MS) == HN_OK && len == 0);
        hn_free(got);
        free(big);
}

static void give_up(hn_store *s)
{
        static const char *const keys[] = { "lock", "never", "nor this" };
        char value[8];
        size_t len = sizeof(value);
        int all = 1;

        CLAIM(hn_store_get(s, "never", value, &len, 0) == HN_ERR_NOT_FOUND);
        CLAIM(hn_store_wait(s, keys, 3, 200) == HN_ERR_TIMEOUT);
        CLAIM(strcmp(hn_last_error(), "2 keys, `never` first, are not there after 0.2 s") == 0);
        CLAIM(hn_store_get(s, "never", value, &len, 50) == HN_ERR_TIMEOUT);
        CLAIM(hn_store_check(s, keys, 2, &all) == HN_OK && !all);
        CLAIM(hn_store_wait(s, keys, 1, 0) == HN_OK);
        CLAIM(hn_store_delete(s, "never", &all) == HN_OK && !all);
}

/* A swapped-in value ends a wait, too. */
static void wake(hn_store *s)
{
        static const char *const key[] = { "bell" };

        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        if (hn_rank() == 0) {
                usleep(100000);
                CLAIM(hn_store_compare_set(s, "bell", "", 0, "rung", 4, NULL) == HN_OK);
        } else {
                CLAIM(hn_store_wait(s, key, 1, PATIENCE_MS) == HN_OK);
        }
}

/* All members get the error, and the next collective is as any other. */
static void disagree(void)
{
        int mine = hn_rank(), all[64], both[2] = { 0, 1 }, back[2] = { 1, 0 };
        hn_group *g;
        hn_status status;

        CLAIM(hn_world_size() <= 64);
        if (hn_rank() < 2) {
                status = hn_group_create("pair", hn_rank() ? back : both, 2, NULL, PATIENCE_MS, &g);
                CLAIM(status == HN_ERR_MISMATCH && strstr(hn_last_error(), "members"));
        }
        CLAIM(hn_all_gather_bytes(NULL, &mine, sizeof(mine), all, PATIENCE_MS) == HN_OK);
        CLAIM(all[hn_world_size() - 1] == hn_world_size() - 1);
}

static int fail(void)
{
        if (hn_rank() == 1) {
                hn_report_error("data", "shard 12 is \"empty\"");
                return 3;
        }
        sleep(60);
        return 0;
}

int main(int argc, char **argv)
{
        const char *how = argc > 1 ? argv[1] : "";
        hn_init_opts opts = { .size = sizeof(opts) };
        hn_store *s;

        if (strcmp(how, "short") == 0)
                opts.timeout_ms = 1000;
        CLAIM(hn_init(&opts) == HN_OK);
        if (strcmp(how, "fail") == 0)
                return fail();
        if (strcmp(how, "again") == 0) {
                disagree();
                CLAIM(hn_finalize() == HN_OK && hn_init(NULL) == HN_OK);
        }
        s = hn_store_default();
        one_wins(s);
        grow(s);
        carry(s);
        give_up(s);
        wake(s);
        disagree();
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        if (hn_rank() == 0)
                puts("ok");
        return hn_finalize();
}
