/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hanging HOW RANK [FILE]: all ranks meet in a barrier; then this rank does what HOW says while the
 * others wait for it in another barrier.
 *
 *   sleep, stop: sleeps, stops itself
 *   exit: ends, while the others wait for a key of its own
 *   fifo, lock, pipe: waits for FILE to be written, for a lock on FILE, for a pipe of its own
 *   child: waits for a program
 *   futex: waits for a lock in memory that a child has
 *   vfork: waits uninterruptibly, for a child that shares its memory
 *   receive: waits for a key of the store
 *   crossed: waits in the barrier of another group, which the others enter after this one
 *   compute, thread, write: computes, does so in a thread, writes FILE slowly: no hang
 *   all-compute, all-sleep: so do the others: no hang
 *   all-meet: all meet again and again: no hang
 *
 * With "gloo-" before HOW the others wait in an all_reduce of Gloo; order: in a broadcast of it.
 * With "plain-" the ranks use no library: the others sleep.
 */
#include <fcntl.h>
#include <hnlaunch/comm.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "claim.h"

/* Their names are looked for in stacks. */
#define NOINLINE static __attribute__((noinline))

static const char *how, *file;
static hn_group *first, *second;
static hn_comm *comm, *other_comm;

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

/* A child has the lock. */
NOINLINE void take_mutex(void)
{
        struct shared {
                pthread_mutex_t lock;
                int taken;
        } *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pthread_mutexattr_t attr;

        CLAIM(s != MAP_FAILED && pthread_mutexattr_init(&attr) == 0);
        pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
        CLAIM(pthread_mutex_init(&s->lock, &attr) == 0);
        if (!fork()) {
                pthread_mutex_lock(&s->lock);
                __atomic_store_n(&s->taken, 1, __ATOMIC_SEQ_CST);
                load_batch();
        }
        while (!__atomic_load_n(&s->taken, __ATOMIC_SEQ_CST))
                usleep(1000);
        pthread_mutex_lock(&s->lock);
}

/* The kernel lets the parent wait until the child has executed a program. */
NOINLINE void wait_without_signals(void)
{
        if (!vfork())
                for (;;)
                        pause();
}

NOINLINE void compute(void)
{
        for (volatile unsigned long n = 0;; n++)
                ;
}

static void *compute_aside(void *unused)
{
        compute();
        return unused;
}

NOINLINE void wait_for_thread(void)
{
        pthread_t thread;

        CLAIM(pthread_create(&thread, NULL, compute_aside, NULL) == 0);
        pthread_join(thread, NULL);
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

NOINLINE void add_up(hn_comm *c)
{
        float x[4] = { 1 }, y[4];

        hn_all_reduce(c, x, y, 4, HN_FLOAT32, HN_SUM);
}

NOINLINE void get_weights(void)
{
        float x[4] = { 1 };

        hn_broadcast(comm, x, 4, HN_FLOAT32, 0);
}

NOINLINE void meet_second(void)
{
        if (other_comm)
                add_up(other_comm);
        else
                CLAIM(hn_barrier(second, HN_NO_TIMEOUT) == HN_OK); /* no call in its place */
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
        if (!strcmp(how, "futex"))
                take_mutex();
        if (!strcmp(how, "vfork"))
                wait_without_signals();
        if (!strcmp(how, "crossed"))
                meet_second();
        if (!strcmp(how, "order"))
                get_weights();
        if (!strcmp(how, "exit"))
                exit(0);
        if (!strcmp(how, "compute") || !strcmp(how, "all-compute"))
                compute();
        if (!strcmp(how, "thread"))
                wait_for_thread();
        if (!strcmp(how, "write"))
                write_slowly();
        if (!strcmp(how, "all-meet"))
                meet_for_ever();
}

/* Makes what the ranks meet in. */
static void open_groups(bool gloo)
{
        int all[64], n = hn_world_size();

        CLAIM(n <= 64);
        for (int i = 0; i < n; i++)
                all[i] = i;
        CLAIM(hn_group_create("first", all, n, NULL, HN_NO_TIMEOUT, &first) == HN_OK);
        CLAIM(hn_group_create("second", all, n, NULL, HN_NO_TIMEOUT, &second) == HN_OK);
        if (!gloo)
                return;
        CLAIM(hn_comm_create(first, "gloo", HN_NO_TIMEOUT, &comm) == HN_OK);
        CLAIM(hn_comm_create(second, "gloo", HN_NO_TIMEOUT, &other_comm) == HN_OK);
}

static void meet_first(void)
{
        if (comm)
                add_up(comm);
        else
                hn_barrier(NULL, HN_NO_TIMEOUT);
}

/* Without a library. */
static int be_plain(int victim)
{
        const char *rank = getenv("HN_RANK");

        puts("met");
        fflush(stdout);
        if (rank && atoi(rank) == victim)
                do_other_thing();
        load_batch();
        return 0;
}

static bool skip_start(const char *start)
{
        bool has = !strncmp(how, start, strlen(start));

        how += has ? strlen(start) : 0;
        return has;
}

int main(int argc, char **argv)
{
        bool gloo;

        how = argc > 1 ? argv[1] : "";
        file = argc > 3 ? argv[3] : "";
        CLAIM(argc > 2);
        if (skip_start("plain-"))
                return be_plain(atoi(argv[2]));
        gloo = skip_start("gloo-");
        CLAIM(hn_init(NULL) == HN_OK);
        if (gloo || !strcmp(how, "crossed"))
                open_groups(gloo);
        CLAIM(hn_barrier(NULL, HN_NO_TIMEOUT) == HN_OK);
        puts("met");
        fflush(stdout);
        if (hn_rank() == atoi(argv[2]) || !strncmp(how, "all-", 4))
                do_other_thing();
        if (!strcmp(how, "exit"))
                get_batch();
        meet_first();
        return hn_finalize();
}
