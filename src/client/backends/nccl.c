/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL behind comm.h: arrays in the memory of GPUs. A call returns when the GPU has finished, so
 * one stream per communicator is enough; this stream waits for the program's default stream.
 *
 * Every call is begin_work(), which checks the arrays and makes the context current, the NCCL call,
 * and finish_nccl_work(), which polls the stream until the work is done, the timeout has passed or
 * a rank has failed. After a failure the communicator is aborted and can only be freed.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "client/backend.h"
#include "client/backends/nccl_calls.h"

#include <hnlaunch/nccl.h>

enum { LINGER_MS = 10000 }; /* for work under way when a communicator ends */

struct nccl_comm {
        ncclComm_t comm; /* NULL = aborted */
        cuda_context context;
        bool retained; /* the context was retained here */
        int device, ranks;
        cudaStream_t stream;
        void *token; /* device memory for the barrier */
        int64_t timeout_ms;
};

static hn_status cuda_failed(const char *what, int error)
{
        const char *text = NULL;

        if (cuda.GetErrorString(error, &text) != CUDA_SUCCESS || !text)
                text = "unknown error";
        return hn_set_error(HN_ERR_BACKEND, "%s: %s", what, text);
}

/* --- the device ------------------------------------------------------------------------------- */

/* Takes the device chosen by the program, else one per local rank in turn. */
static hn_status choose_device(struct nccl_comm *c)
{
        int n = 0, error = cuda.Init(0);

        if (error == CUDA_SUCCESS)
                error = cuda.CtxGetCurrent(&c->context);
        if (error == CUDA_SUCCESS && c->context)
                error = cuda.CtxGetDevice(&c->device);
        if (error != CUDA_SUCCESS || c->context)
                return error == CUDA_SUCCESS ? HN_OK : cuda_failed("CUDA", error);
        error = cuda.DeviceGetCount(&n);
        if (error == CUDA_SUCCESS && n == 0)
                return hn_set_error(HN_ERR_UNSUPPORTED, "this rank sees no GPU");
        if (error == CUDA_SUCCESS)
                /* More ranks than devices share the devices in turn. */
                error = cuda.DeviceGet(&c->device, hn_local_rank() % n);
        if (error == CUDA_SUCCESS)
                error = cuda.CtxRetain(&c->context, c->device);
        c->retained = error == CUDA_SUCCESS;
        return c->retained ? HN_OK : cuda_failed("a GPU's context", error);
}

static hn_status push_context(const struct nccl_comm *c)
{
        int error = cuda.CtxPush(c->context);

        return error == CUDA_SUCCESS ? HN_OK : cuda_failed("a GPU's context", error);
}

static void pop_context(void)
{
        cuda_context context;

        cuda.CtxPop(&context);
}

/* --- life cycle ------------------------------------------------------------------------------- */

/* Ends the communicator: finalized when the peers take part in time, else aborted, so that no
 * process waits for ever at exit. */
static void nccl_destroy(void *self)
{
        struct nccl_comm *c = self;

        if (c->context && push_context(c) == HN_OK) {
                if (c->comm && hn_nccl_done("ncclCommFinalize", ncclCommFinalize(c->comm), c->comm,
                                            LINGER_MS) == HN_OK)
                        ncclCommDestroy(c->comm);
                else if (c->comm)
                        hn_nccl_undo(c->comm);
                if (c->token)
                        cuda.MemFree(c->token);
                if (c->stream)
                        cuda.StreamDestroy(c->stream);
                pop_context();
        }
        if (c->retained)
                cuda.CtxRelease(c->device);
        free(c);
}

/* Makes the stream and joins the others, with the context current. */
static hn_status join_comm(struct nccl_comm *c, hn_group *group)
{
        hn_nccl_card card;
        int error = cuda.StreamCreate(&c->stream, 0);

        if (error == CUDA_SUCCESS)
                /* For the barrier, which reduces any value. */
                error = cuda.MemAlloc(&c->token, sizeof(int));
        if (error != CUDA_SUCCESS)
                return cuda_failed("a GPU's memory", error);
        hn_nccl_fill_card(&card);
        card.device = c->device;
        if (cuda.DeviceGetPCIBusId(card.address, (int)sizeof(card.address), c->device) !=
            CUDA_SUCCESS)
                card.address[0] = '\0'; /* unknown; the card goes out without an address */
        return hn_nccl_comm_init_card(group, &card, NULL, c->timeout_ms, &c->comm);
}

/* Joins the ranks of the group to a communicator. The context of the device is pushed only for the
 * call: the program may use another. */
static hn_status nccl_create(hn_group *group, hn_store *store, int64_t timeout_ms, void **ret)
{
        hn_status status = nccl_calls_find();
        struct nccl_comm *c;

        (void)store;
        if (status != HN_OK)
                return status;
        c = calloc(1, sizeof(*c));
        if (!c)
                return hn_set_error(HN_ERR_NOMEM, "out of memory");
        c->ranks = hn_get_world_size(group);
        c->timeout_ms = timeout_ms;
        status = choose_device(c);
        if (status == HN_OK)
                status = push_context(c);
        if (status == HN_OK) {
                status = join_comm(c, group);
                pop_context();
        }
        if (status == HN_OK)
                *ret = c;
        else
                nccl_destroy(c);
        return status;
}

/* --- calls ------------------------------------------------------------------------------------ */

static const ncclDataType_t nccl_types[] = {
        [HN_FLOAT32] = ncclFloat32,  [HN_FLOAT64] = ncclFloat64, [HN_INT32] = ncclInt32,
        [HN_INT64] = ncclInt64,      [HN_UINT8] = ncclUint8,     [HN_FLOAT16] = ncclFloat16,
        [HN_BFLOAT16] = ncclBfloat16
};
static const ncclRedOp_t nccl_ops[] = { [HN_SUM] = ncclSum,
                                        [HN_PROD] = ncclProd,
                                        [HN_MIN] = ncclMin,
                                        [HN_MAX] = ncclMax,
                                        [HN_AVG] = ncclAvg };

/* A pointer to host memory would crash NCCL's kernels, and with them the GPU's context. */
static hn_status check_memory(const void *memory)
{
        /* Any memory known to the driver passes, pinned memory of the host included. */
        int kind;

        if (cuda.PointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory) ==
            CUDA_SUCCESS)
                return HN_OK;
        return hn_set_error(
                HN_ERR_INVALID,
                "an array is in host memory: the backend `nccl` needs the memory of a GPU "
                "(cudaMalloc), `gloo` host memory");
}

/* Waits for the GPU by asking, not by a blocking call, to see a failed communicator or the timeout
 * meanwhile. */
static hn_status wait_stream(const struct nccl_comm *c)
{
        int64_t begun = hn_nccl_now();
        int state;

        for (unsigned turns = 1; (state = cuda.StreamQuery(c->stream)) == CUDA_ERROR_NOT_READY;
             turns++) {
                /* A look at the communicator costs more than a look at the stream, so most turns go
                 * without. */
                hn_status status = turns % HN_NCCL_GLANCE
                                           ? HN_OK
                                           : hn_nccl_watch(c->comm, begun, c->timeout_ms);

                if (status != HN_OK)
                        return status;
        }
        return state == CUDA_SUCCESS ? HN_OK : cuda_failed("the GPU", state);
}

/* Makes the context current before a call; the arrays must be GPU memory. */
static hn_status begin_work(const struct nccl_comm *c, const void *in, const void *out)
{
        hn_status status = push_context(c);

        if (status != HN_OK)
                return status;
        if (in)
                status = check_memory(in);
        if (status == HN_OK && out)
                status = check_memory(out);
        if (status != HN_OK)
                pop_context();
        return status;
}

/* Waits for the work after a call. A failure aborts the communicator, because kernels that wait for
 * a dead rank never end. */
static hn_status finish_nccl_work(struct nccl_comm *c, const char *what, ncclResult_t result)
{
        hn_status status = hn_nccl_done(what, result, c->comm, c->timeout_ms);

        if (status == HN_OK)
                status = wait_stream(c);
        if (status != HN_OK) {
                hn_nccl_undo(c->comm);
                c->comm = NULL;
        }
        pop_context();
        return status;
}

static hn_status nccl_all_reduce(void *self, const void *in, void *out, size_t n, hn_dtype type,
                                 hn_op op)
{
        struct nccl_comm *c = self;
        hn_status status = begin_work(c, in, out);

        if (status == HN_OK)
                status = finish_nccl_work(c, "ncclAllReduce",
                                          nccl.AllReduce(in, out, n, nccl_types[type], nccl_ops[op],
                                                         c->comm, c->stream));
        return status;
}

static hn_status nccl_reduce(void *self, const void *in, void *out, size_t n, hn_dtype type,
                             hn_op op, int root)
{
        struct nccl_comm *c = self;
        hn_status status = begin_work(c, in, out);

        if (status == HN_OK)
                status = finish_nccl_work(c, "ncclReduce",
                                          nccl.Reduce(in, out, n, nccl_types[type], nccl_ops[op],
                                                      root, c->comm, c->stream));
        return status;
}

static hn_status nccl_reduce_scatter(void *self, const void *in, void *out, size_t n, hn_dtype type,
                                     hn_op op)
{
        struct nccl_comm *c = self;
        hn_status status = begin_work(c, in, out);

        if (status == HN_OK)
                status = finish_nccl_work(c, "ncclReduceScatter",
                                          nccl.ReduceScatter(in, out, n, nccl_types[type],
                                                             nccl_ops[op], c->comm, c->stream));
        return status;
}

/* In place, and as bytes: the type does not matter without arithmetic. */
static hn_status nccl_broadcast(void *self, void *buf, size_t bytes, int root)
{
        struct nccl_comm *c = self;
        hn_status status = begin_work(c, buf, NULL);

        if (status == HN_OK)
                status = finish_nccl_work(
                        c, "ncclBroadcast",
                        nccl.Broadcast(buf, buf, bytes, ncclUint8, root, c->comm, c->stream));
        return status;
}

static hn_status nccl_all_gather(void *self, const void *in, void *out, size_t bytes)
{
        struct nccl_comm *c = self;
        hn_status status = begin_work(c, in, out);

        if (status == HN_OK)
                status = finish_nccl_work(
                        c, "ncclAllGather",
                        nccl.AllGather(in, out, bytes, ncclUint8, c->comm, c->stream));
        return status;
}

static bool is_accepted(ncclResult_t result)
{
        return result == ncclSuccess || result == ncclInProgress;
}

/* NCCL starts the calls of a group together; a group once begun must end. */
static ncclResult_t end_group(ncclResult_t result)
{
        ncclResult_t ended = nccl.GroupEnd();

        return is_accepted(result) ? ended : result;
}

/* Sends and receives of one group run together, so no order of ranks can block. */
static hn_status nccl_all_to_all(void *self, const void *in, void *out, size_t bytes)
{
        struct nccl_comm *c = self;
        hn_status status = begin_work(c, in, out);
        ncclResult_t result;

        if (status != HN_OK)
                return status;
        result = nccl.GroupStart();
        if (result == ncclSuccess) {
                for (int i = 0; i < c->ranks && is_accepted(result); i++) {
                        size_t at = (size_t)i * bytes;

                        result = nccl.Send((const char *)in + at, bytes, ncclUint8, i, c->comm,
                                           c->stream);
                        if (is_accepted(result))
                                result = nccl.Recv((char *)out + at, bytes, ncclUint8, i, c->comm,
                                                   c->stream);
                }
                result = end_group(result);
        }
        return finish_nccl_work(c, "ncclSend and ncclRecv", result);
}

/* Sends and receives at once, either may be missing. */
static hn_status nccl_exchange(void *self, const void *in, int to, void *out, int from,
                               size_t bytes)
{
        struct nccl_comm *c = self;
        hn_status status = begin_work(c, in, out);
        ncclResult_t result;

        if (status != HN_OK)
                return status;
        result = nccl.GroupStart();
        if (result == ncclSuccess) {
                if (in)
                        result = nccl.Send(in, bytes, ncclUint8, to, c->comm, c->stream);
                if (out && is_accepted(result))
                        result = nccl.Recv(out, bytes, ncclUint8, from, c->comm, c->stream);
                result = end_group(result);
        }
        return finish_nccl_work(c, "ncclSend and ncclRecv", result);
}

static hn_status nccl_barrier(void *self)
{
        struct nccl_comm *c = self;

        return nccl_all_reduce(c, c->token, c->token, 1, HN_INT32, HN_MAX);
}

HN_API extern const struct backend hn_backend;
const struct backend hn_backend = {
        .abi = BACKEND_ABI,
        .name = "nccl",
        .create = nccl_create,
        .destroy = nccl_destroy,
        .all_reduce = nccl_all_reduce,
        .reduce = nccl_reduce,
        .reduce_scatter = nccl_reduce_scatter,
        .broadcast = nccl_broadcast,
        .all_gather = nccl_all_gather,
        .all_to_all = nccl_all_to_all,
        .exchange = nccl_exchange,
        .barrier = nccl_barrier,
};
