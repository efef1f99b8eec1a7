/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look_ras: asks NCCL's RAS during a look at the ranks
 *
 * RAS of one node answers for the whole world: the first nodes of each world are asked in turn
 * until one has answered twice, or no node or no time is left.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "head/watch/run_view.h"
#include "head/why/ras_text.h"
#include "head/why/why.h"
#include "wire/status_msg.h"

struct look_ras {
        const struct run_view *run;
        uint32_t number;                  /* of the orders; 0 = none was given */
        int64_t until;                    /* clock_ms() */
        int node;                         /* the asked node, -1 = none: all is known */
        size_t world;                     /* the asked one */
        int next;                         /* the node of this rank is asked next */
        int tries;                        /* nodes of the world that were asked */
        bool has_first;                   /* the first answer of the asked node is in .first */
        bool answered;                    /* twice, by a world */
        struct ras_answer first, lasting; /* .lasting: of all worlds that have answered */
        struct buf texts;                 /* of all answers, for the report */
        char *problem;                    /* of the last node with a problem; NULL = none */
};

/* Begins a look that ends at @until. */
void look_ras_begin(struct look_ras *r, const struct run_view *run, uint32_t number, int64_t until);
void look_ras_take(struct look_ras *r, int node, struct ras_reply *m);
bool look_ras_is_asked(const struct look_ras *r); /* an answer is still to come */
/* Joins the lasting differences with the finding, or notes the problem. */
void look_ras_use(struct look_ras *r, const struct why_rank *ranks, size_t n,
                  struct why_finding *f);
/* Adds the texts of the answers to a report. */
void look_ras_report(const struct look_ras *r, struct buf *to);
void look_ras_finish(struct look_ras *r); /* also after all zeros */
