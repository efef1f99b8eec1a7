/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rank writes a key and reads all others'; a counter is shared. Prints "ok" in rank 0.
 */
#include <string.h>

#include "claim.h"

int main(void)
{
        hn_store *s;
        char key[32], value[32], want[32];
        int64_t sum = 0;
        int swapped = 0, winner;
        size_t len;

        CLAIM(hn_init(NULL) == HN_OK);
        s = hn_store_default();
        snprintf(key, sizeof(key), "rank/%d", hn_rank());
        snprintf(want, sizeof(want), "value %d", hn_rank());
        CLAIM(hn_store_set(s, key, want, strlen(want)) == HN_OK);
        CLAIM(hn_store_add(s, "sum", hn_rank(), NULL) == HN_OK);
        CLAIM(hn_store_compare_set(s, "winner", "", 0, want, strlen(want), &swapped) == HN_OK);
        for (int i = 0; i < hn_world_size(); i++) {
                len = sizeof(value);
                snprintf(key, sizeof(key), "rank/%d", i);
                snprintf(want, sizeof(want), "value %d", i);
                CLAIM(hn_store_get(s, key, value, &len, PATIENCE_MS) == HN_OK);
                CLAIM(len == strlen(want) && memcmp(value, want, len) == 0);
        }
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_add(s, "sum", 0, &sum) == HN_OK);
        CLAIM(sum == (int64_t)hn_world_size() * (hn_world_size() - 1) / 2);
        winner = swapped;
        CLAIM(hn_store_add(s, "winners", winner, NULL) == HN_OK);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_add(s, "winners", 0, &sum) == HN_OK && sum == 1);
        if (hn_rank() == 0)
                puts("ok");
        return hn_finalize();
}
