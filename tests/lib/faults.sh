# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: Apache-2.0
#
# Faults in jobs on a lab, several jobs at a time: source after tap.sh and lab.sh.
#
# One lab serves TEAMS teams of TEAM_NODES nodes; what happens to one team disturbs no other. Between
# faults_up and faults_down each team runs its jobs in a subshell of its own, which calls team_begin.
#
# A node has its own /run, and in it the agent's cache and a "head" in front of the system's: with
# /run/hold/flag there, an upload stops after the node has asked for the agent. Processes are counted in
# /proc of the node, seen through its init: cheap enough to look often. What is waited for is looked for without
# any process, since several teams look ten times a second.

. "$ROOT/tests/lib/lab.sh" || exit 1

VICTIM=$WORKERS/worker_victim
GROUPS_AT=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)

faults_up() { # TEAMS TEAM_NODES
    local i
    TEAMS=$1 TEAM_NODES=$2
    export LAB_SSHD_OPTS="MaxStartups 200
SetEnv XDG_CACHE_HOME=/run/cache PATH=/run/hold:/usr/sbin:/usr/bin:/sbin:/bin"
    lab_up $((TEAMS * TEAM_NODES)) 4
    for ((i = 1; i <= TEAMS * TEAM_NODES; i++)); do
        node_prepare "$(printf 'node%03d' "$i")"
    done
}

node_init() { # NODE: sets INIT, the PID of its process 1 out here
    read -r INIT _ <"$LAB_DIR/nodes/$1/pid"
}

node_files() { # NODE: sets FILES, its / out here
    node_init "$1"
    FILES=/proc/$INIT/root
}

node_prepare() { # NODE
    node_files "$1"
    mkdir -p "$FILES/run/hold"
    cat >"$FILES/run/hold/head" <<'END'
#!/bin/sh
# The second call of the bootstrap line reads the agent from standard input.
if [ $# = 2 ] && [ -e /run/hold/flag ]; then
    : >/run/hold/waiting
    i=0
    while [ -e /run/hold/flag ] && [ $i -lt 2000 ]; do
        sleep 0.05
        i=$((i + 1))
    done
fi
exec /usr/bin/head "$@"
END
    chmod 755 "$FILES/run/hold/head"
}

# --- what runs on a node: PIDs of its own namespace -------------------------------------------------

# Sets PIDS. KIND: agent, guard, worker (a rank itself, not what it left), session, listener, any
# (whatever is not the lab's own), job (the same without sessions).
node_find() { # NODE KIND
    local d pid comm line agent=
    PIDS=()
    node_files "$1"
    for d in "$FILES"/proc/[0-9]*; do
        pid=${d##*/}
        { read -r comm <"$d/comm"; } 2>/dev/null || continue
        [[ $pid != 1 && $comm != sleep || $comm == agent-* ]] || continue
        case $comm in
            agent-*) kind=agent ;;
            hnlaunch-guard) kind=guard ;;
            sshd)
                line=
                { IFS= read -r -d '' line <"$d/cmdline"; } 2>/dev/null
                kind=session
                [[ $line == *'[listener]'* ]] && kind=listener
                [[ -n $line ]] || continue # a zombie
                ;;
            worker_victim)
                kind=child
                ;;
            *) kind=other ;;
        esac
        case $2/$kind in
            any/listener | job/listener | job/session) ;;
            job/*) PIDS+=("$pid") ;;
            any/* | agent/agent | guard/guard | session/session | listener/listener) PIDS+=("$pid") ;;
            worker/child) node_is_rank "$d" && PIDS+=("$pid") ;;
        esac
    done
    ((${#PIDS[@]}))
}

# Ranks are children of the agent (or of the keeper of a namespace) and leaders of their session with
# standard output that is no /dev/null.
node_is_rank() { # PROC-FOLDER
    [[ -p $1/fd/1 ]]
}

node_kill() { # NODE SIGNAL PID...
    local sig=$2
    node_init "$1"
    shift 2
    nsenter -m -p -t "$INIT" kill -s "$sig" -- "$@" 2>/dev/null
}

# --- a team -----------------------------------------------------------------------------------------

# Calls the script's team() for each team, side by side.
run_teams() {
    local t teams=()
    for ((t = 0; t < TEAMS; t++)); do
        team "$t" 2>>"${LOG:-$TMP/team.log}" &
        teams+=($!)
    done
    wait "${teams[@]}"
}

# Runs round() of the script for rounds 1 to N, or for $ONLY alone, and sorts what they have appended to
# $TMP/results.TEAM, "ROUND|BAD or nothing|..." each, into $TMP/results. RANDOM goes by $seed and the round.
run_rounds() { # TEAMS TEAM-NODES N
    local n=$3
    team() {
        local i
        team_begin "$1"
        for ((i = $1 + 1; i <= n; i += TEAMS)); do
            [[ -n ${ONLY-} && $i != "$ONLY" ]] || round "$i"
        done
    }
    begun=$SECONDS
    faults_up "${TEAM_COUNT:-$1}" "$2"
    run_teams
    sort -n "$TMP"/results.* >"$TMP/results"
    [[ -z ${ONLY-} ]] || n=1
    is "all $n rounds of seed $seed were run" "$(wc -l <"$TMP/results")" "$n"
}

seed_round() { RANDOM=$(((seed * 7919 + $1 * 104729) % 32749)); } # ROUND

sleep_until() { # MS: of now_ms()
    local ms
    now_ms
    ms=$(($1 - MS))
    ((ms <= 0)) || sleep "$(printf '0.%03d' "$ms")"
}

end_rounds() { # NAME: no round is BAD
    grep '|BAD|' "$TMP/results" >"$OUT"
    is "$1" "$(wc -l <"$OUT")" 0
    lab_nothing_left 'no process is left anywhere'
    printf '# %d rounds in %d s; exit codes:' "$(wc -l <"$TMP/results")" $((SECONDS - begun))
    cut -d'|' -f3 "$TMP/results" | tr ' ' '\n' | sort -n | uniq -c | awk '{ printf " %s x %s", $1, $2 }'
    echo
    [[ -z ${VERBOSE-} ]] || sed 's/^/# /' "$TMP/results"
    done_testing
}

team_begin() { # TEAM: sets NODES (names) and HOSTS
    local i
    TEAM=$1 NODES=()
    for ((i = 1; i <= TEAM_NODES; i++)); do
        NODES+=("$(printf 'node%03d' $((TEAM * TEAM_NODES + i)))")
    done
    HOSTS=$TMP/hosts.$TEAM
    printf '%s slots=4\n' "${NODES[@]}" >"$HOSTS"
}

# How many processes of jobs are on the team's nodes; those of nodes in SKIP are not counted.
team_count() {
    local n
    COUNT=0
    for n in "${NODES[@]}"; do
        [[ " ${SKIP-} " == *" $n "* ]] && continue
        node_find "$n" "${COUNTED:-any}" && COUNT=$((COUNT + ${#PIDS[@]}))
    done
}

team_empty() {
    team_count
    ((COUNT == 0))
}

team_agents() { # N: so many nodes have an agent
    local n with=0
    for n in "${NODES[@]}"; do
        node_find "$n" guard && with=$((with + 1))
    done
    ((with >= $1))
}

# The control groups of the team's ranks, to be looked at when they are gone.
team_groups() {
    local n p line
    GROUPS_OF=()
    for n in "${NODES[@]}"; do
        node_find "$n" worker || continue
        for p in "${PIDS[@]}"; do
            line=$(grep '^0::.*/hnlaunch-' "$FILES/proc/$p/cgroup" 2>/dev/null) || continue
            GROUPS_OF+=("$GROUPS_AT${line#0::}")
            break # one group holds all ranks of a node
        done
    done
}

now_ms() { MS=$((${EPOCHREALTIME/./} / 1000)); }

# Until COMMAND succeeds, MS milliseconds of a quiet machine have passed (wait.sh) or UNLESS succeeds; sets TOOK.
within() { # MS COMMAND...
    local begin limit=$1 PAUSE SLOWNESS=1
    shift
    now_ms
    begin=$MS
    while ! "$@"; do
        now_ms
        TOOK=$((MS - begin))
        ((TOOK < limit * SLOWNESS)) || measure_load
        ((TOOK < limit * SLOWNESS)) || return 1
        [[ -z ${UNLESS-} ]] || ! "$UNLESS" || return 1
        pause_of "$TOOK"
        sleep "$PAUSE"
    done
    now_ms
    TOOK=$((MS - begin))
}

files_are() { # PATTERN N
    local list
    # shellcheck disable=SC2206
    list=($1)
    [[ -e ${list[0]} ]] && ((${#list[@]} >= $2))
}

head_ended() { ! kill -0 "$HEAD" 2>/dev/null; }

# What must be put right after a job, whatever happened to its nodes. Of a node that lost its power not
# even the control groups are left; here the kernel lives on.
team_heal() { # NODE...: those that were cut, frozen or crashed
    local n g
    for n in "$@"; do
        if ! [[ -d /proc/$(cut -d' ' -f1 "$LAB_DIR/nodes/$n/pid" 2>/dev/null || echo none)/root/proc ]]; then
            for g in "${GROUPS_OF[@]}"; do
                rmdir "$g" 2>/dev/null
            done
            lab boot "$n" >/dev/null 2>&1 7<&- 8>&-
            node_prepare "$n"
        fi
        lab restore "$n" 2>/dev/null
        lab thaw "$n" 2>/dev/null
    done
    for n in "${NODES[@]}"; do
        node_files "$n"
        rm -f "$FILES/run/hold/flag" "$FILES/run/hold/waiting"
        node_find "$n" listener && node_kill "$n" CONT "${PIDS[@]}"
    done
}
