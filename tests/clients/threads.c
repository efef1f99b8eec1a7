/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads waiting for keys of other ranks while the main thread counts. "ok" in rank 0.
 */
#include <pthread.h>

#include "claim.h"

enum { THREADS = 16, COUNTS = 500 };

static void *wait_for_key(void *arg)
{
        char key[32], value[32];
        size_t len = sizeof(value);

        snprintf(key, sizeof(key), "thread/%d", *(int *)arg);
        CLAIM(hn_store_get(hn_store_default(), key, value, &len, PATIENCE_MS) == HN_OK);
        return NULL;
}

int main(void)
{
        pthread_t threads[THREADS];
        int ids[THREADS];
        int64_t now = 0;
        char key[32];

        CLAIM(hn_init(NULL) == HN_OK);
        for (int i = 0; i < THREADS; i++) {
                ids[i] = i;
                CLAIM(pthread_create(&threads[i], NULL, wait_for_key, &ids[i]) == 0);
        }
        for (int i = 0; i < COUNTS; i++)
                CLAIM(hn_store_add(hn_store_default(), "n", 1, &now) == HN_OK);
        for (int i = hn_rank(); i < THREADS; i += hn_world_size()) {
                snprintf(key, sizeof(key), "thread/%d", i);
                CLAIM(hn_store_set(hn_store_default(), key, "x", 1) == HN_OK);
        }
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_add(hn_store_default(), "n", 0, &now) == HN_OK);
        CLAIM(now == (int64_t)COUNTS * hn_world_size());
        if (hn_rank() == 0)
                puts("ok");
        return hn_finalize();
}
