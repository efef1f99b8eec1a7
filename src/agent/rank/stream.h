/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream: one output of a worker on the way to the head
 *
 * Reads the pipe only while the head has written enough of the earlier output (the window of
 * LAUNCH) and the uplink is not full; so a slow reader slows the worker down and costs no memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "agent/core/uplink.h"
#include "agent/record/node_trace.h"

struct stream {
        uv_poll_t poll;
        struct uplink *up;
        void (*ended)(void *ctx, const struct stream *s);
        void *ctx;
        uint32_t rank;
        uint8_t number; /* MSG_STDOUT, MSG_STDERR */
        int fd;
        uint32_t window;    /* bytes that may be unwritten */
        uint32_t unwritten; /* sent and not yet written by the head */
        uint64_t heard_ns;  /* when the last bytes came, uv_hrtime(); 0 = never */
        bool draining;
        struct node_trace *trace; /* borrowed; NULL = times of output are not recorded */
};

/* Takes @fd, and reads from the first stream_resume() on. @ended() is called once, after end of
 * file was reported to the head; the stream is freed then. NULL when the loop refuses the
 * descriptor, which is then closed. */
struct stream *stream_open(uv_loop_t *loop, struct uplink *up, uint32_t rank, uint8_t number,
                           uint32_t window, int fd,
                           void (*ended)(void *ctx, const struct stream *s), void *ctx);
/* Without another word to the head and without calling ended(). NULL is fine. */
void stream_close(struct stream *s);

void stream_credit(struct stream *s, uint32_t bytes); /* the head has written so many */
void stream_resume(struct stream *s);                 /* the uplink is no longer full */
/* Sends the bytes in the pipe, within the head's credit. May end the stream. */
void stream_catch_up(struct stream *s);
/* Call when no process of the job holds the other end any more: sends the rest of the pipe and
 * ends, even if a foreign process keeps the pipe open. May end the stream. */
void stream_drain(struct stream *s);
