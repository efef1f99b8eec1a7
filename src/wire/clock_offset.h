/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Far clock: what is known of another machine's CLOCK_MONOTONIC, learned from PING and PONG
 *
 * The best round trip counts, and less so the older it is: clocks drift apart. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct clock_offset {
        int64_t offset_ns; /* theirs minus ours, +- error_ns */
        int64_t error_ns;  /* half the best round trip seen, at @synced_ns */
        int64_t synced_ns; /* our clock */
};

#define FAR_CLOCK_INIT                                                                             \
        {                                                                                          \
                .error_ns = INT64_MAX / 2, /* not known */                                         \
        }

/* How wrong offset_ns may be at @now_ns. */
int64_t clock_offset_error(const struct clock_offset *c, int64_t now_ns);
/* An answer to our PING came at @now_ns, our clock. */
void clock_offset_pong(struct clock_offset *c, const struct ping *p, int64_t now_ns);
/* Somebody says that they are @offset_ns ahead, +- @error_ns. Counts if it is better than what is
 * known. */
void clock_offset_hear(struct clock_offset *c, int64_t offset_ns, int64_t error_ns, int64_t now_ns);
