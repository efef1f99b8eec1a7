/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sink: writes bytes to a descriptor in order without ever blocking the loop
 *
 * A descriptor may be a terminal that was stopped, a full pipe or a file on a slow disk, and must
 * not be made non-blocking (it is shared with the user's shell). So one write at a time runs in a
 * thread of the pool; meanwhile bytes gather for the next one. Their owner is told when they
 * were written, which is what flow control hangs on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "head/core/thread_pool.h"

struct sink;

struct sink_ops {
        /* @n bytes that were put with @tag are written (or, after an error, dropped). */
        void (*written)(void *ctx, void *tag, size_t n);
        /* The first failed write; later bytes are dropped, but still told as written. */
        void (*broken)(void *ctx, struct sink *s, int error);
};

/* @fd is borrowed unless @own. */
struct sink *sink_create(struct thread_pool *pool, int fd, bool own, struct sink_ops ops,
                         void *ctx);

/* Copies the bytes. @n_tag is what written() reports for them: the caller's own count, which may
 * leave out prefixes. */
void sink_put(struct sink *s, const void *data, size_t n, void *tag, size_t n_tag);
/* The same in two steps, for bytes that are composed: whatever is appended to the buffer that
 * sink_begin() lends, sink_end() puts. Nothing else of the sink in between. */
struct buf *sink_begin(struct sink *s);
void sink_end(struct sink *s, void *tag, size_t n_tag);
bool sink_is_mid_line(const struct sink *s); /* the last byte put was not a newline */
size_t sink_pending(const struct sink *s);   /* bytes not yet written */
size_t sink_dropped(const struct sink *s);   /* bytes lost to an error */

/* Nothing may be pending. NULL is fine. */
void sink_destroy(struct sink *s);
