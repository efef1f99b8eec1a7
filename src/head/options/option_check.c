/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each check_*() tells one kind of mistake; option_check() runs them from the general to the
 * particular: pairs of options, then the program. A wrong program, such as a misspelt command, or a
 * hostfile given twice is not followed by an error about missing hosts.
 */
#include "head/options/option_check.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "head/alloc/alloc.h"
#include "head/core/program.h"
#include "head/core/ssh_agent.h"
#include "head/metrics/metrics_server.h"
#include "head/model/dial_env.h"
#include "head/model/step_lines.h"
#include "head/options/config.h"
#include "head/options/job_file_roles.h"
#include "head/options/option_table.h"
#include "head/options/program_options.h"
#include "head/options/role_conduct.h"
#include "wire/warm_msg.h"

/* Whether the command line has the option. Settings of a configuration, which are for other runs as
 * well, give way without an error. */
static bool is_on_line(const struct options *o, const char *name)
{
        return settings_level(o->settings, option_by_name(name)) == LEVEL_LINE;
}

/* Checks commands for lists of hosts. */
static void check_lists(const struct options *o, struct diags *d)
{
        bool any = o->argv.n || o->hostfiles.n || o->hostlists.n || o->from > ALLOC_NONE;

        if (o->command != COMMAND_HOSTS && o->command != COMMAND_TRUST)
                return;
        /* Without a list the hosts are those of the allocation. */
        if (!any && (o->from == ALLOC_NONE || alloc_find(environ) == ALLOC_NONE))
                diag_help(diag_add(d, HN_NO_HOSTS, EX_USAGE, "no hosts given"),
                          "name them: LIST, @FILE, -H FILE or -w LIST; or start it inside an "
                          "allocation");
        if (o->list.unite + o->list.minus + o->list.common > 1)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--union, --minus and --common exclude each other"),
                          "one of them is for all lists of the line: give the result of one "
                          "command to the next, `hnlaunch hosts --expand LIST... >FILE` and @FILE");
        if (o->list.expand && o->probe)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--probe and --expand exclude each other"),
                          "--probe writes a hostfile, with a host in each line");
}

/* Refuses options that exclude or need each other. Of the chain from --local on only the first
 * mistake is told. */
static void check_pairs(const struct options *o, struct diags *d)
{
        struct error err = { 0 };
        struct diag *diag;
        int fd;

        if (o->logs.around_us && (o->logs.follow || o->logs.since_ms))
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--around and %s exclude each other",
                                   o->logs.follow ? "--follow" : "--since"),
                          "leave one out");
        if (o->on_hang == HANG_RESTART && !o->max_restarts)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--on-hang restart needs a number of restarts"),
                          "add --max-restarts N or --restart auto, or take --on-hang stop");
        if (o->local && (o->hostfiles.n || o->hostlists.n)) {
                diag = diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                "--local and %s exclude each other", o->hostfiles.n ? "-H" : "-w");
                diag_note(diag, "--local starts the ranks on this machine without ssh; -H and -w "
                                "name the hosts to reach by ssh");
                diag_help(diag,
                          "leave one of them out; this machine in a host list is `localhost`");
        } else if (o->keep && !o->push.n && is_on_line(o, "push-keep")) {
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE, "--push-keep without --push"),
                          "--push-keep leaves pushed files on the nodes: add --push FILE");
        } else if (o->container.args.n && !o->container.kind && is_on_line(o, "container-arg")) {
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "-o run.container_arg without --container"),
                          "it is an argument for the program that makes the container: add "
                          "--container KIND:IMAGE");
        } else if (o->container.kind && o->tree) {
                diag_help(
                        diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                 "--tree and --container exclude each other"),
                        "agents in containers cannot log in to other nodes; leave one of them out");
        } else if (o->tree_forward && !o->tree && is_on_line(o, "tree-auth")) {
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "-o ssh.tree_auth without --tree"),
                          "it says how nodes log in to nodes: add --tree K");
        } else if (o->tree_forward && o->tree && o->command == COMMAND_RUN) {
                /* Tried here, since nodes would fail one after the other. */
                fd = ssh_agent_connect(&err);
                if (fd < 0)
                        diag_help(
                                diag_add(d, HN_NO_SSH_AGENT, EX_NOPERM,
                                         "-o ssh.tree_auth=forward without an ssh-agent: %s",
                                         err.text),
                                "start one: eval $(ssh-agent) && ssh-add; or -o ssh.tree_auth=own");
                else
                        fd_close(fd);
        }
}

/* Refuses what contradicts files that stay on the nodes, and `hnlaunch stage` without a task. */
static void check_staging(const struct options *o, struct diags *d)
{
        bool stages = o->argv.n || o->staged.venv;

        if (o->container.kind && (o->staged.venv || o->staged.paths.n))
                diag_help(
                        diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                 "--%s and --container exclude each other",
                                 o->staged.venv ? "venv" : "stage"),
                        "a container has a file system of its own: install the environment there, "
                        "or leave one of them out");
        if (o->command != COMMAND_STAGE)
                return;
        for (size_t i = 0; i < o->argv.n; i++)
                if (!*o->argv.v[i]) {
                        diag_help(diag_add(d, HN_OPTION_VALUE, EX_USAGE,
                                           "`stage` needs a path, and word %zu is empty", i + 1),
                                  "a variable of the shell may have no value");
                        return;
                }
        if (o->staged.unused_ms && !o->staged.remove)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--unused has no effect without --gc"),
                          "--gc --unused TIME removes what was not used for so long; --list shows "
                          "the time");
        if (o->staged.list || o->staged.remove) {
                if (stages)
                        diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                           "--%s takes neither paths nor --venv",
                                           o->staged.remove ? "gc" : "list"),
                                  "bring the files with a command of their own");
        } else if (!stages) {
                diag_help(diag_add(d, HN_COMMAND_WORDS, EX_USAGE, "`stage` needs a path"),
                          "hnlaunch stage -H hosts.txt PATH... or --venv DIR brings files to the "
                          "nodes; --list and --gc show and remove them");
        }
}

/* Refuses options that leave the output of a run without a terminal no place, or no reader. */
static void check_detach(const struct options *o, struct diags *d)
{
        bool none = o->log_dir && !strcmp(o->log_dir, "none");
        const char *name = o->detach ? "--detach" : "--on-hup detach";
        /* The first reason is told. Without records the output has no place, and JSON on standard
         * output has no reader. */
        const char *other = none                                    ? "--log-dir none"
                            : o->detach && o->json && !o->json_file ? "--json"
                            : o->detach && o->dial_in               ? "--dial-in"
                                                                    : NULL;

        if (o->command == COMMAND_RUN && (o->detach || o->on_hup == HUP_DETACH) && other)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE, "%s and %s exclude each other",
                                   name, other),
                          none         ? "hnlaunch attach reads the records: keep them"
                          : o->dial_in ? "start hnlaunch on the nodes without --detach"
                                       : "--json FILE writes the events to a file");
}

/* Refuses options that take the terminal from the rank that --pty gives it to, or start it again
 * without. */
static void check_pty(const struct options *o, struct diags *d)
{
        const char *other = o->stdin_mode != STDIN_AUTO ? "--stdin"
                            : o->detach                 ? "--detach"
                            : o->dial_in                ? "--dial-in"
                            : o->restart.automatic      ? "--restart auto"
                            : o->max_restarts           ? "--max-restarts"
                                                        : NULL;

        if (o->command == COMMAND_RUN && o->pty_rank != PTY_NONE && other)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--pty and %s exclude each other", other),
                          "leave one of them out: the terminal belongs to the rank");
}

/* Refuses spares where all nodes are given, and contradicting numbers of nodes. */
static void check_spares(const struct options *o, struct diags *d)
{
        const char *name = o->spares      ? "--spares"
                           : o->min_nodes ? "--min-nodes"
                                          : "--nodes MIN:MAX";
        /* MIN of --nodes MIN:MAX, or --min-nodes. */
        int min = options_min_nodes(o);

        if (!options_replace_nodes(o))
                return;
        if (o->local || o->dial_in)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE, "%s and %s exclude each other",
                                   o->local ? "--local" : "--dial-in", name),
                          "only nodes of a host list are replaced or left out");
        if (min && o->plan.np)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE, "-n and %s exclude each other",
                                   o->min_nodes ? "--min-nodes" : "--nodes MIN:MAX"),
                          "the number of ranks follows from the nodes: --ppn N sets the ranks of "
                          "each");
        if (o->nodes && min > o->nodes)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--min-nodes %d is more than --nodes %d", min, o->nodes),
                          "--nodes %d:%d means from %d to %d nodes", o->nodes, min, o->nodes, min);
}

/* Refuses a topology that is not used, and segments of jobs whose nodes are chosen otherwise. */
static void check_node_order(const struct options *o, struct diags *d)
{
        if (o->topology && is_on_line(o, "topology") && o->order != ORDER_TOPOLOGY)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--topology without --order topology or --segment"),
                          "add --order topology, or --segment N");
        if (o->segment && o->first)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--segment is for a job without roles"),
                          "--order topology gives the roles neighbouring nodes");
        if (o->segment && o->plan.map == PLAN_MAP_NODE)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--segment and --map node exclude each other"),
                          "neighbouring ranks are on different nodes with --map node");
}

/* Refuses --on-bad-node without anything to do. */
static void check_preflight(const struct options *o, struct diags *d)
{
        if (!is_on_line(o, "on-bad-node"))
                return;
        if (!o->preflight)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--on-bad-node without --preflight"),
                          "--preflight asks the nodes before the ranks start");
        else if (o->on_bad_node == BAD_NODE_DROP && !options_min_nodes(o))
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--on-bad-node drop without --min-nodes"),
                          "--min-nodes N, or --nodes MIN:MAX, says how few nodes are enough");
}

/* Refuses options that --dial-in leaves nothing to do. */
static void check_beside_dial_in(const struct options *o, struct diags *d)
{
        const struct {
                const char *name;
                bool given;
        } others[] = { { "-H", o->hostfiles.n },
                       { "-w", o->hostlists.n },
                       { "--local", o->local },
                       { "--include", is_on_line(o, "include") },
                       { "--exclude", is_on_line(o, "exclude") },
                       { "--tree", is_on_line(o, "tree") },
                       { "--start-with", is_on_line(o, "start-with") },
                       { "--order topology", is_on_line(o, "order") && o->order == ORDER_TOPOLOGY },
                       { "--segment", o->segment },
                       { "--scheduler", is_on_line(o, "scheduler") && o->from != ALLOC_NONE } };

        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (others[i].given)
                        diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                           "--dial-in and %s exclude each other", others[i].name),
                                  "with --dial-in the platform has chosen the nodes and started "
                                  "hnlaunch on each");
        if (o->command == COMMAND_PLAN)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--dial-in has no plan before the nodes are "
                                   "there"),
                          "give a hostfile to see a plan");
        if (o->command == COMMAND_CHECK)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--dial-in has no nodes to check before they are there"),
                          "give a hostfile to check its nodes");
}

/* Refuses options that need --dial-in. */
static void check_without_dial_in(const struct options *o, struct diags *d)
{
        static const char *const parts[] = { "node-rank", "dial-secret" };

        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                if (is_on_line(o, parts[i]))
                        diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                           "--%s without --dial-in", parts[i]),
                                  "started on every node: add --dial-in HOST:PORT, the address of "
                                  "node 0; else "
                                  "one hnlaunch starts all nodes, with -H or -w");
}

/* Refuses an expression of --progress-re that cannot find steps. */
static void check_progress_re(const struct options *o, struct diags *d)
{
        struct error err;
        int r = o->progress_re ? step_lines_check(o->progress_re, &err) : 0;

        if (r)
                diag_help(diag_add(d, r == -EDOM ? HN_ENDLESS_PATTERN : HN_BAD_PROGRESS_RE,
                                   EX_USAGE, "cannot use --progress-re '%s': %s", o->progress_re,
                                   err.text),
                          "an extended regular expression, as for grep -E, with groups around the "
                          "step and the total: 'step ([0-9]+)/([0-9]+)'");
}

/* Refuses an address of --metrics before anything is started; the port is opened later. */
static void check_metrics(const struct options *o, struct diags *d)
{
        struct metrics_address a;
        struct error err;

        if (o->metrics && metrics_address_parse(&a, o->metrics, &err) < 0)
                diag_help(diag_add(d, HN_BAD_METRICS_ADDRESS, EX_USAGE,
                                   "cannot use --metrics %s: %s", o->metrics, err.text),
                          "--metrics 9400 serves this machine only, --metrics 0.0.0.0:9400 every "
                          "machine that can reach it; port 0 is any free port");
}

/* Refuses options that contradict --per-node. One that comes from a file gives way, unless
 * --per-node comes from a file, too. */
static void check_per_node(const struct options *o, struct diags *d)
{
        static const struct {
                const char *name, *reason;
        } others[] = {
                { "ppn", "--per-node starts one process on each node" },
                { "gpus-per-rank", "the process of a node gets all GPUs of the node" },
                { "local-rank-arg", "the process of a node has no local rank" },
                { "mpi", "the process of a node is no rank of an MPI world" },
                { "store-listen", "with --per-node the program serves PyTorch's store itself" },
        };
        int level = settings_level(o->settings, option_by_name("per-node"));

        if (!o->plan.per_node)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                /* Built-in values of the options mean nothing. */
                int other = settings_level(o->settings, option_by_name(others[i].name));

                if (other > LEVEL_PRESET && other >= level)
                        diag_help(diag_add(d, HN_PER_NODE_CONFLICT, EX_USAGE,
                                           "--per-node and --%s exclude each other",
                                           others[i].name),
                                  "%s; leave one of them out", others[i].reason);
        }
        if (o->local && o->local_n > 1)
                diag_help(diag_add(d, HN_PER_NODE_CONFLICT, EX_USAGE,
                                   "--local %d with --per-node: this machine is one node",
                                   o->local_n),
                          "write --local --per-node, and let the program start its ranks");
}

/* Refuses a first word that is a command of other tools, also if a program has the name: kill is a
 * program of each machine. 0, or -EINVAL. */
static int check_foreign_command(const char *word, struct diags *d)
{
        static const struct {
                const char *word, *command;
        } commands[] = { { "kill", "stop" },          { "cancel", "stop" },
                         { "status", "ps" },          { "list", "ps" },
                         { "log", "logs" },           { "tail", "logs -f" },
                         { "restart", "rerun" },      { "rm", "stop" },
                         { "man", "help" },           { "docs", "help" },
                         { "nodes", "plan --probe" }, { "info", "plan --probe" } };

        if (!strcmp(word, "completion") || !strcmp(word, "completions")) {
                diag_help(diag_add(d, HN_UNKNOWN_COMMAND, EX_USAGE, "unknown command `%s`", word),
                          "completions are installed with hnlaunch, below its prefix:\n"
                          "share/bash-completion/completions/hnlaunch, "
                          "share/zsh/site-functions/_hnlaunch,\n"
                          "share/fish/vendor_completions.d/hnlaunch.fish");
                return -EINVAL;
        }
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
                if (strcmp(word, commands[i].word) != 0)
                        continue;
                diag_help(diag_add(d, HN_UNKNOWN_COMMAND, EX_USAGE,
                                   "unknown command `%s`; it is `hnlaunch %s`", word,
                                   commands[i].command),
                          "a program of that name is started by: hnlaunch run %s", word);
                return -EINVAL;
        }
        return 0;
}

/* Returns the command that @word may mean, or NULL. */
static const char *find_near_command(const char *word)
{
        /* Three edits are another word. */
        size_t best = 3, len = strlen(word);
        const char *near = NULL;

        for (size_t i = 0; i < option_command_count; i++) {
                const char *name = option_commands[i].name;
                size_t n = strlen(name);
                /* Every short word is close to a short command. */
                size_t limit = MIN(best, n - 1), distance;

                /* The lengths alone need more edits. */
                if (MAX(n, len) - MIN(n, len) >= limit)
                        continue;
                distance = diag_distance(word, name);
                if (distance >= limit)
                        continue;
                best = distance;
                near = name;
        }
        return near;
}

/* Whether a program, the @ret-th, has an empty name, as of "$PROGRAM" without such a variable. */
static bool has_empty_name(const struct options *o, size_t *ret)
{
        for (*ret = 0; *ret <= o->n_more; ++*ret)
                if (!*options_argv(o, *ret)->v[0])
                        return true;
        return false;
}

/* Refuses an empty name; a role of a job file has a line to show. */
static void refuse_empty_name(const struct options *o, size_t program, struct diags *d)
{
        const char *role = o->first ? options_role(o, program)->name : NULL;
        struct diag *diag =
                diag_add(d, HN_NO_PROGRAM, EX_USAGE, "the name of the program%s%s is empty",
                         role ? " of role " : "", role ? role : "");
        const struct setting *one = role ? job_file_roles_program(o->settings, role) : NULL;

        if (one) {
                setting_place(one, diag);
                diag->exit = EX_CONFIG;
        }
        diag_help(diag, "is a variable empty that should hold it?");
}

/* Refuses a missing program, and a command that is misspelt or stands behind options, unless a
 * program has the name. */
static int check_program(const struct options *o, struct diags *d)
{
        const char *word = o->argv.n ? o->argv.v[0] : "";
        /* A path is no command. */
        const char *near = strchr(word, '/') ? NULL : find_near_command(word);
        size_t empty;

        if (o->program_first && check_foreign_command(word, d) < 0)
                return -EINVAL;
        if (!o->argv.n)
                diag_help(diag_add(d, HN_NO_PROGRAM, EX_USAGE, "no program to start"),
                          o->settings->job
                                  ? "name it in [run] of the job file: program = ./a.out ARGS...\n"
                                    "or behind the options: hnlaunch --job FILE ./a.out ARGS..."
                                  : "hnlaunch -H hosts.txt ./a.out ARGS...\n"
                                    "hnlaunch --job FILE, with program = ./a.out ARGS... in [run]\n"
                                    "hnlaunch -h shows more");
        else if (has_empty_name(o, &empty))
                refuse_empty_name(o, empty, d);
        else if (o->run_given || !near || program_exists(word, o->chdir))
                /* A program of the name exists on this machine, or is asked for by `run`. */
                return 0;
        else if (o->program_first)
                diag_help(diag_add(d, HN_UNKNOWN_COMMAND, EX_USAGE,
                                   "unknown command `%s`; did you mean `%s`?", word, near),
                          "a program of that name is started by: hnlaunch run %s", word);
        else if (!strcmp(word, near))
                diag_help(diag_add(d, HN_UNKNOWN_COMMAND, EX_USAGE,
                                   "`%s` is a command, and commands come first", word),
                          "hnlaunch %s OPTIONS...; a program of that name is started by: hnlaunch "
                          "run OPTIONS... %s",
                          word, word);
        else
                return 0;
        return -EINVAL;
}

/* Returns the first argument of the program that is an option of hnlaunch for hosts, or NULL. Only
 * a note follows, as a program may have such options itself. */
static const char *stray_option(const struct options *o)
{
        static const char *const names[] = { "hostfile", "hosts", "local", "machinefile", "job" };

        for (size_t i = 1; i < o->argv.n; i++) {
                const char *word = o->argv.v[i];

                if (!strcmp(word, "-H") || !strcmp(word, "-w"))
                        return word;
                for (size_t k = 0; k < ARRAY_SIZE(names) && !strncmp(word, "--", 2); k++) {
                        size_t n = strlen(names[k]);

                        if (!strncmp(word + 2, names[k], n) && (!word[n + 2] || word[n + 2] == '='))
                                return word;
                }
        }
        return NULL;
}

/* Refuses a hostfile that is given twice, under any name. */
static int check_hostfiles(const struct options *o, struct diags *d)
{
        for (size_t i = 1; i < o->hostfiles.n; i++)
                for (size_t k = 0; k < i; k++) {
                        const char *a = o->hostfiles.v[i], *b = o->hostfiles.v[k];
                        struct stat x, y;

                        /* Another name may be a link, or a path from another folder. */
                        if (strcmp(a, b) != 0 && (stat(a, &x) < 0 || stat(b, &y) < 0 ||
                                                  x.st_dev != y.st_dev || x.st_ino != y.st_ino))
                                continue;
                        diag_help(diag_add(d, HN_HOSTFILE_TWICE, EX_USAGE,
                                           "the hostfile %s is given twice", a),
                                  "one -H is enough; slots= gives a host more slots");
                        return -EINVAL;
                }
        return 0;
}

/* Returns a number of ranks for this machine: as asked for, unless on several nodes. */
static int suggest_local(const struct options *o)
{
        int n = o->plan.np ? o->plan.np : o->plan.ppn;

        /* A number such as --ppn gpu is negative; 4 is an example. */
        return n > 0 && o->nodes < 2 ? n : 4;
}

/* Adds the error when no host is named. The most frequent reasons are options behind the program,
 * and a misspelled command. */
static void check_hosts(const struct options *o, struct diags *d)
{
        const char *stray = stray_option(o);
        struct diag *diag;

        if (o->local || o->hostfiles.n || o->hostlists.n || o->dial_in || o->from > ALLOC_NONE ||
            (o->from == ALLOC_AUTO && alloc_find(environ) != ALLOC_NONE))
                return;
        diag = diag_add(d, HN_NO_HOSTS, EX_USAGE, "no hosts given");
        if (stray)
                diag_note(diag, "`%.*s` after `%s` was passed to %s", (int)strcspn(stray, "="),
                          stray, o->argv.v[0], o->argv.v[0]);
        if (o->program_first && !strchr(o->argv.v[0], '/') &&
            !program_exists(o->argv.v[0], o->chdir))
                diag_note(diag,
                          "`%s` is taken as the program; hnlaunch has no such command (hnlaunch -h "
                          "lists them)",
                          o->argv.v[0]);
        if (o->command == COMMAND_HOLD) {
                diag_help(diag, "say which: -H FILE, or -w 'gpu[001-004]'");
                return;
        }
        diag_help(diag,
                  "say where to run: --local %d on this machine, -H FILE, or -w 'gpu[001-004]'%s",
                  suggest_local(o), stray ? "; options stand before the program" : "");
}

/* Refuses a launch of its own on each of several nodes. Without hosts in an allocation, its reader
 * does (HN156). With hosts only steps of Slurm count, which start this process itself: variables of
 * other platforms may be those of a shell in a container. */
static void check_started_once(const struct options *o, struct diags *d)
{
        bool hosts = o->hostfiles.n || o->hostlists.n;
        bool in_allocation = o->from == ALLOC_AUTO && alloc_find(environ) != ALLOC_NONE;
        struct dial_place p;

        if (o->dial_in || o->local || (!hosts && (o->from > ALLOC_NONE || in_allocation)) ||
            dial_env_read(&p, dial_env_get, NULL, NULL) < 0 || p.nodes < 2 ||
            (hosts && strcmp(p.source, "Slurm") != 0))
                return;
        diag_help(
                diag_add(d, HN_STARTED_TWICE, EX_USAGE,
                         "%s started hnlaunch on %d nodes, and without --dial-in each is a launch "
                         "of its own",
                         p.source, p.nodes),
                "--dial-in auto makes one job of them; or start hnlaunch once, on one node");
}

/* Returns what is wrong with a value of --warm, PYTHON:MODULE,...; NULL = nothing. */
static const char *find_warm_fault(const char *text)
{
        const char *names = strchr(text, ':');
        size_t n;

        if (!names || names == text || !names[1])
                return "has no interpreter and modules";
        do {
                names++;
                n = strspn(names,
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
                if (!n && (!*names || *names == ','))
                        return "has an empty name of a module";
                if (!n || n > WARM_NAME_MAX || (names[n] && names[n] != ','))
                        return "has a name that no module can have";
                names += n;
        } while (*names);
        return NULL;
}

/* Returns the option by which nodes are not reached as a hold reaches them; NULL = none. */
static const char *find_option_without_hold(const struct options *o)
{
        return o->local ? "--local" : o->dial_in ? "--dial-in" : o->tree ? "--tree" : NULL;
}

/* Refuses a hold that is named and could not be used. */
static void check_named_hold(const struct options *o, struct diags *d)
{
        const char *which = o->hold.which, *other = find_option_without_hold(o);

        if (other && which && strcmp(which, "auto") != 0 && strcmp(which, "none") != 0)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "--hold %s and %s exclude each other", which, other),
                          "a hold has agents on other machines that this machine reaches directly: "
                          "leave one of the two out");
}

/* Refuses what a hold cannot do. */
static void check_hold(const struct options *o, struct diags *d)
{
        const char *other = find_option_without_hold(o);
        const char *fault = o->hold.warm ? find_warm_fault(o->hold.warm) : NULL;

        if (o->argv.n)
                diag_help(diag_add(d, HN_COMMAND_WORDS, EX_USAGE, "`hold` starts no program: `%s`",
                                   o->argv.v[0]),
                          "hnlaunch hold -H hosts.txt first, then hnlaunch -H hosts.txt %s",
                          o->argv.v[0]);
        if (fault)
                diag_help(diag_add(d, HN_WARM_VALUE, EX_USAGE, "--warm %s: `%s`", fault,
                                   o->hold.warm),
                          "write an interpreter and modules, as in --warm python3:torch,numpy");
        if (other)
                diag_help(diag_add(d, HN_OPTION_CONFLICT, EX_USAGE,
                                   "hold and %s exclude each other", other),
                          "a hold keeps agents that this machine reaches directly, on other "
                          "machines");
}

int option_check(const struct options *o, struct diags *d)
{
        size_t before = diags_errors(d);
        /* Commands that start nothing and need no program. */
        bool looks = o->command == COMMAND_PLAN || o->command == COMMAND_CHECK;
        bool launches = o->command == COMMAND_RUN || looks;

        check_pairs(o, d);
        check_lists(o, d);
        check_staging(o, d);
        if (launches && !o->first)
                role_conduct_refuse(o, d);
        check_per_node(o, d);
        if (o->dial_in)
                check_beside_dial_in(o, d);
        else
                check_without_dial_in(o, d);
        check_spares(o, d);
        if (launches)
                check_node_order(o, d);
        check_preflight(o, d);
        check_detach(o, d);
        check_pty(o, d);
        if (launches) {
                check_progress_re(o, d);
                check_metrics(o, d);
        }
        if (o->command == COMMAND_RUN) {
                check_started_once(o, d);
                check_named_hold(o, d);
        }
        if (o->command == COMMAND_HOLD)
                check_hold(o, d);
        /* Each of these would often be a consequence of an error before. */
        if ((launches || o->command == COMMAND_HOLD) && diags_errors(d) == before &&
            (looks || !launches || check_program(o, d) == 0) && check_hostfiles(o, d) == 0)
                check_hosts(o, d);
        if (o->command == COMMAND_STAGE && diags_errors(d) == before && check_hostfiles(o, d) == 0)
                check_hosts(o, d);
        return diags_errors(d) > before ? -EINVAL : 0;
}
