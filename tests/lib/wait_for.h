/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for a state instead of sleeping; the twin of wait.sh. After cmocka.h, if at all.
 *
 *   wait_for(CONDITION)            looks at a condition until it holds
 *   wait_for_equal(GOT, WANT)      the same for a number, whose last value is told
 *
 * Both fail the test (without cmocka: abort) after a minute, times the load per processor.
 */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifndef WAIT_MS
#define WAIT_MS 60000
#endif
enum { WAIT_LOOK_MS = 5 };

static inline int64_t wait_now_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Returns how many times as long as on a quiet machine a program may take now. */
static inline int64_t wait_slowness(void)
{
        const char *path = getenv("LOADAVG");
        FILE *f = fopen(path ? path : "/proc/loadavg", "re");
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        double average = 0, running = 0;

        if (f) {
                if (fscanf(f, "%lf %*f %*f %lf", &average, &running) != 2)
                        average = running = 0;
                fclose(f);
        }
        running = running > average ? running : average;
        return running > (double)cpus ? (int64_t)(running / (double)cpus) + 1 : 1;
}

/* Sleeps for a moment; returns 0 when the time of the wait that began at @begin_ms is over. */
static inline int wait_goes_on(int64_t begin_ms)
{
        int64_t took = wait_now_ms() - begin_ms;

        if (took >= WAIT_MS && took >= WAIT_MS * wait_slowness())
                return 0;
        nanosleep(&(struct timespec){ .tv_nsec = WAIT_LOOK_MS * 1000000L }, NULL);
        return 1;
}

/* Tells a wait in vain. */
#ifdef CMOCKA_H_
#define WAIT_FAIL(...)                                                                             \
        do {                                                                                       \
                print_error(__VA_ARGS__);                                                          \
                _fail(__FILE__, __LINE__);                                                         \
        } while (0)
#else
#define WAIT_FAIL(...)                                                                             \
        do {                                                                                       \
                fprintf(stderr, __VA_ARGS__);                                                      \
                abort();                                                                           \
        } while (0)
#endif

#define wait_for(condition)                                                                        \
        do {                                                                                       \
                int64_t wait_begin_ = wait_now_ms();                                               \
                while (!(condition))                                                               \
                        if (!wait_goes_on(wait_begin_))                                            \
                                WAIT_FAIL("waited in vain for: %s\n", #condition);                 \
        } while (0)

#define wait_for_equal(got, want)                                                                  \
        do {                                                                                       \
                int64_t wait_begin_ = wait_now_ms(), wait_got_;                                    \
                while ((wait_got_ = (int64_t)(got)) != (int64_t)(want))                            \
                        if (!wait_goes_on(wait_begin_))                                            \
                                WAIT_FAIL("waited in vain for: %s == %s; last: %" PRId64 "\n",     \
                                          #got, #want, wait_got_);                                 \
        } while (0)
