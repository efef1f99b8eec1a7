/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups as seen by their members, with any number of ranks. "ok" in rank 0.
 *
 *     groups mismatch    ranks 0 and 1 create one group with different lists, and print the error
 */
#include <hnlaunch/comm.h>
#include <pthread.h>
#include <string.h>

#include "claim.h"

enum { ROUNDS = 20 };

/* Everybody in @group must see the same, and meet. */
static void check_members(hn_group *group)
{
        int n = hn_get_world_size(group), me = hn_get_rank(group), *all, *ranks;

        all = calloc((size_t)n, sizeof(*all));
        ranks = calloc((size_t)n, sizeof(*ranks));
        CLAIM(all && ranks);
        CLAIM(hn_get_group_ranks(group, ranks, n) == n);
        CLAIM(ranks[me] == hn_rank() && hn_get_global_rank(group, me) == hn_rank());
        for (int i = 0; i < n; i++) {
                CLAIM(hn_get_global_rank(group, i) == ranks[i]);
                CLAIM(hn_get_group_rank(group, ranks[i]) == i);
        }
        CLAIM(hn_all_gather_bytes(group, &ranks[me], sizeof(int), all, PATIENCE_MS) == HN_OK);
        CLAIM(memcmp(all, ranks, (size_t)n * sizeof(int)) == 0);
        CLAIM(hn_get_global_rank(group, n) == HN_ERR_INVALID);
        CLAIM(hn_get_global_rank(group, -1) == HN_ERR_INVALID);
        free(all);
        free(ranks);
}

/* All ranks backwards, and this rank alone. */
static void check_create(void)
{
        int n = hn_world_size(), me = hn_rank(), *back = calloc((size_t)n, sizeof(*back));
        char name[32];
        hn_group *g = NULL, *alone;
        hn_comm *comm = NULL;

        CLAIM(back);
        for (int i = 0; i < n; i++)
                back[i] = n - 1 - i;
        CLAIM(hn_group_create("back", back, n, "absent", PATIENCE_MS, &g) == HN_OK);
        CLAIM(hn_get_rank(g) == n - 1 - me && strcmp(hn_get_backend(g), "absent") == 0);
        CLAIM(strcmp(hn_get_name(g), "back") == 0);
        check_members(g);
        /* There is no plug-in of this name: the group's backend is asked for, and the error names
         * it. */
        CLAIM(hn_comm_create(g, NULL, PATIENCE_MS, &comm) == HN_ERR_UNSUPPORTED);
        CLAIM(strstr(hn_last_error(), "cannot load backend `absent`"));
        snprintf(name, sizeof(name), "alone/%d", me);
        CLAIM(hn_group_create(name, &me, 1, NULL, PATIENCE_MS, &alone) == HN_OK);
        CLAIM(hn_get_world_size(alone) == 1 && strcmp(hn_get_backend(alone), "none") == 0);
        CLAIM(n == 1 || hn_get_group_rank(alone, (me + 1) % n) == HN_ERR_NOT_MEMBER);
        check_members(alone);
        hn_group_free(alone);
        hn_group_free(g);
        free(back);
}

static void check_refusals(void)
{
        int me = hn_rank(), twice[] = { me, me }, far[] = { me, hn_world_size() }, other = !me;
        char *name = calloc(1, 202);
        hn_group *g = NULL;

        CLAIM(name);
        memset(name, 'x', 201);
        CLAIM(hn_group_create("g", twice, 2, NULL, 0, &g) == HN_ERR_INVALID);
        CLAIM(strstr(hn_last_error(), "is listed twice"));
        CLAIM(hn_group_create("g", far, 2, NULL, 0, &g) == HN_ERR_INVALID);
        CLAIM(strstr(hn_last_error(), "there is no rank"));
        CLAIM(hn_world_size() == 1 ||
              hn_group_create("g", &other, 1, NULL, 0, &g) == HN_ERR_NOT_MEMBER);
        CLAIM(hn_group_create(name, &me, 1, NULL, 0, &g) == HN_ERR_INVALID);
        CLAIM(hn_group_create("world", &me, 1, NULL, 0, &g) == HN_ERR_INVALID);
        CLAIM(hn_group_create("g", &me, 0, NULL, 0, &g) == HN_ERR_INVALID);
        CLAIM(hn_group_split(NULL, 0, 0, 0, NULL) == HN_ERR_INVALID && !g);
        free(name);
}

/* As MPI_Comm_split: keys order, equal keys keep the order of the parent, negative colours leave.
 */
static void check_split(void)
{
        int n = hn_world_size(), me = hn_rank(), odd = me % 2;
        hn_group *half, *again, *single, *none = (hn_group *)&n;

        CLAIM(hn_group_split(NULL, odd, -me, PATIENCE_MS, &half) == HN_OK);
        CLAIM(hn_get_world_size(half) == (n + !odd) / 2);
        for (int i = 1; i < hn_get_world_size(half); i++)
                CLAIM(hn_get_global_rank(half, i) == hn_get_global_rank(half, i - 1) - 2);
        check_members(half);
        /* The same colors in a second split with other members: the two must not be mixed up. */
        CLAIM(hn_group_split(NULL, me / 2 % 2, 7, PATIENCE_MS, &again) == HN_OK);
        CLAIM(strcmp(hn_get_name(half), hn_get_name(again)) != 0);
        check_members(again);
        /* A collective of ranks 0 and 2 while 1 and 3 have not left the other group's. */
        for (int i = 0; i < ROUNDS; i++) {
                CLAIM(hn_barrier(half, PATIENCE_MS) == HN_OK);
                CLAIM(hn_barrier(again, PATIENCE_MS) == HN_OK);
        }
        CLAIM(hn_group_split(half, 5, 0, PATIENCE_MS, &single) == HN_OK);
        CLAIM(hn_get_world_size(single) == hn_get_world_size(half));
        check_members(single);
        CLAIM(hn_group_split(again, me % 2 ? -1 : 3, 0, PATIENCE_MS, &none) == HN_OK);
        CLAIM((me % 2 == 1) == !none);
        if (none)
                check_members(none);
        hn_group_free(none);
        hn_group_free(single);
        hn_group_free(again);
        hn_group_free(half);
}

static void check_node(void)
{
        hn_group *local, *leaders = NULL;

        CLAIM(hn_group_local(&local) == HN_OK);
        CLAIM(hn_get_rank(local) == hn_local_rank());
        CLAIM(hn_get_world_size(local) == hn_local_world_size());
        check_members(local);
        CLAIM(hn_group_leaders(&leaders) == HN_OK);
        CLAIM((hn_local_rank() == 0) == !!leaders);
        if (leaders) {
                CLAIM(hn_get_world_size(leaders) == hn_num_nodes());
                CLAIM(hn_get_rank(leaders) == hn_node_rank());
                check_members(leaders);
        }
        hn_group_free(leaders);
        hn_group_free(local);
}

static void *meet_often(void *group)
{
        for (int i = 0; i < ROUNDS; i++)
                CLAIM(hn_barrier(group, PATIENCE_MS) == HN_OK);
        return NULL;
}

/* Pairs of neighbours around the ring: each rank is in two of them, with a collective in both at
 * once. */
static void check_overlap(void)
{
        int n = hn_world_size(), me = hn_rank(), left[2], right[] = { me, (me + 1) % n };
        hn_group *groups[2];
        pthread_t threads[2];
        char names[2][32];

        if (n < 3)
                return;
        left[0] = (me + n - 1) % n;
        left[1] = me;
        snprintf(names[0], sizeof(names[0]), "pair/%d", left[0]);
        snprintf(names[1], sizeof(names[1]), "pair/%d", me);
        /* Around a ring somebody has to begin with the other hand. */
        for (int i = 0; i < 2; i++) {
                int side = (me == 0) ^ i;

                CLAIM(hn_group_create(names[side], side ? right : left, 2, "gloo", PATIENCE_MS,
                                      &groups[side]) == HN_OK);
        }
        for (int i = 0; i < 2; i++)
                CLAIM(pthread_create(&threads[i], NULL, meet_often, groups[i]) == 0);
        for (int i = 0; i < 2; i++) {
                pthread_join(threads[i], NULL);
                hn_group_free(groups[i]);
        }
}

/* Both lists are good by themselves. */
static int disagree(void)
{
        static const int whole[] = { 0, 1, 2 }, less[] = { 0, 1 };
        hn_group *g = NULL;
        const char *done = "done";
        hn_status status;

        /* Else the failed rank would be reported instead. */
        if (hn_rank() > 1) {
                CLAIM(hn_store_wait(hn_store_default(), &done, 1, PATIENCE_MS) == HN_OK);
                return 0;
        }
        status = hn_rank() ? hn_group_create("team", less, 2, NULL, PATIENCE_MS, &g)
                           : hn_group_create("team", whole, 3, NULL, PATIENCE_MS, &g);
        CLAIM(status == HN_ERR_MISMATCH && !g);
        puts(hn_last_error());
        CLAIM(hn_store_set(hn_store_default(), done, "", 0) == HN_OK);
        return 0;
}

int main(int argc, char **argv)
{
        hn_init_opts opts = { .size = sizeof(opts), .flags = HN_INIT_ALLOW_SINGLETON };

        CLAIM(hn_init(&opts) == HN_OK);
        if (argc > 1 && strcmp(argv[1], "mismatch") == 0)
                return disagree();
        check_members(NULL);
        check_create();
        check_refusals();
        check_split();
        check_node();
        check_overlap();
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        if (hn_rank() == 0)
                puts("ok");
        return hn_finalize();
}
