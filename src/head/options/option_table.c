/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of option_table in the order of --help. FIELD() and SECOND() tie a row to its
 * fields of struct options. The find functions are linear: a launch looks up some tens of names.
 */
#include "head/options/option_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "head/alloc/alloc.h"
#include "head/options/option_parse.h"
#include "head/options/role_options.h"

/* clang-format off */
/* The type of the field tells how the value is freed, so no row can name a wrong way. */
#define FIELD_OF(f)                                                                                \
        {                                                                                          \
                _Generic(((struct options *)NULL)->f,                                              \
                        char *: FIELD_TEXT,                                                        \
                        struct strv: FIELD_LIST,                                                   \
                        struct intlist: FIELD_RANKS,                                               \
                        struct container_order: FIELD_CONTAINER,                                   \
                        default: FIELD_PLAIN),                                                     \
                offsetof(struct options, f)                                                        \
        }
/* clang-format on */
#define FIELD(f)  .field = FIELD_OF(f)
#define SECOND(f) .second = FIELD_OF(f)
#define RANKS_MAX 1048576

/* clang-format off */
const struct option_def option_table[] = {
        /* where: options with OPTION_SOURCE are the family that names hosts (settings_level()). */
        { "job", 0, "FILE", "settings, and the program, from this file: [run] with program = ./a.out ARGS",
          NULL, NULL, GROUP_WHERE, .action = ACTION_JOB },
        { "hostfile", 'H', "FILE", "hosts, one per line; - is standard input; may be repeated",
          "run.hostfile", NULL, GROUP_WHERE, OPTION_PATH | OPTION_SPLIT | OPTION_SOURCE,
          .commands = ON_REACH, .parse = value_list, FIELD(hostfiles) },
        { "hosts", 'w', "LIST", "hosts, as in 'gpu[001-064]:8' or alice@gpu7,gpu9; may be repeated",
          "run.hosts", NULL, GROUP_WHERE, OPTION_SOURCE, .commands = ON_REACH | ON(LOGS),
          .parse = value_list, FIELD(hostlists) },
        { "local", 0, "N", "no ssh: N ranks on this machine (default: its GPUs, else its cores)",
          "run.local", NULL, GROUP_WHERE, OPTION_SOURCE | OPTION_OPTIONAL,
          .parse = value_local, FIELD(local_n), .min = 1, .max = 65536 },
        { "scheduler", 0, ALLOC_WORDS, "without hosts: read them from this manager's allocation",
          "run.scheduler", "auto", GROUP_WHERE, OPTION_ALLOCATION,
          .commands = ON_REACH, .parse = value_choice, FIELD(from) },
        { "include", 0, "SPEC", "only these hosts and slots, as in 'gpu[01-04]:0,2'",
          "run.include", NULL, GROUP_WHERE, .commands = ON_HOLD | ON(STAGE), .parse = value_list, FIELD(include) },
        { "exclude", 0, "SPEC", "without these hosts or slots",
          "run.exclude", NULL, GROUP_WHERE, .commands = ON_HOLD | ON(STAGE), .parse = value_list, FIELD(exclude) },
        { "nodes", 0, "N|MIN:MAX", "use the first N hosts; MIN:MAX: with fewer, from MIN on, when some fail",
          "run.nodes", NULL, GROUP_WHERE,
          .commands = ON_HOLD, .parse = value_nodes, FIELD(nodes), .min = 1, .max = 65536 },
        { "min-nodes", 0, "N", "start and go on with fewer nodes, from N on, when some fail",
          "run.min_nodes", NULL, GROUP_WHERE,
          .parse = value_number, FIELD(min_nodes), .min = 1, .max = 65536 },
        { "spares", 0, "N|auto", "the last N hosts, or all not needed, replace nodes that fail before the start",
          "run.spares", NULL, GROUP_WHERE,
          .parse = value_spares, FIELD(spares), .min = 1, .max = 65535 },
        { "order", 0, "hosts|topology", "nodes as they are listed, or by NVLink domain, switch and name",
          "run.order", "hosts", GROUP_WHERE, .parse = value_choice, FIELD(order) },
        { "segment", 0, "N", "each N nodes lie within one NVLink domain or switch; implies --order topology",
          "run.segment", NULL, GROUP_WHERE,
          .parse = value_number, FIELD(segment), .min = 1, .max = 65536 },
        { "topology", 0, "FILE", "--order topology: the switches, as `leaf1: gpu[001-016]` or Slurm's topology.conf",
          "run.topology", NULL, GROUP_WHERE, OPTION_PATH, .parse = value_text, FIELD(topology) },
        { "preflight", 0, "none|0|1|pairs", "before the start ask whether the nodes are fit (0), have the files and reach each other (1, or no value), are fast",
          "run.preflight", "none", GROUP_WHERE, OPTION_OPTIONAL,
          .parse = value_preflight, FIELD(preflight) },
        { "on-bad-node", 0, "spare|drop|stop", "--preflight: a node that is not fit is replaced, or left out, or ends the launch",
          "run.on_bad_node", "spare", GROUP_WHERE, .parse = value_choice, FIELD(on_bad_node) },
        { "dial-in", 0, "auto|HOST:PORT", "started on every node: node 0 is the head there, the others connect",
          "net.dial_in", NULL, GROUP_WHERE, OPTION_SOURCE,
          .parse = value_word, FIELD(dial_in) },
        { "node-rank", 0, "N", "--dial-in: number of this node, from 0",
          "net.node_rank", NULL, GROUP_WHERE,
          .parse = value_number, FIELD(node_rank), .min = 0, .max = 65535 },
        { "dial-secret", 0, "FILE|none", "--dial-in: the secret of the job (default: $HNLAUNCH_DIAL_SECRET ...); or none",
          "net.dial_secret", NULL, GROUP_WHERE, OPTION_PATH,
          .parse = value_text, FIELD(dial_secret) },
        /* how many: without a built-in value a field stays zero, which the
         * plan takes as not given. */
        { "np", 'n', "N", "ranks in all (default: every slot)",
          "run.np", NULL, GROUP_COUNT,
          .parse = value_number, FIELD(plan.np), .min = 1, .max = RANKS_MAX },
        { "ppn", 0, "N|gpu|cpu", "ranks per node (default: slots of the hostfile, else GPUs, else 1)",
          "run.ppn", NULL, GROUP_COUNT, .commands = ON_HOLD,
          .parse = value_ppn, FIELD(plan.ppn), .min = 1, .max = 65536 },
        { "per-node", 0, NULL, "one process per node, for programs that start ranks of their own",
          "run.per_node", NULL, GROUP_COUNT, .parse = value_switch, FIELD(plan.per_node) },
        { "gpus-per-rank", 0, "N", "GPUs that one rank drives; 0 = do not assign GPUs",
          "run.gpus_per_rank", "1", GROUP_COUNT,
          .parse = value_number, FIELD(plan.gpus_per_rank), .min = 0, .max = 1024 },
        { "map", 0, "slot|node", "fill a node first, or go round the nodes",
          "run.map", "slot", GROUP_COUNT, .parse = value_choice, FIELD(plan.map) },
        { "oversubscribe", 0, NULL, "allow more ranks than slots or GPUs",
          "run.oversubscribe", NULL, GROUP_COUNT, .parse = value_switch, FIELD(plan.oversubscribe) },
        { "gpu-visibility", 0, "node|own", "a rank sees the GPUs of its node's ranks, or its own only",
          "run.gpu_visibility", "node", GROUP_COUNT, OPTION_KEY,
          .parse = value_choice_bool, FIELD(gpu_visibility_own) },
        /* roles: a row with ACTION_ROLE has neither key nor field. own_options of
         * program_options.c has the field in struct program_options, and most parsers; keys stand
         * in [role NAME] of a job file. */
        { "multi-prog", 0, NULL, "the program is a file as of srun: lines of ranks, a program and arguments",
          "run.multi_prog", NULL, GROUP_ROLES, .parse = value_switch, FIELD(multi_prog) },
        /* The field is for commands that speak of a run: logs, signal and
         * stop take ranks of a role. */
        { "role", 0, "NAME", "the program is this role of the job; others follow behind a `:`",
          NULL, NULL, GROUP_ROLES, .commands = ON_LAUNCH | ON(LOGS) | ON(SIGNAL) | ON(STOP),
          .action = ACTION_ROLE, .parse = value_text, FIELD(of_role) },
        { "on", 0, "ROLE[:INDEX]", "on the nodes of another role, or one of them (INDEX or last): a process each",
          NULL, NULL, GROUP_ROLES, .action = ACTION_ROLE },
        { "share-gpus", 0, NULL, "--on: have the GPUs of the other role, too",
          NULL, NULL, GROUP_ROLES, .action = ACTION_ROLE },
        { "replicas", 0, "R", "so many equal worlds of the role",
          NULL, NULL, GROUP_ROLES, .action = ACTION_ROLE, .min = 1, .max = 65536 },
        { "world", 0, "NAME", "one world for all roles with this name",
          NULL, NULL, GROUP_ROLES, .action = ACTION_ROLE },
        { "after", 0, "ROLE[,ROLE]", "start when these roles are ready",
          NULL, NULL, GROUP_ROLES, .action = ACTION_ROLE },
        { "ends", 0, "fails|ok", "the role ends although others need it: the job fails, or goes on",
          NULL, NULL, GROUP_ROLES, .action = ACTION_ROLE },
        { "drain", 0, "TIME", "after a failure the role gets SIGTERM and so much time, before all is stopped",
          NULL, NULL, GROUP_ROLES, .action = ACTION_ROLE },
        { "restart-scope", 0, "job|role|alone", "what a restart starts again when the role fails (default job)",
          NULL, NULL, GROUP_ROLES, .action = ACTION_ROLE },
        { "main", 0, "ROLE[,ROLE]", "when these roles have ended with 0 the job has succeeded; then stop the others",
          "run.main", NULL, GROUP_ROLES, .parse = value_role_names, FIELD(main_roles) },
        { "linger", 0, "TIME", "--main: the others may run on for so long",
          "run.linger", "0s", GROUP_ROLES, .parse = value_span, FIELD(linger_ms) },
        { "ready", 0, "start|tcp:PORT|http:PATH|file:PATH|key:NAME|line:REGEX", "when the role is ready: its ranks are asked until they answer",
          NULL, NULL, GROUP_ROLES, .action = ACTION_ROLE },
        { "ready-timeout", 0, "DURATION|never", "time for --ready from the start (default 10m)",
          NULL, NULL, GROUP_ROLES, .action = ACTION_ROLE, .min = 1 },
        /* environment and files: values with OPTION_GATHER add up over the configuration and the
         * command line; other lists of the command line replace those of a file. */
        { "env", 'x', "NAME[=VALUE]", "export a variable; patterns too: -x 'SLURM_*'; may be repeated",
          "env.pass", NULL, GROUP_ENV, OPTION_SPLIT | OPTION_GATHER,
          .parse = value_env, FIELD(exports) },
        { "export", 0, "ALL|NONE|NAME,...", "variables of this shell to export; also ALL,NAME=VALUE,...",
          "env.export", "ALL", GROUP_ENV, .parse = value_export, FIELD(export_mode) },
        { "env-file", 0, "FILE", "export the NAME=VALUE lines of a file; may be repeated",
          "env.file", NULL, GROUP_ENV, OPTION_PATH | OPTION_SPLIT | OPTION_GATHER,
          .parse = value_list, FIELD(env_files) },
        { "unset", 0, "NAME", "remove a variable; NAME* is a prefix; may be repeated",
          "env.unset", NULL, GROUP_ENV, OPTION_SPLIT | OPTION_GATHER,
          .parse = value_unset, FIELD(unset) },
        { "compat", 0, "none|ompi|slurm|mpich|horovod|deepspeed", "set the variables of that launcher, too",
          "run.compat", "none", GROUP_ENV, .parse = value_choice, FIELD(compat) },
        { "subst", 0, NULL, "replace {rank}, {local_rank}, {master_addr}, {port:NAME} ... in the arguments",
          "run.subst", NULL, GROUP_ENV, .parse = value_switch, FIELD(subst) },
        { "local-rank-arg", 0, "NAME", "append --NAME=N, the local rank, to the arguments (default: local_rank)",
          "run.local_rank_arg", NULL, GROUP_ENV, OPTION_OPTIONAL,
          .parse = value_rank_option, FIELD(local_rank_arg) },
        { "chdir", 0, "DIR", "working directory of the ranks (default: this one)",
          "run.chdir", NULL, GROUP_ENV, OPTION_JOB_PATH, .parse = value_text, FIELD(chdir) },
        { "push", 0, "FILE|DIR", "copy it to the nodes first, and start the ranks there; may be repeated",
          "run.push", NULL, GROUP_ENV, OPTION_PATH | OPTION_SPLIT,
          .parse = value_list, FIELD(push) },
        { "push-keep", 0, NULL, "leave the pushed files on the nodes: the next --push is faster",
          "run.push_keep", NULL, GROUP_ENV, .parse = value_switch, FIELD(keep) },
        { "venv", 0, "DIR", "bring this virtual environment to the nodes; the ranks run with its Python and programs",
          "run.venv", NULL, GROUP_ENV, OPTION_JOB_PATH, .commands = ON_LAUNCH | ON(STAGE) | ON(HOLD), .parse = value_text, FIELD(staged.venv) },
        { "stage", 0, "PATH", "bring a copy for reading to the nodes, below $HN_STAGE_DIR, where it stays; may be repeated",
          "run.stage", NULL, GROUP_ENV, OPTION_PATH | OPTION_SPLIT, .commands = ON_LAUNCH | ON(HOLD), .parse = value_list, FIELD(staged.paths) },
        { "stage-keep", 0, "SIZE", "so much may stay on a node; what was used longest ago goes first",
          "run.stage_keep", "20G", GROUP_ENV, .commands = ON_LAUNCH | ON(STAGE) | ON(HOLD), .parse = value_size, FIELD(staged.keep), .min = 1 << 20 },
        { "pull", 0, "PATH[:DEST]", "bring it home from the nodes at the end, below DEST/HOST; may be repeated",
          "run.pull", NULL, GROUP_ENV, OPTION_SPLIT | OPTION_JOB_DEST, .parse = value_list, FIELD(pull) },
        { "stdin", 0, "auto|none|0|all|FILE", "ranks that read standard input; auto: rank 0 on a terminal, else none",
          "run.stdin", "auto", GROUP_ENV, OPTION_JOB_PATH, .commands = ON_LAUNCH | ON(ATTACH), .parse = value_stdin, FIELD(stdin_mode), SECOND(stdin_file) },
        { "pty", 0, "RANK", "a terminal for this rank: keys, Ctrl-C, size (no RANK: the first of --ranks, else 0)",
          "run.pty", "none", GROUP_ENV, OPTION_OPTIONAL, .commands = ON_LAUNCH | ON(RERUN),
          .parse = value_pty, FIELD(pty_rank), .min = 0, .max = RANKS_MAX },
        { "mpi", 0, "auto|none|pmi1|pmi2|pmix|pmi-port", "how MPI programs find each other (auto: PMI, of the program's version)",
          "run.mpi", "auto", GROUP_ENV, .parse = value_choice, FIELD(mpi) },
        { "container", 0, "KIND:NAME", "run the ranks in docker:IMAGE, podman:, apptainer:, charliecloud:, or exec:CONTAINER",
          "run.container", "none", GROUP_ENV, .commands = ON_HOLD, .parse = value_container, FIELD(container) },
        { "container-arg", 0, "ARG", "one more argument for the program of --container: -v=/data:/data; may be repeated",
          "run.container_arg", NULL, GROUP_ENV, OPTION_KEY | OPTION_SPLIT,
          .parse = value_list, FIELD(container.args) },
        { "wrap", 0, "CMD", "put this command with its arguments in front of the program: 'numactl -l --'",
          "run.wrap", NULL, GROUP_ENV, .parse = value_words, FIELD(wrap) },
        { "bind", 0, "auto|none|numa|socket|core:N|exclusive|list:CPUS", "processors of the ranks (auto: those of the GPU's NUMA node)",
          "run.bind", "auto", GROUP_ENV, .parse = value_bind, FIELD(bind) },
        { "nic", 0, "any|near", "near: InfiniBand and RoCE ports nearest to the GPUs of each rank, for NCCL and UCX",
          "run.nic", "any", GROUP_ENV, .parse = value_choice_bool, FIELD(near_nic) },
        /* when */
        { "connect-retry", 0, "TIME", "try nodes that cannot be reached yet again for so long",
          "ssh.connect_retry", "0", GROUP_WHEN, OPTION_KEY, .parse = value_span, FIELD(connect_retry_ms) },
        { "connect-timeout", 0, "TIME", "for each step of reaching a node",
          "ssh.connect_timeout", "10s", GROUP_WHEN,
          .commands = ON_REACH, .parse = value_span, FIELD(connect_timeout_ms), .min = 1 },
        { "dial-timeout", 0, "TIME", "for all nodes to dial in, and for a node to reach node 0; or never",
          "net.dial_timeout", "15m", GROUP_WHEN, OPTION_KEY,
          .parse = value_limit, FIELD(dial_timeout_ms), .min = 1 },
        { "start-timeout", 0, "TIME", "for a node to answer, and for all ranks to join the store; or never",
          "run.start_timeout", "120s", GROUP_WHEN,
          .commands = ON_CONNECT | ON(HOLD), .parse = value_limit, FIELD(start_timeout_ms), .min = 1 },
        { "wait-warn", 0, "TIME", "warn of ranks waiting in the store for so long; or never",
          "run.wait_warn", "120s", GROUP_WHEN, .parse = value_limit, FIELD(wait_warn_ms) },
        { "hang-after", 0, "TIME", "when no rank has done anything for so long, look whether they hang; or never",
          "run.hang_after", "5m", GROUP_WHEN, .parse = value_limit, FIELD(hang_after_ms) },
        { "on-hang", 0, "report|stop|restart", "ranks hang: tell it, or also stop them (exit 124), or start them again",
          "run.on_hang", "report", GROUP_WHEN, .parse = value_choice, FIELD(on_hang) },
        { "timeout", 0, "TIME", "stop the ranks after this time, exit 124",
          "run.timeout", "never", GROUP_WHEN,
          .parse = value_limit, FIELD(timeout_ms), .min = 1 },
        { "node-timeout", 0, "TIME", "declare a node lost after this silence; a node does the same with hnlaunch",
          "run.node_timeout", "30s", GROUP_WHEN,
          .commands = ON_HOLD, .parse = value_span, FIELD(node_timeout_ms), .min = 100 },
        { "grace", 0, "TIME", "from SIGTERM to SIGKILL when ranks are stopped",
          "run.grace", "10s", GROUP_WHEN, .commands = ON_LAUNCH | ON(STOP), .parse = value_span, FIELD(grace_ms) },
        { "on-failure", 0, "stop|continue", "a rank failed: stop the others, or let them finish",
          "run.on_failure", "stop", GROUP_WHEN, .parse = value_choice, FIELD(on_failure) },
        { "detach", 0, NULL, "give the terminal back when all ranks have been started; see attach",
          "run.detach", NULL, GROUP_WHEN, .parse = value_switch, FIELD(detach) },
        { "on-hup", 0, "stop|detach", "the terminal is gone: stop the ranks, or go on without it",
          "run.on_hup", "stop", GROUP_WHEN, .parse = value_choice, FIELD(on_hup) },
        { "ends-with", 0, "all|rank0", "the job has succeeded when all ranks have, or when rank 0 has; then stop the others",
          "run.ends_with", "all", GROUP_WHEN, .parse = value_choice, FIELD(success) },
        { "max-restarts", 0, "N", "restart after a failure, at most N times",
          "run.max_restarts", "0", GROUP_WHEN,
          .parse = value_number, FIELD(max_restarts), .min = 0, .max = RESTARTS_MAX },
        { "restart", 0, "count|auto", "restart up to --max-restarts, or as `hnlaunch explain restart` decides by facts",
          "run.restart", "count", GROUP_WHEN,
          .parse = value_choice_bool, FIELD(restart.automatic) },
        { "give-up", 0, "CODE", "--restart auto: a rank that exits with CODE wants no other attempt",
          "run.give_up", "93", GROUP_WHEN,
          .parse = value_number, FIELD(restart.give_up), .min = 1, .max = 255 },
        { "no-progress", 0, "N", "--restart auto: stop after N attempts without progress",
          "run.no_progress", "3", GROUP_WHEN,
          .parse = value_number, FIELD(restart.no_progress), .min = 1, .max = 1000000 },
        { "progress-file", 0, "GLOB", "--restart auto: a newer file is progress, as 'ckpt/*.pt'",
          "run.progress_file", NULL, GROUP_WHEN, OPTION_PATH,
          .parse = value_text, FIELD(restart.progress_file) },
        { "leave-out", 0, "HOST", "a spare host takes the place of this host, as of a bad one; may be repeated",
          "run.leave_out", NULL, GROUP_WHEN, OPTION_KEY | OPTION_SPLIT,
          .parse = value_list, FIELD(restart.leave_out) },
        { "bad-hosts", 0, "FILE|none", "hosts that runs have put out (default: hosts.bad in the state folder)",
          "run.bad_hosts", NULL, GROUP_WHEN, OPTION_PATH, .commands = ON_LAUNCH | ON(BAD),
          .parse = value_text, FIELD(restart.bad_hosts) },
        { "drain-signal", 0, "SIG", "a host is drained: send its ranks this signal at once, as USR1",
          "run.drain_signal", NULL, GROUP_WHEN, .parse = value_signal, FIELD(drain.signal) },
        { "requeue-exit", 0, "CODE", "exit with CODE when SIGTERM or a drain ends the run, and all ranks have saved",
          "run.requeue_exit", NULL, GROUP_WHEN,
          .parse = value_number, FIELD(drain.requeue_exit), .min = 1, .max = 255 },
        { "drain-time", 0, "TIME", "SIGTERM to an agent drains its host: time for the ranks to save and end",
          "run.drain_time", "2s", GROUP_WHEN, OPTION_KEY, .parse = value_span, FIELD(drain.time_ms), .min = 2000 },
        { "in", 0, "TIME", "time for the ranks to save and end, then SIGTERM",
          NULL, "2m", GROUP_WHEN, .commands = ON(DRAIN), .parse = value_span, FIELD(drain.in_ms) },
        { "contain", 0, "auto|tree|cgroup|pidns", "way to keep a node's processes together (auto: best there)",
          "run.contain", "auto", GROUP_WHEN, OPTION_KEY, .parse = value_choice, FIELD(contain) },
        /* ssh: ON_REACH marks options of the login itself, for `trust` and `hosts --probe` as well. */
        { "start-with", 0, "auto|ssh|srun|sge|ray|CMD", "start agents by ssh, a manager, or CMD: 'docker exec -i {host}'",
          "run.start_with", "auto", GROUP_SSH, .commands = ON_CONNECT | ON(HOLD), .parse = value_text, FIELD(via) },
        { "ssh-port", 'p', "PORT", "port of the ssh servers (default: ssh_config, else 22)",
          "ssh.port", NULL, GROUP_SSH, .commands = ON_REACH, .parse = value_number, FIELD(port), .min = 1, .max = 65535 },
        { "user", 0, "NAME", "log in as (default: ssh_config, else your name)",
          "ssh.user", NULL, GROUP_SSH, .commands = ON_REACH, .parse = value_word, FIELD(user) },
        { "identity", 0, "FILE", "private key; may be repeated",
          "ssh.identity", NULL, GROUP_SSH, OPTION_PATH | OPTION_SPLIT,
          .commands = ON_REACH, .parse = value_list, FIELD(identities) },
        { "ssh-config", 0, "FILE", "instead of ~/.ssh/config; none = read no file",
          "ssh.config", NULL, GROUP_SSH, OPTION_PATH,
          .commands = ON_REACH, .parse = value_text, FIELD(ssh_config) },
        { "ssh-command", 0, "CMD", "run this ssh program instead of the built-in one",
          "ssh.command", NULL, GROUP_SSH, .commands = ON_CONNECT | ON(HOLD), .parse = value_text, FIELD(ssh_command) },
        { "jump", 0, "HOST", "go through this host, as ssh -J",
          "ssh.jump", NULL, GROUP_SSH, .commands = ON_REACH, .parse = value_word, FIELD(jump) },
        { "fanout", 0, "N", "connections being set up at once (default: automatic)",
          "ssh.fanout", NULL, GROUP_SSH, OPTION_KEY,
          .parse = value_number, FIELD(fanout), .min = 1, .max = 65536 },
        { "tree", 0, "K", "log in to K nodes only, which log in to K more each (default 0: to all)",
          "ssh.tree", NULL, GROUP_SSH,
          .parse = value_number, FIELD(tree), .min = 0, .max = 65536 },
        { "tree-auth", 0, "own|forward", "nodes log in to nodes with keys of their own, or your ssh-agent",
          "ssh.tree_auth", "own", GROUP_SSH, OPTION_KEY,
          .parse = value_choice_bool, FIELD(tree_forward) },
        { "host-key", 0, "strict|accept-new", "unknown host keys: refuse, or store on first sight",
          "ssh.host_key", "strict", GROUP_SSH,
          .commands = ON_REACH, .parse = value_choice_bool, FIELD(accept_new) },
        { "hold", 0, "auto|none|ID", "start on agents that `hnlaunch hold` keeps: on a hold of the same hosts, on none, or on this one",
          "run.hold", "auto", GROUP_SSH, .parse = value_word, FIELD(hold.which) },
        { "idle", 0, "TIME", "hold: end after so much time without a run; or never",
          "run.hold_idle", "30m", GROUP_SSH, .commands = ON(HOLD),
          .parse = value_limit, FIELD(hold.idle_ms), .min = 1 },
        { "warm", 0, "PYTHON:MODULE,...", "hold: import modules of Python before the next run, as in python3:torch",
          "run.hold_warm", NULL, GROUP_SSH, .commands = ON(HOLD),
          .parse = value_word, FIELD(hold.warm) },
        /* network */
        { "iface", 0, "NAME|CIDR", "network of the ranks (default: the one that reaches the nodes)",
          "net.iface", NULL, GROUP_NETWORK, .commands = ON_CONNECT, .parse = value_word, FIELD(iface) },
        { "store-listen", 0, "network|loopback|none", "PyTorch's store: on rank 0's node, on every node, or not served",
          "net.store_listen", "network", GROUP_NETWORK, .parse = value_choice, FIELD(store_listen) },
        { "store-size", 0, "SIZE", "memory of the store: its keys, values and pending requests",
          "net.store_size", "1G", GROUP_NETWORK, OPTION_KEY, .parse = value_size, FIELD(store_size), .min = 1 << 20 },
        { "store-peers", 0, "user|node", "who may connect to the store: your processes, or every user of the nodes",
          "net.store_peers", "user", GROUP_NETWORK, OPTION_KEY,
          .parse = value_choice_bool, FIELD(store_peers_node) },
        { "metrics", 0, "PORT|HOST:PORT", "serve metrics of the run for Prometheus at this port of 127.0.0.1, or of HOST",
          "net.metrics", NULL, GROUP_NETWORK, .parse = value_word, FIELD(metrics) },
        /* output */
        { "show", 0, "all|RANKS", "ranks whose output reaches the terminal, as in 0,8-15",
          "log.show", "all", GROUP_OUTPUT, .commands = ON_LAUNCH | ON(ATTACH), .parse = value_show, FIELD(show) },
        { "raw", 0, NULL, "let ranks send any escape sequence to the terminal, not only colours",
          "log.raw", NULL, GROUP_OUTPUT, .commands = ON_LAUNCH | ON(ATTACH) | ON(LOGS), .parse = value_switch, FIELD(raw) },
        { "label", 0, "auto|none|TEMPLATE", "line prefix; {host} {rank} {local_rank} {stream} ... are filled in",
          "log.label", "auto", GROUP_OUTPUT, .commands = ON_LAUNCH | ON(ATTACH), .parse = value_label, FIELD(label), SECOND(label_template) },
        { "timestamps", 0, NULL, "the time in front of each line",
          "log.timestamps", NULL, GROUP_OUTPUT, .commands = ON_LAUNCH | ON(LOGS), .parse = value_switch, FIELD(timestamps) },
        { "fold", 0, NULL, "equal lines of several ranks once",
          "log.fold", NULL, GROUP_OUTPUT, .commands = ON_LAUNCH | ON(LOGS), .parse = value_switch, FIELD(fold) },
        { "log-dir", 0, "DIR|none", "records, and one file of output per rank, below DIR; none: no records of the run",
          "log.dir", NULL, GROUP_OUTPUT, OPTION_PATH,
          .parse = value_text, FIELD(log_dir) },
        { "log-keep", 0, "N", "how many of the newest runs have records in the home",
          "log.keep", "20", GROUP_OUTPUT, OPTION_KEY,
          .parse = value_number, FIELD(log_keep), .min = 1, .max = 10000 },
        { "trace", 0, NULL, "keep the agents' traces for report, also of a run that does not fail",
          "log.trace", NULL, GROUP_OUTPUT, .parse = value_switch, FIELD(record) },
        { "json", 0, "FILE", "the events of the run, the plan or what a command tells as JSON: on standard output, or in FILE",
          NULL, NULL, GROUP_OUTPUT, OPTION_OPTIONAL | OPTION_JOB_PATH, .commands = ON_LAUNCH | ON(PS) | ON(WHY) | ON(REPORT) | ON(TOP) | ON(LOGS) | ON(BAD) | ON(HOSTS) | ON(STAGE) | ON(EXPLAIN), .parse = value_json, FIELD(json_file) },
        { "color", 0, "auto|always|never", "colours in hnlaunch's own messages",
          "log.color", "auto", GROUP_OUTPUT, .commands = ON_ALL, .parse = value_choice, FIELD(color) },
        { "progress", 0, "auto|tty|plain|none", "how the start-up, and what goes on, is shown",
          "log.progress", "auto", GROUP_OUTPUT, .parse = value_choice, FIELD(progress) },
        { "progress-re", 0, "RE", "steps from lines of the ranks, as in 'step ([0-9]+)/([0-9]+)'",
          "log.progress_re", NULL, GROUP_OUTPUT, .parse = value_text, FIELD(progress_re) },
        { "quiet", 'q', NULL, "errors only",
          "log.quiet", NULL, GROUP_OUTPUT, .commands = ON_ALL, .parse = value_switch, FIELD(quiet) },
        { "verbose", 'v', NULL, "say more; may be repeated",
          "log.verbose", NULL, GROUP_OUTPUT, .commands = ON_ALL,
          .parse = value_more, FIELD(verbose), .min = 0, .max = 9 },
        /* plan: options of single commands. None has a key, so no configuration
         * changes what a command does. */
        { "ranks", 0, "LIST", "only these ranks, as in 0,8-15",
          NULL, NULL, GROUP_PLAN, .commands = ON(RUN) | ON(PLAN) | ON(LOGS) | ON(RERUN), .parse = value_ranks, FIELD(ranks) },
        { "follow", 'f', NULL, "go on until the run has ended",
          NULL, NULL, GROUP_PLAN, .commands = ON(LOGS), .parse = value_switch, FIELD(logs.follow) },
        { "stderr", 0, NULL, "standard error only",
          NULL, NULL, GROUP_PLAN, .commands = ON(LOGS), .parse = value_switch, FIELD(logs.only_stderr) },
        { "grep", 0, "PATTERN", "lines that match this extended regular expression",
          NULL, NULL, GROUP_PLAN, .commands = ON(LOGS), .parse = value_text, FIELD(logs.pattern) },
        { "since", 0, "TIME", "lines of the last 5m, 30s, 2h",
          NULL, NULL, GROUP_PLAN, .commands = ON(LOGS), .parse = value_span, FIELD(logs.since_ms) },
        { "around", 0, "failure|TIME", "lines of 5 s before and after the failure, or a time of the run",
          NULL, NULL, GROUP_PLAN, .commands = ON(LOGS), .parse = value_moment, FIELD(logs.around_us) },
        /* As of tail(1): a letter may mean another option in another command
         * (option_by_letter()). */
        { "tail", 'n', "N", "the last N lines",
          NULL, NULL, GROUP_PLAN, .commands = ON(LOGS),
          .parse = value_number, FIELD(logs.tail), .min = 1, .max = 1000000 },
        { "all", 'a', NULL, "all runs that have ended, not the last five; or all holds",
          NULL, NULL, GROUP_PLAN, .commands = ON(PS) | ON(RELEASE), .parse = value_switch, FIELD(ps.all) },
        { "watch", 0, NULL, "again every two seconds",
          NULL, NULL, GROUP_PLAN, .commands = ON(PS), .parse = value_switch, FIELD(ps.watch) },
        { "without-bad", 0, NULL, "without the hosts that failed",
          NULL, NULL, GROUP_PLAN, .commands = ON(RERUN), .parse = value_switch, FIELD(without_bad) },
        { "html", 0, "FILE", "as one page for a browser, in FILE; - is standard output",
          NULL, NULL, GROUP_PLAN, .commands = ON(REPORT), .parse = value_text, FIELD(html) },
        { "expand", 0, NULL, "a host in each line",
          NULL, NULL, GROUP_PLAN, .commands = ON(HOSTS), .parse = value_switch, FIELD(list.expand) },
        { "union", 0, NULL, "hosts of any list (default)",
          NULL, NULL, GROUP_PLAN, .commands = ON(HOSTS), .parse = value_switch, FIELD(list.unite) },
        { "minus", 0, NULL, "hosts of the first list that no other has",
          NULL, NULL, GROUP_PLAN, .commands = ON(HOSTS), .parse = value_switch, FIELD(list.minus) },
        { "common", 0, NULL, "hosts that all lists have",
          NULL, NULL, GROUP_PLAN, .commands = ON(HOSTS), .parse = value_switch, FIELD(list.common) },
        { "yes", 0, NULL, "add the new host keys without asking",
          NULL, NULL, GROUP_PLAN, .commands = ON(TRUST), .parse = value_switch, FIELD(list.yes) },
        { "list", 0, NULL, "list what is staged on the nodes, with size and age",
          NULL, NULL, GROUP_PLAN, .commands = ON(STAGE), .parse = value_switch, FIELD(staged.list) },
        { "gc", 0, NULL, "remove what does not fit into --stage-keep, oldest first; nothing that is in use",
          NULL, NULL, GROUP_PLAN, .commands = ON(STAGE), .parse = value_switch, FIELD(staged.remove) },
        { "unused", 0, "TIME", "--gc: remove what was not used for so long, too",
          NULL, NULL, GROUP_PLAN, .commands = ON(STAGE), .parse = value_span, FIELD(staged.unused_ms), .min = 1000 },
        { "probe", 0, NULL, "ask the nodes for GPUs, cores and memory",
          NULL, NULL, GROUP_PLAN, .commands = ON(PLAN) | ON(HOSTS), .parse = value_switch, FIELD(probe) },
        { "strict", 0, NULL, "warnings are failures",
          NULL, NULL, GROUP_PLAN, .commands = ON(CHECK), .parse = value_switch, FIELD(strict) },
        { "run", 0, "COMMAND", "a check of your own, by sh -c on each node: fails unless it exits with 0",
          NULL, NULL, GROUP_PLAN, .commands = ON(CHECK), .parse = value_text, FIELD(check_run) },
        { "profile", 0, "FILE", "limits, expected values and the weight of checks, from this file",
          NULL, NULL, GROUP_PLAN, .commands = ON(CHECK), .parse = value_text, FIELD(check_profile) },
        { "pairs", 0, NULL, "measure bandwidth and latency between the nodes",
          NULL, NULL, GROUP_PLAN, .commands = ON(CHECK), .parse = value_switch, FIELD(pairs) },
        { "save", 0, "FILE", "write the results for --baseline",
          NULL, NULL, GROUP_PLAN, .commands = ON(CHECK), .parse = value_text, FIELD(save) },
        { "baseline", 0, "FILE", "compare with the results of --save",
          NULL, NULL, GROUP_PLAN, .commands = ON(CHECK), .parse = value_text, FIELD(baseline) },
        /* other */
        { "dry-run", 0, NULL, "show the plan and start nothing, as hnlaunch plan does",
          NULL, NULL, GROUP_OTHER, .commands = ON(RUN) | ON(PLAN), .action = ACTION_DRY_RUN },
        { "set", 'o', "SECTION.KEY=VALUE", "any configuration key; may be repeated",
          NULL, NULL, GROUP_OTHER, .commands = ON_ALL, .action = ACTION_SET },
        { "strict-config", 0, NULL, "unknown keys in configuration files are errors",
          "run.strict_config", NULL, GROUP_OTHER, OPTION_KEY, .commands = ON_ALL, .parse = value_switch, FIELD(strict_config) },
        { "help", 'h', "TOPIC", "-h: one screen; --help: this; or of a command, an option or a topic",
          NULL, NULL, GROUP_OTHER, OPTION_OPTIONAL, .commands = ON_ALL, .action = ACTION_HELP, SECOND(help_topic) },
        { "version", 'V', NULL, "print the version",
          NULL, NULL, GROUP_OTHER, .commands = ON_ALL, .action = ACTION_VERSION },
        { "agent", 0, "FILE", "another hnlaunch-agent",
          "run.agent", NULL, GROUP_OTHER, OPTION_PATH | OPTION_HIDDEN,
          .parse = value_text, FIELD(agent) },
};
const size_t option_count = ARRAY_SIZE(option_table);

/* A row of its own: the command line has the program as words, and --program
 * would be a second way. */
const struct option_def option_program = {
        "program", .arg = "CMD", .key = "run.program", .parse = value_words, FIELD(argv)
};

/* Names of other launchers with the same meaning and values, then names of earlier versions. */
const struct option_alias option_aliases[] = {
        { "machinefile", "hostfile" },
        { "host", "hosts" },
        { "nodelist", "hosts" },
        { "nnodes", "nodes" },
        { "num-nodes", "nodes" },
        { "ntasks", "np" },
        { "nproc-per-node", "ppn" },
        { "ntasks-per-node", "ppn" },
        { "tasks-per-node", "ppn" },
        { "npernode", "ppn" },
        { "num-gpus", "ppn" },
        { "wd", "chdir" },
        { "wdir", "chdir" },
        { "cwd", "chdir" },
        { "workdir", "chdir" },
        { "bind-to", "bind" },
        { "cpu-bind", "bind" },
        { "numa-binding", "bind" },
        { "store-door", "store-listen" }, /* until 1.0 */
        { "success", "ends-with" }, /* until 1.0 */
        { "from", "scheduler" }, /* until 1.0 */
        { "via", "start-with" }, /* until 1.0 */
        { "keep", "push-keep" }, /* until 1.0 */
        { "record", "trace" }, /* until 1.0 */
};
/* clang-format on */
const size_t option_alias_count = ARRAY_SIZE(option_aliases);

const struct option_alias option_key_aliases[] = {
        { "net.store_door", "net.store_listen" }, /* until 1.0 */
        { "run.success", "run.ends_with" },       /* until 1.0 */
        { "run.from", "run.scheduler" },          /* until 1.0 */
        { "run.via", "run.start_with" },          /* until 1.0 */
        { "run.keep", "run.push_keep" },          /* until 1.0 */
        { "log.record", "log.trace" },            /* until 1.0 */
};
const size_t option_key_alias_count = ARRAY_SIZE(option_key_aliases);

/* The numbers of words hold for commands that speak of runs (check_words() of run_commands.c);
 * others check their words themselves. */
const struct option_command option_commands[] = {
        [COMMAND_RUN] = { "run", "start the ranks (default)", "PROGRAM [ARG...]" },
        [COMMAND_PLAN] = { "plan", "show the ranks of each host, start nothing",
                           "[PROGRAM [ARG...]]",
                           .examples = "hnlaunch plan -H hosts.txt              hosts, slots and "
                                       "ranks\n"
                                       "hnlaunch plan --probe -H hosts.txt      with what the "
                                       "nodes have\n"
                                       "hnlaunch plan --ranks 0 --local 4 true  the environment of "
                                       "rank 0\n" },
        [COMMAND_CHECK] = { "check", "tell whether the nodes are fit for a job, start nothing",
                            "[PROGRAM [ARG...]]",
                            .examples =
                                    "hnlaunch check -H hosts.txt             compare the nodes, "
                                    "and with limits\n"
                                    "hnlaunch check -H hosts.txt ./a.out     ... and the "
                                    "program on them\n" },
        [COMMAND_PS] = { "ps", "list your runs: those that go on, and the last ones", "", 0, 0 },
        [COMMAND_STOP] = { "stop", "stop a run, and wait for its end", "[RUN]", 0, 1,
                           "hnlaunch stop                           the only run that goes on\n"
                           "hnlaunch stop k3f9q --grace 0           SIGKILL at once\n" },
        [COMMAND_SIGNAL] = { "signal", "send a signal to all ranks of a run", "RUN SIGNAL", 2, 2,
                             "hnlaunch signal k3f9q USR1\n" },
        [COMMAND_DRAIN] = { "drain", "let a run go on without a host, when its ranks have saved",
                            "RUN HOST", 2, 2,
                            "hnlaunch drain k3f9q gpu017             for maintenance\n"
                            "hnlaunch drain k3f9q gpu017 --in 30s    the host ends soon\n" },
        [COMMAND_WAIT] = { "wait", "wait for the end of a run, and exit with its code", "[RUN]", 0,
                           1 },
        [COMMAND_ATTACH] = { "attach", "show the output of a run from where it was left", "[RUN]",
                             0, 1,
                             "hnlaunch attach                         the newest run; Ctrl-C, "
                             "then d, detaches again\n" },
        [COMMAND_LOGS] = { "logs", "print the output of a run", "[RUN]", 0, 1,
                           "hnlaunch logs                           of the newest run\n"
                           "hnlaunch logs k3f9q --ranks 3 --stderr  what rank 3 wrote to standard "
                           "error\n"
                           "hnlaunch logs -f --grep 'loss|nan'      lines that match, as they "
                           "come\n" },
        [COMMAND_WHY] = { "why", "tell which rank keeps the others of a run waiting", "[RUN]", 0,
                          1 },
        [COMMAND_REPORT] = { "report", "tell how a run started, went and failed", "[RUN]", 0, 1,
                             "hnlaunch report --html page.html        a page for a browser\n" },
        [COMMAND_TOP] = { "top", "show what the hosts and ranks of a run do, once a second",
                          "[RUN]", 0, 1 },
        [COMMAND_BAD] = { "bad", "list the hosts that runs have put out, or take one back",
                          "[list|clear HOST]", 0, 2,
                          "hnlaunch bad clear gpu017               a host that was repaired\n" },
        [COMMAND_HOSTS] = { "hosts", "fold, expand and compare lists of hosts, or write a hostfile",
                            "[LIST|@FILE...]", 0, 0,
                            "hnlaunch hosts                          the hosts of this "
                            "allocation\n"
                            "hnlaunch hosts 'gpu[01-64]' --minus @broken.txt\n"
                            "hnlaunch hosts --probe -w 'gpu[01-64]' >hosts.txt\n" },
        [COMMAND_TRUST] = { "trust", "show the host keys of hosts, and add new ones to known_hosts",
                            "[LIST|@FILE...]", 0, 0,
                            "hnlaunch trust -H hosts.txt             shows the keys, and asks\n"
                            "hnlaunch trust -w 'gpu[01-64]' --yes    in a script\n" },
        [COMMAND_HOLD] = { "hold", "keep agents on the nodes: runs on the same hosts start at once",
                           "", 0, 0,
                           "hnlaunch hold -H hosts.txt              then: hnlaunch -H hosts.txt "
                           "./a.out\n"
                           "hnlaunch hold -H hosts.txt --idle 2h    ends after two hours without "
                           "a run\n" },
        [COMMAND_RELEASE] = { "release", "end a hold, as soon as no run uses it", "[HOLD...]", 0, 0,
                              "hnlaunch release                        the only hold\n"
                              "hnlaunch release --all                  all of them\n" },
        [COMMAND_STAGE] = { "stage",
                            "bring files to the nodes ahead of a run, list and remove them",
                            "[PATH...]", 0, 0,
                            "hnlaunch stage -H hosts.txt data/ --venv .venv   for later runs\n"
                            "hnlaunch stage -H hosts.txt --list               what is there\n"
                            "hnlaunch stage -H hosts.txt --gc --unused 7d     make room\n" },
        [COMMAND_RERUN] = { "rerun", "start a run once more, as it was started", "[RUN]", 0, 1,
                            "hnlaunch rerun --without-bad            without the hosts that "
                            "failed\n"
                            "hnlaunch rerun k3f9q --ranks 3          the program as rank 3 "
                            "only\n"
                            "hnlaunch rerun k3f9q -n 4 -x DEBUG=1    with these in place of the "
                            "recorded ones\n" },
        [COMMAND_CONFIG] = { "config", "show every setting and its origin", "[KEY...]", 0, 0,
                             "hnlaunch config run.ppn log.dir         these only\n" },
        [COMMAND_EXPLAIN] = { "explain", "cause and remedy of an error number or exit code",
                              "[NUMBER...|restart]", 0, 0,
                              "hnlaunch explain HN502 125\n"
                              "hnlaunch explain restart                what --restart auto "
                              "decides\n" },
        [COMMAND_HELP] = { "help", "one screen; the help of a command, an option or a topic",
                           "[COMMAND|OPTION|TOPIC]" },
        [COMMAND_VERSION] = { "version", "print the version", "" },
};
const size_t option_command_count = ARRAY_SIZE(option_commands);

/* An alias leads to a name, never to another alias. */
const struct option_def *option_by_name(const char *name)
{
        for (size_t i = 0; i < option_alias_count; i++)
                if (!strcmp(option_aliases[i].name, name))
                        name = option_aliases[i].means;
        for (size_t i = 0; i < option_count; i++)
                if (!strcmp(option_table[i].name, name))
                        return &option_table[i];
        return NULL;
}

const struct option_def *option_by_letter(int letter, enum command command)
{
        for (size_t i = 0; i < option_count; i++)
                if (letter && option_table[i].letter == letter &&
                    option_belongs(&option_table[i], command))
                        return &option_table[i];
        return NULL;
}

bool option_command_takes_words(enum command command)
{
        /* config takes keys, but its other words are a program. */
        return (ON_RUNS | ON(BAD) | ON(HOSTS) | ON(TRUST) | ON(HOLD) | ON(RELEASE) | ON(STAGE) |
                ON(EXPLAIN)) >>
                       command &
               1;
}

/* Actions concern the line in hand, and so do options that a run does not have. */
bool option_is_passed_on(const struct option_def *def)
{
        return !def->action && (!def->commands || def->commands & ON(RUN));
}

bool option_belongs(const struct option_def *def, enum command command)
{
        unsigned commands = def->commands ? def->commands : ON_LAUNCH;

        if (option_is_passed_on(def))
                commands |= ON(RERUN);
        return (commands | ON(HELP) | ON(VERSION)) >> command & 1;
}

char *option_owners(const struct option_def *def)
{
        struct buf names = BUF_INIT;
        int left = 0;

        for (enum command c = 0; c < COMMAND_HELP; c++)
                left += option_belongs(def, c);
        for (enum command c = 0; c < COMMAND_HELP; c++)
                if (option_belongs(def, c))
                        buf_printf(&names, "%s%s", option_commands[c].name,
                                   --left > 1  ? ", "
                                   : left == 1 ? " and "
                                               : "");
        return buf_steal(&names);
}

/* Whether @a, of a user, is the key @b of the table: dashes count as underscores. */
static bool key_matches(const char *a, const char *b)
{
        for (; *a && *b; a++, b++)
                if ((*a == '-' ? '_' : *a) != *b)
                        return false;
        return *a == *b;
}

const struct option_def *option_by_key(const char *key)
{
        /* The rest of the key is the name of a variable. */
        if (!strncmp(key, "env.set.", 8))
                return key[8] ? option_by_name("env") : NULL;
        for (size_t i = 0; i < option_key_alias_count; i++)
                if (key_matches(key, option_key_aliases[i].name))
                        key = option_key_aliases[i].means;
        for (size_t i = 0; i < option_count; i++)
                if (option_table[i].key && key_matches(key, option_table[i].key))
                        return &option_table[i];
        return NULL;
}

const char *const option_group_titles[OPTION_GROUPS] = {
        [GROUP_WHERE] = "Where",         [GROUP_COUNT] = "How many",
        [GROUP_ROLES] = "Roles",         [GROUP_ENV] = "Environment and files",
        [GROUP_WHEN] = "When",           [GROUP_SSH] = "SSH",
        [GROUP_NETWORK] = "Network",     [GROUP_OUTPUT] = "Output",
        [GROUP_PLAN] = "Other commands", [GROUP_OTHER] = "Other",
};

/* Frees the value of an option by the type in the table, so a new option cannot be forgotten. */
static void free_field(struct options *o, const struct option_field *field)
{
        void *at = (char *)o + field->offset;

        switch (field->type) {
        case FIELD_NONE:
        case FIELD_PLAIN:
                break;
        case FIELD_TEXT:
                free(*(char **)at);
                *(char **)at = NULL;
                break;
        case FIELD_LIST:
                strv_finish(at);
                break;
        case FIELD_RANKS:
                intlist_finish(at);
                break;
        case FIELD_CONTAINER:
                container_order_finish(at);
                break;
        }
}

void option_free_fields(struct options *o)
{
        for (size_t i = 0; i < option_count; i++) {
                free_field(o, &option_table[i].field);
                free_field(o, &option_table[i].second);
        }
        free_field(o, &option_program.field);
}

int option_apply(struct options *o, const struct option_def *def, const char *text,
                 struct error *err)
{
        return def->parse((char *)o + def->field.offset, def, text, err);
}
