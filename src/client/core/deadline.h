/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadline: a moment of CLOCK_MONOTONIC in milliseconds, INT64_MAX = never
 */
#pragma once

#include <hnlaunch/hnlaunch.h>
#include <pthread.h>

#include "base/clock.h"

enum { DEADLINE_DEFAULT_MS = 300 * 1000 };

/* The length of a public timeout, INT64_MAX = for ever. */
static inline int64_t deadline_span(int64_t timeout_ms)
{
        if (timeout_ms == HN_DEFAULT_TIMEOUT)
                return DEADLINE_DEFAULT_MS;
        return timeout_ms < 0 ? INT64_MAX : timeout_ms;
}

static inline int64_t deadline_in(int64_t timeout_ms)
{
        int64_t span = deadline_span(timeout_ms), now = clock_ms();

        return span > INT64_MAX - now ? INT64_MAX : now + span;
}

/* For poll(): -1 = for ever, never negative otherwise. */
static inline int deadline_left(int64_t deadline)
{
        int64_t left = deadline - clock_ms();

        if (deadline == INT64_MAX)
                return -1;
        return left <= 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

/* A condition variable for deadline_cond_wait(). */
static inline void deadline_cond_init(pthread_cond_t *cond)
{
        pthread_condattr_t attr;

        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(cond, &attr);
        pthread_condattr_destroy(&attr);
}

/* Waits until the deadline at most; may return earlier. */
static inline void deadline_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                      int64_t deadline)
{
        /* A day is as good as never for a repeated wait. */
        int64_t most = clock_ms() + 86400000, at_ms = deadline < most ? deadline : most;
        struct timespec at = { .tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000 };

        pthread_cond_timedwait(cond, mutex, &at);
}
