/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sink: writes bytes to a descriptor in order without ever blocking the loop
 *
 * The descriptor may be a stopped terminal, a full pipe or a file on a slow disk, and must not be
 * made non-blocking, because the user's shell shares the open file. So a single write at a time
 * runs in a thread of the pool; meanwhile bytes gather for the next write. The owner is told about
 * written bytes, as a base for flow control. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "head/core/thread_pool.h"

struct sink;

struct sink_ops {
        /* @n bytes put with @tag are written, or, after an error, @dropped of them dropped. */
        void (*written)(void *ctx, void *tag, size_t n, size_t dropped);
        /* Returns how many of the bytes put with @tag are in the first @len bytes of their text.
         * NULL: so many. */
        size_t (*payload)(void *ctx, void *tag, const unsigned char *text, size_t len);
        /* The first write has failed; later bytes are dropped, and still told as written. */
        void (*broken)(void *ctx, struct sink *s, int error);
};

/* @fd is borrowed unless @own. */
struct sink *sink_create(struct thread_pool *pool, int fd, bool own, struct sink_ops ops,
                         void *ctx);

/* Copies the bytes. written() will report @n_tag for @tag: the caller's count, which may leave out
 * prefixes. */
void sink_put(struct sink *s, const void *data, size_t n, void *tag, size_t n_tag);
/* The same in two steps, for composed bytes: sink_begin() lends a buffer, sink_end() puts the bytes
 * appended since. No other call for this sink in between. */
struct buf *sink_begin(struct sink *s);
void sink_end(struct sink *s, void *tag, size_t n_tag);
/* Erases the last @rows lines of a terminal, of which the last has no end, as far as they are not
 * wrapped: the next byte begins the first of them anew. */
void sink_erase_lines(struct sink *s, size_t rows);
/* The terminal is at the beginning of a line, by itself. */
void sink_end_line(struct sink *s);
bool sink_is_mid_line(const struct sink *s); /* the last byte was not a newline */
size_t sink_pending(const struct sink *s);   /* bytes not yet written */
bool sink_took(struct sink *s);              /* a byte was written since the last call */
size_t sink_dropped(const struct sink *s);   /* bytes lost to an error, or abandoned */
int sink_error(const struct sink *s);        /* errno of the first error; ECANCELED: abandoned */
/* Drops what is not written yet, and all that follows, without a call of broken(). A write that
 * goes on in a thread is interrupted. To be called again until nothing is pending: the thread may
 * have been about to write. */
void sink_abandon(struct sink *s);

/* Nothing may be pending. NULL is fine. */
void sink_destroy(struct sink *s);
