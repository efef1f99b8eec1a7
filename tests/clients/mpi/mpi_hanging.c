/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_hanging HOW RANK [FILE]: all ranks meet in MPI_Barrier(); then this rank does what HOW says
 * while the others wait for it in another barrier.
 *
 *   sleep, stop, fifo, lock: sleeps, stops itself, waits for FILE to be written, for a lock on FILE
 *   receive: waits for a message that no rank sends
 *   leave: waits in MPI_Finalize()
 *   crossed: waits in the barrier of another communicator, which the others enter after this one
 *   compute: computes: no hang
 *   all-meet: all meet again and again: no hang
 *
 * Prints "met" on each rank.
 */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Their names are looked for in stacks. */
#define NOINLINE static __attribute__((noinline))

static const char *how, *file;
static MPI_Comm first, second;

NOINLINE void load_batch(void)
{
        for (;;)
                pause();
}

NOINLINE void read_from(int fd)
{
        char byte;

        while (read(fd, &byte, 1) >= 0)
                ;
}

/* A child has the lock. */
NOINLINE void take_lock(void)
{
        int ready[2];
        char byte;

        if (pipe(ready) < 0)
                return;
        if (!fork()) {
                flock(open(file, O_RDWR | O_CREAT, 0600), LOCK_EX);
                if (write(ready[1], "x", 1) == 1)
                        load_batch();
        }
        if (read(ready[0], &byte, 1) == 1)
                flock(open(file, O_RDWR), LOCK_EX);
}

NOINLINE void get_batch(void)
{
        char byte;

        MPI_Recv(&byte, 1, MPI_CHAR, MPI_ANY_SOURCE, 99, first, MPI_STATUS_IGNORE);
}

NOINLINE void compute(void)
{
        for (volatile unsigned long n = 0;; n++)
                ;
}

NOINLINE void meet_first(void)
{
        MPI_Barrier(first);
}

NOINLINE void meet_second(void)
{
        MPI_Barrier(second);
}

static void do_other_thing(void)
{
        if (!strcmp(how, "sleep"))
                load_batch();
        if (!strcmp(how, "stop"))
                raise(SIGSTOP);
        if (!strcmp(how, "fifo"))
                read_from(open(file, O_RDWR));
        if (!strcmp(how, "lock"))
                take_lock();
        if (!strcmp(how, "receive"))
                get_batch();
        if (!strcmp(how, "leave"))
                MPI_Finalize();
        if (!strcmp(how, "crossed"))
                meet_second();
        if (!strcmp(how, "compute"))
                compute();
}

int main(int argc, char **argv)
{
        int rank;

        how = argc > 2 ? argv[1] : "";
        file = argc > 3 ? argv[3] : "";
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_dup(MPI_COMM_WORLD, &first);
        MPI_Comm_dup(MPI_COMM_WORLD, &second);
        meet_first();
        puts("met");
        fflush(stdout);
        if (rank == atoi(argv[2]))
                do_other_thing();
        while (!strcmp(how, "all-meet"))
                meet_first();
        meet_first();
        meet_second();
        return MPI_Finalize();
}
