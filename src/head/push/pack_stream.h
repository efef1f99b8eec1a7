/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pack stream: the files of a manifest that nodes miss, or the manifest, cut into PACKs
 *
 * A position has the same bytes of files each time, so a node may begin anywhere. The last frames
 * are kept for the next node. For one thread.
 */
#pragma once

#include "base/buf.h"
#include "head/push/manifest.h"

struct pack_stream;

/* The next PACK for a node. Zeroed: the first. */
struct pack_place {
        uint32_t position;
        uint32_t at; /* of the stream's files */
        uint64_t offset;
};

/* Makes a stream for a row of @row nodes, each passing the stream on to the next, 1 = a single
 * node. @m is borrowed, @entries, or PUSH_LIST, are lent for the call. @number: the stream's in
 * messages. */
struct pack_stream *pack_stream_create(struct manifest *m, uint32_t number, size_t row,
                                       const uint32_t *entries, uint32_t n);
void pack_stream_free(struct pack_stream *s);

uint32_t pack_stream_number(const struct pack_stream *s);
uint32_t pack_stream_packs(const struct pack_stream *s);
/* Whether the stream has just these files. */
bool pack_stream_is_of(const struct pack_stream *s, const uint32_t *entries, uint32_t n);
/* Returns the place of a position. */
struct pack_place pack_stream_seek(const struct pack_stream *s, uint32_t position);

/* Appends the PACK at @at to @to and advances @at, which is before the end. @deflate: try to make
 * the PACK smaller. Returns the bytes of files or of the manifest in the PACK, or a negative errno
 * with @err, of manifest_read(). */
int pack_stream_put(struct pack_stream *s, struct pack_place *at, bool deflate, struct buf *to,
                    struct error *err);
