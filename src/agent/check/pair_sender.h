/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair sender: sends bytes without a meaning to a peer, for a time or up to a number
 *
 * The kernel holds few unsent bytes, so the end comes soon after the last byte also on a slow link.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct pair_sender {
        uv_tcp_t *to;
        uv_write_t write;
        int64_t begun_ns, limit_ns; /* the first byte; for so long */
        uint64_t left, given;       /* bytes to give to the stream, and given */
        /* Called once, unless the stream is closed before; @status as of libuv. */
        void (*done)(struct pair_sender *s, int status);
};

/* Sets the options of a measured connection. */
void pair_sender_prepare(uv_tcp_t *t);
void pair_sender_start(struct pair_sender *s, uv_tcp_t *to, uint32_t ms, uint32_t bytes,
                       void (*done)(struct pair_sender *s, int status));
/* Returns the rate, in bytes per second, of the bytes at the peer by now. */
uint64_t pair_sender_rate(const struct pair_sender *s);
/* Returns a rate, also of a short time. */
uint64_t pair_rate(uint64_t bytes, int64_t ns);
