/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread pool: threads for blocking calls, like a write to a file or the lookup of a name
 *
 * Replaces libuv's pool, which aborts the process when a thread cannot be started. Threads start as
 * work needs them. While no further thread can be started, work waits for the existing ones;
 * without any thread, work runs in the loop, with a warning. All functions are for the loop's
 * thread.
 */
#pragma once

#include <pthread.h>
#include <uv.h>

#include "base/error.h"

struct thread_pool;

/* A piece of work, embedded in a struct of the owner, which sets the two functions. */
struct thread_pool_work {
        void (*run)(struct thread_pool_work *w);              /* in a thread */
        void (*done)(struct thread_pool_work *w, int status); /* in the loop: 0, or UV_ECANCELED */
        struct thread_pool_work *next;
        int status;
};

/* Creates a pool of at most @max threads. NULL with @err on failure. */
struct thread_pool *thread_pool_create(uv_loop_t *loop, int max, struct error *err);

/* Queues @w, which is borrowed until done() is called from a later turn of the loop. */
void thread_pool_run(struct thread_pool *p, struct thread_pool_work *w);
/* Finishes waiting work with UV_ECANCELED; running work is not touched. */
void thread_pool_cancel(struct thread_pool *p, struct thread_pool_work *w);

/* Starts a thread with all signals blocked: signals belong to the main thread. 0 or an errno. */
int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

/* Ends the threads once all work is done; the loop turns until then. NULL does nothing. */
void thread_pool_close(struct thread_pool *p);
