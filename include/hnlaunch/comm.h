/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm: collectives over arrays, the same calls on CPUs and on GPUs
 *
 * The work is done by a backend, a plug-in found at run time. Tried in this order: the folder
 * $HNLAUNCH_BACKENDS (hnlaunch -x HNLAUNCH_BACKENDS), the folder of libhnlaunch.so, and hnlaunch/
 * in that folder.
 *
 *     gloo    Gloo over TCP; arrays are in host memory
 *     nccl    NCCL 2.14 or newer: the NCCL loaded by the program, else libnccl.so.2. Arrays are
 *             in the memory of a GPU: the GPU chosen (cudaSetDevice) when the communicator was
 *             made, else GPU number local rank. A call sees earlier work on the program's
 *             default stream; work on other streams must be waited for.
 *
 * Every call returns when its work is done. Programs that overlap NCCL with their own kernels use
 * hnlaunch/nccl.h.
 *
 * A communicator belongs to a group. All members make the same calls in the same order, one at a
 * time. When a member dies, leaves, or does not arrive within the communicator's timeout, the call
 * ends with HN_ERR_BACKEND, or HN_ERR_PEER when the launcher knows the failed rank; afterwards the
 * communicator can only be freed. An array that is NULL, or in the wrong memory (nccl), is
 * HN_ERR_INVALID in that rank. In-place calls (@in == @out) are fine unless said otherwise.
 *
 * Backends do not notice members that call different collectives, or with different counts, types
 * or roots: Gloo ends the process (SIGABRT), or arrays are wrong; NCCL hangs. With HN_CHECK=1 in
 * the environment of all ranks (hnlaunch -x HN_CHECK=1) the members of each collective first
 * compare their calls over the store, and all of them get HN_ERR_MISMATCH with both calls in the
 * sentence; nothing was begun, and the communicator stays usable. This costs a round trip to the
 * store per call: for debugging.
 */
#pragma once

#include <hnlaunch/hnlaunch.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hn_comm hn_comm;

typedef enum hn_dtype {
        HN_FLOAT32 = 0,
        HN_FLOAT64 = 1,
        HN_INT32 = 2,
        HN_INT64 = 3,
        HN_UINT8 = 4,
        HN_FLOAT16 = 5,
        HN_BFLOAT16 = 6
} hn_dtype;

/* Sums and products of integers wrap around. HN_AVG is the sum divided by the number of ranks,
 * rounded towards 0 for integers. The 16-bit types are rounded after each step. */
typedef enum hn_op { HN_SUM = 0, HN_PROD = 1, HN_MIN = 2, HN_MAX = 3, HN_AVG = 4 } hn_op;

/* Bytes of one element, 0 = no such type. */
HN_API size_t hn_dtype_size(hn_dtype type);

/*
 * Collective over @group (NULL = the world). @backend NULL = the group's backend, "gloo" when the
 * group has none. @timeout_ms limits the creation and then each call. HN_ERR_UNSUPPORTED: no such
 * plug-in, or its requirements are missing (no NCCL, no NVIDIA driver). HN_ERR_MISMATCH: two ranks
 * have different NCCLs or the same GPU. Gloo's traffic goes over $GLOO_SOCKET_IFNAME, which
 * hnlaunch sets, else over loopback when the job has one node, else over the network of
 * MASTER_ADDR.
 */
HN_API hn_status hn_comm_create(hn_group *group, const char *backend, int64_t timeout_ms,
                                hn_comm **out);
/* NULL is fine. Waits for no other rank, but with nccl up to 10 s for work under way. */
HN_API void hn_comm_free(hn_comm *comm);
HN_API int hn_comm_rank(const hn_comm *comm);
HN_API int hn_comm_size(const hn_comm *comm);

/* @n elements each in @in and @out. */
HN_API hn_status hn_all_reduce(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type,
                               hn_op op);
/* The same for rank @root alone; the others' @out may be NULL. */
HN_API hn_status hn_reduce(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type,
                           hn_op op, int root);
/* Copies @buf of rank @root to @buf of all ranks. */
HN_API hn_status hn_broadcast(hn_comm *comm, void *buf, size_t n, hn_dtype type, int root);
/* @n elements of each rank; @out holds size * @n in rank order and does not overlap @in. */
HN_API hn_status hn_all_gather(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type);
/* @in holds size * @n elements; rank r gets the reduced block r, @n elements. */
HN_API hn_status hn_reduce_scatter(hn_comm *comm, const void *in, void *out, size_t n,
                                   hn_dtype type, hn_op op);
/* @in and @out hold size * @n elements and are different arrays: block r of @in goes to rank r,
 * block r of @out comes from rank r. */
HN_API hn_status hn_all_to_all(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type);
/* Returns when all members have arrived. */
HN_API hn_status hn_comm_barrier(hn_comm *comm);

/*
 * From one rank to another, in order; both pass the same @n and @type. hn_send() may return before
 * the other side has called hn_recv(), but need not: two ranks that send to each other, or ranks in
 * a ring, use hn_send_recv(), whose @in and @out must not overlap. HN_ERR_INVALID: the other rank
 * is this rank, or does not exist.
 */
HN_API hn_status hn_send(hn_comm *comm, const void *in, size_t n, hn_dtype type, int to);
HN_API hn_status hn_recv(hn_comm *comm, void *out, size_t n, hn_dtype type, int from);
HN_API hn_status hn_send_recv(hn_comm *comm, const void *in, int to, void *out, int from, size_t n,
                              hn_dtype type);

#ifdef __cplusplus
}
#endif
