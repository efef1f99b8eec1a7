/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank table: a row per rank, with life, store and progress
 *
 * Pure: built from the plan, from the head's own knowledge (ranks that joined or ended), and from
 * the answers of the agents (wire/status_msg.h). A connection to the TCP endpoint has a wait but no
 * rank; rank_table_match() finds the rank: on the node with the connection's address, the process
 * with the connection's port.
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
        RANK_ROW_UNKNOWN, /* the node answered without this rank: not started yet */
        RANK_ROW_LOST,    /* with its node */
};

/* The progress of a rank, from hn_progress(). */
struct rank_progress {
        int64_t step;  /* -1 = none was reported */
        int64_t total; /* 0 = unknown */
        const char *note;
};

struct rank_row {
        int rank, local_rank, node, world;
        enum rank_known known;
        bool apart; /* of several worlds this one has no rank that has joined: none is missed */
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
        struct node_status_conn *conns; /* of all endpoints */
        int *conn_nodes;                /* the node of each endpoint */
        size_t n_conns;
        uint32_t rejected; /* connections to the store */
        bool *answered;    /* by node */
        const char *run_id;
        size_t width; /* of the terminal for the rows of messages; 0 = none */
};

/* Borrows @plan, @hosts and the name of the run. */
void rank_table_init(struct rank_table *t, const struct plan *plan, const struct hosts *hosts,
                     const char *run_id);
void rank_table_finish(struct rank_table *t);

/* Enter the knowledge of the head itself. */
void rank_table_joined(struct rank_table *t, int rank, int64_t ms_after_launch);
void rank_table_ended(struct rank_table *t, int rank);
void rank_table_lost(struct rank_table *t, int rank);
/* The note of @progress is lent until rank_table_finish(). */
void rank_table_progress(struct rank_table *t, int rank, struct rank_progress progress);

/* Copies the answer of @node. Ranks of other nodes are ignored. */
void rank_table_add(struct rank_table *t, int node, const struct node_status *answer);

/* After the last answer: finds the ranks behind the connections. @hellos has an entry per node
 * (NULL = unknown), with the addresses of the node. A port listed by a single rank is enough, too
 * (address translation). Returns how many connections stay without a rank. */
size_t rank_table_match(struct rank_table *t, const struct hello *const *hellos);
/* After it: of several worlds one may start late, so ranks that have run for less than @ms are not
 * missed yet. Returns how long until all of them have, 0 = there are none. */
int64_t rank_table_excuse_young(struct rank_table *t, int64_t ms);

/* --- questions --- */

/* Whether the rank waits for others: in a barrier, a gather, or for keys. */
bool rank_row_waits(const struct rank_row *r);
/* Whether it waits for the other ranks of an MPI program to begin or to end. */
bool rank_row_meets(const struct rank_row *r);

typedef bool (*rank_filter)(const struct rank_row *r);
bool rank_row_joined(const struct rank_row *r);
bool rank_row_missing(const struct rank_row *r); /* has not joined, and may still */
bool rank_row_steps(const struct rank_row *r);   /* has reported progress */

size_t rank_table_count(const struct rank_table *t, rank_filter filter);
/* Counts those in the world of a rank, and all ranks of it. */
size_t rank_table_count_world(const struct rank_table *t, int rank, rank_filter filter);
size_t rank_table_world_size(const struct rank_table *t, int rank);
/* Returns the longest wait of all in milliseconds; 0 = no rank waits. */
uint32_t rank_table_longest(const struct rank_table *t);

/* --- texts, malloc'ed --- */

/* Returns "ranks 205,207 on gpu026" or "role infer, rank 3 on gpu[001-002]"; long lists become
 * counts. */
char *rank_table_names(const struct rank_table *t, rank_filter filter);

/* Returns "ranks 205,207 on gpu026 did not join within 120s". */
char *rank_table_missing_sentence(const struct rank_table *t, uint64_t after_ms);

/* Returns a table of the rows, with titles; NULL @filter = all. Many rows with equal texts become
 * one line: "ranks 8-511 wait for `x` for 12.0s". Ends with a newline. */
char *rank_table_print(const struct rank_table *t, rank_filter filter);

/* --- messages --- */

/* Adds HN402: living ranks have not joined @after_ms after the launch; a warning unless @fatal. */
void rank_table_tell_missing(const struct rank_table *t, struct diags *d, uint64_t after_ms,
                             bool fatal);

/* Adds HN412: no rank has come to PyTorch's store @after_ms after the launch, and the process
 * @other, which a rank has started, looks for another one. */
void rank_table_tell_other_store(const struct rank_table *t, struct diags *d,
                                 const struct node_status_other *other, uint64_t after_ms);

/* Adds HN404 for each world of which ranks have been waiting in the store for at least
 * @threshold_ms, with the awaited keys and the missing ranks. False: no rank has, nothing is added.
 */
bool rank_table_tell_waiting(struct rank_table *t, struct diags *d, uint32_t threshold_ms);

/* Adds HN504: the rank of @row waits in MPI_Finalize(), and the others have not come; @reason is
 * what it has told before, not escaped, NULL = nothing. */
void rank_table_tell_finalize(struct rank_table *t, struct diags *d, struct rank_row *row,
                              const char *reason);

/* Adds the answer to Ctrl-\: every rank, and silent nodes. */
void rank_table_tell_all(const struct rank_table *t, struct diags *d, uint64_t after_ms);
