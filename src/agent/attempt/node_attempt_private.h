/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node_attempt private: the state, for the files of the attempt and for the files that examine its
 * ranks
 */
#pragma once

#include "agent/attempt/node_attempt.h"
#include "agent/attempt/rank_world.h"
#include "agent/bind/order_binding.h"
#include "agent/contain/cgroup.h"
#include "agent/contain/contain.h"
#include "agent/core/job_dir.h"
#include "agent/core/uplink.h"
#include "agent/inspect/inspection.h"
#include "agent/nccl/dump_sender.h"
#include "agent/nccl/library_watch.h"
#include "agent/nccl/world_watch.h"
#include "agent/warm/warm.h"
#include "wire/msg.h"

enum attempt_phase {
        IDLE,
        RUNNING,
        LINGERING,
        TERMINATING,
        KILLING,
        DRAINING,
};

enum { LINGER_MS = 500 /* in which leftovers may end by themselves */ };

/* The order in which processes are told to end; see node_attempt_signals.c. */
struct rank_stop {
        uv_timer_t step;
        uint32_t grace_ms;            /* --grace */
        uint64_t half_ns;             /* half of the grace time is over then */
        uint64_t quiet_ns;            /* when a process of a rank's session was last there */
        struct pids told;             /* of those that are no rank's */
        struct inspector_rank *ended; /* processes of the last attempt, while none runs */
        size_t n_ended;
};

struct node_attempt {
        struct node_attempt_deps deps;
        struct node_attempt_ops ops;
        char *cwd; /* of the ranks; NULL = none was started */
        enum attempt_phase phase;
        struct worker **workers;
        size_t n_workers;
        size_t n_alive;    /* not reaped, including: */
        size_t n_starting; /* program not yet executed */
        struct {
                uint32_t cores; /* shared by all ranks */
                bool has_gpus;
                struct binding_node *binding;
        } node;
        bool refused; /* a rank could not be started, and the head was told of one */
        struct {
                uv_timer_t grace;
                uv_timer_t reaping;   /* children wait for their turn */
                uv_timer_t recheck;   /* no signal tells of the end of processes not our children */
                uv_timer_t starting;  /* ... nor of the execution of a program */
                uv_timer_t again;     /* ... nor of leftovers of ranks that start again */
                unsigned start_looks; /* of @starting */
        } timers;
        struct rank_stop stop;
        struct contain contain;
        struct oom oom; /* when the ranks started */
        struct dump_sender *dumps;
        struct library_watch *libraries; /* of NCCL and MPI in the first worker */
        struct world_watch *worlds;      /* of MPI, by the first workers */
        struct inspection *inspection;
        struct warm *warm; /* interpreters that wait for ranks */
        struct {
                struct rank_world **v; /* worlds with ranks here */
                size_t n;
                bool more; /* a further order was announced */
        } groups;
};

/* Returns the process of a rank; NULL = it is not of this node, or could not be started. */
struct worker *node_attempt_find_rank(const struct node_attempt *t, uint32_t rank);
/* Returns the world of a rank; NULL = it has no rank here. */
struct rank_world *node_attempt_find_world(const struct node_attempt *t, uint32_t rank);

/* --- node_attempt_start.c --- */

/* Carries an order out: its ranks do not run, and nothing is left of an earlier start. */
void node_attempt_begin_order(struct node_attempt *t, struct launch_order *l,
                              struct store_access *store);
/* Waits for at most @ms in all until the programs of started ranks are executed: executing a
 * program, or entering the working folder, takes as long as the file system does. Reports the first
 * failure; a worker whose program could not be executed is freed. */
void node_attempt_confirm_starts(struct node_attempt *t, uint64_t ms);

/* Gives up waiting for PMIx: refuses the orders. */
void node_attempt_cancel_orders(struct node_attempt *t);
/* Whether an order waits for PMIx. */
bool node_attempt_has_order(const struct node_attempt *t);
/* Frees the worlds. */
void node_attempt_drop_worlds(struct node_attempt *t);

/* --- node_attempt_again.c --- */

/* Takes such an order over. */
void node_attempt_keep_order(struct node_attempt *t, struct launch_order *l);
/* Starts the ranks of kept orders that are due. In every turn of the loop. */
void node_attempt_start_again(struct node_attempt *t);
/* Reports the ranks of kept orders as ended. */
void node_attempt_cancel_again(struct node_attempt *t);

/* --- node_attempt_signals.c --- */

/* Sends a signal of the user to the program of each rank, else to the rank's process group. */
void node_attempt_signal(struct node_attempt *t, int signo);
/* The same to some ranks. If the signal is to end them, they count as stopped from now on. */
void node_attempt_signal_ranks(struct node_attempt *t, const struct ranks_signal *m);
/* Sends TERM to the ranks, and later to other processes of the attempt; KILL is not sent. */
void rank_stop_begin(struct node_attempt *t, uint32_t grace_ms);
void rank_stop_within(struct node_attempt *t, uint32_t grace_ms); /* the grace is shorter */
void rank_stop_end(struct node_attempt *t);

/* --- node_attempt_end.c --- */

/* Sends EXITED behind the rank's output, where the head looks for the reason. */
void node_attempt_report_exit(struct node_attempt *t, struct worker *w, int status);
/* Frees the workers of the attempt. */
void node_attempt_drop_workers(struct node_attempt *t);
void node_attempt_forget_ended(struct node_attempt *t); /* the next attempt begins */

/* --- node_attempt.c --- */

/* KILL to all processes of the attempt. */
void node_attempt_kill(struct node_attempt *t);
/* Gives the ranks up that stay for LINGER_MS when the others have ended. */
void node_attempt_linger(struct node_attempt *t);
