/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stdin_writer: a worker's standard input, from MSG_STDIN into a pipe
 *
 * For every byte written to the pipe (or dropped because the worker closed the other end) the head
 * gets a MSG_CREDIT of stream 0: a head that respects MSG_WINDOW bounds the memory used here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "agent/core/uplink.h"
#include "base/buf.h"

struct stdin_writer {
        uv_poll_t poll;
        struct uplink *up;
        struct buf waiting;
        uint32_t rank;
        int fd;           /* -1 = closed */
        bool ending;      /* closes when all bytes are written */
        bool is_terminal; /* the end is a character, and the terminal stays open */
        size_t own;       /* bytes at the end of @waiting that are not the head's */
        bool unwatched;   /* the loop has let go of @poll */
        bool dropped;     /* by stdin_writer_close() */
};

/* Takes @fd, the writing end of a pipe. NULL when the loop refuses the descriptor, which is then
 * closed. */
struct stdin_writer *stdin_writer_open(uv_loop_t *loop, struct uplink *up, uint32_t rank, int fd);
void stdin_writer_close(struct stdin_writer *w); /* NULL is fine */

/* Copies the bytes; @len 0 closes the pipe after all earlier bytes. */
void stdin_writer_push(struct stdin_writer *w, const void *data, size_t len);
