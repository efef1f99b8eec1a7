/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent_attempt: one run of the ranks on this node
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

#include <uv.h>

#include "agent/agent_pmix.h"
#include "agent/contain/contain.h"
#include "agent/contain/oom.h"
#include "agent/inspect/inspection.h"
#include "agent/nccl/dump_sender.h"
#include "agent/nccl/library_watch.h"
#include "agent/nccl/world_watch.h"
#include "agent/pmi/pmi_link.h"
#include "agent/rank/worker.h"
#include "wire/msg.h"

struct agent;

enum attempt_phase {
        IDLE,
        RUNNING,
        LINGERING,
        TERMINATING,
        KILLING,
        DRAINING,
};

enum { LINGER_MS = 500 /* in which leftovers may end by themselves */ };

/* The order in which processes are told to end; see agent_signals.c. */
struct rank_stop {
        uv_timer_t step;
        uint32_t grace_ms; /* --grace */
        uint64_t half_ns;  /* half of the grace time is over then */
        uint64_t quiet_ns; /* when a process of a rank's session was last there */
        struct pids told;  /* of those that are no rank's */
};

/* What ranks load of NCCL and MPI. */
struct loaded_watch {
        struct library_watch libraries; /* of the first worker */
        struct world_watch worlds;      /* of the first workers */
};

struct agent_attempt {
        enum attempt_phase phase;
        struct worker **workers;
        size_t n_workers;
        size_t n_alive;    /* not reaped, including: */
        size_t n_starting; /* program not yet executed */
        uint32_t cores;    /* of this node, shared by all ranks */
        bool has_gpus;     /* this node */
        bool refused;      /* a rank could not be started, and the head was told of one */
        uv_timer_t grace;
        struct rank_stop stop;
        uv_timer_t reaping;  /* children wait for their turn */
        uv_timer_t recheck;  /* no signal tells of the end of processes other than children */
        uv_timer_t starting; /* ... nor of the execution of a program */
        struct contain contain;
        struct oom oom; /* when the ranks started */
        struct dump_sender dumps;
        struct loaded_watch loaded;
        struct inspection inspection;
        struct pmi_link *pmi; /* NULL = none */
        struct agent_pmix pmix;
};

void agent_attempt_init(struct agent *a);
void agent_attempt_close(struct agent *a); /* let the loop turn once more */

/* --- agent_start.c --- */

/* Starts the ranks of an order. Failures are reported to the head and stop the other ranks. */
void agent_start_ranks(struct agent *a, struct launch_order *l); /* may take over @l */
/* The second half: starts the processes, with the environment that they share. */
void agent_start_processes(struct agent *a, const struct launch_order *l, const struct strv *base);
/* Reports that an order, or a rank of the order, cannot be carried out. The head waits for GONE
 * after every order: GONE follows a refused order unless ranks run. */
void agent_refuse(struct agent *a, uint32_t rank, enum refusal why, int error, const char *text);

/* Waits for at most @ms in all until the programs of started ranks are executed: executing a
 * program, or entering the working folder, takes as long as the file system does. Reports the first
 * failure; a worker whose program could not be executed is freed. */
void agent_confirm_starts(struct agent *a, uint64_t ms);

/* --- agent_signals.c --- */

/* Sends a signal of the user to the program of each rank, else to the rank's process group. */
void agent_signal_ranks(struct agent_attempt *t, int signo);
/* TERM to the ranks, and later to what is left; KILL is not sent. */
void agent_stop_begin(struct agent_attempt *t, uint32_t grace_ms);
void agent_stop_within(struct agent_attempt *t, uint32_t grace_ms); /* the grace is shorter */
void agent_stop_end(struct agent_attempt *t);

/* --- agent_attempt.c --- */

/* KILL to all processes of the attempt. */
void agent_kill_ranks(struct agent_attempt *t);
/* TERM, after @grace_ms KILL; 0 = KILL now. A later call may only shorten the grace. */
void agent_stop(struct agent *a, uint32_t grace_ms);
/* Stops the ranks if the head has not ordered it in SHORT_GRACE_MS. */
void agent_stop_unless_ordered(struct agent *a);
/* Takes the next step of the attempt if due. Call in every turn of the loop. */
void agent_advance(struct agent *a);
/* Reaps children. */
void agent_on_sigchld(uv_signal_t *handle, int signo);
