/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job private: the state shared by the six files of the job
 *
 *   job.c           life cycle, connecting, the end
 *   job_launch.c    the order to every node; printer, store, standard input
 *   job_dispatch.c  messages of agents, changes of nodes
 *   job_stop.c      the first failure, signals, deadlines
 *   job_look.c      questions to the nodes about their ranks
 *   job_restart.c   other hosts in place of failed nodes, and another attempt
 *
 * The parts have separate headers, and see the cluster and the attempt, not the job: heartbeat,
 * stdin_pump, job_endpoint, job_push, job_roles, job_status, store_server.
 */
#pragma once

#include "head/core/thread_pool.h"
#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "head/job/heartbeat.h"
#include "head/job/job.h"
#include "head/job/job_drain.h"
#include "head/job/job_endpoint.h"
#include "head/job/job_push.h"
#include "head/job/job_roles.h"
#include "head/job/job_spares.h"
#include "head/job/job_status.h"
#include "head/job/readiness.h"
#include "head/job/stdin_pump.h"
#include "head/job/turns.h"
#include "head/job/world_endpoints.h"
#include "head/job/world_servers.h"
#include "head/model/stop_orders.h"
#include "head/output/dump_files.h"

enum { JOB_SIGNALS = 7 };

/* The knowledge of restarts about earlier attempts. */
struct job_history {
        uv_timer_t backoff;
        int extra;         /* attempts that do not count for --max-restarts */
        int crashes;       /* in a row, each soon after a start */
        struct strv ends;  /* how earlier attempts ended, a sentence each */
        size_t lost_bytes; /* missing in log files of earlier attempts */
        int64_t dead_ns;   /* clock_ns() from which on no rank of a lost node lives */
};

struct culprit; /* job_stop.c */

/* Orders from elsewhere, job_stop.c. */
struct job_orders {
        unsigned usr_signals[2]; /* SIGUSR1 and 2 that came by agents */
        uint64_t grace;          /* 1 + milliseconds, in place of --grace; 0 = none is given */
        bool hung_up;            /* the terminal is gone, and the job goes on */
        int ended_by;    /* an order to end the run: its signal, -1 = another one; 0 = none */
        int command_pid; /* of a `hnlaunch stop` that has ordered the end; 0 = none, -1 = unknown */
        int64_t sent_ns[NSIG]; /* by signal: clock_ns() of the newest `hnlaunch signal`; 0 = none */
        struct stop_orders stop;
        uint32_t inspections; /* the newest number of job_inspect() */
        uint32_t samples_ms;  /* between two samples of a node; 0 = none are wanted */
        int64_t shown_ms;     /* clock of the last Ctrl-\ */
        bool fetching;        /* job_fetch_traces() waits */
        int hurry_signal;     /* ended the grace time; 0 = none */
        int hurry_ticks;      /* since the order to end at once */
        bool hurried;         /* the time for readers, nodes and files is over */
        int looked_at; /* number of the attempt that is looked at before its ranks are stopped */
        bool held;     /* the stop waits for the rank from which the failures follow */
        struct culprit *culprit; /* of the newest hang that was found; NULL = none */
        struct job_drain *drain; /* hosts that are to leave */
};

/* What is told once. */
struct job_told {
        bool lone_rank; /* HN407 */
        int alone; /* 1 + the first rank of the attempt whose MPI was a world of one; 0 = none */
        bool known_bad;                   /* HN408 */
        uint32_t nccl;                    /* version of the newest EVENT_LIBRARY; 0 = none */
        bool logs_failed;                 /* a file of the run directory cannot be written */
        int stream_error[MSG_STDERR + 1]; /* errno of the first failed write of output */
};

/* What nodes are asked outside of an attempt, or do for other runs: one of the five. */
struct job_asked {
        struct node_facts *facts; /* by node; .number is set until the answer is there */
        const struct plan *plan;
        struct plan_inventory *inventory; /* with bindings of the plan */
        struct job_check *check;
        struct job_measure *measure;
        struct hold *hold;     /* of `hnlaunch hold` */
        struct staged *staged; /* by node; .v is set when the answer is there */
};

struct job {
        const struct job_config *config;
        uv_loop_t loop;
        uv_signal_t signals[JOB_SIGNALS];
        struct job_orders orders;
        struct {
                uv_timer_t ticker;         /* calls config.tick while nodes are connected */
                uv_timer_t limit;          /* --timeout */
                uv_timer_t stop;           /* the cause does not show, or nodes do not end */
                uv_timer_t answer;         /* to job_read_core() and job_fetch_traces() */
                uv_timer_t leave;          /* files do not come, or agents do not leave */
                unsigned char *late_looks; /* of @stop, by node: left before it is given up */
        } timers;
        struct thread_pool *pool; /* writes and reads files */
        const char *mpi;          /* of job_launch() */
        struct cluster *cluster;
        struct attempt *attempt;
        struct heartbeat *heartbeat;
        struct world_endpoints *endpoints;
        struct job_push *push; /* of the use of the last job_push() */
        struct job_status *status;
        struct stdin_pump *stdin_pump; /* NULL = nothing is sent to the ranks */
        struct job_roles *roles;       /* NULL = the job has none */
        struct job_told told;
        struct readiness *readiness; /* of the attempt; NULL = no role is asked (--ready) */
        struct job_history history;
        job_stand_in *stand_in;  /* NULL = no host stands by unconnected */
        struct job_asked *asked; /* NULL = no answers are waited for */
};

/* --- job.c --- */

/* Tells which host keys were accepted, and which lines of the ssh configuration are not obeyed. */
void job_tell_logins(struct job *j);

/* --- job_look.c --- */

/* Takes an answer to job_ask_bindings(). */
int job_take_bound(struct job *j, struct node *n, const struct frame *f, struct error *err);
/* Takes CHECKED; answers that are late are ignored. */
int job_take_checked(struct job *j, struct node *n, const struct frame *f, struct error *err);
/* Takes MEASURED, likewise. */
int job_take_measured(struct job *j, struct node *n, const struct frame *f, struct error *err);
/* Takes WARMED, which the hold has read unless a run has taken the agent meanwhile. */
int job_take_warmed(struct job *j, struct node *n, const struct frame *f, struct error *err);
/* Takes STAGED. */
int job_take_staged(struct job *j, struct node *n, const struct frame *f, struct error *err);
/* Takes INSPECTED, the answer about processes: of a core file, or for `why`. */
int job_take_inspected(struct job *j, struct node *n, const struct frame *f, struct error *err);
int job_take_ras(struct job *j, struct node *n, const struct frame *f, struct error *err);
int job_take_sample(struct job *j, struct node *n, const struct frame *f, struct error *err);
/* Takes FACTS; answers that are late are ignored. */
int job_take_facts(struct job *j, struct node *n, const struct frame *f, struct error *err);

/* --- job_restart.c --- */

/* A rank has ended, with the wait @status, for the job with @code. True: its role starts ranks
 * again within the attempt (--restart-scope), and the end has no other consequence. */
bool job_starts_again(struct job *j, const struct cause *c, int status, int code, bool stopped);

/* --- job_launch.c --- */

extern const struct job_roles_ops job_roles_ops;

/* An instance of a role, named by one of its ranks, is ready (--ready), now or before. */
void job_rank_ready(struct job *j, int rank);

/* --- job_dispatch.c --- */

extern const struct node_ops job_node_ops;

/* --- job_stop.c --- */

/* Follows every recorded failure, as attempt.failed(): a new cause stops the job @ctx. */
void job_failed(void *ctx, bool is_cause);
/* The ranks have ended: ends the limit of the job and the looks at nodes that do not end. */
void job_stop_limits(struct job *j);
/* Follows the start of each rank: a stop may have waited for it. */
void job_rank_started(struct job *j);
/* Follows the exit of @rank with 0. With --ends-with rank0, that of rank 0 decides the outcome and
 * stops the ranks that are left, unless the job is stopping already. */
void job_rank_succeeded(struct job *j, int rank);
/* The job @ctx has reached its goal, @why: stops the ranks that are left. */
void job_finish(void *ctx, const char *why);
/* Records the cause @c, and stops the ranks of the job @ctx. */
void job_stop_for(void *ctx, const struct cause *c);
/* Ends the job by a decision of the head: a signal (@number), the time limit, an unwritable stdout
 * (@number is the errno). @text may be NULL. A hang that still stands is named first. */
void job_ordered(struct job *j, enum cause_kind kind, int number, const char *text);
void job_drop_culprit(struct job *j); /* frees what job_blame() keeps */
void job_signal_caught(uv_signal_t *s, int signo);
void job_signal(struct job *j, int signo); /* acts as on a signal to hnlaunch */
/* The terminal has hung up. False: the job ends with it. */
bool job_outlive_terminal(struct job *j);
/* Takes SIGNAL of an agent: its node ends, or the manager, such as Slurm, has sent a signal to it,
 * and as a rule to the agents of all nodes. */
int job_agent_signal(struct job *j, struct node *n, const struct frame *f, struct error *err);
/* All ranks have ended: if a drain turns out to be SIGTERM to all agents, the order to end becomes
 * the cause. */
void job_settle_drain(struct job *j);
/* --timeout: shows and looks where the ranks are, then stops them. */
void job_time_is_over(uv_timer_t *t);
