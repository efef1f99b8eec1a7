/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: all nodes of a launch, from the first link to the last agent's end
 *
 * launch_connect.c and launch_attempts.c call the steps in this order; those that wait run the
 * loop until they are done:
 *
 *   job_create -> job_connect -> (plan) -> { job_push -> job_open_endpoint -> job_launch ->
 *   job_wait -> job_restart, true: once more } -> job_read_core -> job_fetch_traces -> job_pull ->
 *   job_leave -> job_destroy
 *
 * A first failure stops every rank (TERM, grace, KILL); Ctrl-C, SIGTERM and SIGHUP stop the job,
 * a second one at once; SIGUSR1 and SIGUSR2 go to all ranks; SIGQUIT (Ctrl-\) shows how they are;
 * SIGTSTP (Ctrl-Z) suspends hnlaunch, not the ranks.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "base/error.h"
#include "head/model/events.h"
#include "head/model/outcome.h"
#include "head/model/plan.h"
#include "head/nodes/bootstrap.h"
#include "head/nodes/node.h"
#include "head/options/options.h"
#include "head/output/printer.h"
#include "head/term/diag.h"

struct core_found;
struct dial_in;
struct job;
struct dump_files;
struct dump;
struct check_names;
struct check_order;
struct checked;
struct stage_order;
struct staged;
struct inspect_order;
struct inspected;
struct node_facts;
struct rank_board;
struct role_book;
struct ras_reply;
struct role_span;
struct rank_table;
struct pull;
struct sample;
struct trace_fetch;
struct why_finding;

/* What asks job_inspect(). */
struct job_why {
        void (*ask)(void *ctx);   /* Ctrl-\ was given twice within 3 s */
        void (*quiet)(void *ctx); /* no rank has done anything for --hang-after; may be NULL */
        /* The ranks are about to be stopped: --timeout is over, or one has waited in vain. True:
         * job_end_look() follows soon. May be NULL. */
        bool (*last)(void *ctx);
        /* An answer, which may be taken over. */
        void (*inspected)(void *ctx, int node, struct inspected *m);
        void (*ras)(void *ctx, int node, struct ras_reply *m);
        /* -EPROTO: the part is out of turn. */
        int (*dump)(void *ctx, int node, const struct dump *m, struct error *err);
        void *ctx;
};

/* What takes the samples of job_sample(). */
struct job_samples {
        /* A sample of the node, whose arrays may be taken over. */
        void (*take)(void *ctx, int node, struct sample *m);
        void *ctx;
};

/* What is called ten times a second while nodes are connected. */
struct job_tick {
        void (*call)(void *ctx); /* may be NULL */
        void *ctx;
};

struct job_config {
        const struct options *options;
        const struct hosts *hosts;
        const struct agent_binaries *agent_binaries;
        const char *agent_path; /* for hosts of this machine */
        char *container;        /* for agents, container_order_encode(); NULL = none */
        /* Creates the transport to all other hosts in place of ssh; NULL = ssh as the options say.
         * The job takes the transport over. */
        const struct transport_maker *remote;
        struct dial_in *dial_in; /* the nodes dial in; NULL = they are reached. Outlives the job */
        struct events *events;
        struct rank_board *ranks;   /* listens to @events */
        struct pull *pull;          /* what job_pull() brings home; NULL = nothing */
        struct trace_fetch *traces; /* what job_fetch_traces() does; NULL = nothing */
        char run_id[16];
        struct job_tick tick;
        struct { /* what becomes of messages */
                /* Messages while the job runs; lent for the call. May be NULL. */
                void (*say)(void *ctx, const struct diags *d);
                void *say_ctx;
                /* The terminal has hung up. The job goes on, and tells no write error from then on.
                 * Gets say_ctx. NULL: SIGHUP ends the job. */
                void (*hung_up)(void *ctx);
        };
        struct strv ports;      /* names of ports that the ranks need on rank 0's node */
        struct role_book *book; /* of the roles; NULL = the job has none */
        bool tell_joins;        /* EVENT_RANK_JOINED is worth asking the nodes */
        struct job_why why;
        struct job_samples samples;
};

/* How a step before job_launch() has ended. */
enum job_step {
        JOB_DONE,        /* zero: the next step may follow */
        JOB_INTERRUPTED, /* a signal came before anything was started; see job_outcome() */
        JOB_NODES_LOST,  /* at least one node FAILED; see job_node() */
        JOB_NODES_UNFIT, /* nodes could not do their part; report_push() and report_endpoint() tell
                          * which */
        JOB_IMPOSSIBLE,  /* with @err: the reason is no node */
};

/* @c is borrowed for the job's life. NULL with @err: a transport cannot be made. */
struct job *job_create(const struct job_config *c, struct error *err);

/* Connects every host. JOB_DONE: all are READY. JOB_INTERRUPTED, JOB_NODES_LOST. */
enum job_step job_connect(struct job *j);
const struct node *job_node(const struct job *j, size_t host);

enum { JOB_STDIN_LATER = -2 }; /* what job_lend_stdin() lends */

/* A program of the ranks. All is lent. */
struct job_program {
        const struct strv *argv;
        struct strv words;  /* @argv with references to roles replaced; empty = it has none */
        struct strv env;    /* NAME=VALUE on top of those of the job */
        const char *cwd;    /* NULL = job_launch.cwd */
        const char *pushed; /* path of argv[0] among pushed files, NULL = argv[0] */
};

struct job_launch {
        const struct plan *plan;
        const struct strv *env, *unset; /* from export_env_collect() */
        const char *cwd;
        bool cwd_given;  /* by --chdir; else ranks start among pushed files */
        const char *mpi; /* of a program that has several ranks; "" or NULL = none known */
        const struct job_program *programs; /* by plan_rank.program */
        size_t n_programs;
        struct printer_options output; /* without pool, fd, append and window */
        bool on_stderr;                /* all output of ranks: stdout is for events */
        int stdin_fd;   /* standard input of ranks, borrowed; -1 = none, JOB_STDIN_LATER */
        int stdin_rank; /* that reads it; -1 = every rank */
        struct launch_terminal terminal; /* its rank MSG_NO_RANK: none has one */
};

/* Orders the ranks to be started and lets unused nodes go. All of @l stays valid until
 * job_destroy(). The endpoint must be open (head/job/job_endpoint.h). */
void job_launch(struct job *j, const struct job_launch *l);

/* Waits until nothing of the attempt is left on any node and all output is written, or a second
 * order ends the wait for its readers. */
void job_wait(struct job *j);
/* After a failed attempt: false when there will be no other (--max-restarts, orders, a lost node
 * that no spare host can replace). Else moves ranks of lost nodes in @plan, waits the back-off
 * time, and makes the job as it was before job_open_endpoint(). A signal meanwhile ends the wait:
 * false. */
bool job_restart(struct job *j, struct plan *plan);

enum job_again {
        JOB_NOT_AGAIN,     /* there is no other attempt */
        JOB_AGAIN,         /* the job is ready for another attempt */
        JOB_TOO_FEW_NODES, /* no spare host could take the place of a node */
};

/* What was decided about the next attempt (--restart auto). */
struct job_next {
        const struct intlist *retired; /* nodes whose hosts the job uses no longer */
        const char *verb, *reason;     /* "same hosts", for people */
        bool extra;                    /* it does not count for --max-restarts */
};
/* Whether ranks of a role may start again within the attempt after @o, with one failure. @healthy:
 * the rank ran for long. Called with say_ctx of the configuration. */
typedef bool job_restart_rule(void *ctx, const struct outcome *o, bool healthy);
/* Asked beside the number of --max-restarts. */
void job_use_restart_rule(struct job *j, job_restart_rule *may_repeat);
int job_role_restarts(const struct job *j); /* within attempts (--restart-scope) */
/* Whether job_restart(), with @next NULL, or job_restart_as() would begin another attempt, if no
 * node is missing. */
bool job_may_restart(const struct job *j, const struct job_next *next);
/* As job_restart() after a decision, which replaces the rules and the number of --max-restarts
 * there: retires hosts, and waits for none of them. */
enum job_again job_restart_as(struct job *j, struct plan *plan, const struct job_next *next);
/* The next attempt cannot begin: records as the cause a node lost meanwhile, else @text. */
void job_unreachable(struct job *j, const char *text);
/* Asks the nodes of the attempt about their GPUs, and, unless @path is "", all nodes with an agent
 * about its file system. Waits for some seconds at most. Fills @facts, zeros before, by node. After
 * job_wait(). */
void job_ask_facts(struct job *j, const char *path, struct node_facts *facts);
/* What the variables of a program say about the binding of its ranks. */
struct job_bind_wish {
        uint32_t threads; /* OMP_NUM_THREADS; 0 = not set */
        bool own_devices; /* a variable of ROCm renumbers the GPUs */
};

/* Asks the nodes how they would bind the ranks of @plan, for some seconds at most, and fills in
 * plan_inventory.bindings. @wishes: by program. */
void job_ask_bindings(struct job *j, const struct plan *plan, const struct job_bind_wish *wishes,
                      struct plan_inventory *inventory);
/* Asks each node that is READY and has no @answers with @order for its state (`hnlaunch check`),
 * and with its @names, by node (NULL = none), and appends the facts to @answers, by node. Waits for
 * some seconds at most: what a node has not told by then is missing. JOB_DONE or JOB_INTERRUPTED.
 * After job_connect(). */
enum job_step job_check(struct job *j, const struct check_order *order,
                        const struct check_names *names, struct checked *answers);
/* Has each READY node list or remove staged folders, and fills @answers, by node; .v is NULL
 * without an answer within minutes. JOB_DONE or JOB_INTERRUPTED. After job_connect(). */
enum job_step job_stage(struct job *j, const struct stage_order *order, struct staged *answers);
/* Asks again as long as GPUs of nodes with an agent hold memory of the attempt, for a minute at
 * most. Nodes that hold some still have .held in @facts, which job_ask_facts() has filled. Nodes in
 * @retired do not count. An order to end ends the wait: job_may_restart() is false then. */
void job_await_memory(struct job *j, const struct intlist *retired, struct node_facts *facts);
/* If the cause is a rank that crashed: waits for what its node finds in the core file, for some
 * seconds at most. A signal ends the wait. */
void job_read_core(struct job *j);
/* Asks the nodes of the attempt for the traces of their ranks (config.traces). The second form also
 * waits until they are there, for some seconds at most; a signal ends the wait. */
void job_ask_traces(struct job *j);
void job_fetch_traces(struct job *j);
/* Brings the files of --pull home from the nodes of the last attempt. A signal ends it. */
void job_pull(struct job *j);
/* The agents leave. */
void job_leave(struct job *j);

/* Orders of the user from elsewhere, at any time until job_destroy(): to stop the ranks, with the
 * grace time of the options (@grace_ms -1) or another, by process @pid (0 = unknown). */
void job_order_stop(struct job *j, int64_t grace_ms, int pid);
/* The same to send a signal, to all ranks or to those of @n spans: the sentence of a rank that ends
 * of it says so. @role: what these are called; NULL = all ranks. */
void job_order_signal(struct job *j, int signo, const char *role, const struct role_span *spans,
                      size_t n, int pid);
/* Drains a host while its ranks run: they have @in_ms to save and end, then the next attempt begins
 * without it. A spare host is not used from now on (EVENT_NODE_DRAINED tells of it). @by, for
 * people, has ordered it. A second order can only shorten the time. -errno
 * with @err, the end of a sentence about the run. */
int job_drain_host(struct job *j, size_t node, int64_t in_ms, const char *by, struct error *err);
/* Whether SIGTERM or a drain has ended the last attempt, and each rank had saved: has exited with
 * 0, or called hn_drained(). */
bool job_saved(const struct job *j);
/* Returns what has ordered that the host is drained in this attempt; NULL = it is not. */
const char *job_drained_by(const struct job *j, size_t node);
void job_show_status(struct job *j); /* as Ctrl-\ */
/* A line of output has told a step of the rank (--progress-re). While the ranks run. */
void job_line_step(struct job *j, int rank, int64_t step, int64_t total);
/* Lends the ranks the stream socket @fd as standard input, as stdin_pump_lend() (stdin_pump.h), and
 * sends them the end of it. */
int job_lend_stdin(struct job *j, int fd, struct error *err);
void job_end_stdin(struct job *j);
/* The terminal of the rank with --pty has another size. */
void job_resize(struct job *j, const struct launch_terminal *to);
void job_release_output(struct job *j); /* printer_release() */
/* Asks for the table of all ranks, as job_status_take_table(). */
bool job_take_table(struct job *j, void (*take)(void *ctx, const struct rank_table *t), void *ctx);
/* Orders a closer look at ranks of a node, whose answers are for config.why. The numbers of
 * orders must not fall. False: no ranks run there. */
bool job_inspect(struct job *j, size_t node, const struct inspect_order *o);
/* Orders samples every @interval_ms milliseconds of all nodes that run ranks, now and in later
 * attempts, for config.samples; 0 = no more. */
void job_sample(struct job *j, uint32_t interval_ms);
/* A look that a user has asked for begins. */
void job_begin_look(struct job *j);
/* A look has found a hang in @worlds; @tell: one begun by config.why.quiet(). False: a rank there
 * has done something meanwhile, or the hang is told already. */
bool job_still_hangs(struct job *j, const struct intlist *worlds, bool tell);
/* Returns how a look takes the ranks of a world. @unasked: one begun by config.why.quiet(). */
enum why_share job_look_share(const struct job *j, int world, bool unasked);
/* A look has found a hang, or which rank the others have missed: .brief names it in the reason for
 * which the ranks are being stopped, or will be while the hang stands. */
void job_blame(struct job *j, const struct why_finding *f);
/* Follows it: emits EVENT_HANG, and ends the attempt as --on-hang says. */
void job_hangs(struct job *j);
/* Ranks were ordered to dump (@on), or the look is over: output in between is no sign of life. */
void job_dumping(struct job *j, bool on);
/* Returns the roles that wait for others, as job_roles_describe_waits(). */
json_t *job_describe_waits(const struct job *j);
/* Returns for how long the ranks have shown no sign of life in a hang that was found, in
 * milliseconds; 0 = no hang stands. */
int64_t job_hang_ms(const struct job *j);
/* Returns the text of job_blame() while a hang that was found stands, lent, with its rank; NULL =
 * none. */
const char *job_hang_cause(const struct job *j, int *ret_rank);
/* Finds the rank that has told why it fails at the end of its output, and has not ended; of several
 * the first. Writes "rank 1 on gpu001 has not ended after ValueError: ..." and returns the rank; -1
 * = none. */
int job_find_told(struct job *j, char *to, size_t size);
void job_end_look(struct job *j); /* stops the ranks, after the look of config.why.last() */
size_t job_silent_nodes(const struct job *j);
const char *job_doing(const struct job *j); /* "connecting", "running", "stopping", "ending" */
uv_loop_t *job_loop(struct job *j);

const struct outcome *job_outcome(const struct job *j);
/* What job_read_core() has found. */
const struct core_found *job_core(const struct job *j);
/* How the attempts before the last ended, a sentence each. */
const struct strv *job_earlier(const struct job *j);
/* Moves the message of a job ended by missing ranks (CAUSE_JOIN) to the end of @to. */
void job_last_diags(struct job *j, struct diags *to);
/* Writes the source of the order @c: its signal, or hnlaunch stop. */
void job_order_name(const struct job *j, const struct cause *c, char *to, size_t size);
/* Returns when the cause came, in microseconds since the start of hnlaunch; now if unknown. A node
 * is lost when its silence has lasted too long, not when it began. */
int64_t job_cause_us(const struct job *j, const struct cause *c);
/* outcome_sentence() with the name of the node. */
void job_sentence(const struct job *j, const struct cause *c, char *to, size_t size);
/* Whether `hnlaunch signal` has sent the signal of which a rank has ended. */
bool job_has_sent(const struct job *j, const struct cause *c);
/* The newest lines of a rank's stream (MSG_STDERR); malloc'ed. */
char *job_last_words(const struct job *j, int rank, uint8_t stream);
bool job_shows(const struct job *j, int rank, uint8_t stream, size_t lines); /* printer_shows() */
/* Dumps of the last attempt (head/output/dump_files.h); NULL = nothing was launched. */
const struct dump_files *job_dump_files(const struct job *j);
size_t job_lost_bytes(const struct job *j); /* of output missing in the run directory */
/* Counts the bytes of ranks, added to @ranks, that stdout and stderr did not get: their readers
 * were too slow when the job was told to end at once. */
size_t job_unwritten_bytes(const struct job *j, struct intlist *ranks);
size_t job_allowed_ranks(const struct job *j); /* that have failed as they may */
bool job_logs_failed(const struct job *j);     /* or could not be opened */
/* Returns the errno with which output for @stream was lost; 0 = it was not. */
int job_stream_error(const struct job *j, uint8_t stream);
/* The signal that ended the grace time before its end; 0 = none. */
int job_hurry_signal(const struct job *j);
bool job_hurried(const struct job *j); /* ended at once: output may still be stuck */

/* Closes every link. Not while job_hurried(): a thread may be writing. NULL is fine. */
void job_destroy(struct job *j);
