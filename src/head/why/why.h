/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why: which rank keeps the others waiting, by the evidence of each rank
 *
 * Evidence is the store (a rank's open request), the kernel (state, processor time, wait channel),
 * stacks, and NCCL's RAS (why_ras.h). A rank waits for others if the rank has an open request to
 * the store or a stack in a waiting call. Most ranks of a hang wait in one operation; the others
 * are the outliers. While the outliers compute there is no hang. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/intlist.h"
#include "base/strv.h"
#include "head/model/role_list.h"
#include "head/why/stack_text.h"
#include "wire/status_msg.h"

/* In a problem of why_describe(): a rank of Python without a Python stack. */
#define WHY_C_ONLY "functions of C only, as py-spy is not installed"

enum why_life { WHY_ALIVE, WHY_ENDED, WHY_SILENT, WHY_NOT_STARTED, WHY_LOST };

/* How a finding takes the ranks of a world. */
enum why_share {
        WHY_JUDGED,
        WHY_IDLES,    /* is known to wait idly: judged if judged worlds show no hang, nor compute */
        WHY_LEFT_OUT, /* goes on, or its hang was told */
};

struct why_rank {
        int rank;
        int world, first; /* the ranks of a world follow each other; the rank with number 0 there */
        const char *role; /* lent; NULL = the job has no roles */
        int replica;      /* of the role, as of plan_find_replica() */
        enum why_share share;
        const char *host; /* lent */
        enum why_life life;
        char end[64];   /* of WHY_ENDED: "left at step 5 with exit 0"; "" = not known */
        char wait[128]; /* "in barrier `x`"; "" = no request to the store is open */
        uint32_t wait_ms;
        struct inspected seen; /* .pid 0 = not looked at; .cpu_permille as in status_msg.h */
        bool moved;            /* two looks found different places */
        bool changed;          /* ... or in different states */
        /* From the stack: */
        struct stack stack;
        char operation[128]; /* "all_reduce (torch.distributed)"; "" = no waiting call */
        char *caller;        /* the place of the call; NULL = none */
        size_t callers;      /* frame of the caller */
        bool waits;          /* for other ranks */
};

enum why_kind {
        WHY_NO_HANG,
        WHY_HANG,     /* some ranks wait, others are stuck elsewhere, stopped or gone */
        WHY_MISMATCH, /* all wait, but in different operations */
        WHY_ALL_WAIT, /* in the same */
};

struct why_finding {
        enum why_kind kind;
        bool is_sure; /* a rank waits for others or a FIFO, all were seen, not all may go on */
        struct intlist outliers; /* by rank */
        struct intlist worlds;   /* that hang */
        char *text;              /* a paragraph */
        /* "rank 2 on gpu001 sleeps in f (x.py:3); 3 ranks wait in g", for a last line. Without a
         * hang: the only living rank unless it waits, as others may have failed without it. NULL =
         * none. */
        char *brief;
        int culprit;       /* the rank of .brief; -1 = several, or none */
        bool uses_ras;     /* NCCL's RAS is among the evidence */
        struct strv notes; /* further facts, and sources that failed */
};

/* Whether the rank may live but cannot be seen: its node is silent or lost. */
bool why_is_unseen(const struct why_rank *r);
void why_rank_finish(struct why_rank *r);

/* Replaces .seen with @seen, and keeps the old stack if @seen has none. Sets .moved and .changed. A
 * silent rank lives again. */
void why_rank_take(struct why_rank *r, struct inspected *seen);
/* Counts the rank as silent, unless its node has answered the order @number. */
void why_rank_miss(struct why_rank *r, uint32_t number);

/* Writes the name of a rank as plan_rank_name() does. Returns @to. */
const char *why_rank_name(const struct why_rank *r, char to[PLAN_RANK_NAME_MAX]);
/* Returns the end of the world of rank @i, for a loop over the worlds. */
size_t why_world_end(const struct why_rank *ranks, size_t n, size_t i);

/* @ranks is ordered by rank. Ranks are compared within their world only; of several findings the
 * strongest counts. */
void why_find(struct why_rank *ranks, size_t n, struct why_finding *ret);
void why_finding_finish(struct why_finding *f);

/* Whether the rank is stopped, gone, or sleeps outside of any known wait. After why_find(). */
bool why_is_stuck(const struct why_rank *r);
/* Returns "rank 3 (gpu001, pid 7) sleeps in f; ranks 4,5: each ...", with roles behind the name of
 * each world; malloc'ed. */
char *why_tell_ranks(const struct why_rank *ranks, size_t n, const struct intlist *which);

/* Returns "rank 2", "ranks 2,5", or of role_list_ranks_name(); malloc'ed. @which are ranks of the
 * job. */
char *why_ranks_name(const struct why_rank *ranks, size_t n, const struct intlist *which);

/* --- the answer of `hnlaunch why` (docs/protocol.md) --- */

/* Returns a new reference: the finding, rows for people with equal stacks folded and the outliers
 * first, missing stacks with reasons, and each rank. */
json_t *why_describe(const struct why_finding *f, const struct why_rank *ranks, size_t n);
/* Returns the text of a report with all stacks as the tools printed them, malloc'ed. */
char *why_report(const struct why_finding *f, const struct why_rank *ranks, size_t n);
