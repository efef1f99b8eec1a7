/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadline: a moment of CLOCK_MONOTONIC in milliseconds, INT64_MAX = never
 */
#pragma once

#include <hnlaunch/hnlaunch.h>
#include <time.h>

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

/* The remaining time as a timeout, HN_NO_TIMEOUT included. */
static inline int64_t deadline_rest(int64_t deadline)
{
        int64_t left = deadline - clock_ms();

        if (deadline == INT64_MAX)
                return HN_NO_TIMEOUT;
        return left < 0 ? 0 : left;
}

/* For poll(): -1 = for ever, never negative otherwise. */
static inline int deadline_left(int64_t deadline)
{
        int64_t left = deadline - clock_ms();

        if (deadline == INT64_MAX)
                return -1;
        return left <= 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

static inline struct timespec deadline_timespec(int64_t deadline)
{
        /* A day is as good as never for a repeated wait. */
        int64_t most = clock_ms() + 86400000, at = deadline < most ? deadline : most;

        return (struct timespec){ .tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000 };
}
