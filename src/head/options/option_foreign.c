/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table lists the options by launcher; a name that ends with '*' stands for a family such as
 * dynamo-*. The search is linear, because it runs for an unknown option only. A second table
 * explains short letters with different meanings in other launchers: no single advice is right for
 * these.
 *
 * The first fitting entry decides: a member of a family with a separate advice stands above the
 * family. An option of several launchers stands once, at the first of them. Other spellings that
 * work are in option_aliases. A macro below is an advice for several options. Each advice is a
 * sentence without a capital and a full stop: it follows "help: ".
 */
#include "head/options/option_foreign.h"

#include <string.h>

#include "base/macros.h"

#define RENDEZVOUS "ranks meet at a store that hnlaunch serves"
#define BINDING    "--bind POLICY chooses the processors of the ranks, as in --bind core:4"
#define SEVERAL_PROGRAMS                                                                           \
        "programs of one world stand on the line, as in -n 1 ./a : -n 3 ./b, or with their "       \
        "ranks in a file, see --multi-prog"
#define NUMBERED                                                                                   \
        "nodes are numbered in the order of the hosts; --dial-in, which every node starts, "       \
        "takes --node-rank N"
#define LABELLED "lines are labelled without it; --label TEMPLATE changes the label"
#define IN_FILES                                                                                   \
        "--log-dir DIR keeps the output in one file per rank and shows it, too; --show LIST "      \
        "shows some ranks"
#define ELASTIC                                                                                    \
        "a job keeps its size: --max-restarts N starts it again, with hosts marked spare in "      \
        "place of lost ones"
#define ASK_FOR_IT "ask for it with salloc or sbatch; hnlaunch takes the allocation that it runs in"
#define IN_THREADS "-x OMP_NUM_THREADS=N sets the threads of a rank, --bind core:N its cores"
#define OF_SCRIPT                                                                                  \
        "hnlaunch has no settings of Accelerate; ACCELERATE_* variables set them: -x "             \
        "NAME=VALUE, or put `accelerate launch` behind --per-node"
#define OF_HOROVOD                                                                                 \
        "hnlaunch has no settings of Horovod; -x HOROVOD_NAME=VALUE sets the variable that the "   \
        "program reads"
#define OF_SSH                                                                                     \
        "the ssh client is built in; --ssh-command CMD takes another, --start-with CMD starts "    \
        "agents "                                                                                  \
        "in another way"
#define FIRST_FAILS   "a rank that fails ends the job; --on-failure continue lets the others finish"
#define NETWORK       "--iface NAME or --iface CIDR chooses the network of the ranks"
#define DEBUG         "-v tells more about the launch, -vv all"
#define SHOWN         "hnlaunch plan, or --dry-run, shows the ranks of each host"
#define ROUND         "--map node goes round the nodes, --map slot (the default) fills a node first"
#define BY_PLACE      "--ppn N sets the ranks of a node, --bind socket their places"
#define MODULE        "write it as in a shell: hnlaunch ... python3 -m PKG.MODULE"
#define EXPORTED      "all variables are exported; --export NONE and -x NAME choose"
#define NOTHING_POLLS "nothing polls and nothing forks: leave it out"
#define GPUS          "--ppn gpu starts a rank per GPU; --gpus-per-rank N gives a rank more of them"
#define FILES         "--push FILE copies files to the nodes"
#define NO_DAEMON     "hnlaunch has no daemon of that kind: leave it out"
#define LOCAL_RANK    "no argument is added without --local-rank-arg or --compat deepspeed"
#define MASTER        "hnlaunch finds the address and a port of rank 0's node; --iface chooses its network"
#define NO_MCA                                                                                     \
        "hnlaunch has no MCA parameters; for a program that reads them: -x OMPI_MCA_NAME=VALUE"
#define STACKS                                                                                     \
        "--timeout TIME shows the ranks and their stacks before the end; so does hnlaunch why"
#define AS_IN_SHELL "write the program as in a shell: hnlaunch ... python3 train.py"
#define BY_LINES    "output is passed on line by line: leave it out"
#define RUN_NAME    "every run has a name, see hnlaunch ps"
#define WAIT        "--ends-with rank0 ends the job with rank 0, --timeout TIME after a time"
#define TERMINAL    "--pty gives the terminal to rank 0"
#define TOOL        "--wrap CMD puts a tool in front of the program"

/* clang-format off */
const struct option_foreign option_foreigns[] = {
        /* torchrun (torch/distributed/run.py). Options of its rendezvous are accepted, since
         * scripts that name a store work as they are; options that would lose output or start
         * another program are refused. */
        { "standalone", 0, true, RENDEZVOUS },
        { "rdzv-backend", 1, true, RENDEZVOUS },
        { "rdzv-endpoint", 1, true, RENDEZVOUS },
        { "rdzv-id", 1, true, RENDEZVOUS },
        { "rdzv-conf", 1, true, RENDEZVOUS },
        { "master-port", 1, true, "hnlaunch takes a free port of rank 0's node" },
        { "master-addr", 1, true, "hnlaunch takes an address of rank 0's node; --iface chooses its network" },
        { "no-python", 0, true, "the program is started as it is, without an interpreter" },
        { "module", 1, false, MODULE },
        { "run-path", 0, false, AS_IN_SHELL },
        { "redirects", 1, false, IN_FILES },
        { "tee", 1, false, IN_FILES },
        { "logs-specs", 1, false, IN_FILES },
        { "local-ranks-filter", 1, false, "--show LIST shows these ranks of the job, --log-dir DIR keeps all" },
        { "duplicate-stdout-filters", 1, false, "hnlaunch logs --grep PATTERN finds lines of a run" },
        { "duplicate-stderr-filters", 1, false, "hnlaunch logs --grep PATTERN finds lines of a run" },
        { "local-addr", 1, false, NETWORK },
        { "monitor-interval", 1, false, NOTHING_POLLS },
        { "start-method", 1, false, NOTHING_POLLS },
        { "event-log-handler", 1, false, "--json=FILE writes the events of the job" },
        { "signals-to-handle", 1, false, "SIGTERM, SIGUSR1 and SIGUSR2 reach the ranks; hnlaunch signal sends others" },
        { "virtual-local-rank", 0, false, "-o run.gpu_visibility=own shows a rank its own GPUs only" },
        /* deepspeed (deepspeed/launcher/runner.py). --compat deepspeed sets its variables. */
        { "save-pid", 0, false, "--json=FILE writes the events of the job, which have the PID of each rank" },
        { "enable-each-rank-log", 1, false, IN_FILES },
        { "no-local-rank", 0, false, LOCAL_RANK },
        { "no-ssh", 0, false, "one hnlaunch starts all nodes; --dial-in is for platforms that start it on each" },
        { "no-ssh-check", 0, false, "one hnlaunch starts all nodes; --dial-in is for platforms that start it on each" },
        { "launcher-args", 1, false, OF_SSH },
        { "venv-script", 1, false, OF_SSH },
        { "force-multi", 0, false, "one host is started as several are: leave it out" },
        { "autotuning", 1, false, "hnlaunch starts no trials: leave it out" },
        { "elastic-training", 0, false, ELASTIC },
        { "min-elastic-nodes", 1, false, ELASTIC },
        { "max-elastic-nodes", 1, false, ELASTIC },
        { "bind-cores-to-rank", 0, false, "--bind exclusive divides the cores of a node between its ranks" },
        { "bind-core-list", 1, false, BINDING },
        /* accelerate launch (accelerate/commands/launch.py). Most options become variables
         * ACCELERATE_* of the script, which hnlaunch does not make. */
        { "num-processes", 1, false, "-n N (ranks in all)" },
        { "num-machines", 1, false, "--nodes N" },
        { "machine-rank", 1, false, NUMBERED },
        { "main-process-ip", 1, false, MASTER },
        { "main-process-port", 1, false, MASTER },
        { "same-network", 1, false, MASTER },
        { "multi-gpu", 0, false, GPUS },
        { "multi-cpu", 0, false, "-x ACCELERATE_USE_CPU=true, with -n N" },
        { "use-cpu", 0, false, "-x ACCELERATE_USE_CPU=true, with -n N" },
        { "cpu", 0, false, "-x ACCELERATE_USE_CPU=true, with -n N" },
        { "gpu-ids", 1, false, "--include HOST:0,2 takes GPUs of a host, -x CUDA_VISIBLE_DEVICES=0,2 of each node" },
        { "num-cpu-threads-per-process", 1, false, IN_THREADS },
        { "enable-cpu-affinity", 0, false, BINDING },
        { "mixed-precision", 1, false, "-x ACCELERATE_MIXED_PRECISION=bf16" },
        { "main-training-function", 1, false, AS_IN_SHELL },
        { "deepspeed-hostfile", 1, false, "-H FILE" },
        { "deepspeed-inclusion-filter", 1, false, "--include SPEC" },
        { "deepspeed-exclusion-filter", 1, false, "--exclude SPEC" },
        { "deepspeed-multinode-launcher", 1, false, OF_SSH },
        { "config-file", 1, false, OF_SCRIPT },
        { "default-config-file", 1, false, OF_SCRIPT },
        { "gradient-accumulation-steps", 1, false, OF_SCRIPT },
        { "gradient-clipping", 1, false, OF_SCRIPT },
        { "zero-stage", 1, false, OF_SCRIPT },
        { "downcast-bf16", 1, false, OF_SCRIPT },
        { "dynamo-*", 1, false, OF_SCRIPT },
        { "fsdp-*", 1, false, OF_SCRIPT },
        { "deepspeed-*", 1, false, OF_SCRIPT },
        { "megatron-lm-*", 1, false, OF_SCRIPT },
        { "parallelism-config-*", 1, false, OF_SCRIPT },
        { "fp8-*", 1, false, OF_SCRIPT },
        { "zero3-*", 1, false, OF_SCRIPT },
        { "offload-*", 1, false, OF_SCRIPT },
        { "tpu-*", 1, false, OF_SCRIPT },
        { "aws-*", 1, false, OF_SCRIPT },
        { "use-deepspeed", 1, false, OF_SCRIPT },
        { "use-fsdp", 1, false, OF_SCRIPT },
        { "use-megatron-lm", 1, false, OF_SCRIPT },
        { "use-mps-device", 1, false, OF_SCRIPT },
        { "use-xpu", 1, false, OF_SCRIPT },
        { "ipex", 1, false, OF_SCRIPT },
        { "mpirun-ccl", 1, false, OF_SCRIPT },
        { "mpirun-hostfile", 1, false, "-H FILE" },
        /* horovodrun (horovod/runner/launch.py). Tuning of the library is done
         * by variables HOROVOD_*. */
        { "num-proc", 1, false, "-n N (ranks in all)" },
        { "min-np", 1, false, ELASTIC },
        { "max-np", 1, false, ELASTIC },
        { "min-num-proc", 1, false, ELASTIC },
        { "max-num-proc", 1, false, ELASTIC },
        { "elastic-timeout", 1, false, ELASTIC },
        { "slots-per-host", 1, false, ELASTIC },
        { "host-discovery-script", 1, false, ELASTIC },
        { "blacklist-cooldown-range", 1, false, ELASTIC },
        { "reset-limit", 1, false, "--max-restarts N" },
        { "network-interfaces", 1, false, NETWORK },
        { "network-interface", 1, false, NETWORK },
        { "ssh-identity-file", 1, false, "--identity FILE" },
        { "check-build", 0, false, OF_HOROVOD },
        { "gloo", 0, false, OF_HOROVOD },
        { "jsrun", 0, false, OF_HOROVOD },
        { "disable-cache", 0, false, OF_HOROVOD },
        { "fusion-threshold-mb", 1, false, OF_HOROVOD },
        { "cycle-time-ms", 1, false, OF_HOROVOD },
        { "cache-capacity", 1, false, OF_HOROVOD },
        { "hierarchical-allreduce", 1, false, OF_HOROVOD },
        { "hierarchical-allgather", 1, false, OF_HOROVOD },
        { "autotune", 1, false, OF_HOROVOD },
        { "autotune-*", 1, false, OF_HOROVOD },
        { "timeline-*", 1, false, OF_HOROVOD },
        { "stall-check-*", 1, false, OF_HOROVOD },
        { "no-stall-check", 1, false, OF_HOROVOD },
        { "num-nccl-streams", 1, false, OF_HOROVOD },
        { "thread-affinity", 1, false, OF_HOROVOD },
        { "gloo-timeout-seconds", 1, false, OF_HOROVOD },
        { "log-level", 1, false, OF_HOROVOD },
        { "mpi-args", 1, false, "-x NAME=VALUE sets variables of an MPI program; the ranks are started without mpirun" },
        { "binding-args", 1, false, BINDING },
        /* mpirun of Open MPI, with options of old versions and of PRRTE (version 5). Names that
         * other launchers have with one dash, such as -mca, come here with two (modern_word()). */
        { "allow-run-as-root", 0, true, "root may always use hnlaunch" },
        { "map-by", 1, false, "--map slot or --map node; --ppn N for ppr:N:node" },
        { "bynode", 0, false, ROUND },
        { "byslot", 0, false, ROUND },
        { "rank-by", 0, false, ROUND },
        { "cpu-set", 1, false, BINDING },
        { "cpu-list", 1, false, BINDING },
        { "cpus-per-proc", 1, false, BINDING },
        { "cpus-per-rank", 1, false, BINDING },
        { "slot-list", 1, false, BINDING },
        { "rankfile", 1, false, BINDING },
        { "bycore", 0, false, BINDING },
        { "bysocket", 0, false, BINDING },
        { "bind-to-core", 0, false, BINDING },
        { "bind-to-socket", 0, false, BINDING },
        { "bind-to-none", 0, false, BINDING },
        { "report-bindings", 0, false, "-v shows the processors of each rank" },
        { "use-hwthread-cpus", 0, false, BINDING },
        { "hwthread-cpus", 0, false, BINDING },
        { "mca", 2, false, NO_MCA },
        { "gmca", 2, false, NO_MCA },
        { "omca", 2, false, NO_MCA },
        { "prtemca", 2, false, NO_MCA },
        { "pmixmca", 2, false, NO_MCA },
        { "am", 1, false, NO_MCA },
        { "tune", 1, false, NO_MCA },
        { "app", 1, false, SEVERAL_PROGRAMS },
        { "appfile", 1, false, SEVERAL_PROGRAMS },
        { "configfile", 1, false, SEVERAL_PROGRAMS },
        { "tag-output", 0, false, LABELLED },
        { "timestamp-output", 0, false, "--timestamps" },
        { "output-filename", 1, false, IN_FILES },
        { "output-directory", 1, false, IN_FILES },
        { "output", 1, false, IN_FILES },
        { "merge-stderr-to-stdout", 0, false, "2>&1 behind the line does so" },
        { "display-map", 0, false, SHOWN },
        { "display-devel-map", 0, false, SHOWN },
        { "display-allocation", 0, false, SHOWN },
        { "display-topo", 0, false, SHOWN },
        { "do-not-launch", 0, false, SHOWN },
        { "display", 1, false, SHOWN },
        { "npersocket", 1, false, BY_PLACE },
        { "ppr", 1, false, BY_PLACE },
        { "pernode", 0, false, "--ppn 1, or --per-node for a program that starts ranks of its own" },
        { "nooversubscribe", 0, false, "ranks beyond the slots are an error without --oversubscribe: leave it out" },
        { "nolocal", 0, false, "--exclude HOST leaves this machine out" },
        { "loadbalance", 0, false, ROUND },
        { "hetero-nodes", 0, false, "each node tells its cores and GPUs: leave it out" },
        { "novm", 0, false, "each node tells its cores and GPUs: leave it out" },
        { "continuous", 0, false, "each node tells its cores and GPUs: leave it out" },
        { "default-hostfile", 1, false, "-H FILE" },
        { "max-vm-size", 1, false, "--nodes N" },
        { "launch-agent", 1, false, OF_SSH },
        { "prefix", 1, false, "nodes need no installation: leave it out, or use -x LD_LIBRARY_PATH=DIR" },
        { "noprefix", 0, false, "nodes need no installation: leave it out" },
        { "path", 1, false, "-x PATH=..., or write the path of the program" },
        { "preload-binary", 0, false, FILES },
        { "preload-files", 1, false, FILES },
        { "preload-files-dest-dir", 1, false, FILES },
        { "set-cwd-to-session-dir", 0, false, "--push FILE starts the ranks among the copies; --chdir DIR elsewhere" },
        { "xterm", 1, false, "--show LIST shows these ranks only" },
        { "enable-recovery", 0, false, FIRST_FAILS },
        { "disable-recovery", 0, false, FIRST_FAILS },
        { "forward-signals", 1, false, "SIGTERM, SIGUSR1 and SIGUSR2 reach the ranks; hnlaunch signal sends others" },
        { "index-argv-by-rank", 0, false, "--subst replaces {rank} in the arguments" },
        { "report-pid", 1, false, "--json=FILE writes the events of the job, hnlaunch ps shows its name" },
        { "report-uri", 1, false, "--json=FILE writes the events of the job, hnlaunch ps shows its name" },
        { "report-events", 1, false, "--json=FILE writes the events of the job, hnlaunch ps shows its name" },
        { "report-state-on-timeout", 0, false, STACKS },
        { "get-stack-traces", 0, false, STACKS },
        { "report-child-jobs-separately", 0, false, FIRST_FAILS },
        { "server-wait-time", 1, false, NO_DAEMON },
        { "ompi-server", 1, false, NO_DAEMON },
        { "dvm", 1, false, NO_DAEMON },
        { "dvm-uri", 1, false, NO_DAEMON },
        { "hnp", 1, false, NO_DAEMON },
        { "personality", 1, false, NO_DAEMON },
        { "runtime-options", 1, false, NO_DAEMON },
        { "rtos", 1, false, NO_DAEMON },
        { "with-ft", 1, false, NO_DAEMON },
        { "debug-daemons", 0, false, DEBUG },
        { "debug-daemons-file", 0, false, DEBUG },
        { "debug-devel", 0, false, DEBUG },
        { "leave-session-attached", 0, false, DEBUG },
        { "test-suicide", 0, false, DEBUG },
        { "debug", 0, false, "a debugger goes in front of the program: --wrap 'gdb --args'" },
        { "tv", 0, false, "a debugger goes in front of the program: --wrap 'gdb --args'" },
        { "stream-buffering", 1, false, "lines come whole as they are written; --raw changes nothing in them" },
        { "show-progress", 0, false, "--progress plain shows the start-up" },
        { "xml", 0, false, "--json has the events of the job" },
        { "parsable", 0, false, "--json has the events of the job" },
        /* mpiexec of MPICH (Hydra) and Intel MPI. "-env" keeps its dash: --env is
         * an option of hnlaunch. */
        { "genv", 2, false, "-x NAME=VALUE" },
        { "-env", 2, false, "-x NAME=VALUE; all ranks get it" },
        { "genvlist", 1, false, "-x NAME for each; --export NAME,NAME for nothing else" },
        { "envlist", 1, false, "-x NAME for each; --export NAME,NAME for nothing else" },
        { "genvall", 0, false, EXPORTED },
        { "envall", 0, false, EXPORTED },
        { "genvnone", 0, false, "--export NONE" },
        { "envnone", 0, false, "--export NONE" },
        { "hostlist", 1, false, "-w LIST" },
        { "hosts-group", 1, false, "-w LIST, as in 'gpu[01-64]'" },
        { "perhost", 1, false, "--ppn N" },
        { "grr", 1, false, "--ppn N" },
        { "rr-perhost", 1, false, "--ppn N" },
        { "rr", 0, false, "--map node --ppn 1" },
        { "machine", 1, false, "-H FILE" },
        { "localhost", 1, false, NETWORK },
        { "localroot", 0, false, "--local N starts ranks on this machine" },
        { "localonly", 0, false, "--local N starts ranks on this machine" },
        { "hybrid-hosts", 0, false, "-w LIST, with slots as in a:4,b:8" },
        { "hostos", 0, false, "-w LIST, with slots as in a:4,b:8" },
        { "bootstrap", 1, false, OF_SSH },
        { "bootstrap-exec", 1, false, OF_SSH },
        { "bootstrap-exec-args", 1, false, OF_SSH },
        { "launcher", 1, false, OF_SSH },
        { "launcher-exec", 1, false, OF_SSH },
        { "rmk", 1, false, OF_SSH },
        { "branch-count", 1, false, OF_SSH },
        { "enable-x", 0, false, "X11 is not forwarded; -x DISPLAY=... sets the variable" },
        { "disable-x", 0, false, "X11 is not forwarded; -x DISPLAY=... sets the variable" },
        { "prepend-rank", 0, false, LABELLED },
        { "prepend-pattern", 0, false, LABELLED },
        { "ordered-output", 0, false, LABELLED },
        { "outfile-pattern", 1, false, IN_FILES },
        { "errfile-pattern", 1, false, IN_FILES },
        { "print-rank-map", 0, false, SHOWN },
        { "print-all-exitcodes", 0, false, "--log-dir DIR writes summary.json with the exit code of each rank" },
        { "order-nodes", 0, false, "nodes are used in the order of the list; --exclude HOST leaves one out" },
        { "skip-launch-node", 0, false, "nodes are used in the order of the list; --exclude HOST leaves one out" },
        { "disable-auto-cleanup", 0, false, FIRST_FAILS },
        { "disable-hostname-propagation", 1, false, NO_DAEMON },
        { "info", 1, false, NO_DAEMON },
        { "topolib", 1, false, NO_DAEMON },
        { "demux", 1, false, NO_DAEMON },
        { "usize", 1, false, NO_DAEMON },
        { "ckpointlib", 1, false, NO_DAEMON },
        { "ckpoint-interval", 1, false, NO_DAEMON },
        { "membind", 1, false, BINDING },
        { "gpus-per-proc", 1, false, GPUS },
        { "gpu-subdevs-per-proc", 1, false, GPUS },
        { "gtool", 1, false, TOOL },
        { "gtoolfile", 1, false, TOOL },
        { "-trace", 0, false, TOOL },
        { "aps", 0, false, TOOL },
        { "check-mpi", 0, false, TOOL },
        { "noconf", 0, false, "--ssh-config none reads no ssh_config; hnlaunch config shows all settings" },
        { "tmpdir", 1, false, "-x TMPDIR=DIR" },
        { "umask", 1, false, "set it in a script that starts the program" },
        /* srun(1). Options for an allocation have no effect within one, so
         * salloc and sbatch are named. */
        { "cpus-per-task", 1, false, "--bind core:N gives each rank N cores, and as many threads of OpenMP" },
        { "mem-bind", 1, false, BINDING },
        { "accel-bind", 1, false, BINDING },
        { "gpu-bind", 1, false, BINDING },
        { "distribution-bind", 1, false, BINDING },
        { "hint", 1, false, BINDING },
        { "threads-per-core", 1, false, BINDING },
        { "cores-per-socket", 1, false, BINDING },
        { "sockets-per-node", 1, false, BINDING },
        { "ntasks-per-core", 1, false, BINDING },
        { "ntasks-per-socket", 1, false, BINDING },
        { "extra-node-info", 1, false, BINDING },
        { "core-spec", 1, false, BINDING },
        { "thread-spec", 1, false, BINDING },
        { "distribution", 1, false, ROUND },
        { "gpus-per-task", 1, false, "--gpus-per-rank N" },
        { "ntasks-per-gpu", 1, false, "--gpus-per-rank N" },
        { "gpus", 1, false, GPUS },
        { "gpus-per-node", 1, false, GPUS },
        { "gpus-per-socket", 1, false, GPUS },
        { "gres", 1, false, GPUS },
        { "tres-per-task", 1, false, GPUS },
        { "cpus-per-gpu", 1, false, GPUS },
        { "overcommit", 0, false, "--oversubscribe" },
        { "overlap", 0, false, "hnlaunch starts the ranks without a step of Slurm: leave it out" },
        { "exact", 0, false, "hnlaunch starts the ranks without a step of Slurm: leave it out" },
        { "exclusive", 0, false, "hnlaunch starts the ranks without a step of Slurm: leave it out" },
        { "whole", 0, false, "hnlaunch starts the ranks without a step of Slurm: leave it out" },
        { "spread-job", 0, false, "hnlaunch starts the ranks without a step of Slurm: leave it out" },
        { "use-min-nodes", 0, false, "hnlaunch starts the ranks without a step of Slurm: leave it out" },
        { "contiguous", 0, false, "hnlaunch starts the ranks without a step of Slurm: leave it out" },
        { "kill-on-bad-exit", 0, false, FIRST_FAILS },
        { "no-kill", 0, false, FIRST_FAILS },
        { "input", 1, false, "--stdin none, 0, all or FILE" },
        { "error", 1, false, IN_FILES },
        { "open-mode", 1, false, IN_FILES },
        { "unbuffered", 0, false, BY_LINES },
        { "test-only", 0, false, SHOWN },
        { "time", 1, false, "--timeout TIME, as in 10m; a bare number is seconds" },
        { "time-min", 1, false, ASK_FOR_IT },
        { "deadline", 1, false, ASK_FOR_IT },
        { "begin", 1, false, ASK_FOR_IT },
        { "wait", 1, false, WAIT },
        { "nodefile", 1, false, "-H FILE" },
        { "relative", 1, false, "--include SPEC and --exclude SPEC choose among the nodes" },
        { "bcast", 0, false, FILES },
        { "send-libs", 1, false, FILES },
        { "export-file", 1, false, "--env-file FILE" },
        { "prolog", 1, false, "--wrap CMD puts a command in front of the program" },
        { "epilog", 1, false, "--wrap CMD puts a command in front of the program" },
        { "task-prolog", 1, false, "--wrap CMD puts a command in front of the program" },
        { "task-epilog", 1, false, "--wrap CMD puts a command in front of the program" },
        { "propagate", 0, false, "soft limits of ranks are raised to the hard ones; ulimit in a script sets others" },
        { "signal", 1, false, "hnlaunch signal RUN SIGNAL" },
        { "quit-on-interrupt", 0, false, "Ctrl-C stops the ranks, a second one kills them" },
        { "disable-status", 0, false, "Ctrl-C stops the ranks, a second one kills them" },
        { "preserve-env", 0, false, EXPORTED },
        { "het-group", 1, false, SEVERAL_PROGRAMS },
        { "pack-group", 1, false, SEVERAL_PROGRAMS },
        { "jobid", 1, false, RUN_NAME },
        { "job-id", 1, false, RUN_NAME },
        { "job-name", 1, false, RUN_NAME },
        { "comment", 1, false, RUN_NAME },
        { "nice", 1, false, "--wrap 'nice -n N'" },
        { "resv-ports", 1, false, "{port:NAME} in the arguments is a free port, see --subst" },
        { "slurmd-debug", 1, false, DEBUG },
        { "account", 1, false, ASK_FOR_IT },
        { "partition", 1, false, ASK_FOR_IT },
        { "qos", 1, false, ASK_FOR_IT },
        { "reservation", 1, false, ASK_FOR_IT },
        { "constraint", 1, false, ASK_FOR_IT },
        { "mem", 1, false, ASK_FOR_IT },
        { "mem-per-cpu", 1, false, ASK_FOR_IT },
        { "mem-per-gpu", 1, false, ASK_FOR_IT },
        { "mincpus", 1, false, ASK_FOR_IT },
        { "licenses", 1, false, ASK_FOR_IT },
        { "dependency", 1, false, ASK_FOR_IT },
        { "wckey", 1, false, ASK_FOR_IT },
        { "cluster", 1, false, ASK_FOR_IT },
        { "clusters", 1, false, ASK_FOR_IT },
        { "cluster-constraint", 1, false, ASK_FOR_IT },
        { "mail-type", 1, false, ASK_FOR_IT },
        { "mail-user", 1, false, ASK_FOR_IT },
        { "switches", 1, false, ASK_FOR_IT },
        { "priority", 1, false, ASK_FOR_IT },
        { "network", 1, false, ASK_FOR_IT },
        { "bb", 1, false, ASK_FOR_IT },
        { "bbf", 1, false, ASK_FOR_IT },
        { "power", 1, false, ASK_FOR_IT },
        { "tmp", 1, false, ASK_FOR_IT },
        { "gres-flags", 1, false, ASK_FOR_IT },
        { "acctg-freq", 1, false, ASK_FOR_IT },
        { "cpu-freq", 1, false, ASK_FOR_IT },
        { "gpu-freq", 1, false, ASK_FOR_IT },
        { "mcs-label", 1, false, ASK_FOR_IT },
        { "delay-boot", 1, false, ASK_FOR_IT },
        { "immediate", 1, false, ASK_FOR_IT },
        { "x11", 1, false, ASK_FOR_IT },
        { "no-allocate", 1, false, ASK_FOR_IT },
        { "uid", 1, false, ASK_FOR_IT },
        { "gid", 1, false, ASK_FOR_IT },
        { "no-requeue", 0, false, ASK_FOR_IT },
        { "requeue", 0, false, ASK_FOR_IT },
        { "reboot", 0, false, ASK_FOR_IT },
        { "threads", 1, false, "-o ssh.fanout=N, or --tree K" },
        { "max-threads", 1, false, "-o ssh.fanout=N, or --tree K" },
        { "treewidth", 1, false, "-o ssh.fanout=N, or --tree K" },
        { "msg-timeout", 1, false, "--node-timeout TIME" },
        /* docker and kubectl */
        { "it", 0, false, TERMINAL },
        { "ti", 0, false, TERMINAL },
        /* letters with one meaning elsewhere */
        { "-O", 0, false, "--oversubscribe" },
        { "-K", 0, false, FIRST_FAILS },
        { "-k", 0, false, FIRST_FAILS },
        { "-u", 0, false, BY_LINES },
        { "-r", 1, false, IN_FILES },
        { "-J", 1, false, RUN_NAME },
        { "-A", 1, false, ASK_FOR_IT },
        { "-C", 1, false, ASK_FOR_IT },
        { "-L", 1, false, ASK_FOR_IT },
        { "-M", 1, false, ASK_FOR_IT },
        { "-d", 1, false, "--detach leaves the run without a terminal; a dependency of Slurm: " ASK_FOR_IT },
        { "-G", 1, false, GPUS },
        { "-W", 1, false, WAIT },
};
/* clang-format on */
const size_t option_foreign_count = ARRAY_SIZE(option_foreigns);
_Static_assert(ARRAY_SIZE(option_foreigns) <= OPTION_FOREIGN_MAX, "OPTION_FOREIGN_MAX");

const struct option_foreign *option_foreign_by_name(const char *name)
{
        for (size_t i = 0; i < option_foreign_count; i++) {
                const char *known = option_foreigns[i].name;
                size_t len = strcspn(known, "*");

                /* A family wants any name with its beginning, another entry the same length. */
                if (!strncmp(known, name, len) && (known[len] || !name[len]))
                        return &option_foreigns[i];
        }
        return NULL;
}

/* Letters are told with both meanings and what to write for each. A letter that means the same in
 * all other launchers is in the table above. */
const struct option_letter option_letters[] = {
        { 'N', "ranks per node in mpirun, nodes in srun and flux",
          "--ppn N (ranks per node) or --nodes N (hosts)" },
        { 'e', "hosts to leave out in deepspeed, the file for standard error in srun",
          "--exclude SPEC, or --log-dir DIR (output in files)" },
        { 'f', "the hostfile in mpiexec.hydra, the fan-out in pdsh",
          "-H FILE (hostfile) or -o ssh.fanout=N" },
        { 'i', "the identity in ssh, hosts to include in deepspeed",
          "--identity FILE or --include SPEC" },
        { 'l', "the label in srun, the user in pdsh and ssh", "--label TEMPLATE or --user NAME" },
        { 'm', "a Python module in torchrun, the distribution of ranks in srun",
          "python -m PKG.MODULE as the program, or --map slot|node" },
        { 'D', "the working directory in srun, a forwarded port in ssh", "--chdir DIR" },
        { 't', "a time limit in srun, a terminal in ssh, copied output in torchrun",
          "--timeout TIME, or --log-dir DIR (output in files as well)" },
        { 'c', "cores per rank in srun, copies of the program in mpirun",
          "-n N (ranks in all) or --ppn N; --bind core:N binds cores" },
        { 'g', "GPUs per rank in flux, a group of hosts in pdsh", "--gpus-per-rank N, or -w LIST" },
};
const size_t option_letter_count = ARRAY_SIZE(option_letters);
