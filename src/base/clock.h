/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock: the time since the machine started, which no setting of the date changes
 */
#pragma once

#include <stdint.h>
#include <time.h>

/* Reads CLOCK_MONOTONIC in nanoseconds; the same moments as libuv's uv_hrtime(). */
static inline int64_t clock_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t clock_ms(void)
{
        return clock_ns() / 1000000;
}
