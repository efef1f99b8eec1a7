/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roster: who is there, who has joined, who waits for whom: one row per rank
 *
 * Pure: built from the plan, from what the head has seen itself (who opened libhnlaunch, who has
 * ended), and from the agents' answers (wire/status_msg.h). A connection to the TCP endpoint says
 * what somebody waits for, but not who; rank_table_match() finds the rank: the one on the node that
 * has the connection's address, whose process lists the connection's port.
 *
 * Texts are for people; ages are told as in "12.3s".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/hosts/hosts.h"
#include "head/model/plan.h"
#include "head/term/diag.h"
#include "wire/msg.h"
#include "wire/status_msg.h"

enum rank_known {
        RANK_ROW_SILENT,  /* the node has not answered */
        RANK_ROW_ALIVE,   /* .k is filled */
        RANK_ROW_ENDED,   /* the process has ended */
        RANK_ROW_UNKNOWN, /* the node answered without this rank: it is not started yet */
};

/* What a rank said with hn_progress(). */
struct rank_progress {
        int64_t step;  /* -1 = nothing was said */
        int64_t total; /* 0 = unknown */
        const char *note;
};

struct rank_row {
        int rank, local_rank, node;
        enum rank_known known;
        bool joined;
        int64_t joined_ms; /* since the launch, -1 = not known */
        struct rank_progress progress;
        struct node_status_rank k;
        bool marked; /* scratch of rank_table_tell_waiting() */
};

struct rank_table {
        const struct plan *plan;
        const struct hosts *hosts;
        struct rank_row *rows; /* by rank */
        size_t n;
        struct node_status_conn *conns; /* of all endpoints, with the node whose endpoint it is */
        int *conn_nodes;
        size_t n_conns;
        uint32_t strangers;
        bool *answered; /* by node */
};

/* Borrows @plan and @hosts. */
void rank_table_init(struct rank_table *t, const struct plan *plan, const struct hosts *hosts);
void rank_table_finish(struct rank_table *t);

/* What the head knows by itself. */
void rank_table_joined(struct rank_table *t, int rank, int64_t ms_after_launch);
void rank_table_ended(struct rank_table *t, int rank);
/* The note is lent until rank_table_finish(). */
void rank_table_progress(struct rank_table *t, int rank, struct rank_progress progress);

/* The answer of @node, copied. Ranks that do not live there are ignored. */
void rank_table_add(struct rank_table *t, int node, const struct node_status *answer);

/* After the last answer: finds the ranks behind the connections. @hellos has an entry per node,
 * NULL = not known; its addresses say where a connection comes from. A port that only one rank in
 * all lists is enough, too (address translation). Returns how many connections stay nobody's. */
size_t rank_table_match(struct rank_table *t, const struct hello *const *hellos);

/* --- questions -------------------------------------------------------------------------------- */

bool rank_row_lives(const struct rank_row *r); /* not known to have ended */
/* It waits for others: in a barrier, a gather, or for keys. */
bool rank_row_waits(const struct rank_row *r);

typedef bool (*rank_filter)(const struct rank_row *r);
bool rank_row_joined(const struct rank_row *r);
bool rank_row_missing(const struct rank_row *r); /* lives and has not joined */
bool rank_row_steps(const struct rank_row *r);   /* has said how far it is */

size_t rank_table_count(const struct rank_table *t, rank_filter filter);
/* The longest wait of all, milliseconds; 0 = nobody waits. */
uint32_t rank_table_longest(const struct rank_table *t);

/* --- texts, malloc'ed ------------------------------------------------------------------------- */

/* "ranks 205,207 on gpu026", "rank 3 on gpu[001-002]"; more than fits on a line is counted. */
char *rank_table_names(const struct rank_table *t, rank_filter filter);

/* "ranks 205,207 on gpu026 did not join within 120s". */
char *rank_table_missing_sentence(const struct rank_table *t, uint64_t after_ms);

/* A table of the rows, with a line of titles; NULL @filter = all. Of many rows that say the same
 * one line is made: "ranks 8-511 wait for `x` since 12.0s". Ends with a newline. */
char *rank_table_print(const struct rank_table *t, rank_filter filter);

/* --- messages --------------------------------------------------------------------------------- */

/* HN402: ranks that live have not joined @after_ms after the launch; a warning unless @fatal.
 */
void rank_table_tell_missing(const struct rank_table *t, struct diags *d, uint64_t after_ms,
                             bool fatal);

/* HN404: somebody has been waiting in the store for at least @threshold_ms: who for what, and who
 * has not come. False: nobody has, nothing is added. */
bool rank_table_tell_waiting(struct rank_table *t, struct diags *d, uint32_t threshold_ms);

/* What Ctrl-\ shows: every rank, and the nodes that do not answer. */
void rank_table_tell_all(const struct rank_table *t, struct diags *d, uint64_t after_ms);
