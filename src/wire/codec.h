/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codec: little-endian integers and byte strings, to a buffer and from untrusted bytes
 *
 * put_* append to a struct buf, which remembers a failed allocation. take_* read from a struct
 * reader, which remembers the first failure: from then on every take_* returns zero or NULL and
 * take_done() returns false.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/strv.h"

void put_u8(struct buf *b, uint8_t v);
void put_u32(struct buf *b, uint32_t v);
void put_u64(struct buf *b, uint64_t v);
void put_bytes(struct buf *b, const void *p, size_t n); /* u32 length, then the bytes */
void put_str(struct buf *b, const char *s);             /* the bytes without the NUL; NULL = "" */
void put_strv(struct buf *b, const struct strv *v);     /* u32 count, then the strings */

struct reader {
        const unsigned char *p;
        size_t left;
        bool failed;
};

#define READER_INIT(data, len)                                                                     \
        {                                                                                          \
                .p = (data), .left = (len)                                                         \
        }

uint8_t take_u8(struct reader *r);
uint32_t take_u32(struct reader *r);
uint64_t take_u64(struct reader *r);
/* Lends bytes of the input; NULL when the input ends before, or the length is above @max. */
const void *take_bytes(struct reader *r, size_t max, size_t *ret_len);
/* Takes a malloc'ed string; NULL on failure, also when there is a NUL inside. */
char *take_str(struct reader *r, size_t max);
/* Takes a string into a fixed buffer; a longer string is a failure. */
void take_str_into(struct reader *r, char *to, size_t size);
void take_strv(struct reader *r, size_t max_count, size_t max_len, struct strv *to); /* appends */
/* Lends the rest of the input. */
const void *take_rest(struct reader *r, size_t *ret_len);
/* True if nothing failed and nothing is left over. */
bool take_done(const struct reader *r);
