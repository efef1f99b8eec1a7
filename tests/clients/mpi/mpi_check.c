/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI_check: a program of any MPI that says whether its ranks found each other
 *
 * usage: mpi_check [meet]       a ring, a sum, and the ranks of each node
 *        mpi_check abort CODE   the last rank calls MPI_Abort(), the others wait
 *        mpi_check leave        the last rank ends without MPI_Finalize()
 *        mpi_check spawn        MPI_Comm_spawn() is an error that can be caught
 *        mpi_check names        a published name is found by another rank
 *        mpi_check programs     the number of the program of each rank, MPI_APPNUM
 *
 * Rank 0 prints one line.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 1 << 20 };

static int rank, size;

static void fail(const char *what)
{
        fprintf(stderr, "rank %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 99);
}

/* Passes a megabyte round the ring; each rank adds 1 to each byte. */
static void go_round(void)
{
        char *bytes = calloc(1, LARGE);
        int next = (rank + 1) % size, previous = (rank + size - 1) % size;

        if (rank == 0)
                MPI_Send(bytes, LARGE, MPI_CHAR, next, 1, MPI_COMM_WORLD);
        MPI_Recv(bytes, LARGE, MPI_CHAR, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < LARGE; i++)
                if (bytes[i]++ != (char)(rank == 0 ? size - 1 : rank - 1))
                        fail("the ring brought wrong bytes");
        if (rank != 0)
                MPI_Send(bytes, LARGE, MPI_CHAR, next, 1, MPI_COMM_WORLD);
        free(bytes);
}

static void meet(void)
{
        int sum, local, low, high;
        MPI_Comm node;

        if (size > 1)
                go_round();
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_size(node, &local);
        MPI_Allreduce(&local, &low, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&local, &high, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (sum != size * (size - 1) / 2)
                fail("the sum is wrong");
        if (rank == 0)
                printf("%d ranks met, %d to %d on a node\n", size, low, high);
        MPI_Comm_free(&node);
}

static void spawn(void)
{
        MPI_Comm children;
        int error;

        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        error = MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                               &children, MPI_ERRCODES_IGNORE);
        if (rank == 0)
                printf("spawn %s\n", error == MPI_SUCCESS ? "worked" : "was refused");
}

static void names(void)
{
        char port[MPI_MAX_PORT_NAME] = "a-port", found[MPI_MAX_PORT_NAME] = "";

        if (rank == 0)
                MPI_Publish_name("ocean", MPI_INFO_NULL, port);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Lookup_name("ocean", MPI_INFO_NULL, found);
        if (strcmp(found, port) != 0)
                fail("found another port");
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
                MPI_Unpublish_name("ocean", MPI_INFO_NULL, port);
                printf("the name was found\n");
        }
}

static void tell_programs(void)
{
        int *number, found, numbers[64] = { 0 };

        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found);
        if (!found || size > 64)
                fail("no MPI_APPNUM");
        MPI_Gather(number, 1, MPI_INT, numbers, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int i = 0; rank == 0 && i < size; i++)
                printf(i < size - 1 ? "%d " : "%d\n", numbers[i]);
}

int main(int argc, char **argv)
{
        const char *mode = argc > 1 ? argv[1] : "meet";

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        if (!strcmp(mode, "meet"))
                meet();
        else if (!strcmp(mode, "spawn"))
                spawn();
        else if (!strcmp(mode, "names"))
                names();
        else if (!strcmp(mode, "programs"))
                tell_programs();
        else if (rank == size - 1 && !strcmp(mode, "abort"))
                MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
        else if (rank == size - 1)
                _exit(0);
        else
                MPI_Barrier(MPI_COMM_WORLD);
        fflush(stdout);
        MPI_Finalize();
        return 0;
}
