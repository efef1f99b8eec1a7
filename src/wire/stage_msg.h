/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage_msg: the staged folders of a node, listed and removed
 *
 * Decoded structs own their strings and arrays; x_finish() frees them.
 */
#pragma once

#include "base/error.h"
#include "wire/codec.h"
#include "wire/frame.h"

enum { STAGED_MAX = 100000 }; /* folders of a node */

struct stage_order {
        uint8_t remove;     /* else only list */
        uint64_t limit;     /* remove: bytes that may stay; the oldest folders go first */
        uint64_t max_age_s; /* remove: folders not used for longer go in any case; 0 = none */
};

struct staged_copy {
        char *folder; /* the whole path on the node */
        char *name;   /* what was staged: a path of the head */
        uint8_t use;  /* enum push_use */
        uint64_t bytes, files;
        uint64_t age_s; /* since the last use began */
        uint8_t in_use, removed;
};

struct staged {
        struct staged_copy *v;
        uint32_t n;
};

void stage_order_encode(struct buf *b, const struct stage_order *m);
int stage_order_decode(struct stage_order *m, const struct frame *f, struct error *err);
void staged_encode(struct buf *b, const struct staged *m);
int staged_decode(struct staged *m, const struct frame *f, struct error *err);
void staged_finish(struct staged *m);
