/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rank writes the largest value and reads all others' whole, between small requests of all.
 * Prints "ok" in rank 0.
 */
#include <stdlib.h>
#include <string.h>

#include "claim.h"

static char value[HN_VALUE_MAX];

static int is_of_rank(const char *got, size_t len, int rank)
{
        memset(value, 'a' + rank % 26, sizeof(value));
        return len == sizeof(value) && memcmp(got, value, len) == 0;
}

int main(void)
{
        hn_store *s;
        char key[32];
        int64_t sum;

        CLAIM(hn_init(NULL) == HN_OK);
        s = hn_store_default();
        snprintf(key, sizeof(key), "large/%d", hn_rank());
        memset(value, 'a' + hn_rank() % 26, sizeof(value));
        CLAIM(hn_store_set(s, key, value, sizeof(value)) == HN_OK);
        for (int i = 0; i < hn_world_size(); i++) {
                void *got = NULL;
                size_t len = 0;

                CLAIM(hn_store_add(s, "sum", 1, NULL) == HN_OK);
                snprintf(key, sizeof(key), "large/%d", i);
                CLAIM(hn_store_get_alloc(s, key, &got, &len, PATIENCE_MS) == HN_OK);
                CLAIM(is_of_rank(got, len, i));
                hn_free(got);
        }
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_add(s, "sum", 0, &sum) == HN_OK);
        CLAIM(sum == (int64_t)hn_world_size() * hn_world_size());
        if (hn_rank() == 0)
                puts("ok");
        return hn_finalize();
}
