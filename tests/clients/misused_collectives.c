/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers of hnlaunch/comm.h to wrong calls.
 *
 * usage: misused_collectives null      arrays, ranks, types and operations that do not exist
 *        misused_collectives differ    ranks that call different collectives; needs HN_CHECK=1
 *        misused_collectives leave     rank 1 ends successfully in the middle
 */
#include <hnlaunch/comm.h>
#include <string.h>

#include "claim.h"

enum { N = 10 };

static float in[N * 8], out[N * 8];

static void names_what_is_not_there(hn_comm *comm)
{
        int next = (hn_rank() + 1) % hn_world_size();

        CLAIM(hn_all_reduce(comm, NULL, out, N, HN_FLOAT32, HN_SUM) == HN_ERR_INVALID);
        CLAIM(strstr(hn_last_error(), "all_reduce: an array is NULL"));
        CLAIM(hn_all_reduce(comm, in, NULL, N, HN_FLOAT32, HN_SUM) == HN_ERR_INVALID);
        CLAIM(hn_all_reduce(NULL, in, out, N, HN_FLOAT32, HN_SUM) == HN_ERR_INVALID);
        CLAIM(hn_all_reduce(comm, in, out, N, (hn_dtype)99, HN_SUM) == HN_ERR_INVALID);
        CLAIM(strstr(hn_last_error(), "there is no type 99"));
        CLAIM(hn_all_reduce(comm, in, out, N, HN_FLOAT32, (hn_op)99) == HN_ERR_INVALID);
        CLAIM(hn_reduce(comm, in, NULL, N, HN_FLOAT32, HN_SUM, hn_rank()) == HN_ERR_INVALID);
        CLAIM(hn_reduce(comm, in, out, N, HN_FLOAT32, HN_SUM, -1) == HN_ERR_INVALID);
        CLAIM(strstr(hn_last_error(), "there is no rank -1"));
        CLAIM(hn_broadcast(comm, NULL, N, HN_FLOAT32, 0) == HN_ERR_INVALID);
        CLAIM(hn_broadcast(comm, in, N, HN_FLOAT32, hn_world_size()) == HN_ERR_INVALID);
        CLAIM(hn_all_gather(comm, in, NULL, N, HN_FLOAT32) == HN_ERR_INVALID);
        CLAIM(hn_reduce_scatter(comm, NULL, out, N, HN_FLOAT32, HN_SUM) == HN_ERR_INVALID);
        CLAIM(hn_all_to_all(comm, NULL, out, N, HN_FLOAT32) == HN_ERR_INVALID);
        CLAIM(hn_all_to_all(comm, in, in, N, HN_FLOAT32) == HN_ERR_INVALID);
        CLAIM(hn_send(comm, NULL, N, HN_FLOAT32, next) == HN_ERR_INVALID);
        CLAIM(hn_send(comm, in, N, HN_FLOAT32, hn_rank()) == HN_ERR_INVALID);
        CLAIM(hn_recv(comm, NULL, N, HN_FLOAT32, next) == HN_ERR_INVALID);
        CLAIM(hn_send_recv(comm, in, next, NULL, next, N, HN_FLOAT32) == HN_ERR_INVALID);
        CLAIM(hn_send_recv(comm, in, next, out, -1, N, HN_FLOAT32) == HN_ERR_INVALID);
        CLAIM(hn_all_reduce(comm, NULL, NULL, 0, HN_FLOAT32, HN_SUM) == HN_OK);
}

/* Each rank hears of both, and the communicator stays good. */
static void claim_mismatch(hn_comm *comm, hn_status status, const char *first, const char *other)
{
        int ranks[2] = { -1, -1 };

        CLAIM(status == HN_ERR_MISMATCH);
        CLAIM(strstr(hn_last_error(), first) && strstr(hn_last_error(), other));
        CLAIM(hn_last_error_ranks(ranks, 2) == 2 && ranks[0] == 0);
        CLAIM(hn_all_reduce(comm, in, out, N, HN_FLOAT32, HN_SUM) == HN_OK);
}

static void hears_of_different_calls(hn_comm *comm)
{
        size_t n = hn_rank() == 1 ? N : 5;
        hn_dtype type = hn_rank() == 1 ? HN_INT32 : HN_FLOAT32;
        hn_op op = hn_rank() == 1 ? HN_MAX : HN_SUM;

        claim_mismatch(comm, hn_all_reduce(comm, in, out, n, HN_FLOAT32, HN_SUM),
                       "rank 0 called all_reduce (5 float32, sum)",
                       "rank 1 called all_reduce (10 float32, sum)");
        claim_mismatch(comm, hn_all_reduce(comm, in, out, N, type, HN_SUM),
                       "all_reduce (10 float32, sum)", "all_reduce (10 int32, sum)");
        claim_mismatch(comm, hn_reduce(comm, in, out, N, HN_FLOAT32, op, 0),
                       "reduce (10 float32, sum, root 0)", "reduce (10 float32, max, root 0)");
        claim_mismatch(comm, hn_broadcast(comm, in, N, HN_UINT8, hn_rank() == 1),
                       "broadcast (10 uint8, root 0)", "broadcast (10 uint8, root 1)");
        claim_mismatch(comm,
                       hn_rank() == 1 ? hn_comm_barrier(comm)
                                      : hn_all_gather(comm, in, out, 1, HN_FLOAT64),
                       "all_gather (1 float64)", "rank 1 called barrier");
        CLAIM(hn_comm_barrier(comm) == HN_OK);
}

static void hears_who_left(hn_comm *comm)
{
        int rank = -1;

        CLAIM(hn_all_reduce(comm, in, out, N, HN_FLOAT32, HN_SUM) == HN_OK);
        if (hn_rank() == 1)
                exit(0);
        CLAIM(hn_all_reduce(comm, in, out, N, HN_FLOAT32, HN_SUM) == HN_ERR_PEER);
        CLAIM(strstr(hn_last_error(), "rank 1 (") && strstr(hn_last_error(), "already exited"));
        CLAIM(hn_last_error_ranks(&rank, 1) == 1 && rank == 1);
}

int main(int argc, char **argv)
{
        hn_init_opts unknown = { .size = sizeof(unknown), .flags = 0x80 };
        hn_comm *comm = NULL;

        CLAIM(argc == 2);
        CLAIM(hn_init(&unknown) == HN_ERR_INVALID && strstr(hn_last_error(), "0x80"));
        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(hn_comm_create(NULL, "gloo", PATIENCE_MS, &comm) == HN_OK);
        if (strcmp(argv[1], "null") == 0)
                names_what_is_not_there(comm);
        else if (strcmp(argv[1], "differ") == 0)
                hears_of_different_calls(comm);
        else
                hears_who_left(comm);
        if (hn_rank() == 0)
                puts("ok");
        hn_comm_free(comm);
        return hn_finalize();
}
