/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock_offset: an estimate of another machine's CLOCK_MONOTONIC from PING and PONG
 *
 * The best round trip counts, but less with age, because clocks drift apart. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct clock_offset {
        int64_t offset_ns; /* theirs minus ours, +- error_ns */
        int64_t error_ns;  /* half the best round trip seen, at @synced_ns */
        int64_t synced_ns; /* own clock */
};

#define CLOCK_OFFSET_INIT                                                                          \
        {                                                                                          \
                .error_ns = INT64_MAX / 2, /* not known */                                         \
        }

/* Returns the largest error of offset_ns at @now_ns. */
int64_t clock_offset_error(const struct clock_offset *c, int64_t now_ns);
/* Takes the PONG received at @now_ns (own clock). */
void clock_offset_pong(struct clock_offset *c, const struct ping *p, int64_t now_ns);
/* Takes another machine's estimate: @offset_ns ahead, +- @error_ns. Ignored unless better than the
 * own one. */
void clock_offset_hear(struct clock_offset *c, int64_t offset_ns, int64_t error_ns, int64_t now_ns);
