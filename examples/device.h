/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device: the few things that differ between a program for GPUs and one for CPUs
 *
 * With -DUSE_NCCL memory is the GPU's and all-reduce is NCCL's; without, memory is the host's and
 * all-reduce is Gloo's. Both sides fit on a screen, to be copied. Functions that can fail return an
 * hn_status; the sentence is in hn_last_error().
 */
#pragma once

#include <hnlaunch/hnlaunch.h>
#include <stdlib.h>
#include <string.h>

#ifdef USE_NCCL
#include <cuda_runtime.h>
#include <hnlaunch/nccl.h>

enum { DEVICE_SUM = ncclSum, DEVICE_PROD = ncclProd, DEVICE_MIN = ncclMin, DEVICE_MAX = ncclMax };

struct device {
        int index;
        ncclComm_t comm;
        cudaStream_t stream;
};

static inline hn_status device_cuda(const char *what, cudaError_t error)
{
        if (error == cudaSuccess)
                return HN_OK;
        return hn_set_error(HN_ERR_BACKEND, "%s: %s", what, cudaGetErrorString(error));
}

/* For a thread that has not opened it. */
static inline hn_status device_use(const struct device *d)
{
        return device_cuda("cudaSetDevice", cudaSetDevice(d->index));
}

/* One for @which of the @each devices that a rank drives (--gpus-per-rank), and a communicator of
 * all ranks' devices that are so. */
static inline hn_status device_open(struct device *d, int which, int each, int64_t timeout_ms)
{
        int n = 0;
        hn_status status = device_cuda("cudaGetDeviceCount", cudaGetDeviceCount(&n));

        if (status == HN_OK && n == 0)
                status = hn_set_error(HN_ERR_UNSUPPORTED, "there is no GPU");
        if (status != HN_OK)
                return status;
        d->index = (hn_local_rank() * each + which) % n;
        status = device_use(d);
        if (status == HN_OK)
                status = device_cuda("cudaStreamCreate", cudaStreamCreate(&d->stream));
        return status == HN_OK ? hn_nccl_comm_init(NULL, NULL, timeout_ms, &d->comm) : status;
}

static inline hn_status device_alloc(void **ret, size_t bytes)
{
        return device_cuda("cudaMalloc", cudaMalloc(ret, bytes));
}

static inline void device_free(void *p)
{
        cudaFree(p);
}

static inline hn_status device_copy(void *to, const void *from, size_t bytes)
{
        return device_cuda("cudaMemcpy", cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}

/* From one GPU of this process to another. */
static inline hn_status device_copy_across(const struct device *there, void *to,
                                           const struct device *here, const void *from,
                                           size_t bytes)
{
        return device_cuda("cudaMemcpyPeer",
                           cudaMemcpyPeer(to, there->index, from, here->index, bytes));
}

/* Starts the sum of @n floats in all ranks; device_wait() ends it. */
static inline hn_status device_all_reduce(struct device *d, const void *in, void *out, size_t n,
                                          int op, int64_t timeout_ms)
{
        ncclResult_t r = ncclAllReduce(in, out, n, ncclFloat, (ncclRedOp_t)op, d->comm, d->stream);

        return hn_nccl_done("ncclAllReduce", r, d->comm, timeout_ms);
}

static inline int device_accepted(ncclResult_t r)
{
        return r == ncclSuccess || r == ncclInProgress;
}

/* Starts passing @n floats from each rank to each; @in and @out hold that of all. A group that was
 * begun must end, or the thread's next calls would be taken for members of it. */
static inline hn_status device_all_to_all(struct device *d, const void *in, void *out, size_t n,
                                          int64_t timeout_ms)
{
        ncclResult_t r = ncclGroupStart(), ended;

        if (r != ncclSuccess)
                return hn_nccl_failed("ncclGroupStart", r);
        for (int i = 0; i < hn_world_size() && device_accepted(r); i++) {
                r = ncclSend((const float *)in + (size_t)i * n, n, ncclFloat, i, d->comm,
                             d->stream);
                if (device_accepted(r))
                        r = ncclRecv((float *)out + (size_t)i * n, n, ncclFloat, i, d->comm,
                                     d->stream);
        }
        ended = ncclGroupEnd();
        return hn_nccl_done("ncclSend and ncclRecv", device_accepted(r) ? ended : r, d->comm,
                            timeout_ms);
}

static inline hn_status device_wait(struct device *d, int64_t timeout_ms)
{
        return hn_nccl_wait_stream(d->comm, d->stream, timeout_ms);
}

/* @good: all ranks come here; else the communicator is torn down alone. */
static inline void device_close(struct device *d, int good)
{
        if (good &&
            hn_nccl_done("ncclCommFinalize", ncclCommFinalize(d->comm), d->comm, 10000) == HN_OK)
                ncclCommDestroy(d->comm);
        else if (d->comm)
                ncclCommAbort(d->comm);
        if (d->stream)
                cudaStreamDestroy(d->stream);
}

#else
#include <hnlaunch/comm.h>

enum { DEVICE_SUM = HN_SUM, DEVICE_PROD = HN_PROD, DEVICE_MIN = HN_MIN, DEVICE_MAX = HN_MAX };

struct device {
        hn_comm *comm;
};

static inline hn_status device_use(const struct device *d)
{
        (void)d;
        return HN_OK;
}

static inline hn_status device_open(struct device *d, int which, int each, int64_t timeout_ms)
{
        (void)which;
        (void)each;
        return hn_comm_create(NULL, "gloo", timeout_ms, &d->comm);
}

static inline hn_status device_alloc(void **ret, size_t bytes)
{
        *ret = malloc(bytes);
        return *ret ? HN_OK : hn_set_error(HN_ERR_NOMEM, "out of memory");
}

static inline void device_free(void *p)
{
        free(p);
}

static inline hn_status device_copy(void *to, const void *from, size_t bytes)
{
        memcpy(to, from, bytes);
        return HN_OK;
}

static inline hn_status device_copy_across(const struct device *there, void *to,
                                           const struct device *here, const void *from,
                                           size_t bytes)
{
        (void)there;
        (void)here;
        return device_copy(to, from, bytes);
}

static inline hn_status device_all_reduce(struct device *d, const void *in, void *out, size_t n,
                                          int op, int64_t timeout_ms)
{
        (void)timeout_ms; /* the communicator's own counts */
        return hn_all_reduce(d->comm, in, out, n, HN_FLOAT32, (hn_op)op);
}

static inline hn_status device_all_to_all(struct device *d, const void *in, void *out, size_t n,
                                          int64_t timeout_ms)
{
        (void)timeout_ms;
        return hn_all_to_all(d->comm, in, out, n, HN_FLOAT32);
}

static inline hn_status device_wait(struct device *d, int64_t timeout_ms)
{
        (void)d;
        (void)timeout_ms;
        return HN_OK; /* Gloo's calls return when they are done */
}

static inline void device_close(struct device *d, int good)
{
        (void)good;
        hn_comm_free(d->comm);
}
#endif
