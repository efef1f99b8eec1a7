/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces form a ring. Each rank has an allowance of records that grows with time up to
 * ALLOWANCE_MAX; a request beyond the allowance is counted, and a GAP with the number follows with
 * the next recorded request. Output beyond the allowance is added to the next record of the stream.
 * The allowance bounds the memory and the work for a rank that asks without pause, and never delays
 * the rank.
 */
#include "agent/record/node_trace.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <uv.h>

#include "base/memory.h"
#include "wire/msg.h"

enum {
        KEY_MAX = 48,        /* bytes of a key that are kept */
        ALLOWANCE_MAX = 512, /* records of a rank in a row */
        EVERY_US = 5000,     /* then one in this time, on the average */
};

struct traced_rank {
        uint32_t rank;
        uint32_t allowance;
        uint64_t grown_us;           /* the allowance is that of this time */
        uint64_t skipped;            /* requests since the last GAP */
        uint64_t lines[2], bytes[2]; /* of stdout and stderr, since the last record */
        UT_hash_handle hh;
};

/* A ring: @n pieces from @first on, the newest last. */
struct node_trace {
        struct buf pieces[NODE_TRACE_PIECES];
        size_t first, n;
        uint64_t last_us; /* of the newest record */
        struct traced_rank *ranks;
        size_t to_send; /* pieces that the head is still to get, the oldest one next */
        size_t newer;   /* pieces that were begun after the request */
        bool sending;
};

struct node_trace *node_trace_create(void)
{
        return xcalloc(1, sizeof(struct node_trace));
}

void node_trace_destroy(struct node_trace *t)
{
        struct traced_rank *k, *next;

        if (!t)
                return;
        HASH_ITER(hh, t->ranks, k, next)
        {
                HASH_DEL(t->ranks, k);
                free(k);
        }
        for (size_t i = 0; i < NODE_TRACE_PIECES; i++)
                buf_finish(&t->pieces[i]);
        free(t);
}

/* --- pieces ----------------------------------------------------------------------------------- */

static struct buf *open_piece(struct node_trace *t, uint64_t us)
{
        struct buf *b;

        /* The memory of the oldest piece becomes that of the newest. */
        if (t->n == NODE_TRACE_PIECES) {
                buf_clear(&t->pieces[t->first]);
                t->first = (t->first + 1) % NODE_TRACE_PIECES;
                t->n--;
        }
        b = &t->pieces[(t->first + t->n++) % NODE_TRACE_PIECES];
        t->newer = MIN(t->newer + 1, t->n);
        t->to_send = MIN(t->to_send, t->n - t->newer);
        trace_begin(b, us);
        t->last_us = us;
        return b;
}

/* Without memory the record is lost: the ranks go on. */
static void put_trace(struct node_trace *t, const struct trace_record *r)
{
        struct buf *b = t->n ? &t->pieces[(t->first + t->n - 1) % NODE_TRACE_PIECES] : NULL;
        size_t before;

        /* 64: more than kind, time, rank and numbers of a record as varints. */
        if (!b || buf_len(b) + r->len + 64 > TRACE_PIECE)
                b = open_piece(t, r->us);
        before = buf_len(b);
        trace_put(b, t->last_us, r);
        /* A part of a record would make the rest of the piece unreadable. */
        if (buf_failed(b)) {
                buf_truncate(b, before);
                b->failed = false;
                t->n -= !before; /* a piece without a head cannot be read */
                t->newer -= !before && t->newer;
                return;
        }
        /* Sources are asked in turn, so a record may be older than the one before. */
        t->last_us = MAX(t->last_us, r->us);
}

/* --- ranks ------------------------------------------------------------------------------------ */

static uint64_t get_trace_time(void)
{
        return uv_hrtime() / 1000;
}

/* Returns the rank, made at the first record with a full allowance. */
static struct traced_rank *find_traced_rank(struct node_trace *t, uint32_t rank)
{
        struct traced_rank *k;

        HASH_FIND(hh, t->ranks, &rank, sizeof(rank), k);
        if (k)
                return k;
        k = xcalloc(1, sizeof(*k));
        k->rank = rank;
        k->allowance = ALLOWANCE_MAX;
        HASH_ADD(hh, t->ranks, rank, sizeof(k->rank), k);
        return k;
}

/* Takes one record off the allowance of the rank. False: none is left. */
static bool may_record(struct traced_rank *k, uint64_t us)
{
        uint64_t grown = (us - MIN(k->grown_us, us)) / EVERY_US;

        /* Less than a step leaves the time as it is, so that steps add up. */
        if (grown) {
                k->allowance = (uint32_t)MIN(k->allowance + grown, (uint64_t)ALLOWANCE_MAX);
                k->grown_us = us;
        }
        if (!k->allowance)
                return false;
        k->allowance--;
        return true;
}

static uint64_t count_newlines(const char *data, size_t len)
{
        const char *end = data + len, *at = data;
        uint64_t n = 0;

        while ((at = memchr(at, '\n', (size_t)(end - at)))) {
                at++;
                n++;
        }
        return n;
}

void node_trace_op(struct node_trace *t, uint32_t rank, uint8_t op, uint8_t status, uint64_t us,
                   struct bytes key)
{
        uint64_t now = get_trace_time();
        struct traced_rank *k;

        if (!t)
                return;
        k = find_traced_rank(t, rank);
        if (!may_record(k, now)) {
                k->skipped++;
                return;
        }
        if (k->skipped)
                put_trace(t, &(struct trace_record){ .kind = TRACE_GAP,
                                                     .us = now,
                                                     .rank = rank,
                                                     .number = k->skipped });
        k->skipped = 0;
        put_trace(t, &(struct trace_record){ .kind = TRACE_OP,
                                             .us = now,
                                             .rank = rank,
                                             .number = op | (uint64_t)status << 8,
                                             .more = us,
                                             .data = key.p,
                                             .len = MIN(key.len, (size_t)KEY_MAX) });
}

void node_trace_step(struct node_trace *t, uint32_t rank, int64_t step)
{
        uint64_t now = get_trace_time();

        if (t && step >= 0 && may_record(find_traced_rank(t, rank), now))
                put_trace(t, &(struct trace_record){ .kind = TRACE_STEP,
                                                     .us = now,
                                                     .rank = rank,
                                                     .number = (uint64_t)step });
}

void node_trace_output(struct node_trace *t, uint32_t rank, uint8_t stream, const void *data,
                       size_t len)
{
        bool err = stream == MSG_STDERR;
        struct traced_rank *k;
        uint64_t now;

        if (!t)
                return;
        now = get_trace_time();
        k = find_traced_rank(t, rank);
        /* Counted first: output that is not recorded is in the next record. */
        k->lines[err] += count_newlines(data, len);
        k->bytes[err] += len;
        if (!may_record(k, now))
                return;
        put_trace(t, &(struct trace_record){ .kind = TRACE_OUT,
                                             .us = now,
                                             .rank = rank,
                                             .number = k->lines[err],
                                             .more = k->bytes[err] << 1 | err });
        k->lines[err] = k->bytes[err] = 0;
}

void node_trace_exit(struct node_trace *t, uint32_t rank, uint32_t status)
{
        if (t)
                put_trace(t, &(struct trace_record){ .kind = TRACE_EXIT,
                                                     .us = get_trace_time(),
                                                     .rank = rank,
                                                     .number = status });
}

void node_trace_sample(struct node_trace *t, const struct sample *m)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        if (!t)
                return;
        sample_encode(&b, m);
        /* A sample of a node with very many ranks is left out. */
        if (!buf_failed(&b) && buf_len(&b) <= FRAME_HEADER + TRACE_DATA_MAX)
                put_trace(t, &(struct trace_record){ .kind = TRACE_SAMPLE,
                                                     .us = get_trace_time(),
                                                     .data = buf_data(&b) + FRAME_HEADER,
                                                     .len = buf_len(&b) - FRAME_HEADER });
}

/* --- to the head ------------------------------------------------------------------------------ */

void node_trace_send(struct node_trace *t, uint32_t max)
{
        if (!t)
                return;
        t->to_send = MIN(t->n, (size_t)max);
        t->newer = 0;
        t->sending = true;
}

/* A piece for each message, the oldest first. */
void node_trace_turn(struct node_trace *t, struct uplink *up)
{
        while (t && t->sending && !uplink_full(up)) {
                /* Without pieces the head gets one empty answer. */
                struct recorded m = { .last = t->to_send <= 1 };
                const struct buf *b;

                if (t->to_send) {
                        b = &t->pieces[(t->first + t->n - t->newer - t->to_send--) %
                                       NODE_TRACE_PIECES];
                        m.piece = buf_data(b);
                        m.len = buf_len(b);
                }
                recorded_encode(&up->out, &m);
                t->sending = !m.last;
        }
}
