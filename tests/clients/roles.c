/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles: a program in one of the roles trainer and router, in one world or in two
 *
 * usage: roles shared|alone
 */
#include <stdbool.h>
#include <string.h>

#include "claim.h"

/* Ranks of @role in a shared world: the trainers, then the routers. */
static void check_group(const char *role, int first, int n)
{
        bool member = !strcmp(hn_role(), role);
        hn_group *g = (hn_group *)&g, *again = NULL;
        int mine = hn_rank(), ranks[8];

        CLAIM(hn_role_group(role, PATIENCE_MS, &g) == HN_OK);
        CLAIM(!member == !g);
        if (!g)
                return;
        CLAIM(hn_get_world_size(g) == n && hn_get_rank(g) == mine - first);
        for (int i = 0; i < n; i++)
                CLAIM(hn_get_global_rank(g, i) == first + i);
        CLAIM(hn_all_gather_bytes(g, &mine, sizeof(mine), ranks, PATIENCE_MS) == HN_OK);
        for (int i = 0; i < n; i++)
                CLAIM(ranks[i] == first + i);
        CLAIM(hn_role_group(NULL, PATIENCE_MS, &again) == HN_OK);
        CLAIM(!strcmp(hn_get_name(g), hn_get_name(again)));
        hn_group_free(again);
        hn_group_free(g);
}

/* The sentence of rank 0 about a role that the world has not. */
static void check_refusal(const char *role)
{
        hn_group *g = NULL;

        CLAIM(hn_role_group(role, PATIENCE_MS, &g) == HN_ERR_INVALID && !g);
        if (hn_rank() == 0)
                puts(hn_last_error());
        CLAIM(hn_role_group(NULL, PATIENCE_MS, NULL) == HN_ERR_INVALID);
}

int main(int argc, char **argv)
{
        bool shared = argc > 1 && !strcmp(argv[1], "shared");
        hn_group *g = NULL;

        CLAIM(!hn_role() && hn_role_index() == HN_ERR_NOT_LAUNCHED);
        CLAIM(hn_role_group("trainer", 0, &g) == HN_ERR_NOT_LAUNCHED);
        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(hn_role() && !strcmp(hn_role(), getenv("HN_ROLE")));
        CLAIM(hn_role_index() == atoi(getenv("HN_ROLE_INDEX")));
        if (shared) {
                check_group("trainer", 0, 4);
                check_group("router", 4, 1);
                check_refusal("route");
        } else {
                check_group(hn_role(), 0, hn_world_size());
                check_refusal(strcmp(hn_role(), "router") ? "router" : "trainer");
        }
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        printf("%s.%d ok\n", hn_role(), hn_role_index());
        CLAIM(hn_finalize() == HN_OK && !hn_role());
        return 0;
}
