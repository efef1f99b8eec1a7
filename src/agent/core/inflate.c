/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflateBack() is a fraction of the size of inflate(), which the agent does not contain.
 */
#define ZLIB_CONST /* zlib does not write to its input */
#include "agent/core/inflate.h"

#include <string.h>
#include <zlib.h>

enum { WINDOW_BITS = 15 };

/* What inflateBack() reads from, and writes to. */
struct inflating {
        const unsigned char *data;
        size_t len;
        unsigned char *to;
        size_t room;
};

static unsigned read_deflated(void *ctx, const unsigned char **to)
{
        struct inflating *i = ctx;
        size_t n = i->len;

        *to = i->data;
        i->len = 0;
        return (unsigned)n;
}

/* Stops at more bytes than there is room for. */
static int keep_inflated(void *ctx, unsigned char *data, unsigned len)
{
        struct inflating *i = ctx;

        if (len > i->room)
                return 1;
        memcpy(i->to, data, len);
        i->to += len;
        i->room -= len;
        return 0;
}

bool inflate_bytes(void *to, size_t len, const void *data, size_t n)
{
        static unsigned char window[1 << WINDOW_BITS];
        struct inflating i = { .data = data, .len = n, .to = to, .room = len };
        z_stream z = { 0 };
        int r;

        if (inflateBackInit(&z, WINDOW_BITS, window) != Z_OK)
                return false;
        r = inflateBack(&z, read_deflated, &i, keep_inflated, &i);
        inflateBackEnd(&z);
        return r == Z_STREAM_END && !i.room;
}
