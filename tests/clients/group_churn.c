/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes groups and frees them, again and again, in three ways. Rank 0 prints the private memory in
 * KiB of this rank, the agent and the head after the first part and after all: "worker 3000 3004".
 * Pages of files are not counted, because the kernel takes and returns them as needed.
 *
 *     group_churn ROUNDS PID-FILE [gloo]    the file has the PID of hnlaunch; with communicators
 */
#include <hnlaunch/comm.h>

#include "../lib/census.h"

static void use_gloo(hn_group *group)
{
        hn_comm *comm;
        int sum = 1;

        CLAIM(hn_comm_create(group, "gloo", PATIENCE_MS, &comm) == HN_OK);
        CLAIM(hn_all_reduce(comm, &sum, &sum, 1, HN_INT32, HN_SUM) == HN_OK);
        CLAIM(sum == hn_get_world_size(group));
        hn_comm_free(comm);
}

static void one_round(int i, int gloo)
{
        int n = hn_world_size(), *ranks = calloc((size_t)n, sizeof(*ranks));
        char fresh[32];
        hn_group *same, *other, *half;

        CLAIM(ranks);
        for (int r = 0; r < n; r++)
                ranks[r] = r;
        snprintf(fresh, sizeof(fresh), "round/%d", i);
        CLAIM(hn_group_create("same", ranks, n, "gloo", PATIENCE_MS, &same) == HN_OK);
        CLAIM(hn_group_create(fresh, ranks, n, "gloo", PATIENCE_MS, &other) == HN_OK);
        CLAIM(hn_group_split(same, hn_rank() % 2, i % 3, PATIENCE_MS, &half) == HN_OK);
        CLAIM(hn_barrier(half, PATIENCE_MS) == HN_OK);
        if (gloo)
                use_gloo(half);
        hn_group_free(half);
        hn_group_free(other);
        hn_group_free(same);
        free(ranks);
}

int main(int argc, char **argv)
{
        int rounds = argc > 2 ? atoi(argv[1]) : 0;
        long pids[3], before[3] = { 0 };
        static const char *const names[] = { "worker", "agent", "head" };

        CLAIM(rounds > 0 && hn_init(NULL) == HN_OK);
        pids[0] = getpid();
        pids[1] = getppid();
        wait_for((pids[2] = census_pid(argv[2])) != 0); /* the script writes it when it knows */
        for (int i = 0; i < rounds; i++) {
                for (int k = 0; k < 3 && i == rounds / 4; k++)
                        before[k] = census_lines(pids[k], "status", "RssAnon:");
                one_round(i, argc > 3);
        }
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        for (int k = 0; k < 3 && hn_rank() == 0; k++)
                printf("%s %ld %ld\n", names[k], before[k],
                       census_lines(pids[k], "status", "RssAnon:"));
        return hn_finalize();
}
