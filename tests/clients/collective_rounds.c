/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ROUNDS of all collectives through the store: a barrier, a gather of numbers, and BYTES from a
 * root that changes each time. "ok" in rank 0.
 *
 *     collective_rounds ROUNDS BYTES
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"

static void meet(int round, char *bytes, size_t len)
{
        int n = hn_world_size(), me = hn_rank(), root = round % n, mine = round * n + me;
        int *all = calloc((size_t)n, sizeof(*all));

        CLAIM(all != NULL);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_all_gather_bytes(NULL, &mine, sizeof(mine), all, PATIENCE_MS) == HN_OK);
        for (int i = 0; i < n; i++)
                CLAIM(all[i] == round * n + i);
        free(all);
        memset(bytes, me == root ? 'a' + round % 26 : '-', len);
        CLAIM(hn_broadcast_bytes(NULL, bytes, len, root, PATIENCE_MS) == HN_OK);
        for (size_t i = 0; i < len; i += 997)
                CLAIM(bytes[i] == 'a' + round % 26);
}

int main(int argc, char **argv)
{
        int rounds = argc > 1 ? atoi(argv[1]) : 1;
        size_t len = argc > 2 ? (size_t)atol(argv[2]) : 1;
        char *bytes = malloc(len + 1);

        CLAIM(bytes != NULL);
        CLAIM(hn_init(NULL) == HN_OK);
        for (int i = 0; i < rounds; i++)
                meet(i, bytes, len);
        if (hn_rank() == 0)
                puts("ok");
        free(bytes);
        return hn_finalize() != HN_OK;
}
