/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pull_sender: sends files of ended ranks to the head (--pull)
 *
 * A path of the order may lead through links; below it nothing is followed. A file is sent with as
 * many bytes as it had when it was opened. What ranks left may be anything: other kinds of files
 * are told and left, as is everything that cannot be read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "agent/core/uplink.h"
#include "base/buf.h"
#include "wire/push_msg.h"

enum { PULL_DEPTH = 64 /* folders within folders */ };

struct pull_sender {
        struct pull_order order;
        const char *cwd;   /* of the ranks, borrowed; NULL = no rank was started */
        bool busy, inside; /* inside: of path number @item */
        uint32_t item, entries;
        struct {
                void *dir;  /* DIR */
                size_t len; /* of @path at this folder */
        } levels[PULL_DEPTH];
        size_t n_levels;
        struct buf path; /* below the item's, of what is sent, without a NUL */
        int fd;          /* the file that is sent, -1 = none */
        uint64_t left;   /* bytes of that file */
        unsigned char *part;
        uv_timer_t again; /* turns the loop while there is more to send */
};

void pull_sender_init(struct pull_sender *s, uv_loop_t *loop);
/* Begins to send; takes over the content of @order. An order before is forgotten. @cwd is borrowed
 * until the end. */
void pull_sender_begin(struct pull_sender *s, struct pull_order *order, const char *cwd);
/* Sends as much as the uplink takes now. Call in every turn of the loop. */
void pull_sender_turn(struct pull_sender *s, struct uplink *up);
void pull_sender_stop(struct pull_sender *s);
void pull_sender_close(struct pull_sender *s); /* stops, and closes the timer */
