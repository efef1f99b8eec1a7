/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_pack() walks over the list of entries and decides by the sizes alone which bytes a PACK has,
 * so each walk from the beginning cuts alike. The ring keeps whole frames by position: nodes served
 * side by side share the work of reading and deflating.
 */
#define ZLIB_CONST /* zlib does not write to the input */

#include "head/push/pack_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/macros.h"
#include "base/memory.h"

/* The fastest level: a node must be able to keep up with a network of 10 Gbit/s, and in a short
 * PACK the other levels find little more. */
enum { LEVEL = 1, RAW_WINDOW_BITS = -15, MEM_LEVEL = 8, PIECES = PUSH_PACK_MAX / PUSH_PIECE_COST };

/* For a row of nodes: the least bytes of a PACK, and the cost of a PACK, in bytes of data that take
 * a node as long. */
enum { PACK_MIN = 1 << 10, PACK_COST = 256 };

/* The number of PACKs sent undeflated after a PACK that did not get smaller: archives and images
 * are large. */
enum { PASSED_OVER = 15 };

struct kept_pack {
        struct buf frame; /* empty = none */
        uint32_t position, bytes;
};

struct pack_stream {
        struct manifest *manifest;
        uint32_t number, packs, pack_max;
        uint32_t *entries, n;
        struct buf list; /* the manifest's bytes; only for the stream PUSH_LIST */
        struct kept_pack kept[PUSH_RING];
        z_stream deflate;
        unsigned pass_over; /* PACKs still to be sent undeflated */
};

static uint64_t get_entry_size(const struct pack_stream *s, uint32_t entry)
{
        return entry == PUSH_LIST ? buf_len(&s->list) : s->manifest->manifest.v[entry].size;
}

/* Returns the size of PACKs with which the last node of a row has all bytes soonest. Each node must
 * have a whole PACK before the next node gets any byte of the PACK, but each PACK has a cost. */
static uint32_t choose_pack_max(const struct pack_stream *s, size_t row)
{
        uint32_t max = PUSH_PACK_MAX;
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < s->n; i++)
                bytes += get_entry_size(s, s->entries[i]) + PUSH_PIECE_COST;
        while (row > 1 && max > PACK_MIN && row * max * max / PACK_COST > bytes)
                max /= 2;
        return max;
}

/* Fills in the pieces of the PACK at @at, advances @at, and returns the number of pieces. */
static uint32_t cut_pack(const struct pack_stream *s, struct pack_place *at,
                         struct push_piece pieces[PIECES])
{
        uint32_t n = 0, room = s->pack_max;

        while (at->at < s->n && room > PUSH_PIECE_COST) {
                uint64_t left = get_entry_size(s, s->entries[at->at]) - at->offset;
                uint32_t len = (uint32_t)MIN(left, (uint64_t)room - PUSH_PIECE_COST);

                pieces[n++] = (struct push_piece){ s->entries[at->at], at->offset, len };
                room -= PUSH_PIECE_COST + len;
                at->offset += len;
                if (len == left) {
                        at->offset = 0;
                        at->at++;
                }
        }
        at->position++;
        return n;
}

struct pack_stream *pack_stream_create(struct manifest *m, uint32_t number, size_t row,
                                       const uint32_t *entries, uint32_t n)
{
        struct pack_stream *s = xcalloc(1, sizeof(*s));
        struct push_piece pieces[PIECES];
        struct pack_place end = { 0 };

        s->manifest = m;
        s->number = number;
        s->n = n;
        s->entries = xcalloc(n, sizeof(*s->entries));
        memcpy(s->entries, entries, n * sizeof(*entries));
        if (n && *entries == PUSH_LIST)
                push_manifest_put(&s->list, &m->manifest);
        s->pack_max = choose_pack_max(s, row);
        while (end.at < n)
                cut_pack(s, &end, pieces);
        s->packs = end.position;
        /* Without memory deflate() fails, too, and the bytes are sent undeflated. */
        deflateInit2(&s->deflate, LEVEL, Z_DEFLATED, RAW_WINDOW_BITS, MEM_LEVEL,
                     Z_DEFAULT_STRATEGY);
        return s;
}

void pack_stream_free(struct pack_stream *s)
{
        if (!s)
                return;
        for (int i = 0; i < PUSH_RING; i++)
                buf_finish(&s->kept[i].frame);
        deflateEnd(&s->deflate);
        buf_finish(&s->list);
        free(s->entries);
        free(s);
}

uint32_t pack_stream_number(const struct pack_stream *s)
{
        return s->number;
}

uint32_t pack_stream_packs(const struct pack_stream *s)
{
        return s->packs;
}

bool pack_stream_is_of(const struct pack_stream *s, const uint32_t *entries, uint32_t n)
{
        return s->n == n && !memcmp(s->entries, entries, n * sizeof(*entries));
}

struct pack_place pack_stream_seek(const struct pack_stream *s, uint32_t position)
{
        struct push_piece pieces[PIECES];
        struct pack_place at = { 0 };

        while (at.position < position && at.at < s->n)
                cut_pack(s, &at, pieces);
        return at;
}

/* Deflates into @to, of @len bytes. Returns the new length, 0 = not smaller. */
static size_t deflate_pack(struct pack_stream *s, const unsigned char *data, size_t len,
                           unsigned char *to)
{
        z_stream *z = &s->deflate;

        if (s->pass_over) {
                s->pass_over--;
                return 0;
        }
        deflateReset(z);
        z->next_in = data;
        z->next_out = to;
        z->avail_in = z->avail_out = (unsigned)len;
        if (deflate(z, Z_FINISH) == Z_STREAM_END && z->total_out < len)
                return z->total_out;
        s->pass_over = PASSED_OVER;
        return 0;
}

static int read_stream(struct pack_stream *s, const struct push_piece *p, void *to,
                       struct error *err)
{
        if (p->entry != PUSH_LIST)
                return manifest_read(s->manifest, p->entry, p->offset, to, p->len, err);
        memcpy(to, buf_data(&s->list) + p->offset, p->len);
        return 0;
}

/* Makes the frame. Returns the bytes of data in the frame, or a negative errno with @err. */
static int make_pack(struct pack_stream *s, struct pack_place *at, bool deflate, struct buf *to,
                     struct error *err)
{
        unsigned char data[PUSH_PACK_MAX], small[PUSH_PACK_MAX];
        struct push_piece pieces[PIECES];
        struct push_pack m = { .stream = s->number, .position = at->position, .pieces = pieces };
        int r;

        m.n = cut_pack(s, at, pieces);
        for (uint32_t i = 0; i < m.n; i++) {
                r = read_stream(s, &pieces[i], data + m.len, err);
                if (r < 0)
                        return r;
                m.len += pieces[i].len;
        }
        r = (int)m.len;
        m.data = data;
        if (deflate && m.len) {
                size_t len = deflate_pack(s, data, m.len, small);

                m.deflated = len;
                m.data = len ? small : data;
                m.len = len ? len : m.len;
        }
        push_pack_encode(to, &m);
        return r;
}

int pack_stream_put(struct pack_stream *s, struct pack_place *at, bool deflate, struct buf *to,
                    struct error *err)
{
        struct kept_pack *k = &s->kept[at->position % PUSH_RING];
        struct push_piece pieces[PIECES];
        int r;

        if (buf_len(&k->frame) && k->position == at->position) {
                cut_pack(s, at, pieces);
        } else {
                buf_clear(&k->frame);
                k->position = at->position;
                r = make_pack(s, at, deflate, &k->frame, err);
                if (r < 0) {
                        buf_clear(&k->frame);
                        return r;
                }
                k->bytes = (uint32_t)r;
        }
        buf_append(to, buf_data(&k->frame), buf_len(&k->frame));
        return (int)k->bytes;
}
