/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers and broadcasts in the world, in the node's group and in two halves. "ok" in rank 0.
 */
#include "claim.h"

static void gather_ranks(hn_group *group)
{
        int n = hn_get_world_size(group), mine = hn_rank(), word = mine;
        int *all = calloc((size_t)n, sizeof(*all));

        CLAIM(all);
        CLAIM(hn_all_gather_bytes(group, &mine, sizeof(mine), all, PATIENCE_MS) == HN_OK);
        for (int i = 0; i < n; i++)
                CLAIM(all[i] == hn_get_global_rank(group, i));
        CLAIM(hn_broadcast_bytes(group, &word, sizeof(word), n - 1, PATIENCE_MS) == HN_OK);
        CLAIM(word == all[n - 1]);
        free(all);
}

int main(void)
{
        hn_group *local, *half;

        CLAIM(hn_init(NULL) == HN_OK);
        gather_ranks(hn_world());
        CLAIM(hn_group_local(&local) == HN_OK);
        CLAIM(hn_get_rank(local) == hn_local_rank());
        CLAIM(hn_get_world_size(local) == hn_local_world_size());
        gather_ranks(local);
        CLAIM(hn_group_split(NULL, hn_rank() % 2, 0, PATIENCE_MS, &half) == HN_OK);
        gather_ranks(half);
        hn_group_free(half);
        hn_group_free(local);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        if (hn_rank() == 0)
                puts("ok");
        return hn_finalize();
}
