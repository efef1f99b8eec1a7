/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace: the events of a node, moment by moment, in few bytes
 *
 * A piece is the time of its first record, u64 microseconds of the node's CLOCK_MONOTONIC, and
 * records: u8 kind, the time since the record before, and the fields of the kind, all numbers as
 * varints. A piece can be read alone, so old pieces can be dropped. The same bytes lie in the
 * memory of the agent (agent/record/) and travel to the head in MSG_RECORDED.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/codec.h"
#include "wire/frame.h"

enum {
        TRACE_PIECE = 60 << 10,    /* bytes of a piece at most */
        TRACE_DATA_MAX = 16 << 10, /* bytes of .data */
};

/* Fields: number, more, data; those of other kinds are 0. */
enum trace_kind {
        TRACE_STEP = 1, /* hn_progress(): number = step, at least 0 */
        TRACE_OP,       /* the end of a request to the store: number = enum store_op + 256 * enum
                           store_status (TRACE_OPEN = none yet), more = how many us it took, data =
                           the key */
        TRACE_OUT,      /* output: number = lines begun, more = bytes * 2 + (1 for stderr) */
        TRACE_EXIT,     /* number = wait status */
        TRACE_GAP,      /* number = requests of the rank that are not recorded here */
        TRACE_SAMPLE,   /* of the node: data = the body of a SAMPLED */
        TRACE_KINDS,
};

enum { TRACE_OPEN = 255 };

struct trace_record {
        uint8_t kind;
        uint64_t us;
        uint32_t rank; /* of all kinds but SAMPLE */
        uint64_t number, more;
        const void *data; /* lent */
        size_t len;
};

/* Appends the beginning of a piece. */
void trace_begin(struct buf *b, uint64_t us);
/* Appends a record; @before is the time of the record before, or of the piece. An older record gets
 * the same time. */
void trace_put(struct buf *b, uint64_t before, const struct trace_record *r);

struct trace_reader {
        struct reader in;
        uint64_t us; /* of the record read last */
};

/* Begins to read a piece. False: it is too short. */
bool trace_open(struct trace_reader *t, const void *piece, size_t len);
/* Reads the next record, whose data are lent by the piece. False: the end, or malformed bytes,
 * which t->in.failed tells. */
bool trace_next(struct trace_reader *t, struct trace_record *ret);

/* The answer to MSG_RECORD, in parts. */
struct recorded {
        bool last;
        const void *piece; /* lent */
        size_t len;        /* 0: no piece; at most TRACE_PIECE */
};

void recorded_encode(struct buf *b, const struct recorded *m);
int recorded_decode(struct recorded *m, const struct frame *f, struct error *err); /* -EPROTO */
