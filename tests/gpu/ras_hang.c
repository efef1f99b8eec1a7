/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ras_hang: ranks that launch collectives of NCCL, of which one lacks the last. Each prints "met"
 * then.
 *
 *     ras_hang sleep|compute|barrier|even|run RANK
 *
 * sleep, compute: RANK does that in place of its last collective, and the others wait for their GPU
 * barrier: the others wait in hn_barrier(), RANK sleeps
 * even: RANK lacks none, and all wait; run: all launch on and on
 *
 * The real collectives are called, also on simulated GPUs, where their kernels do nothing. Such a
 * communicator has no good end: the ranks are to be killed.
 */
#include <dlfcn.h>
#include <hnlaunch/nccl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLLECTIVES = 5, LONG_MS = 60000 };

typedef ncclResult_t all_reduce_fn(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
                                   ncclComm_t, cudaStream_t);

static __attribute__((noinline)) void load_batch(void)
{
        for (;;)
                usleep(100000);
}

static __attribute__((noinline)) void compute(void)
{
        for (volatile unsigned long n = 0;; n++)
                ;
}

static __attribute__((noinline)) void wait_for_gpu(cudaStream_t stream)
{
        cudaStreamSynchronize(stream);
        for (;;)
                usleep(100000);
}

int main(int argc, char **argv)
{
        all_reduce_fn *all_reduce = (all_reduce_fn *)dlsym(RTLD_DEFAULT, "pncclAllReduce");
        const char *how = argc > 2 ? argv[1] : "";
        bool even = !strcmp(how, "even") || !strcmp(how, "run"), odd;
        ncclComm_t comm = NULL;
        cudaStream_t stream;
        float *data;
        int gpus;

        if (!all_reduce || !*how || hn_init(NULL) != HN_OK ||
            cudaGetDeviceCount(&gpus) != cudaSuccess ||
            cudaSetDevice(hn_local_rank() % gpus) != cudaSuccess ||
            hn_nccl_comm_init(NULL, NULL, LONG_MS, &comm) != HN_OK ||
            cudaStreamCreate(&stream) != cudaSuccess ||
            cudaMalloc((void **)&data, 4096) != cudaSuccess)
                return 2;
        odd = !even && hn_rank() == atoi(argv[2]);
        for (int i = 0; i < COLLECTIVES - odd || !strcmp(how, "run"); i++) {
                ncclResult_t r = all_reduce(data, data, 16, ncclFloat, ncclSum, comm, stream);

                while (r == ncclInProgress && usleep(1000) == 0)
                        ncclCommGetAsyncError(comm, &r);
                if (r != ncclSuccess)
                        return 3;
                if (i == COLLECTIVES - 2) {
                        puts("met");
                        fflush(stdout);
                }
                if (!strcmp(how, "run"))
                        usleep(3000 + 1000 * (unsigned)hn_rank());
        }
        if (odd && !strcmp(how, "compute"))
                compute();
        if (odd)
                load_batch();
        if (!strcmp(how, "barrier"))
                hn_barrier(NULL, LONG_MS * 10);
        wait_for_gpu(stream);
}
