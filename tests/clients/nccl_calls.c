/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The use of hnlaunch/nccl.h in a program: NCCL's collectives, for all types and operations, in
 * the world and in a part of it. C and C++. With enough GPUs it prints "ok" in rank 0.
 *
 *     nccl_calls join [RANK]    only makes a communicator; RANK dies instead
 *     nccl_calls ids            only exchanges ids, which needs no GPU
 *     nccl_calls lose RANK      RANK is killed while the others wait for it in a kernel
 *     nccl_calls hang RANK      RANK does not arrive: the others' wait runs out of time
 */
#include <hnlaunch/nccl.h>
#include <signal.h>
#include <unistd.h>

enum { N = 1024, TIMEOUT_MS = 60000 };

struct job {
        ncclComm_t comm;
        cudaStream_t stream;
        void *in, *out;
        int rank, ranks;
};

static void need(hn_status status, const char *what)
{
        if (status == HN_OK)
                return;
        fprintf(stderr, "rank %d: %s: %s\n", hn_rank(), what, hn_last_error());
        exit(1);
}

static void need_cuda(cudaError_t error, const char *what)
{
        if (error != cudaSuccess)
                need(hn_set_error(HN_ERR_BACKEND, "%s", cudaGetErrorString(error)), what);
}

static void settle(struct job *j, ncclResult_t result, const char *what)
{
        need(hn_nccl_done(what, result, j->comm, TIMEOUT_MS), what);
        need(hn_nccl_wait_stream(j->comm, j->stream, TIMEOUT_MS), what);
        need(hn_nccl_abort_on_failure(j->comm), what);
}

static void reductions(struct job *j, ncclDataType_t type, ncclRedOp_t op)
{
        settle(j, ncclAllReduce(j->in, j->out, N, type, op, j->comm, j->stream), "all_reduce");
        settle(j, ncclReduce(j->in, j->out, N, type, op, 0, j->comm, j->stream), "reduce");
        settle(j, ncclReduceScatter(j->in, j->out, N, type, op, j->comm, j->stream),
               "reduce_scatter");
}

static void moves(struct job *j, ncclDataType_t type)
{
        int next = (j->rank + 1) % j->ranks, last = (j->rank + j->ranks - 1) % j->ranks;

        settle(j, ncclBroadcast(j->in, j->out, N, type, 0, j->comm, j->stream), "broadcast");
        settle(j, ncclAllGather(j->in, j->out, N, type, j->comm, j->stream), "all_gather");
        ncclGroupStart();
        ncclSend(j->in, N, type, next, j->comm, j->stream);
        ncclRecv(j->out, N, type, last, j->comm, j->stream);
        settle(j, ncclGroupEnd(), "send and receive");
}

static void everything(struct job *j)
{
        static const ncclDataType_t types[] = {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0) || defined(__CUDA_BF16_TYPES_EXIST__)
                ncclBfloat16, /* older ones had this for C++ only */
#endif
                ncclFloat16,
                ncclFloat32,
                ncclFloat64,
                ncclInt32,
                ncclInt64,
                ncclUint8
        };
        static const ncclRedOp_t ops[] = { ncclSum, ncclProd, ncclMin, ncclMax, ncclAvg };

        for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++) {
                for (size_t k = 0; k < sizeof(ops) / sizeof(*ops); k++)
                        reductions(j, types[t], ops[k]);
                moves(j, types[t]);
        }
}

static void finish(ncclComm_t comm)
{
        need(hn_nccl_done("ncclCommFinalize", ncclCommFinalize(comm), comm, TIMEOUT_MS), "the end");
        ncclCommDestroy(comm);
}

static void in_halves(const struct job *whole)
{
        struct job part = *whole;
        hn_group *group = NULL;

        need(hn_group_split(NULL, hn_rank() % 2, 0, TIMEOUT_MS, &group), "hn_group_split");
        part.rank = hn_get_rank(group);
        part.ranks = hn_get_world_size(group);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
        need(hn_nccl_comm_split(group, whole->comm, NULL, TIMEOUT_MS, &part.comm), "a half");
#else
        need(hn_nccl_comm_init(group, NULL, TIMEOUT_MS, &part.comm), "a half");
#endif
        everything(&part);
        finish(part.comm);
        hn_group_free(group);
}

/* @absent does not arrive, but dies. */
static int join(int absent)
{
        ncclComm_t comm = NULL;
        hn_status status;

        if (absent >= 0) /* all are up */
                need(hn_barrier(NULL, TIMEOUT_MS), "hn_barrier");
        if (hn_rank() == absent) {
                sleep(1);
                raise(SIGKILL);
        }
        status = hn_nccl_comm_init(NULL, NULL, TIMEOUT_MS, &comm);
        printf("%s %s: %s\n", comm ? "a communicator" : "nothing", hn_status_name(status),
               hn_last_error());
        if (status == HN_OK)
                finish(comm);
        return status == HN_OK ? hn_finalize() : 3;
}

/* Milliseconds of a clock that all ranks of a machine share. */
static int64_t shared_ms(void)
{
        struct timespec t;

        timespec_get(&t, TIME_UTC);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The others wait in a kernel for @victim, which dies (@kill) or leaves them waiting; they print
 * how long after the death they learned of it. */
static int lose(struct job *j, int victim, int kill)
{
        hn_status status;
        int64_t died = 0, now;
        size_t len = sizeof(died);

        if (j->rank == victim) {
                sleep(2);
                died = shared_ms();
                need(hn_store_set(hn_store_default(), "died", &died, sizeof(died)), "the store");
                if (kill)
                        raise(SIGKILL);
                sleep(20);
                return 0;
        }
        status = hn_nccl_done(
                "ncclAllReduce",
                ncclAllReduce(j->in, j->out, N, ncclFloat, ncclSum, j->comm, j->stream), j->comm,
                TIMEOUT_MS);
        if (status == HN_OK)
                status = hn_nccl_wait_stream(j->comm, j->stream, kill ? TIMEOUT_MS : 4000);
        now = shared_ms();
        if (kill) {
                printf("lost after %lld ms: %s: %s\n",
                       hn_store_get(hn_store_default(), "died", &died, &len, 0) == HN_OK
                               ? (long long)(now - died)
                               : -1,
                       hn_status_name(status), hn_last_error());
                fflush(stdout);
        } else if (status != HN_OK) {
                fprintf(stderr, "rank %d: %s: %s\n", j->rank, hn_status_name(status),
                        hn_last_error());
        }
        ncclCommAbort(j->comm);
        return status == HN_OK ? 0 : 1;
}

/* All ranks have the same ids, all different, and none is left in the store at the end. */
static int share_ids(void)
{
        int n = hn_world_size(), n_ids = hn_nccl_ids_for(n);
        ncclUniqueId *ids = (ncclUniqueId *)calloc((size_t)n_ids, sizeof(*ids)), root;
        size_t before = 0, after = 0;
        int64_t turn = 0;

        if (!ids)
                return 1;
        need(hn_nccl_share_ids(NULL, ids, n_ids, TIMEOUT_MS, &turn), "hn_nccl_share_ids");
        for (int i = 0; i < n_ids; i++) {
                root = ids[i];
                need(hn_broadcast_bytes(NULL, &root, sizeof(root), i % n, TIMEOUT_MS), "an id");
                if (memcmp(&root, &ids[i], sizeof(root)) != 0)
                        return 1;
                for (int k = 0; k < i; k++)
                        if (memcmp(&ids[k], &ids[i], sizeof(root)) == 0)
                                return 1;
        }
        need(hn_store_num_keys(hn_store_default(), &before), "hn_store_num_keys");
        need(hn_barrier(NULL, TIMEOUT_MS), "hn_barrier");
        hn_nccl_drop_ids(NULL, n_ids, turn);
        need(hn_barrier(NULL, TIMEOUT_MS), "hn_barrier");
        need(hn_store_num_keys(hn_store_default(), &after), "hn_store_num_keys");
        if (hn_rank() == 0)
                printf("%d ids, %d of them in the store\n", n_ids, (int)(before - after));
        free(ids);
        return hn_finalize();
}

int main(int argc, char **argv)
{
        struct job j;
        int devices = 1;

        need(hn_init(NULL), "hn_init");
        if (argc > 1 && strcmp(argv[1], "join") == 0)
                return join(argc > 2 ? atoi(argv[2]) : -1);
        if (argc > 1 && strcmp(argv[1], "ids") == 0)
                return share_ids();
        memset(&j, 0, sizeof(j));
        j.rank = hn_rank();
        j.ranks = hn_world_size();
        need_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
        need_cuda(cudaSetDevice(hn_local_rank() % devices), "cudaSetDevice");
        need_cuda(cudaStreamCreate(&j.stream), "cudaStreamCreate");
        need_cuda(cudaMalloc(&j.in, sizeof(double) * N * (size_t)j.ranks), "cudaMalloc");
        need_cuda(cudaMalloc(&j.out, sizeof(double) * N * (size_t)j.ranks), "cudaMalloc");
        need_cuda(cudaMemset(j.in, 0, sizeof(double) * N * (size_t)j.ranks), "cudaMemset");
        need(hn_nccl_comm_init(NULL, NULL, TIMEOUT_MS, &j.comm), "the world");
        if (argc > 2)
                return lose(&j, atoi(argv[2]), strcmp(argv[1], "lose") == 0);
        everything(&j);
        in_halves(&j);
        finish(j.comm);
        if (hn_rank() == 0)
                puts("ok");
        return hn_finalize();
}
