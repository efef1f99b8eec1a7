# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: Apache-2.0
#
# A real Slurm on the lab's nodes: source after lab.sh. Skips the script when Slurm cannot be fetched.
#
#   lab_up 4; slurm_up 4      munged and slurmctld on the lab's head, slurmd on its nodes, which have 4 processors each
#                             for Slurm; srun, salloc, sbatch, scancel, squeue and scontrol are then in PATH
#   lab_up 4; munge_up        munged alone
#   lab_run salloc -N2 CMD    an allocation of two nodes; CMD runs on the head, as on a login node
#   lab_run sbatch --wait F   the script F runs on the first node of its allocation
#   slurm_job                 the number of the newest job
#   slurm_empty               succeeds when no job is in the queue and no process of a job on any node (for wait_for)
#   slurm_nothing_left NAME   a test of that
#
# TEST_SLURM=RELEASE in the environment takes the Slurm of another release of Debian (tests/lib/slurm_kit.sh).
# SLURM_GPUS=2 before slurm_up gives each node two GPUs for Slurm (device nodes as /dev/null). SLURM_PROCTRACK=cgroup
# keeps jobs in cgroups of version 1, as clusters do: signals then go to the first process of a step only, and no longer
# to its descendants. SLURM_PREEMPT=5: jobs of the partition urgent take the nodes of others, which have 5 s after TERM
# (SLURM_PREEMPT_MODE=REQUEUE: and are put back into the queue).
# SLURM_PROCTRACK=cgroup skips the script where there is none, and such scripts run one after the other. All of it is in
# $TMP/slurm: slurm.conf, logs, the munge key. It ends with the script. Jobs run as root, in the nodes' namespaces.

SLURM_ROOT=$(timeout ${TEST_SLURM:+1}150 bash "$ROOT/tests/lib/slurm_kit.sh" \
    "${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/slurm${TEST_SLURM:+-$TEST_SLURM}" "${TEST_SLURM-}" 2>"$TMP/slurm.log") ||
    skip_all "no Slurm: $(tail -n 1 "$TMP/slurm.log" | cut -c1-160)"
SLURM=$TMP/slurm
slurm_daemons=()

slurm_write_conf() { # CPUS
    local nodes gres=
    nodes=$(lab hosts plain | paste -sd,)
    if [[ -n ${SLURM_GPUS-} ]]; then
        gres="Gres=gpu:$SLURM_GPUS"
        for ((i = 0; i < SLURM_GPUS; i++)); do
            mknod "$SLURM/gpu$i" c 1 3
        done
        echo "NodeName=$nodes Name=gpu File=$SLURM/gpu[0-$((SLURM_GPUS - 1))]" >"$SLURM/gres.conf"
    fi
    cat >"$SLURM/slurm.conf" <<END
ClusterName=lab
SlurmctldHost=head
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$SLURM/munge.socket
PluginDir=$slurm_plugins
StateSaveLocation=$SLURM/state
SlurmdSpoolDir=$SLURM/spool.%n
SlurmctldPidFile=$SLURM/slurmctld.pid
SlurmdPidFile=$SLURM/slurmd.%n.pid
SlurmctldLogFile=$SLURM/slurmctld.log
SlurmdLogFile=$SLURM/slurmd.%n.log
ProctrackType=proctrack/${SLURM_PROCTRACK:-linuxproc}
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=0,permit_job_expansion
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
KillWait=${SLURM_KILL_WAIT:-30}
SlurmdTimeout=${SLURM_NODE_TIMEOUT:-300}
MessageTimeout=60
GresTypes=gpu
NodeName=$nodes CPUs=$1 RealMemory=1000 State=UNKNOWN $gres
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 ${SLURM_PREEMPT:+PreemptMode=${SLURM_PREEMPT_MODE:-CANCEL} GraceTime=$SLURM_PREEMPT}
END
    [[ -z ${SLURM_PREEMPT-} ]] || cat >>"$SLURM/slurm.conf" <<END
PreemptType=preempt/partition_prio
PreemptMode=${SLURM_PREEMPT_MODE:-CANCEL}
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
END
}

# The names of the groups have no room for the test's.
slurm_use_cgroups() {
    [[ -w /sys/fs/cgroup/freezer/release_agent ]] || skip_all 'no writable freezer of cgroup version 1'
    exec {slurm_lock}>"${TMPDIR:-/tmp}/hntest-slurm-cgroups.lock"
    flock "$slurm_lock"
    printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n' >"$SLURM/cgroup.conf"
}

# Starts a daemon that stays in the foreground. A daemon must not hold the script's descriptors.
slurm_daemon() { # NAME COMMAND...
    "${@:2}" </dev/null >"$SLURM/$1.out" 2>&1 &
    slurm_daemons+=($!)
    disown $! # the shell would tell how it ends
}

slurm_nodes_are_idle() { # N
    [[ $(sinfo -h -t idle -o %D 2>/dev/null) == "$1" ]]
}

# munged, which the nodes have where libmunge looks for it.
munge_up() {
    local node
    # shellcheck source=/dev/null
    . "$SLURM_ROOT/env.sh"
    mkdir -p -m 755 "$SLURM"
    head -c 64 /dev/urandom >"$SLURM/munge.key"
    chmod 400 "$SLURM/munge.key"
    # --force: folders below /tmp may be written by others.
    slurm_daemon munged lab run munged --foreground --force --socket="$SLURM/munge.socket" \
        --key-file="$SLURM/munge.key" --log-file="$SLURM/munged.log" --pid-file="$SLURM/munged.pid" \
        --seed-file="$SLURM/munged.seed"
    wait_for test -S "$SLURM/munge.socket" || slurm_did_not_start
    for node in $(lab hosts plain); do
        lab exec "$node" sh -c 'mkdir -p /run/munge && ln -s "$0" /run/munge/munge.socket.2' "$SLURM/munge.socket"
    done
}

slurm_up() { # [CPUS]
    local node
    munge_up
    # Jobs get the environment of the submitter: nothing sets it for them as sshd does.
    export SLURM_CONF=$SLURM/slurm.conf XDG_CACHE_HOME=$TMP/cache
    mkdir -m 755 "$SLURM/state"
    [[ -z ${SLURM_PROCTRACK-} ]] || slurm_use_cgroups
    slurm_write_conf "${1:-4}"
    slurm_daemon slurmctld lab run slurmctld -D -i
    for node in $(lab hosts plain); do
        mkdir "$SLURM/spool.$node"
        slurm_daemon "slurmd.$node" lab exec "$node" slurmd -D -N "$node" -d "$SLURM_ROOT/usr/sbin/slurmstepd"
    done
    wait_for slurm_sees_all || slurm_did_not_start
}

slurm_sees_all() { lab run bash -c "$(declare -f slurm_nodes_are_idle); slurm_nodes_are_idle $(lab hosts plain | wc -l)"; }

slurm_did_not_start() {
    local log
    for log in "$SLURM"/*.log "$SLURM"/*.out; do
        say_file "${log##*/}" "$log"
    done
    fail 'Slurm starts'
    done_testing
}

slurm_job() { lab run squeue -h -t all -S -i -o %i | head -n 1; }

# What the lab shows beside Slurm's daemons.
slurm_processes() {
    lab ps | grep -vE ' (munged --foreground|slurmctld -D|slurmd -D|: slurmscriptd)'
}

slurm_empty() { [[ -z $(lab run squeue -h)$(slurm_processes) ]]; }

slurm_nothing_left() { # NAME
    if wait_for slurm_empty; then
        pass "$1"
    else
        fail "$1" "$(lab run squeue)"$'\n'"$(slurm_processes)"
    fi
}

at_end() {
    local node nodes=
    ((${#slurm_daemons[@]} == 0)) || kill -KILL "${slurm_daemons[@]}" 2>/dev/null
    [[ ! -d $LAB_DIR ]] || { nodes=$(lab hosts plain) && lab down; }
    [[ -n ${SLURM_PROCTRACK-} ]] || return
    for node in $nodes; do
        find /sys/fs/cgroup/*/"slurm_$node" -depth -type d -exec rmdir {} + 2>/dev/null
    done
}
