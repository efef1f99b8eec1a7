/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roster: who is there, who has joined, who waits for whom: one row per rank
 *
 * Pure: built from the plan, from what the head has seen itself (who opened libhnlaunch, who has
 * ended), and from the agents' answers (wire/status_msg.h). A connection to the TCP door says what
 * somebody waits for, but not who; roster_table_match() finds the rank: the one on the node that
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

enum roster_known {
        ROSTER_SILENT,  /* the node has not answered */
        ROSTER_ALIVE,   /* .k is filled */
        ROSTER_ENDED,   /* the process has ended */
        ROSTER_UNKNOWN, /* the node answered without this rank: it is not started yet */
};

/* What a rank said with hn_progress(). */
struct roster_progress {
        int64_t step;  /* -1 = nothing was said */
        int64_t total; /* 0 = unknown */
        const char *note;
};

struct roster_row {
        int rank, local_rank, node;
        enum roster_known known;
        bool joined;
        int64_t joined_ms; /* since the launch, -1 = not known */
        struct roster_progress progress;
        struct roster_rank k;
        bool marked; /* scratch of roster_tell_waiting() */
};

struct roster_table {
        const struct plan *plan;
        const struct hosts *hosts;
        struct roster_row *rows; /* by rank */
        size_t n;
        struct roster_conn *conns; /* of all doors, with the node whose door it is */
        int *conn_nodes;
        size_t n_conns;
        uint32_t strangers;
        bool *answered; /* by node */
};

/* Borrows @plan and @hosts. */
void roster_table_init(struct roster_table *t, const struct plan *plan, const struct hosts *hosts);
void roster_table_finish(struct roster_table *t);

/* What the head knows by itself. */
void roster_table_joined(struct roster_table *t, int rank, int64_t ms_after_launch);
void roster_table_ended(struct roster_table *t, int rank);
/* The note is lent until roster_table_finish(). */
void roster_table_progress(struct roster_table *t, int rank, struct roster_progress progress);

/* The answer of @node, copied. Ranks that do not live there are ignored. */
void roster_table_add(struct roster_table *t, int node, const struct roster *answer);

/* After the last answer: finds the ranks behind the connections. @hellos has an entry per node,
 * NULL = not known; its addresses say where a connection comes from. A port that only one rank in
 * all lists is enough, too (address translation). Returns how many connections stay nobody's. */
size_t roster_table_match(struct roster_table *t, const struct hello *const *hellos);

/* --- questions -------------------------------------------------------------------------------- */

bool roster_row_lives(const struct roster_row *r); /* not known to have ended */
/* It waits for others: in a barrier, a gather, or for keys. */
bool roster_row_waits(const struct roster_row *r);

typedef bool (*roster_filter)(const struct roster_row *r);
bool roster_row_joined(const struct roster_row *r);
bool roster_row_missing(const struct roster_row *r); /* lives and has not joined */
bool roster_row_steps(const struct roster_row *r);   /* has said how far it is */

size_t roster_table_count(const struct roster_table *t, roster_filter filter);
/* The longest wait of all, milliseconds; 0 = nobody waits. */
uint32_t roster_table_longest(const struct roster_table *t);

/* --- texts, malloc'ed ------------------------------------------------------------------------- */

/* "ranks 205,207 on gpu026", "rank 3 on gpu[001-002]"; more than fits on a line is counted. */
char *roster_table_names(const struct roster_table *t, roster_filter filter);

/* "ranks 205,207 on gpu026 did not join within 120s". */
char *roster_missing_sentence(const struct roster_table *t, uint64_t after_ms);

/* A table of the rows, with a line of titles; NULL @filter = all. Of many rows that say the same
 * one line is made: "ranks 8-511 wait for `x` since 12.0s". Ends with a newline. */
char *roster_table_print(const struct roster_table *t, roster_filter filter);

/* --- messages --------------------------------------------------------------------------------- */

/* HN402: ranks that live have not joined @after_ms after the launch; a warning unless @fatal.
 */
void roster_tell_missing(const struct roster_table *t, struct diags *d, uint64_t after_ms,
                         bool fatal);

/* HN404: somebody has been waiting in the store for at least @threshold_ms: who for what, and who
 * has not come. False: nobody has, nothing is added. */
bool roster_tell_waiting(struct roster_table *t, struct diags *d, uint32_t threshold_ms);

/* What Ctrl-\ shows: every rank, and the nodes that do not answer. */
void roster_tell_all(const struct roster_table *t, struct diags *d, uint64_t after_ms);
