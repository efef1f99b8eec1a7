/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options: command line and configuration -> a constant struct
 *
 * struct options mirrors the table of options (head/options/option_table.h), which frees its texts
 * and lists. Precedence: built in <
 * configuration files < job file < variables HNLAUNCH_* < command line (head/options/config.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/strv.h"
#include "head/hosts/hosts.h"
#include "head/model/plan.h"
#include "head/term/diag.h"
#include "wire/env/container_order.h"

enum command {
        COMMAND_RUN,
        COMMAND_PLAN,
        COMMAND_CHECK,
        COMMAND_PS,
        COMMAND_STOP,
        COMMAND_SIGNAL,
        COMMAND_DRAIN,
        COMMAND_WAIT,
        COMMAND_ATTACH,
        COMMAND_RERUN,
        COMMAND_LOGS,
        COMMAND_WHY,
        COMMAND_REPORT,
        COMMAND_TOP,
        COMMAND_BAD,
        COMMAND_HOSTS,
        COMMAND_TRUST,
        COMMAND_HOLD,
        COMMAND_RELEASE,
        COMMAND_STAGE,
        COMMAND_CONFIG,
        COMMAND_EXPLAIN,
        COMMAND_HELP,
        COMMAND_VERSION,
};
enum label_mode { LABEL_AUTO, LABEL_NONE, LABEL_TEMPLATE };
enum tristate { AUTO, YES, NO };
/* No rank has a terminal, or the first of --ranks, else rank 0. */
enum { PTY_NONE = -1, PTY_FIRST = -2 };

enum stdin_mode { STDIN_AUTO, STDIN_NONE, STDIN_RANK0, STDIN_ALL, STDIN_FILE };
enum store_listen { STORE_LISTEN_NETWORK, STORE_LISTEN_LOOPBACK, STORE_LISTEN_NONE };
enum on_failure { FAILURE_STOP, FAILURE_CONTINUE };
enum on_hang { HANG_REPORT, HANG_STOP, HANG_RESTART };
enum on_hup { HUP_STOP, HUP_DETACH };
enum success { SUCCESS_ALL, SUCCESS_RANK0 };
/* What is asked of the nodes before the ranks start: nothing, their state, also the files of the
 * program and the connections between the nodes, also what these carry. */
enum preflight { PREFLIGHT_NONE, PREFLIGHT_NODES, PREFLIGHT_FILES, PREFLIGHT_PAIRS };
enum on_bad_node { BAD_NODE_SPARE, BAD_NODE_DROP, BAD_NODE_STOP };
enum progress_mode { PROGRESS_AUTO, PROGRESS_TTY, PROGRESS_PLAIN, PROGRESS_NONE };

enum { RESTARTS_MAX = 1000000 }; /* --max-restarts */
enum { DURATION_NEVER = -1 };    /* of the *_ms fields */

struct plan_role;
struct settings;   /* head/options/config.h */
struct multi_prog; /* head/options/multi_prog.h */

/* Of COMMAND_LOGS. */
enum { LOGS_ALL = 0, LOGS_FAILURE = -1 };

struct log_options {
        bool follow, only_stderr;
        char *pattern;     /* extended regular expression; NULL = every line */
        int64_t since_ms;  /* only lines of so much time; 0 = all */
        int64_t around_us; /* only lines of about this time of the run; LOGS_ALL, LOGS_FAILURE */
        int tail;          /* only so many lines at the end; 0 = all */
};

struct restart_options {
        bool automatic;        /* --restart auto */
        int give_up;           /* exit code */
        int no_progress;       /* attempts */
        char *progress_file;   /* pattern of glob(7); NULL = none */
        char *bad_hosts;       /* file, or "none"; NULL = that of the state folder */
        struct strv leave_out; /* names of hosts that are bad in this run, run.leave_out */
};

/* Of COMMAND_HOSTS and COMMAND_TRUST. */
struct list_options {
        bool expand;               /* a name in each line */
        bool unite, minus, common; /* what is done with several lists; none = unite */
        bool yes;                  /* trust --yes */
};

struct drain_options {
        int signal;       /* --drain-signal; 0 = none */
        int requeue_exit; /* exit code; 0 = none */
        int64_t in_ms;    /* drain --in */
        int64_t time_ms;  /* of the ranks of a host whose agent gets SIGTERM */
};

enum { ORDER_HOSTS, ORDER_TOPOLOGY };

/* Files that are brought to the nodes and stay there, and what `hnlaunch stage` does. */
struct stage_options {
        char *venv;        /* virtual environment of the ranks; NULL = none */
        struct strv paths; /* --stage, or the words of the command */
        int64_t keep;      /* bytes that may stay on a node */
        bool list, remove; /* --list, --gc */
        int64_t unused_ms; /* --unused; 0 = any age */
};

struct options {
        enum command command;
        bool run_given;     /* the program may have any name: `run` precedes it, or a job file
                             * has it */
        bool program_first; /* the first word is the program: neither command nor option */
        struct settings *settings; /* all values with origins, for COMMAND_CONFIG */
        /* where */
        struct strv hostfiles; /* -H, in order */
        struct strv hostlists; /* -w, in order */
        bool local;
        int local_n; /* --local[=N] or --local N; 0 = GPUs, else CPU cores */
        struct strv include, exclude;
        unsigned from;  /* enum alloc_from of head/alloc/alloc.h */
        int nodes;      /* 0 = all */
        int nodes_min;  /* MIN of --nodes MIN:MAX; 0 = not given */
        int min_nodes;  /* --min-nodes; 0 = not given */
        unsigned order; /* of the nodes */
        int segment;    /* nodes that lie within one domain; 0 = none */
        char *topology; /* file; NULL = Slurm's */
        int spares;     /* SPARES_AUTO; 0 = none but those of the hostfile */
        enum preflight preflight;
        enum on_bad_node on_bad_node;
        char *dial_in; /* HOST:PORT of node 0, or "auto"; NULL = no dial-in */
        int node_rank;
        char *dial_secret; /* file, or "none"; NULL = dial_secret_find() looks for one */
        int64_t dial_timeout_ms;
        struct plan_options plan;
        bool gpu_visibility_own;
        /* environment and files */
        struct strv exports; /* -x: NAME, GLOB*, or NAME=VALUE, in order */
        char *export_mode;   /* --export: NULL = all, else a list (export_env_split()) */
        struct strv env_files, unset;
        unsigned compat;      /* enum compat_family of wire/msg.h */
        bool subst;           /* replace the place-holders in argv */
        char *local_rank_arg; /* option to append with =N: "--local_rank"; NULL = none */
        char *chdir;          /* NULL = this directory */
        struct strv push;     /* files and folders for the nodes, in order */
        bool keep;            /* ... and keep after the job */
        struct stage_options staged;
        struct strv pull; /* PATH[:DEST]: brought home at the end */
        enum stdin_mode stdin_mode;
        char *stdin_file;                 /* of STDIN_FILE: rank 0 reads it */
        int pty_rank;                     /* --pty; PTY_NONE, PTY_FIRST */
        unsigned mpi;                     /* enum mpi_kind of wire/msg.h */
        struct container_order container; /* without a folder */
        struct strv wrap;                 /* words in front of the program */
        char *bind;                       /* wire/bind_policy.h; NULL = auto */
        bool near_nic;                    /* --nic */
        /* when: milliseconds */
        int64_t connect_timeout_ms, connect_retry_ms, start_timeout_ms, timeout_ms, grace_ms,
                wait_warn_ms, hang_after_ms;
        bool start_timeout_given, fold_given; /* not the built-in value */
        enum on_failure on_failure;
        enum on_hang on_hang;
        enum on_hup on_hup;
        bool detach;
        enum success success;
        int max_restarts; /* with --restart auto and without --max-restarts the highest number */
        struct restart_options restart;
        struct drain_options drain;
        int64_t node_timeout_ms;
        unsigned contain; /* enum contain_level of wire/msg.h */
        /* ssh */
        char *via; /* NULL = "auto"; head/nodes/program_link.h */
        char *user, *jump, *ssh_config, *ssh_command;
        struct strv identities;
        int port, fanout;
        int tree;          /* nodes that the head and each node open ssh to; 0 = the head to all */
        bool tree_forward; /* nodes log in to nodes with the user's ssh-agent, not their own keys */
        bool accept_new;
        struct {
                char *which;     /* "auto", "none" or an id */
                int64_t idle_ms; /* of COMMAND_HOLD */
                char *warm;      /* of COMMAND_HOLD: WORD:MODULE,...; NULL = none */
        } hold;
        /* network */
        char *iface;
        enum store_listen store_listen;
        int64_t store_size;    /* bytes */
        bool store_peers_node; /* the store admits every user of the job's nodes */
        char *metrics; /* where they are served, head/metrics/metrics_server.h; NULL = nowhere */
        /* output */
        bool raw;
        bool timestamps, fold; /* of logs, too */
        enum label_mode label;
        char *label_template;
        char *show;      /* NULL = all; "all", "0", or rank list */
        char *log_dir;   /* NULL = the user's state folder, "none" = none */
        int log_keep;    /* runs in the state folder */
        bool record;     /* keep what the agents have recorded, also without a failure */
        char *json_file; /* of @json: NULL = standard output */
        enum tristate color;
        enum progress_mode progress;
        char *progress_re; /* has a step of lines of output as group; NULL = none */
        bool quiet, json, strict_config;
        int verbose;
        bool without_bad;      /* rerun --without-bad */
        char *html;            /* report --html: the file, "-" = standard output; NULL = text */
        bool probe;            /* plan --probe, hosts --probe */
        bool strict;           /* check --strict: warnings are failures */
        char *check_run;       /* check --run: a command for sh -c on each node; NULL = none */
        char *check_profile;   /* check --profile: a file; NULL = none */
        bool pairs;            /* check --pairs: measure between the nodes */
        char *save, *baseline; /* check --save, --baseline: a file; NULL = none */
        struct list_options list;
        struct intlist ranks; /* --ranks of run, plan, logs and rerun */
        char *of_role;        /* --role NAME[:N] of commands for a run; NULL = all */
        struct log_options logs;
        struct {
                bool all, watch; /* @all: of release, too */
        } ps;
        char *agent;      /* --agent FILE, hidden: another agent binary */
        char *help_topic; /* COMMAND_HELP: NULL = short, "all", "hostfile", ... */
        struct strv argv; /* the program and its arguments; words of another command */
        /* The programs behind argv, in one world (program_options.h). plan.np counts the
         * ranks of all, 0 = all slots. */
        struct program_options *more;
        size_t n_more;
        struct program_options *first; /* of argv, in a line with --role; else NULL */
        struct strv main_roles;
        int64_t linger_ms;
        bool multi_prog;          /* argv was a file with the programs */
        struct multi_prog *multi; /* of that file; else NULL */
        int first_np;             /* ranks of argv when there are others, as program_options.np */
        struct strv line;         /* the whole command line without the first word */
        size_t line_argv; /* how many words at its end are programs, their arguments, and options
                             between */
};

/* Reads configuration and command line, and checks that the command has its hosts and its program
 * (plan needs no program). 0, or -EINVAL with entries in @diags (exit 64 or 78).
 * Warnings may be in @diags in both cases. @o needs no initialisation and must be given to
 * options_finish() in both cases. */
int options_load(struct options *o, int argc, char **argv, struct diags *diags);
void options_finish(struct options *o);
/* Returns how many nodes are enough to start, 0 = no less than all (--min-nodes, --nodes MIN:MAX).
 */
int options_min_nodes(const struct options *o);
/* Whether nodes that fail before the ranks start are replaced or left out: that, or --spares. */
bool options_replace_nodes(const struct options *o);
/* Whether files are brought to the nodes before the ranks start. */
bool options_bring_files(const struct options *o);
/* Returns the name of the option of a run that @word is, "timeout" of "--timeout=5", malloc'ed;
 * NULL = it is none. */
char *options_name_of_run(const char *word);

/* COMMAND_HELP and COMMAND_VERSION. @topic NULL is the screen of -h, which goes to @to; all others
 * go to stdout: "all" is every option of a run, else hostfile, env, exit or config, a command, or
 * an option. The other commands that print: config_print() of head/options/config.h and
 * explain_print() of head/options/explain.h. */
void options_print_help(const char *topic, FILE *to);
bool options_have_help(const char *topic);
/* Returns the next step after a topic that does not exist, malloc'ed, or NULL. */
char *options_suggest_help(const char *topic);
void options_print_version(void);

/* --- programs and roles of the line (program_options.h) --- */

/* Returns the words of program @i, 0 = the first; lent. */
const struct strv *options_argv(const struct options *o, size_t i);
/* Returns how many roles the line has. */
size_t options_count_roles(const struct options *o);
/* Returns role @i, lent. */
const struct plan_role *options_role(const struct options *o, size_t i);
/* Whether the processes of program @i start ranks of their own, one on each node (--per-node). */
bool options_is_per_node(const struct options *o, size_t i);
/* Whether --bind divides the cores of a node between the ranks of program @i and others. */
bool options_divides_cores(const struct options *o, size_t i);
/* Whether a word behind the first program, by its place in options.line, is the value of an -x. */
bool options_is_env_word(const struct options *o, size_t word);
