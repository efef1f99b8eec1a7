/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch_ras: asks NCCL's RAS during a look at the ranks
 *
 * RAS of one node answers for the whole job: the first nodes are asked in turn until one has
 * answered twice, or all or the time are used up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "head/launch_private.h"
#include "head/why/ras_text.h"
#include "head/why/why.h"
#include "wire/status_msg.h"

struct launch_ras {
        struct launch *l;
        uint32_t number; /* of the orders; 0 = none was given */
        int64_t until;   /* clock_ms() */
        int node;        /* that is asked, -1 = none: all is known */
        bool answered;   /* twice */
        struct ras_answer first, lasting;
        char *texts[2];   /* as they came; NULL = none */
        char *problem;    /* of the last node that had one; NULL = none */
        const char *host; /* that has answered */
};

/* Begins a look that ends at @until. */
void launch_ras_begin(struct launch_ras *r, struct launch *l, uint32_t number, int64_t until);
void launch_ras_take(struct launch_ras *r, int node, struct ras_reply *m);
bool launch_ras_is_asked(const struct launch_ras *r); /* an answer is still to come */
/* Joins what is known with the finding. */
void launch_ras_use(struct launch_ras *r, const struct why_rank *ranks, size_t n,
                    struct why_finding *f);
/* Adds the answers as they came to a report. */
void launch_ras_report(const struct launch_ras *r, struct buf *to);
void launch_ras_finish(struct launch_ras *r); /* also after all zeros */
