/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_churn: communicators made and torn down, again and again
 *
 *     comm_churn ROUNDS PID-FILE      the file has the PID of hnlaunch
 *
 * A round of several ranks makes a communicator of the world, its halves by a split, and the halves
 * of those; in every third round one rank is left out. All are alive at once, each adds numbers on
 * a stream of its own, and all end at once: finalized and destroyed, or aborted. A world of one
 * rank makes twenty communicators, the last of them by the backend `nccl`.
 *
 * They end in threads because NCCL takes half a second for each. Rank 0 prints what lib/census.h
 * says of the first third of the rounds, but for the first of all, and of the last third.
 */
#include <hnlaunch/comm.h>
#include <hnlaunch/nccl.h>

#include "../lib/census.h"

enum { AT_ONCE = 20, DEPTH = 3, NUMBERS = 64 };

struct member { /* a communicator and what it works with */
        ncclComm_t comm;
        hn_group *group;
        cudaStream_t stream;
        float *out;
        pthread_t thread;
        int aborted;
};

static float *ones;
static struct member members[AT_ONCE];

/* --- the numbers ------------------------------------------------------------------------------ */

static void start_sum(struct member *m)
{
        CLAIM(hn_nccl_done(
                      "ncclAllReduce",
                      ncclAllReduce(ones, m->out, NUMBERS, ncclFloat, ncclSum, m->comm, m->stream),
                      m->comm, PATIENCE_MS) == HN_OK);
}

static void check_sum(struct member *m)
{
        float got = 0;

        CLAIM(hn_nccl_wait_stream(m->comm, m->stream, PATIENCE_MS) == HN_OK);
        CLAIM(cudaMemcpy(&got, m->out, sizeof(got), cudaMemcpyDeviceToHost) == cudaSuccess);
        CLAIM(got == (float)hn_get_world_size(m->group));
}

static void check_sums(int n)
{
        for (int i = 0; i < n; i++)
                start_sum(&members[i]);
        for (int i = 0; i < n; i++)
                check_sum(&members[i]);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void *end_member(void *arg)
{
        struct member *m = arg;

        if (m->aborted) {
                CLAIM(ncclCommAbort(m->comm) == ncclSuccess);
                return NULL;
        }
        CLAIM(hn_nccl_done("ncclCommFinalize", ncclCommFinalize(m->comm), m->comm, PATIENCE_MS) ==
              HN_OK);
        CLAIM(ncclCommDestroy(m->comm) == ncclSuccess);
        return NULL;
}

static void end_members(int n, int aborted)
{
        for (int i = 0; i < n; i++) {
                members[i].aborted = aborted;
                CLAIM(pthread_create(&members[i].thread, NULL, end_member, &members[i]) == 0);
        }
        for (int i = 0; i < n; i++)
                pthread_join(members[i].thread, NULL);
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* Returns 0 in a rank that is left out: it has neither a group nor a communicator then. */
static int split_member(const struct member *parent, struct member *child, int round)
{
        int rank = hn_get_rank(parent->group), n = hn_get_world_size(parent->group);
        int is_out = round % 3 == 2 && n > 2 && rank == round % n;
        int color = is_out ? -1 : rank % 2;

        child->comm = NULL;
        child->group = NULL;
        CLAIM(hn_group_split(parent->group, color, round & 1 ? -rank : rank, PATIENCE_MS,
                             &child->group) == HN_OK);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
        CLAIM(hn_nccl_comm_split(child->group, parent->comm, NULL, PATIENCE_MS, &child->comm) ==
              HN_OK);
#else
        if (!is_out)
                CLAIM(hn_nccl_comm_init(child->group, NULL, PATIENCE_MS, &child->comm) == HN_OK);
#endif
        CLAIM((child->comm == NULL) == is_out && (child->group == NULL) == is_out);
        return !is_out;
}

static void split_round(int round)
{
        int n = 1;

        CLAIM(hn_nccl_comm_init(NULL, NULL, PATIENCE_MS, &members[0].comm) == HN_OK);
        while (n < DEPTH && split_member(&members[n - 1], &members[n], round))
                n++;
        check_sums(n);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK); /* an abort does not wait for the others */
        end_members(n, round & 1);
        while (n-- > 1)
                hn_group_free(members[n].group);
}

static void single_round(int round)
{
        float *out = members[AT_ONCE - 1].out;
        hn_comm *comm;

        for (int i = 0; i < AT_ONCE - 1; i++)
                CLAIM(hn_nccl_comm_init(NULL, NULL, PATIENCE_MS, &members[i].comm) == HN_OK);
        check_sums(AT_ONCE - 1);
        CLAIM(hn_comm_create(NULL, "nccl", PATIENCE_MS, &comm) == HN_OK);
        CLAIM(hn_all_reduce(comm, ones, out, NUMBERS, HN_FLOAT32, HN_SUM) == HN_OK);
        end_members(AT_ONCE - 1, round & 1);
        hn_comm_free(comm);
}

static void prepare_members(void)
{
        float values[NUMBERS];
        int n = 0;

        for (int i = 0; i < NUMBERS; i++)
                values[i] = 1;
        CLAIM(cudaGetDeviceCount(&n) == cudaSuccess && n > 0);
        CLAIM(cudaSetDevice(hn_local_rank() % n) == cudaSuccess);
        CLAIM(cudaMalloc((void **)&ones, sizeof(values)) == cudaSuccess);
        CLAIM(cudaMemcpy(ones, values, sizeof(values), cudaMemcpyHostToDevice) == cudaSuccess);
        for (int i = 0; i < AT_ONCE; i++) {
                CLAIM(cudaMalloc((void **)&members[i].out, sizeof(values)) == cudaSuccess);
                CLAIM(cudaStreamCreate(&members[i].stream) == cudaSuccess);
        }
}

int main(int argc, char **argv)
{
        int rounds = argc > 2 ? atoi(argv[1]) : 0, third = rounds / 3;
        struct census c;

        CLAIM(third > 1 && hn_init(NULL) == HN_OK);
        census_open(&c, argv[2]);
        prepare_members();
        for (int i = 0; i < rounds; i++) {
                if (hn_world_size() > 1)
                        split_round(i);
                else
                        single_round(i);
                if (hn_rank() == 0 && ((i > 0 && i < third) || i >= rounds - third))
                        census_take(&c, i >= third);
        }
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        if (hn_rank() == 0) {
                census_settle(&c);
                census_print(&c);
        }
        return hn_finalize();
}
