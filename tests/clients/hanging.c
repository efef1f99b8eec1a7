/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hanging HOW RANK [FILE]: all ranks meet in a barrier; then this rank does what HOW says while the
 * others wait for it in another barrier.
 *
 *   sleep, stop: sleeps, stops itself
 *   exit: ends, while the others wait for a key of its own
 *   fifo, lock, pipe: waits for FILE to be written, for a lock on FILE, for a pipe of its own
 *   child: waits for a program
 *   order, receive: waits in all_gather, for a key of the store
 *   compute, write: computes, writes FILE slowly: no hang
 *   all-compute, all-sleep: so do the others: no hang
 *   all-meet: all meet again and again: no hang
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "claim.h"

/* Their names are looked for in stacks. */
#define NOINLINE static __attribute__((noinline))

static const char *how, *file;

NOINLINE void load_batch(void)
{
        for (;;)
                pause();
}

NOINLINE void read_from(int fd)
{
        char byte;

        CLAIM(fd >= 0);
        while (read(fd, &byte, 1) >= 0)
                ;
}

NOINLINE void read_own_pipe(void)
{
        int fds[2];

        CLAIM(pipe(fds) == 0);
        read_from(fds[0]);
}

/* A child has the lock. */
NOINLINE void take_lock(void)
{
        int ready[2];
        char byte;

        CLAIM(pipe(ready) == 0);
        if (!fork()) {
                CLAIM(flock(open(file, O_RDWR | O_CREAT, 0600), LOCK_EX) == 0);
                CLAIM(write(ready[1], "x", 1) == 1);
                load_batch();
        }
        CLAIM(read(ready[0], &byte, 1) == 1);
        CLAIM(flock(open(file, O_RDWR), LOCK_EX) == 0);
}

NOINLINE void compute(void)
{
        for (volatile unsigned long n = 0;; n++)
                ;
}

/* Hardly uses the processor. */
static void write_slowly(void)
{
        static char data[128 << 10];
        int fd = open(file, O_WRONLY | O_CREAT, 0600);

        CLAIM(fd >= 0);
        while (pwrite(fd, data, sizeof(data), 0) == sizeof(data))
                usleep(200000);
}

static void meet_for_ever(void)
{
        while (hn_barrier(NULL, HN_NO_TIMEOUT) == HN_OK)
                for (volatile int n = 0; n < 100000; n++)
                        ;
}

static void get_batch(void)
{
        char value[8];
        size_t len = sizeof(value);

        hn_store_get(hn_store_default(), "a batch", value, &len, HN_NO_TIMEOUT);
}

static void do_other_thing(void)
{
        if (!strcmp(how, "sleep") || !strcmp(how, "all-sleep"))
                load_batch();
        if (!strcmp(how, "stop"))
                raise(SIGSTOP);
        if (!strcmp(how, "fifo"))
                read_from(open(file, O_RDWR));
        if (!strcmp(how, "pipe"))
                read_own_pipe();
        if (!strcmp(how, "lock"))
                take_lock();
        if (!strcmp(how, "child"))
                CLAIM(system("sleep 1000") >= 0);
        if (!strcmp(how, "receive"))
                get_batch();
        if (!strcmp(how, "exit"))
                exit(0);
        if (!strcmp(how, "compute") || !strcmp(how, "all-compute"))
                compute();
        if (!strcmp(how, "write"))
                write_slowly();
        if (!strcmp(how, "all-meet"))
                meet_for_ever();
}

int main(int argc, char **argv)
{
        how = argc > 1 ? argv[1] : "";
        file = argc > 3 ? argv[3] : "";
        CLAIM(argc > 2 && hn_init(NULL) == HN_OK);
        CLAIM(hn_barrier(NULL, HN_NO_TIMEOUT) == HN_OK);
        puts("met");
        fflush(stdout);
        if (hn_rank() == atoi(argv[2]) || !strncmp(how, "all-", 4))
                do_other_thing();
        if (!strcmp(how, "exit"))
                get_batch();
        hn_barrier(NULL, HN_NO_TIMEOUT);
        return hn_finalize();
}
