/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uplink: the two descriptors between agent and head
 *
 * Frames for the head are appended to a buffer and written before the loop goes to sleep; a head
 * without time to read never blocks the agent. Frames from the head are handed to ops.frame.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "wire/frame.h"

struct uplink_ops {
        void (*frame)(void *ctx, const struct frame *f); /* lent for the call */
        void (*drained)(void *ctx);                      /* uplink_full() became false */
        void (*sent)(void *ctx); /* before the loop sleeps: no frame waits to be written */
        /* Once in every turn of the loop, before the buffer is written: for decisions that depend
         * on several events. */
        void (*turn)(void *ctx);
        /* End of file, a broken connection, or malformed frames. Called once. Nothing is read after
         * that, and of waiting or new frames only as much is written as goes at once. */
        void (*lost)(void *ctx, const char *why);
};

struct uplink {
        uv_poll_t in_poll, out_poll;
        uv_prepare_t flush;
        struct buf in;
        struct buf out; /* whole frames are appended here; after lost() they are dropped */
        struct uplink_ops ops;
        void *ctx;
        int in_fd, out_fd;
        bool writing, full, lost;
        atomic_bool *unsent; /* borrowed: the last write ended inside of a frame, maybe; or NULL */
};

/* Starts to read; both descriptors are borrowed until uplink_close(), and become non-blocking.
 * -errno when a descriptor cannot be polled. */
int uplink_open(struct uplink *u, uv_loop_t *loop, int in_fd, int out_fd, struct uplink_ops ops,
                void *ctx, struct error *err);
/* Closes the loop's handles: let the loop turn once more before uplink_finish(). Frames appended in
 * the last turn are not sent. */
void uplink_close(struct uplink *u);
void uplink_finish(struct uplink *u); /* frees the buffers */

/* Gives the head up: calls lost(), once, and reads and writes nothing from then on. */
void uplink_lose(struct uplink *u, const char *why);

/* Too much is waiting: streams should pause until drained(). */
bool uplink_full(struct uplink *u);
/* Bytes of the head are waiting to be read. */
bool uplink_readable(const struct uplink *u);
