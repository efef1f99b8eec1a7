/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: queues with a thread each
 *
 * A task runs when those before it in its stream are done, and those at the positions that it waits
 * for in others. Events and other queues may name a stream that was destroyed, so none is freed:
 * the next one that is created takes its place and counts its turns on.
 */
#define _GNU_SOURCE
#include "fakegpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct task {
        struct task *next;
        void (*run)(void *);
        void *arg;
        int n_after;
        struct position after[];
};

struct CUstream_st {
        struct CUstream_st *next;
        struct task *first, **last;
        unsigned long long asked, done; /* how many tasks */
        int device, n_waits;
        struct position *waits;       /* for the next task */
        bool blocking, ended, vacant; /* vacant: its thread has ended as well */
        pthread_t thread;
};

static struct CUstream_st *streams, *null_streams[MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t task_added = PTHREAD_COND_INITIALIZER;
static pthread_cond_t task_done = PTHREAD_COND_INITIALIZER;

static bool is_ready(const struct task *t)
{
        for (int i = 0; i < t->n_after; i++)
                if (t->after[i].stream->done < t->after[i].turn)
                        return false;
        return true;
}

/* Takes the next task that can run; NULL when the stream has ended. */
static struct task *take_task(struct CUstream_st *s)
{
        struct task *t;

        while (!s->first && !s->ended)
                pthread_cond_wait(&task_added, &lock);
        t = s->first;
        if (!t)
                return NULL;
        while (!is_ready(t))
                pthread_cond_wait(&task_done, &lock);
        s->first = t->next;
        if (!s->first)
                s->last = &s->first;
        return t;
}

static void *run_stream(void *arg)
{
        struct CUstream_st *s = arg;
        struct task *t;

        push_context(context_of(s->device));
        pthread_mutex_lock(&lock);
        while ((t = take_task(s))) {
                pthread_mutex_unlock(&lock);
                if (t->run)
                        t->run(t->arg);
                free(t);
                pthread_mutex_lock(&lock);
                s->done++;
                pthread_cond_broadcast(&task_done);
        }
        s->vacant = true;
        pthread_mutex_unlock(&lock);
        return NULL;
}

/* Returns a stream that was destroyed, or a new one. */
static struct CUstream_st *take_stream(void)
{
        struct CUstream_st *s = streams;

        while (s && !s->vacant)
                s = s->next;
        if (s)
                return s;
        s = calloc(1, sizeof(*s));
        if (!s)
                abort();
        s->last = &s->first;
        s->next = streams;
        streams = s;
        return s;
}

CUstream create_stream(unsigned flags, int device)
{
        struct CUstream_st *s;

        pthread_mutex_lock(&lock);
        s = take_stream();
        s->device = device;
        s->blocking = !(flags & cudaStreamNonBlocking);
        s->ended = s->vacant = false;
        pthread_mutex_unlock(&lock);
        if (pthread_create(&s->thread, NULL, run_stream, s) != 0)
                abort();
        pthread_detach(s->thread);
        return s;
}

/* What was asked of it is still done. */
void end_stream(CUstream s)
{
        pthread_mutex_lock(&lock);
        s->ended = true;
        pthread_cond_broadcast(&task_added);
        pthread_mutex_unlock(&lock);
}

/* NULL, 1 and 2 name the default stream of the current device. */
static struct CUstream_st *stream_of(struct CUstream_st *s)
{
        int device = current_device();

        if ((uintptr_t)s > 2)
                return s;
        if (!null_streams[device])
                null_streams[device] = create_stream(0, device);
        return null_streams[device];
}

static void add_wait(struct CUstream_st *s, struct CUstream_st *other, unsigned long long turn)
{
        if (other->done >= turn)
                return;
        s->waits = realloc(s->waits, sizeof(*s->waits) * (size_t)(s->n_waits + 1));
        if (!s->waits)
                abort();
        s->waits[s->n_waits++] = (struct position){ other, turn };
}

/* The device's default stream and the blocking ones wait for each other. */
static void order_streams(struct CUstream_st *s)
{
        struct CUstream_st *null = null_streams[s->device];

        if (s == null) {
                for (struct CUstream_st *o = streams; o; o = o->next)
                        if (o != s && o->blocking && o->device == s->device)
                                add_wait(s, o, o->asked);
        } else if (s->blocking && null) {
                add_wait(s, null, null->asked);
        }
}

static void add_task(struct CUstream_st *s, void (*run)(void *), void *arg)
{
        size_t waits = sizeof(*s->waits) * (size_t)s->n_waits;
        struct task *t = calloc(1, sizeof(*t) + waits);

        if (!t)
                abort();
        t->run = run;
        t->arg = arg;
        t->n_after = s->n_waits;
        if (waits)
                memcpy(t->after, s->waits, waits);
        free(s->waits);
        s->waits = NULL;
        s->n_waits = 0;
        *s->last = t;
        s->last = &t->next;
        s->asked++;
}

void fakegpu_enqueue(void *stream, void (*run)(void *), void *arg)
{
        struct CUstream_st *s = stream_of(stream);

        pthread_mutex_lock(&lock);
        order_streams(s);
        add_task(s, run, arg);
        pthread_cond_broadcast(&task_added);
        pthread_mutex_unlock(&lock);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void wait_position(struct position at)
{
        pthread_mutex_lock(&lock);
        while (at.stream && at.stream->done < at.turn)
                pthread_cond_wait(&task_done, &lock);
        pthread_mutex_unlock(&lock);
}

/* A loop around this would take the core from the ranks that it waits for. */
static cudaError_t query_position(struct position at)
{
        static __thread unsigned misses;

        if (!at.stream || __atomic_load_n(&at.stream->done, __ATOMIC_ACQUIRE) >= at.turn)
                return cudaSuccess;
        if (++misses % 16 == 0)
                usleep(50);
        else
                sched_yield();
        return cudaErrorNotReady;
}

static struct position end_of(struct CUstream_st *s)
{
        s = stream_of(s);
        return (struct position){ s, s->asked };
}

cudaError_t query_stream(CUstream s)
{
        return query_position(end_of(s));
}

void wait_stream(CUstream s)
{
        wait_position(end_of(s));
}

void wait_device(int device)
{
        for (struct CUstream_st *s = streams; s; s = s->next)
                if (s->device == device)
                        wait_position(end_of(s));
}

void stream_wait_event(CUstream s, const struct CUevent_st *e)
{
        s = stream_of(s);
        pthread_mutex_lock(&lock);
        if (e->at.stream)
                add_wait(s, e->at.stream, e->at.turn);
        pthread_mutex_unlock(&lock);
}

/* What the stream waits for, its event waits for. */
void record_event(struct CUevent_st *e, CUstream s)
{
        s = stream_of(s);
        if (s->n_waits)
                fakegpu_enqueue(s, NULL, NULL);
        e->at = end_of(s);
}

cudaError_t query_event(const struct CUevent_st *e)
{
        return query_position(e->at);
}

void wait_event(const struct CUevent_st *e)
{
        wait_position(e->at);
}

/* --- copies ----------------------------------------------------------------------------------- */

struct copy {
        void *to;
        const void *from;
        size_t size;
        int value;
        char own[];
};

static bool is_whole_block(const void *at, size_t size)
{
        struct block b;

        return find_block(at, &b) && b.at == at && b.size == size && b.mapped;
}

static void run_copy(void *arg)
{
        struct copy *c = arg;

        if (c->from)
                memmove(c->to, c->from, c->size);
        else if (!c->value && c->size >= 1 << 20 && is_whole_block(c->to, c->size))
                madvise(c->to, c->size, MADV_DONTNEED); /* zeros that take no memory */
        else
                memset(c->to, c->value, c->size);
        free(c);
}

cudaError_t move_memory(void *to, const void *from, int value, size_t size, CUstream s, bool wait)
{
        struct block known;
        bool pageable = from && !find_block(from, &known);
        struct copy *c = malloc(sizeof(*c) + (pageable ? size : 0));

        if (!c)
                return cudaErrorMemoryAllocation;
        *c = (struct copy){
                .to = to, .from = pageable ? c->own : from, .size = size, .value = value
        };
        if (pageable) /* the caller may change it after the return */
                memcpy(c->own, from, size);
        fakegpu_enqueue(s, run_copy, c);
        if (wait)
                wait_stream(s);
        return cudaSuccess;
}
