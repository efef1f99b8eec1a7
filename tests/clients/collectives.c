/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every collective of hnlaunch/comm.h, every type and operation. "ok" in rank 0.
 *
 *     collectives [RANK [nccl]]    rank RANK is killed in the middle: the others print the error,
 *                                  exit 0
 */
#include <hnlaunch/comm.h>
#include <signal.h>
#include <string.h>

#include "claim.h"
#include "lent.h"

enum { N = 37 };

static double get(const void *p, hn_dtype type, size_t i)
{
        switch (type) {
        case HN_FLOAT32:
                return (double)((const float *)p)[i];
        case HN_FLOAT64:
                return ((const double *)p)[i];
        case HN_INT32:
                return ((const int32_t *)p)[i];
        case HN_INT64:
                return (double)((const int64_t *)p)[i];
        default:
                return ((const uint8_t *)p)[i];
        }
}

static void put(void *p, hn_dtype type, size_t i, double v)
{
        switch (type) {
        case HN_FLOAT32:
                ((float *)p)[i] = (float)v;
                break;
        case HN_FLOAT64:
                ((double *)p)[i] = v;
                break;
        case HN_INT32:
                ((int32_t *)p)[i] = (int32_t)v;
                break;
        case HN_INT64:
                ((int64_t *)p)[i] = (int64_t)v;
                break;
        default:
                ((uint8_t *)p)[i] = (uint8_t)v;
        }
}

static double value(int rank, size_t i)
{
        return 1 + (double)(((size_t)rank + i) % 2);
}

static double reduced(hn_op op, size_t i)
{
        double v = value(0, i), next;

        for (int r = 1; r < hn_world_size(); r++) {
                next = value(r, i);
                v = op == HN_SUM    ? v + next
                    : op == HN_PROD ? v * next
                    : op == HN_MIN  ? (next < v ? next : v)
                                    : (next > v ? next : v);
        }
        return v;
}

static void check_reductions(hn_comm *comm, hn_dtype type)
{
        size_t ranks = (size_t)hn_world_size(), mine = (size_t)hn_rank() * N;
        char *in = calloc(N * ranks, 8), *out = calloc(N * ranks, 8);

        CLAIM(in && out);
        for (size_t i = 0; i < N * ranks; i++)
                put(in, type, i, value(hn_rank(), i));
        for (hn_op op = HN_SUM; op <= HN_MAX; op = (hn_op)(op + 1)) {
                CLAIM(hn_all_reduce(comm, in, out, N, type, op) == HN_OK);
                for (size_t i = 0; i < N; i++)
                        CLAIM(get(out, type, i) == reduced(op, i));
                CLAIM(hn_reduce_scatter(comm, in, out, N, type, op) == HN_OK);
                for (size_t i = 0; i < N; i++)
                        CLAIM(get(out, type, i) == reduced(op, mine + i));
        }
        free(in);
        free(out);
}

static void check_moves(hn_comm *comm, hn_dtype type)
{
        size_t ranks = (size_t)hn_world_size();
        char *in = calloc(N, 8), *out = calloc(N * ranks, 8);

        CLAIM(in && out);
        for (size_t i = 0; i < N; i++)
                put(in, type, i, value(hn_rank(), i));
        CLAIM(hn_all_gather(comm, in, out, N, type) == HN_OK);
        for (size_t r = 0; r < ranks; r++)
                for (size_t i = 0; i < N; i++)
                        CLAIM(get(out, type, r * N + i) == value((int)r, i));
        CLAIM(hn_broadcast(comm, in, N, type, (int)ranks - 1) == HN_OK);
        for (size_t i = 0; i < N; i++)
                CLAIM(get(in, type, i) == value((int)ranks - 1, i));
        free(in);
        free(out);
}

/* 1.5 and 2.5 as IEEE half floats: their sum over the ranks is exact. */
static void check_half(hn_comm *comm)
{
        uint16_t in[2] = { 0x3e00, 0x4100 }, out[2] = { 0 };

        CLAIM(hn_all_reduce(comm, in, out, 2, HN_FLOAT16, HN_MAX) == HN_OK);
        CLAIM(memcmp(in, out, sizeof(in)) == 0);
}

static int lose(hn_comm *comm, int victim)
{
        static float host[10000];
        void *data = lent_out(host, sizeof(host));
        hn_status status = HN_OK;

        for (int i = 0; status == HN_OK; i++) {
                if (i == 20 && hn_rank() == victim)
                        raise(SIGKILL);
                status = hn_all_reduce(comm, data, data, 10000, HN_FLOAT32, HN_SUM);
        }
        fprintf(stderr, "rank %d: %s: %s\n", hn_rank(), hn_status_name(status), hn_last_error());
        CLAIM(status == HN_ERR_PEER || status == HN_ERR_BACKEND);
        CLAIM(hn_comm_barrier(comm) == HN_ERR_BACKEND);
        hn_comm_free(comm);
        return 0;
}

int main(int argc, char **argv)
{
        hn_comm *comm = NULL, *again;

        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(hn_comm_create(NULL, "nonsense", PATIENCE_MS, &comm) == HN_ERR_UNSUPPORTED);
        if (argc > 2)
                lent_open(hn_local_rank());
        CLAIM(hn_comm_create(NULL, argc > 2 ? argv[2] : NULL, PATIENCE_MS, &comm) == HN_OK);
        CLAIM(hn_comm_rank(comm) == hn_rank() && hn_comm_size(comm) == hn_world_size());
        if (argc > 1)
                return lose(comm, atoi(argv[1]));
        for (hn_dtype type = HN_FLOAT32; type <= HN_UINT8; type = (hn_dtype)(type + 1)) {
                check_reductions(comm, type);
                check_moves(comm, type);
        }
        check_half(comm);
        CLAIM(hn_comm_create(NULL, "gloo", PATIENCE_MS, &again) == HN_OK);
        CLAIM(hn_comm_barrier(again) == HN_OK && hn_comm_barrier(comm) == HN_OK);
        hn_comm_free(again);
        hn_comm_free(comm);
        if (hn_rank() == 0)
                puts("ok");
        return hn_finalize();
}
