/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a launch and the steps of its files
 *
 * - launch.c: the order of steps: hosts, files, connect, plan, attempts
 * - launch_bad_hosts.c: hosts that earlier runs have put out (launch_bad_hosts.h)
 * - launch_order.c: the order of the nodes (launch_order.h)
 * - launch_hosts.c: the hosts, and what starts their agents (--start-with)
 * - launch_plan.c: the plan, and the MPI of the program (--mpi)
 * - mpi_search.c: which MPI a program has, read from its files (mpi_search.h)
 * - launch_connect.c: the nodes: connecting, inventories
 * - launch_probe.c: `hnlaunch hosts --probe`
 * - launch_check.c: `hnlaunch check`
 * - launch_gpus.c: lists of devices that the user gives the ranks
 * - launch_attempts.c: the attempts: files, endpoint, job
 * - launch_restart.c: what follows an attempt (launch_restart.h)
 * - launch_setup.c: the meaning of options on this terminal, in this directory, for this world size
 * - launch_preflight.c: --preflight (launch_preflight.h)
 * - launch_spares.c: other hosts in place of nodes that fail before the start (launch_spares.h)
 * - launch_programs.c: the programs of the job
 * - launch_files.c: files that are brought to the nodes
 * - launch_stage.c: hnlaunch stage
 * - launch_roles.c: the address book of the roles
 * - launch_pty.c: the terminal of a rank (--pty)
 * - other_node.c: --dial-in on other nodes than node 0
 * - launch_hold.c: `hnlaunch hold`, and a run on a hold (--hold)
 * - records.c: records of the run
 * - detach.c: a run without its terminal (--detach, --on-hup)
 * - verdict.c: messages, the verdict, the exit code
 *
 * Each step returns 0, or ends the launch with messages (diags) and an exit code (decision D16).
 * Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"
#include "head/alloc/alloc.h"
#include "head/job/job.h"
#include "head/model/plan.h"
#include "head/model/rank_board.h"
#include "head/options/options.h"
#include "head/output/run_dir.h"
#include "head/push/manifest.h"
#include "head/run/run_socket.h"
#include "head/watch/run_view.h"
#include "head/watch/watchers.h"

struct check_node;
struct checked;
struct detach;
struct job_peers;
struct launch_preflight;
struct launch_restart;

/* The standard streams of hnlaunch. */
struct launch_streams {
        bool *shown;            /* by rank: shown on the terminal; NULL = all */
        int stdin_fd;           /* standard input of the ranks, -1 = nothing, or JOB_STDIN_LATER */
        struct detach *detach;  /* NULL = hnlaunch ends with its terminal */
        struct launch_pty *pty; /* NULL = no --pty */
        char *label;            /* --label with references to roles replaced; NULL = as given */
};

/* Warnings that are told once. */
enum {
        TOLD_BAD_FILE = 1, /* the list of bad hosts cannot be read or written */
        TOLD_ROLES = 2,    /* HN_ROLES is not set */
        TOLD_MPI = 4,      /* HN_LONE_WORLDS, HN_TWO_MPIS */
        TOLD_DEVICES = 8,  /* HN_FEW_DEVICES */
};

/* How a launch ends. */
struct launch_end {
        const char *where; /* the only hostfile, for messages about its errors; else NULL */
        bool started;      /* the first attempt is prepared */
        bool record_told;  /* that files of --log-dir are incomplete */
        unsigned told;     /* TOLD_* */
        struct launch_restart *restart;     /* NULL = no --restart auto */
        struct launch_preflight *preflight; /* NULL = nothing was asked */
        char verdict[1024];
};

/* The state of a launch, all of launch.c. */
struct launch {
        struct options *o; /* of the caller */
        struct hosts hosts;
        struct diags diags;
        struct plan plan;
        struct plan_inventory *inventory;
        struct strv env, unset;
        struct events events;
        struct agent_binaries agent_binaries;
        struct manifest *manifests; /* by enum push_use */
        struct launch_streams streams;
        char *here; /* the current directory, which --push starts from */
        char *cwd;  /* the working directory of the ranks */
        char *agent;
        struct job_program *programs; /* owned, with env and cwd */
        size_t n_programs;
        char mpi[64]; /* of a program that has several ranks; "" = none known */
        struct job_config *config;
        struct run_view *run; /* ranks, job, dir, progress and socket are owned */
        struct launch_end end;
};

/* --- launch_files.c --- */

/* Lists and hashes the files of --push, --stage and --venv, and sets the variables that lead the
 * ranks to them. Returns 0, or the exit code. */
int launch_pack_files(struct launch *l);
/* Brings them to the nodes: to those with ranks, or, without a plan, to all. As job_push(). */
enum job_step launch_bring_files(struct launch *l, const struct plan *plan, struct error *err);
/* Ends the launch: launch_bring_files() has not ended with JOB_DONE. Returns the exit code. */
int launch_refuse_files(struct launch *l, enum job_step step, const struct error *err);
/* Both, for all nodes. Returns 0, or the exit code. */
int launch_place_files(struct launch *l);

/* --- launch_stage.c --- */

int launch_stage(struct launch *l); /* `hnlaunch stage`; returns the exit code */

/* --- launch_hosts.c --- */

/* Returns 0, or the exit code with messages in diags. */
int launch_hosts_load(struct launch *l);
/* Checks --start-with other than ssh: the text, the program, and the hosts. Errors and warnings are
 * in diags. */
void launch_hosts_via_check(struct launch *l);

/* Makes the plan once more for other nodes, and everything that follows from the plan. Returns 0,
 * or the exit code. launch.c. */
int launch_plan_again(struct launch *l);

/* --- launch_plan.c --- */

/* Plans with the inventory, if there is one, else with the hostfile alone, and finds the MPI of the
 * program. Returns 0, or the exit code. */
int launch_plan_make(struct launch *l);
int launch_plan_print(struct launch *l); /* `hnlaunch plan`; returns the exit code */

/* --- launch_probe.c --- */

/* Writes a hostfile of the hosts that answer; returns the exit code. */
int launch_probe_hosts(struct launch *l);

/* --- launch_check.c --- */

int launch_check(struct launch *l); /* `hnlaunch check`; returns the exit code */
/* Asks the nodes without facts for those of the machine, and for the @files of the programs. Adds
 * to @facts, by node. JOB_DONE or JOB_INTERRUPTED. */
enum job_step launch_check_ask(struct launch *l, struct checked *facts, bool files);
/* job_peers_find(), with NCCL where @facts tell of it on each node. */
enum job_step launch_check_peers(const struct launch *l, struct checked *facts, bool measure,
                                 const json_t *base, struct job_peers *to);
/* Returns the program whose files the fact is about: "script.2"; -1 = none. */
int launch_check_program(const char *fact);
/* Returns the nodes for check_judge(), malloc'ed; they borrow @facts. */
struct check_node *launch_check_describe(const struct launch *l, struct checked *facts);

/* --- launch_connect.c --- */

/* Whether any node is reached from here: neither on this machine, nor dialing in. */
bool launch_any_remote(const struct launch *l);
/* Connects all nodes, waits for their agents and takes the inventories. Returns 0, or the exit
 * code. */
int launch_connect(struct launch *l);
/* Hands the inventories of the agents to the planner. */
void launch_take_inventory(struct launch *l);
/* Refuses two nodes on the same machine, which would use every GPU twice. Returns 0, or the exit
 * code. */
int launch_check_machines(struct launch *l);
/* Adds the nodes that cannot be reached to the messages. */
void launch_report_nodes(struct launch *l);
/* Ends the launch: there was an order to end (JOB_INTERRUPTED), or nodes were lost. Returns the
 * exit code. */
int launch_end_early(struct launch *l, enum job_step step);

/* --- launch_gpus.c --- */

/* Sets the GPUs of the inventories, empty before: the GPUs of HELLO, or the part named by
 * CUDA_VISIBLE_DEVICES of the ranks. */
void launch_gpus_choose(struct launch *l);
/* Returns inventories with the GPUs named by CUDA_VISIBLE_DEVICES of the ranks, for a plan without
 * --probe; NULL = not set here. */
struct plan_inventory *launch_gpus_guess(const struct launch *l);
void launch_gpus_free(struct plan_inventory *inv, size_t n); /* of all hosts */
/* Warns of more ranks on a node than a list of devices names. After the plan. */
void launch_gpus_check(struct launch *l);

/* --- launch_attempts.c --- */

/* Runs the first attempt and each restart. Returns the exit code; the verdict has been told. */
int launch_run_attempts(struct launch *l);

/* --- launch_programs.c --- */

/* Lists the programs, with ./train.bin in place of `train.bin` when PATH has none and the file
 * exists in their directory, unless the ranks are in containers. After launch_setup_find_cwd(). */
void launch_programs_find(struct launch *l);
/* Sets their variables, and their places among pushed files. After launch_pack_files(). */
void launch_programs_prepare(struct launch *l);
/* Gives the ranks of the plan to the programs. Returns 0, or the exit code: no slot is left for
 * one. */
int launch_programs_share(struct launch *l);
void launch_programs_free(struct launch *l);

/* --- launch_roles.c --- */

/* Creates the book of the roles, if there are any, and reads all texts that may refer to them.
 * Returns 0, or the exit code. */
int launch_roles_scan(struct launch *l);
/* Checks that each port that --ready asks by its name is reserved. After launch_programs_prepare().
 * Returns 0, or the exit code. */
int launch_roles_check_ready(struct launch *l);
/* Replaces the references for an attempt, whose addresses and ports are known. */
void launch_roles_fill(struct launch *l);
/* Enters the instances of a plan into the book, as far as they are known: for `hnlaunch plan`. */
void launch_roles_guess(struct launch *l);

/* --- launch_pty.c --- */

/* Returns 0, or the exit code: --pty without a terminal on standard input. */
int launch_pty_open(struct launch *l);
/* The same for a rank outside the job. After the plan. */
int launch_pty_choose_rank(struct launch *l);
int launch_pty_check_rank(struct launch *l); /* again, of another plan */
int launch_pty_rank(const struct launch *l); /* -1 = none has a terminal */
/* Returns the terminal's part of the order to start. */
struct launch_terminal launch_pty_describe(const struct launch *l);
void launch_pty_close(struct launch *l); /* gives the terminal back; let the loop turn once more */
void launch_pty_free(struct launch *l);

/* --- records.c --- */

/* Opens the records of the run. 0, or the exit code. */
int records_begin(struct launch *l);
/* With --detach: waits until run.json is written, since the output will be nowhere else. 0, or the
 * exit code. */
int records_prove(struct launch *l);
/* Keeps output of a rank, and hands it to the watchers; @ctx is the launch. False = no room for
 * more. */
bool records_put_output(void *ctx, int rank, uint8_t stream, const void *data, size_t len);
/* Begins to write the records: the ranks have been ordered to start. */
void records_open(struct launch *l);
/* Waits for the records, and answers the clients that wait for the end. */
void records_end(struct launch *l, int code);

/* --- detach.c --- */

/* Prepares for --detach and --on-hup. True = the user's own process is done: the run goes on in a
 * child or could not be launched, and *ret_code is the exit code. */
bool detach_begin(struct launch *l, int *ret_code);
/* The recorder has no room. True: the output waits, and goes on when there is room or a limit of
 * time is over. False: a run with a terminal does not wait. */
bool detach_waits_for_room(struct launch *l);
/* The records have been opened. */
void detach_records(struct launch *l);
/* The agents of a hold are ready: tells so, and leaves the terminal. */
void detach_hold(struct launch *l);
/* Before job_destroy(). */
void detach_finish(struct launch *l);

/* --- launch_hold.c --- */

/* `hnlaunch hold`: connects the nodes, and keeps agents there. Returns the exit code. */
int launch_hold(struct launch *l);
/* Takes the agents of a hold for the run, l->config.remote, if there is one that fits (--hold).
 * Returns 0, also without one, or the exit code. */
int launch_hold_take(struct launch *l);

/* --- launch_setup.c --- */

/* Whether the terminal of $TERM moves its cursor. */
bool launch_setup_understands_escapes(void);
/* Sets here and cwd. 0, or the exit code: the current directory is gone, but needed. */
int launch_setup_find_cwd(struct launch *l);
/* Sets l->config.container, entered by agents before the start of ranks (--container). After
 * launch_setup_find_cwd(). */
void launch_setup_container(struct launch *l);
/* Has the job keep a free TCP port of rank 0's node for the ranks, which find its number in
 * HN_PORT_@name. Before the nodes are connected. @name: see wire/port_name.h. -E2BIG: the job has
 * PORT_NAMES_MAX ports. */
int launch_setup_need_port(struct launch *l, const char *name);
/* Has the job keep a port for each {port:NAME} in the arguments and in the label, and tells with -v
 * which arguments have place-holders. 0, or the exit code: a name is not valid (HN411). */
int launch_setup_find_ports(struct launch *l);
/* Checks the files and programs of ssh options. -ENOENT: a required file is missing; diags tell
 * which, with the exit code. */
int launch_setup_check_ssh(struct launch *l);
/* Checks that the variables of --compat fit. After the plan. 0, or the exit code. */
int launch_setup_check_compat(struct launch *l);
/* Chooses the ranks shown on the terminal (--show), or checks the ranks of plan --ranks. 0, or the
 * exit code: a rank does not exist. */
int launch_setup_choose_shown(struct launch *l);
int launch_setup_check_ranks(struct launch *l);
/* Has the ranks that --ranks leaves out exit with 0 in place of the program. Returns as above. */
int launch_setup_choose_ranks(struct launch *l);
/* Returns the template of the prefix, lent; NULL = no prefix. */
const char *launch_setup_choose_label(const struct launch *l);
/* Whether equal lines of several ranks are printed once. */
bool launch_setup_folds(const struct launch *l);
/* Gives ranks the width (COLUMNS) and colours (FORCE_COLOR) of the terminal that shows their
 * output, as the ranks themselves see a pipe. */
void launch_setup_describe_terminal(struct launch *l);
/* Opens the standard input of the ranks. -errno with @err: the file of --stdin cannot be read. */
int launch_setup_choose_stdin(struct launch *l, struct error *err);
/* Returns the rank with standard input: the first with the program; -1 = every rank. */
int launch_setup_stdin_rank(const struct options *o);
int launch_setup_first_rank(const struct options *o); /* of --ranks, else 0 */

/* --- other_node.c --- */

/* Finds the place of this node (--dial-in). True: the launch is over, with an error or because this
 * is not node 0 and the job has ended; *ret_code is the exit code. */
bool other_node_dial_in(struct launch *l, int *ret_code);

/* --- verdict.c --- */

/* Writes the last line of the launch, cut to its room, with "  (exit @code)" behind it. */
void verdict_write(struct launch *l, int code, const char *fmt, ...) PRINTF(3, 4);
void verdict_say(struct launch *l); /* prints and empties diags */
/* Closes standard output. Returns @code, or, if @code is 0 and the output could not be written, 73
 * (141 for a closed pipe). */
int verdict_close_stdout(struct launch *l, int code);
/* Ends a launch before any start: tells why, and returns the exit code of the first error, else
 * @code. The second form adds an error first. */
int verdict_nothing_started(struct launch *l, int code);
int verdict_nothing_because(struct launch *l, int id, int code, const struct error *err);
/* Ends a launch after the job: messages, summary, verdict. Returns the exit code. */
int verdict_tell(struct launch *l);
