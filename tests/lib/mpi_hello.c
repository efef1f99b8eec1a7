/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MPI program for tests, compiled by them with the MPI of the moment. Every rank prints
 * "RANK SIZE SUM LOCAL": its rank and the number of ranks, the sum of all ranks by an allreduce,
 * and the ranks that share its memory. In between, a megabyte goes round a ring.
 *
 *   abort N    the last rank calls MPI_Abort() with this code
 *   leave      the last rank exits with 0 before MPI_Finalize(), the others sleep
 *   sleep      all ranks sleep once they have printed
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

static void pass_round(int rank, int size)
{
        unsigned char *bytes = malloc(BYTES);
        int next = (rank + 1) % size, last = (rank + size - 1) % size;

        memset(bytes, rank, BYTES);
        MPI_Sendrecv_replace(bytes, BYTES, MPI_CHAR, next, 0, last, 0, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
        for (int i = 0; i < BYTES; i++)
                if (bytes[i] != (unsigned char)last)
                        MPI_Abort(MPI_COMM_WORLD, 3);
        free(bytes);
}

int main(int argc, char **argv)
{
        const char *end = argc > 1 ? argv[1] : "";
        int rank, size, sum, local;
        MPI_Comm node;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_size(node, &local);
        if (size > 1)
                pass_round(rank, size);
        printf("%d %d %d %d\n", rank, size, sum, local);
        fflush(stdout);
        if (!strcmp(end, "sleep"))
                sleep(600);
        if (!strcmp(end, "abort") && rank == size - 1)
                MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
        if (!strcmp(end, "leave") && rank == size - 1)
                _exit(0);
        if (!strcmp(end, "leave"))
                sleep(600); /* a rank that spoke to the last one might abort before it is gone */
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        return 0;
}
