/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the four fuzz_tcpstore_*.c share: the first byte of an input sets the size of the pieces in
 * which the rest arrives, as a client of PyTorch would have sent it.
 *
 * Promises: an answer is 1, 0 or -EPROTO with a sentence; what a command lends lies inside the
 * buffer and the limits; a command that is encoded again gives the bytes that were taken; and the
 * pieces do not matter, as long as the hint about the first one is the same.
 */
#pragma once

#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/tcpstore.h"

/* Small, so that inputs of a few hundred bytes reach them. */
#define FUZZ_LIMITS ((struct tcpstore_limits){ 256, 4096, 16384, 64 })

struct stream {
        struct tcpstore_parser *parser;
        struct buf in, told; /* told: what was taken, encoded again */
        size_t first_segment, taken;
        bool lost;
};

static inline void fuzz_check_lent(const struct buf *in, struct bytes b, size_t max)
{
        const unsigned char *p = b.p;

        require(b.len <= max);
        require(!p || (p > buf_data(in) && p + b.len <= buf_data(in) + buf_len(in)));
}

static inline void fuzz_check_command(const struct buf *in, const struct tcpstore_command *c)
{
        struct tcpstore_limits most = FUZZ_LIMITS;

        fuzz_check_lent(in, c->key, most.key);
        fuzz_check_lent(in, c->expect, most.value);
        fuzz_check_lent(in, c->value, most.value);
        require(c->n_keys <= most.keys);
        for (uint32_t i = 0; i < c->n_keys; i++) {
                fuzz_check_lent(in, c->keys[i], most.key);
                if (c->op == TCPSTORE_MULTI_SET)
                        fuzz_check_lent(in, c->values[i], most.value);
        }
}

/* A number may mean the same in A and B; DELETE then was A's. */
static inline void fuzz_take(struct stream *s, const struct tcpstore_command *c)
{
        enum tcpstore_dialect dialect = tcpstore_parser_dialect(s->parser);
        struct buf again = BUF_INIT;
        size_t before = buf_len(&s->in);

        fuzz_check_command(&s->in, c);
        if (dialect == TCPSTORE_A_OR_B)
                dialect = TCPSTORE_A;
        require(tcpstore_command_encode(&again, dialect, c));
        require(buf_len(&again) <= before);
        require(memcmp(buf_data(&again), buf_data(&s->in), buf_len(&again)) == 0);
        buf_append(&s->told, buf_data(&again), buf_len(&again));
        tcpstore_parser_consume(s->parser, &s->in);
        require(buf_len(&s->in) + buf_len(&again) == before);
        s->taken++;
        buf_finish(&again);
}

static inline void fuzz_piece(struct stream *s, const uint8_t *data, size_t n)
{
        struct tcpstore_command c;
        struct error err = { 0 };
        int r = 0;

        buf_append(&s->in, data, n);
        while (!s->lost &&
               (r = tcpstore_parser_next(s->parser, &s->in, s->first_segment, &c, &err)) == 1)
                fuzz_take(s, &c);
        require(s->lost || r == 0 || (r == -EPROTO && err.code == EPROTO && err.text[0]));
        if (r < 0)
                s->lost = true;
}

static inline struct stream fuzz_stream(const uint8_t *data, size_t size, size_t step,
                                        size_t first_segment)
{
        struct stream s = { .parser = tcpstore_parser_create(FUZZ_LIMITS),
                            .first_segment = first_segment };

        require(s.parser);
        for (size_t at = 0; at < size && !s.lost; at += step)
                fuzz_piece(&s, data + at, MIN(step, size - at));
        return s;
}

static inline void fuzz_end(struct stream *s)
{
        tcpstore_parser_destroy(s->parser);
        buf_finish(&s->in);
        buf_finish(&s->told);
}

/* In pieces and all at once. While A and B are undecided the pieces are a hint; not compared. */
static inline int fuzz_tcpstore(const uint8_t *data, size_t size, size_t first_segment)
{
        size_t step = size ? (size_t)data[0] + 1 : 1;
        struct stream pieces, whole;

        if (size == 0)
                return 0;
        pieces = fuzz_stream(data + 1, size - 1, step, first_segment);
        whole = fuzz_stream(data + 1, size - 1, size, first_segment);
        if (tcpstore_parser_dialect(whole.parser) == TCPSTORE_C) {
                require(pieces.taken == whole.taken && pieces.lost == whole.lost);
                require(buf_len(&pieces.told) == buf_len(&whole.told));
        }
        fuzz_end(&pieces);
        fuzz_end(&whole);
        return 0;
}
