/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job, inside: what the files of the job share
 *
 *   job.c         life cycle, connecting, the end
 *   job_endpoint.c    the endpoint of PyTorch's store, and who reaches it
 *   job_push.c    files that go to the nodes first
 *   job_launch.c  the order to every node, and what hangs on it: printer, store, standard input
 *   heartbeat.c   pings, and nodes that are silent
 *   job_dispatch.c   what agents say and nodes that change
 *   job_status.c  who is there and who waits: Ctrl-\, ranks that do not join, waits that last
 *   error_file.c   what a rank wrote to its error file
 *   job_restart.c another attempt
 *   job_stdin.c   who reads standard input
 *   job_tree.c    nodes that are reached through other nodes
 *   job_stop.c    the first failure, signals, deadlines
 */
#pragma once

#include "head/core/thread_pool.h"
#include "head/job/job.h"
#include "head/job/job_endpoint.h"
#include "head/job/job_push.h"
#include "head/job/stdin_reader.h"
#include "head/job/store_server.h"
#include "head/model/job_state.h"
#include "head/nodes/send_queue.h"
#include "head/nodes/transport.h"
#include "head/output/printer.h"

enum { JOB_SIGNALS = 7 };

struct job_push;
struct job_status;
struct node_status;

struct job {
        struct job_config c;
        const struct plan *plan;
        uv_loop_t loop;
        uv_signal_t signals[JOB_SIGNALS];
        uv_timer_t limit, late, heartbeat, sleepy, ticker, patience;
        int sleepy_tries;
        int late_looks; /* left before nodes that have not ended their ranks are given up */
        struct transport *local, *remote, *tree; /* NULL = not needed */
        struct ssh_options ssh;
        char *command;
        struct node *nodes;
        struct strv new_keys; /* host keys that were accepted and stored, not yet told */
        size_t n_nodes, unresolved, failed, running;
        size_t n_carried; /* nodes that are reached through others */
        struct send_queue send_queue;
        struct thread_pool *pool; /* writes and reads files */
        struct printer *printer;
        struct store_server *store;
        struct job_status *status;
        struct job_endpoint endpoint;
        struct job_push *push; /* NULL = nothing is pushed */
        struct feed *feed;
        bool feed_all;
        uint64_t feed_sent, *stdin_reader_read; /* by rank; UINT64_MAX = it has ended */
        struct outcome outcome;
        int64_t launched_ns, beat_ns, stopped_ns;
        int attempt, crashes; /* crashes: in a row, each soon after its start */
        size_t lost_before;   /* bytes that log files could not take in earlier attempts */
        bool log_told;        /* that the run directory cannot be written */
        struct strv earlier;  /* how earlier attempts ended */
        bool sleeping, pushing;
        enum job_state job_state;
};

extern const struct node_ops job_node_ops;

bool job_step(struct job *j, enum job_event e); /* job_state_step(), told in the log */

/* Tells which host keys were accepted. */
void job_tell_keys(struct job *j);

void job_emit(struct job *j, enum event_kind kind, int node, int rank, int64_t value,
              const char *text);
uint64_t job_since_launch_ms(const struct job *j);

/* Orders every rank to end: TERM, after the grace time KILL. Only the first call counts. */
void job_stop(struct job *j, const char *why);
/* Follows every outcome_happened(): a new cause stops the job. */
void job_failed(struct job *j, bool is_cause);
/* Our own decision to end: a signal (@number), the time limit, a stdout that cannot be written
 * (@number is the errno). @text may be NULL. */
void job_ordered(struct job *j, enum cause_kind kind, int number, const char *text);
void job_signal_caught(uv_signal_t *s, int signo);
void job_time_is_over(uv_timer_t *t); /* --timeout: tells what the ranks do, then stops them */
void job_time_reached(struct job *j);

/* Ctrl-Z: tells the agents, then stops this process until SIGCONT. The ranks run on. */
void heartbeat_sleep(struct job *j);
/* Begins to ping the nodes that run; j->heartbeat is its timer. */
void heartbeat_start(struct job *j);
uint64_t heartbeat_ms(const struct job *j); /* from ping to ping */
/* An agent that has nothing to do asks whether we are there. */
void heartbeat_requested(struct job *j, struct node *n);
/* Its carrier heard @n so long ago for the last time. */
void heartbeat_heard(struct job *j, struct node *n, uint32_t silent_ms);
uint32_t job_silence_ms(const struct job *j, const struct node *n); /* after which either is lost */

/* The text of a rank's TORCHELASTIC_ERROR_FILE; what cannot be read is left out. */
void job_error_file(struct job *j, int rank, const void *text, size_t len);

/* Begins to read @fd, borrowed, for rank 0 or all ranks. */
void job_stdin_start(struct job *j, int fd, bool all);
void job_stdin_credit(struct job *j, int rank, uint32_t bytes); /* a rank has read so many */
void job_stdin_left(struct job *j, int rank);                   /* it reads no more */
void job_stdin_stop(struct job *j);

/* Nodes that are reached through other nodes (--tree). 0, or a negative errno. */
int job_tree_create(struct job *j, struct error *err);
void job_tree_changed(struct job *j, struct node *n); /* it became READY or FAILED */
void job_tree_left(void *ctx, struct node *n);        /* it was GONE, and its agent has left */
int job_tree_receive(struct job *j, struct node *n, const struct frame *f, struct error *err);
/* The parent of @n gives it a CHUNK of its own copy. False: not now. */
bool job_tree_give(struct job *j, struct node *n, uint32_t entry, uint64_t offset, uint32_t len);
/* The parent of @n pings it and tells when it is silent for so long; 0 = no more. */
void job_tree_watch(struct job *j, struct node *n, uint32_t silence_ms);
/* Nodes that are well, but were lost with another: connects them again, directly. False: there was
 * an order to end meanwhile. */
bool job_tree_rejoin(struct job *j);

/* Room for descriptors: links, and two files per rank. */
void job_raise_limit(size_t n_nodes, int world_size);

/* ENDPOINT_OPENED and PROBED; 0, or negative when nobody asked for them. */
int job_endpoint_opened(struct job *j, struct node *n, const struct frame *f, struct error *err);
int job_endpoint_probed(struct job *j, struct node *n, const struct frame *f, struct error *err);
/* What the ranks of a node are told about the store: address, port, interface. */
void job_endpoint_fill(const struct job *j, size_t node, struct launch_order *m);
/* The node was asked about the endpoint and has not answered. */
bool job_endpoint_owes(const struct job *j, size_t node);
void job_endpoint_finish(struct job *j);

/* WANT, TAKEN and PUSHED; 0, or negative when nobody asked for them. */
int job_push_want(struct job *j, struct node *n, const struct frame *f, struct error *err);
int job_push_taken(struct job *j, struct node *n, const struct frame *f, struct error *err);
int job_push_pushed(struct job *j, struct node *n, const struct frame *f, struct error *err);
bool job_push_takes_part(const struct job *j, size_t node);
void job_push_forget(struct job *j, size_t node); /* another agent will be there */
void job_push_finish(struct job *j);

/* No more orders: the agent may leave once it is empty. */
void job_dismiss(struct node *n);

/* Who is there and who waits. Timers, so it is closed first and freed after the loop has turned. */
struct job_status *job_status_create(struct job *j);
void job_status_close(struct job_status *r); /* NULL is fine, here and below */
void job_status_free(struct job_status *r);
void job_status_launched(struct job *j); /* the clocks start, anew for another attempt */
void job_status_joined(struct job *j, int rank);
void job_status_ended(struct job *j, int rank);
void job_status_progress(struct job *j, int rank, int64_t step, int64_t total, const char *note);
bool job_status_has_ended(const struct job *j, int rank);
void job_status_take(struct job *j, int node, const struct node_status *answer);
/* Ctrl-\: asks, and tells when all have answered or a second is over. */
void job_status_show(struct job *j);
/* The same, then job_time_reached(). */
void job_status_show_last(struct job *j);
