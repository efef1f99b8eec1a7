/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank probe: asks a rank again and again until the rank is ready (--ready tcp:, http:, file:)
 *
 * A question follows the last one after a tenth of the time since the start, 100 ms to 1 s. A port
 * is asked at 127.0.0.1, then, each time the address before refuses, at ::1 and the node's own
 * addresses: a server may listen at one of them only. HTTP is ready with a status from 200 to 399.
 * Call everything on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "wire/msg.h"

struct rank_probe;

struct rank_probe_order {
        uint8_t kind;     /* READY_TCP, READY_HTTP or READY_FILE */
        uint16_t port;    /* of TCP and HTTP */
        const char *path; /* of HTTP, or of a file; lent for the call */
        bool alone;       /* the process can have no threads: the loop waits for a file system */
};

/* Begins to ask. @ready is called once, from the loop, and not after rank_probe_end(). */
struct rank_probe *rank_probe_start(uv_loop_t *loop, const struct rank_probe_order *order,
                                    void (*ready)(void *ctx, uint32_t rank), void *ctx,
                                    uint32_t rank);
/* Asks no more. The memory is freed by close callbacks, also after ready(). NULL is fine. */
void rank_probe_end(struct rank_probe *p);
