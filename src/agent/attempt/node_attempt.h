/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node_attempt: one run of the ranks on this node
 *
 *   IDLE -> RUNNING -> LINGERING -> TERMINATING -> KILLING -> DRAINING -> IDLE
 *
 * A phase may be skipped, but the order is kept. LINGERING: the last worker has ended while other
 * processes of the attempt run (a tee, Python's resource tracker) and get some time to end by
 * themselves. DRAINING: no process is left, neither a child (the agent is a subreaper) nor a
 * process with the attempt's mark; the ends of the outputs are missing, then dumps of the flight
 * recorder are sent. GONE is sent with the return to IDLE.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "wire/msg.h"

struct guard_notes;
struct job_dir;
struct node_attempt;
struct node_trace;
struct push_receiver;
struct store_access;
struct uplink;

struct worker;

struct node_ranks {
        struct worker *const *v;
        size_t n;
};

/* What the attempt uses of the agent; borrowed. */
struct node_attempt_deps {
        uv_loop_t *loop;
        struct uplink *up;
        struct job_dir *dir; /* made before a start */
        const struct push_receiver *push;
        struct node_trace *trace;
        struct guard_notes *notes; /* NULL = no guard */
};

/* Reports of the attempt to the agent, and questions about other parts. */
struct node_attempt_ops {
        void (*started)(void *ctx); /* the ranks' processes were made */
        void (*ended)(void *ctx);   /* idle again; GONE follows */
        /* Processes of other parts: whether any exists, whether @pid belongs to a part, and the
         * notice that @pid was reaped. */
        bool (*any_other)(void *ctx);
        bool (*is_other)(void *ctx, pid_t pid);
        void (*other_reaped)(void *ctx, pid_t pid, int status);
        const struct gpu_record *(*first_gpus)(void *ctx); /* rank_samples_first_gpus() */
        void *ctx;
};

struct node_attempt *node_attempt_create(const struct node_attempt_deps *deps,
                                         const struct node_attempt_ops *ops);
void node_attempt_close(struct node_attempt *t); /* let the loop turn once more */
void node_attempt_destroy(struct node_attempt *t);
/* Notes processors, GPUs and binding facts of the node, for all attempts. */
void node_attempt_set_node(struct node_attempt *t, const struct hello *h);

/* Starts the ranks of an order, the first of the attempt or another one while ranks run; may take
 * over @l. @store serves the world of the order, and outlives the attempt. Failures are reported to
 * the head and stop the other ranks. */
void node_attempt_start(struct node_attempt *t, struct launch_order *l, struct store_access *store);
/* Whether an order is for ranks of a world that have run here and ended, while other ranks run. */
bool node_attempt_is_again(const struct node_attempt *t, const struct launch_order *l);
/* Whether an order may come: no rank runs, or the last order has announced a further order for
 * other ranks or for ended ranks. */
bool node_attempt_may_start(const struct node_attempt *t, const struct launch_order *l);
/* Refuses the order @l as a whole, which may be an order that the attempt waits for. */
void node_attempt_refuse_order(struct node_attempt *t, const struct launch_order *l,
                               const char *text);
bool node_attempt_is_idle(const struct node_attempt *t);
bool node_attempt_has_gpus(const struct node_attempt *t); /* the node */
/* Returns the processes of the ranks, borrowed until the next turn of the loop. */
struct node_ranks node_attempt_ranks(const struct node_attempt *t);
const char *node_attempt_cwd(const struct node_attempt *t); /* of the ranks; NULL = none started */

void node_attempt_resume_outputs(struct node_attempt *t); /* the uplink has room again */
/* TERM, after @grace_ms KILL; 0 = KILL now. A later call may only shorten the grace. */
void node_attempt_stop(struct node_attempt *t, uint32_t grace_ms);
/* Stops the ranks if the head has not ordered it in MSG_LOST_GRACE_MS. */
void node_attempt_stop_unless_ordered(struct node_attempt *t);

/* Takes the next step of the attempt if due. Call in every turn of the loop. */
void node_attempt_turn(struct node_attempt *t);
/* Reaps children, after SIGCHLD. */
void node_attempt_reap(struct node_attempt *t);

/*
 * Orders of the head, for @attempt, a struct node_attempt. SIGNAL goes to the program of each rank,
 * else to the rank's process group; with number 0 to none. SIGNAL_RANKS does the same for some
 * ranks, and marks them as stopped if the signal is to end them. STATUS_REQUEST is answered with a
 * STATUS: a snapshot of the ranks and of their waits, read from /proc in some milliseconds. INSPECT
 * examines ranks that may hang; the answers follow.
 */
void node_attempt_on_signal(void *attempt, const struct frame *f);
void node_attempt_on_signal_ranks(void *attempt, const struct frame *f);
void node_attempt_on_stop(void *attempt, const struct frame *f);
void node_attempt_on_credit(void *attempt, const struct frame *f);
void node_attempt_on_stdin(void *attempt, const struct frame *f);
void node_attempt_on_resize(void *attempt, const struct frame *f);
void node_attempt_on_status_request(void *attempt, const struct frame *f);
void node_attempt_on_bind(void *attempt, const struct frame *f);
/* Takes WARM: interpreters for the next order. */
void node_attempt_on_warm(void *attempt, const struct frame *f);
void node_attempt_on_inspect(void *attempt, const struct frame *f);
/* Takes CHECK. */
void node_attempt_on_check(void *attempt, const struct frame *f);
