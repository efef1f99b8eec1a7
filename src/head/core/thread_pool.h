/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool: threads for calls that may block, such as a write to a file or the lookup of a name
 *
 * What libuv's own pool is for, which aborts the process when it cannot start its threads. Here
 * threads start as work needs them. While more cannot be started, work waits for those that are
 * there; when there is none, it is run in the loop, with a warning. All functions are for the
 * thread of the loop.
 */
#pragma once

#include <uv.h>

#include "base/error.h"

struct pool;

/* Embedded by its owner, who fills in the functions. */
struct thread_pool_work {
        void (*run)(struct thread_pool_work *w);              /* in a thread */
        void (*done)(struct thread_pool_work *w, int status); /* in the loop: 0, or UV_ECANCELED */
        struct thread_pool_work *next;
        int status;
};

/* At most @max threads. NULL: told in @err. */
struct pool *thread_pool_create(uv_loop_t *loop, int max, struct error *err);

/* @w is borrowed until done() is called, from a later turn of the loop. */
void thread_pool_run(struct pool *p, struct thread_pool_work *w);
/* Work that has not begun is done at once, with UV_ECANCELED. */
void thread_pool_cancel(struct pool *p, struct thread_pool_work *w);

/* Ends the threads once all work is done; the loop turns until then. NULL is fine. */
void thread_pool_close(struct pool *p);
