/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain: the all-reduce of examples/allreduce.c without hnlaunch, to compare with
 *
 *     plain RANKS BYTES ITERATIONS
 *
 * One process per rank by fork(); they get the unique id through a pipe each. Prints rank 0's time
 * per all-reduce in microseconds. Each rank gives itself an NCCL_HOSTID, so that several may share
 * a GPU.
 */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NEED(call)                                                                                 \
        do {                                                                                       \
                if ((call) != 0) {                                                                 \
                        fprintf(stderr, "plain: %s failed\n", #call);                              \
                        exit(1);                                                                   \
                }                                                                                  \
        } while (0)

enum { WARMUP = 5 };

static double now_us(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void reduce(int rank, int ranks, ncclUniqueId id, size_t bytes, int iterations)
{
        ncclComm_t comm;
        cudaStream_t stream;
        void *in, *out;
        double begun = 0;
        char name[16];
        int n;

        snprintf(name, sizeof(name), "%d", rank);
        setenv("NCCL_HOSTID", name, 1);
        NEED(cudaGetDeviceCount(&n));
        NEED(cudaSetDevice(rank % n));
        NEED(cudaStreamCreate(&stream));
        NEED(cudaMalloc(&in, bytes));
        NEED(cudaMalloc(&out, bytes));
        NEED(ncclCommInitRank(&comm, ranks, id, rank));
        for (int i = -WARMUP; i < iterations; i++) {
                if (i == 0)
                        begun = now_us();
                NEED(ncclAllReduce(in, out, bytes / sizeof(float), ncclFloat, ncclSum, comm,
                                   stream));
                NEED(cudaStreamSynchronize(stream));
        }
        if (rank == 0)
                printf("%.2f\n", (now_us() - begun) / iterations);
        NEED(ncclCommDestroy(comm));
}

int main(int argc, char **argv)
{
        int ranks = argc == 4 ? atoi(argv[1]) : 0, failed = 0, status, pipes[64][2];
        ncclUniqueId id;

        if (ranks < 1 || ranks > 64)
                return 64;
        for (int r = 0; r < ranks; r++) {
                NEED(pipe(pipes[r]));
                if (fork() == 0) {
                        NEED(read(pipes[r][0], &id, sizeof(id)) != sizeof(id));
                        reduce(r, ranks, id, (size_t)atol(argv[2]), atoi(argv[3]));
                        return 0;
                }
        }
        /* After the forks: CUDA does not survive one, and the id's thread lives here. */
        NEED(ncclGetUniqueId(&id));
        for (int r = 0; r < ranks; r++)
                NEED(write(pipes[r][1], &id, sizeof(id)) != sizeof(id));
        for (int r = 0; r < ranks; r++) {
                wait(&status);
                failed |= status != 0;
        }
        return failed;
}
