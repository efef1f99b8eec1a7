#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Whatever fails, and whenever: hnlaunch ends in time and says what happened, and nothing is left.
#
# TREE=K: through a tree, see --tree.
#
# One row per case: a part of a job on 4 nodes with 4 ranks each fails in one phase of the job. FULL=1
# runs every row, otherwise those marked with a plus; ONLY=PATTERN those whose name matches.
#
#   part     head, agent, guard, worker; session: sshd's process for one login; cut, freeze, crash: a
#            node loses its network, hangs, loses its power; disk: the log folder's disk is full
#   phase    connecting: the fourth node's sshd hangs, the other agents wait
#            uploading: the fourth node has asked for the agent and takes nothing
#            starting: the ranks are there, none has printed anything
#            running: all ranks have printed
#            stopping: rank 5 has exited with 7, the others are deaf to SIGTERM
#   node     the node of the team that is hit
#   then     go: what held the phase up lets go after the fault; -: it does not
#   code     the exit code; several are alternatives: 68/125
#   limit    of the time from the fault to the end of hnlaunch, in timeouts: C --connect-timeout, S
#            --start-timeout, N --node-timeout (of rows about silence), G --grace (L while stopping, long enough to hit something
#            within); SLACK is added, and all is scaled by the load
#   says     in the last line; _ is a blank
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/faults.sh" || exit 1

# REACH: for a phase, TEARDOWN: for what is left of a job.
C=6000 S=8000 N=3000 G=1000 L=5000 SLACK=4000 REACH=20000 TEARDOWN=10000

rows() {
    cat <<'END'
+ head     connecting  TERM  -  -   143      0      interrupted
+ head     connecting  KILL  -  -   137      0      -
  agent    connecting  TERM  2  go  68       C      nothing_was_started
+ agent    connecting  KILL  2  go  68       C      nothing_was_started
+ guard    connecting  KILL  2  go  68       C      nothing_was_started
+ session  connecting  KILL  2  go  68       C      nothing_was_started
  session  connecting  TERM  2  -   68       C      nothing_was_started
  cut      connecting  -     2  go  68/69    N      nothing_was_started
+ cut      connecting  -     4  -   68       C      nothing_was_started
  freeze   connecting  -     2  go  68/69    N      nothing_was_started
+ freeze   connecting  -     4  -   68       C      nothing_was_started
+ crash    connecting  -     4  -   68       C      nothing_was_started
  disk     connecting  -     -  go  73       C      -
  head     uploading   TERM  -  -   143      0      interrupted
+ head     uploading   KILL  -  -   137      0      -
  agent    uploading   TERM  2  go  68       S      nothing_was_started
+ agent    uploading   KILL  2  go  68       S      nothing_was_started
  guard    uploading   KILL  2  go  68       S      nothing_was_started
+ session  uploading   KILL  4  -   68       S      nothing_was_started
  session  uploading   TERM  4  -   68       S      nothing_was_started
+ cut      uploading   -     4  go  69       S      nothing_was_started
  freeze   uploading   -     4  go  69       S      nothing_was_started
+ crash    uploading   -     4  -   69       S      nothing_was_started
  disk     uploading   -     -  go  73       S      -
+ head     starting    TERM  -  -   143      G      SIGTERM
+ head     starting    KILL  -  -   137      0      -
+ agent    starting    TERM  2  -   125      G      node
+ agent    starting    KILL  2  -   125      G      node
  guard    starting    TERM  2  -   125      G      node
+ guard    starting    KILL  2  -   125      G      node
  worker   starting    TERM  2  -   143      G      SIGTERM
+ worker   starting    KILL  2  -   137      G      SIGKILL
+ session  starting    KILL  2  -   125      G      node
  session  starting    TERM  2  -   125      G      node
+ cut      starting    -     2  -   125      N+G    silent_for
  freeze   starting    -     2  -   125      N+G    silent_for
  crash    starting    -     2  -   125      N+G    silent_for
+ disk     starting    -     -  go  73       G      log_folder
+ head     running     TERM  -  -   143      G      SIGTERM
+ head     running     KILL  -  -   137      0      -
+ agent    running     TERM  2  -   125      G      node
+ agent    running     KILL  2  -   125      G      node
+ guard    running     TERM  2  -   125      G      node
+ guard    running     KILL  2  -   125      G      node
+ worker   running     TERM  2  -   143      G      SIGTERM
+ worker   running     KILL  2  -   137      G      SIGKILL
+ session  running     KILL  2  -   125      G      node
+ session  running     TERM  2  -   125      G      node
+ cut      running     -     2  -   125      N+G    silent_for
+ freeze   running     -     2  -   125      N+G    silent_for
+ crash    running     -     2  -   125      N+G    silent_for
+ disk     running     -     -  go  73       G      log_folder
+ head     stopping    TERM  -  -   7        0      code_7
+ head     stopping    KILL  -  -   137      0      -
  agent    stopping    TERM  2  -   7        L      code_7
+ agent    stopping    KILL  2  -   7        L      code_7
+ guard    stopping    KILL  2  -   7        L      code_7
  worker   stopping    TERM  2  -   7        L      code_7
+ worker   stopping    KILL  2  -   7        L      code_7
+ session  stopping    KILL  2  -   7        L      code_7
  session  stopping    TERM  2  -   7        L      code_7
+ cut      stopping    -     2  -   7        N+L    code_7
  freeze   stopping    -     2  -   7        N+L    code_7
+ crash    stopping    -     2  -   7        N+L    code_7
  disk     stopping    -     -  go  7        L      code_7
END
}

# --- one row --------------------------------------------------------------------------------------

clear_cache() { # so that every node asks for the agent
    local n
    for n in "${NODES[@]}"; do
        node_files "$n"
        rm -rf "$FILES/run/cache"
    done
}

prepare_phase() { # PHASE
    case $1 in
        connecting)
            node_find "${NODES[3]}" listener && node_kill "${NODES[3]}" STOP "${PIDS[@]}"
            ;;
        uploading)
            clear_cache
            node_files "${NODES[3]}"
            : >"$FILES/run/hold/flag"
            ;;
        starting) : >"$dir/quiet" ;;
    esac
}

begin_job() { # PART PHASE
    local timeout=30000 # a busy machine is no silent node
    case $1 in cut | freeze | crash) timeout=$N ;; esac
    local args=(-H "$HOSTS" --label none --connect-timeout ${C}ms --start-timeout ${S}ms
        --node-timeout ${timeout}ms ${TREE:+--tree "$TREE"} --grace $([[ $2 == stopping ]] && echo $L || echo $G)ms)
    if [[ $1 == disk ]]; then
        mkdir "$dir/logs"
        lab run mount -t tmpfs -o size=256k full "$dir/logs"
        args+=(--log-dir "$dir/logs")
    fi
    args+=("$VICTIM" "$dir")
    [[ $2 == stopping ]] && args+=(deaf)
    "$LAB" run env --default-signal "$LAB_HNLAUNCH" "${args[@]}" >"$dir/out" 2>"$dir/err" &
    HEAD=$!
}

all_up() {
    local line n=0
    while read -r line; do
        [[ $line != 'up '* ]] || n=$((n + 1))
    done <"$dir/out"
    ((n == 16))
}

upload_waits() { [[ -e $FILES/run/hold/waiting ]]; }

reach_phase() { # PHASE
    case $1 in
        connecting) within $REACH team_agents 3 ;;
        uploading)
            within $REACH team_agents 3 || return
            node_files "${NODES[3]}"
            within $REACH upload_waits
            ;;
        starting) within $REACH files_are "$dir/here.*" 16 ;;
        running) within $REACH all_up ;;
        stopping)
            within $REACH all_up || return
            team_groups
            : >"$dir/fail"
            within $REACH files_are "$dir/stopping.*" 15
            ;;
    esac
}

hit() { # PART SIGNAL NODE
    case $1 in
        head) kill -s "$2" "$HEAD" ;;
        cut | freeze | crash) lab "$1" "$3" ;;
        disk)
            lab run sh -c "head -c 1M /dev/zero >'$dir/logs/filler' 2>/dev/null"
            : >"$dir/done"
            ;;
        worker) node_find "$3" worker && node_kill "$3" "$2" "${PIDS[0]}" ;;
        *) node_find "$3" "$1" && node_kill "$3" "$2" "${PIDS[@]}" ;;
    esac
}

let_go() { # PHASE
    case $1 in
        connecting)
            node_find "${NODES[3]}" listener && node_kill "${NODES[3]}" CONT "${PIDS[@]}"
            ;;
        uploading)
            node_files "${NODES[3]}"
            rm -f "$FILES/run/hold/flag"
            ;;
        starting) rm -f "$dir/quiet" ;;
    esac
}

left_groups() {
    local g
    for g in "${GROUPS_OF[@]}"; do
        [[ -d $g ]] && printf '%s\n' "$g"
    done | sort -u
}

# Appends "NUMBER ok|BAD CODE END_MS LIMIT EMPTY_MS WHY" to the results.
row() { # NUMBER PART PHASE SIGNAL NODE THEN CODE LIMIT SAYS
    local dir=$TMP/row.$1 node= why= code= ended limit=$(($8 + SLACK)) emptied says=${9//_/ } last
    [[ $5 == - ]] || node=${NODES[$5 - 1]}
    mkdir "$dir"
    prepare_phase "$3"
    begin_job "$2" "$3"
    UNLESS=head_ended reach_phase "$3" || why+="the phase was not reached; "
    [[ $3 == stopping ]] || team_groups
    hit "$2" "$4" "$node" || why+="nothing was hit; "
    [[ $6 == go ]] && let_go "$3"
    within "$limit" head_ended || why+="hnlaunch did not end; "
    ended=$TOOK
    kill -KILL "$HEAD" 2>/dev/null
    code=0
    wait "$HEAD" 2>/dev/null || code=$?
    [[ "/$7/" == */$code/* ]] || why+="exit code $code; "
    last=$(tail -n 1 "$dir/err")
    [[ $9 == - || $last == *"$says"* ]] || why+="the last line lacks \"$says\"; "
    let_go "$3"
    case $2 in cut | freeze | crash) SKIP=$node COUNTED=${TREE:+job} ;; *) SKIP= COUNTED= ;; esac
    within $TEARDOWN team_empty || why+="$COUNT processes are left; "
    emptied=$TOOK
    SKIP=
    team_heal $node
    within $TEARDOWN team_empty || why+="$COUNT processes are left on the healed node: $(lab ps "${NODES[@]}"); "
    # Behind a parent that vanished sshd waits for the network to give up.
    [[ -z $COUNTED ]] || lab clean "${NODES[@]}"
    [[ -z $(left_groups) ]] || why+="control groups are left: $(left_groups); "
    [[ $2 != disk ]] || lab run umount "$dir/logs"
    printf '%s|%s|%s|%s|%s|%s|%s|%s\n' "$1" "${why:+BAD}" "$code" "$ended" "$limit" "$emptied" "$last" \
        "${why//$'\n'/ }" | tee -a "$TMP/results.$TEAM" >&2
    # Whatever a bad row left must not be the next one's fault.
    [[ -z $why ]] || lab clean "${NODES[@]}"
}

team() { # TEAM: rows from descriptor 7, until there are none
    local line
    team_begin "$1"
    exec 8>>"$TMP/turn"
    while :; do
        line=
        flock 8
        IFS= read -r line <&7
        flock -u 8
        [[ -n $line ]] || break
        # shellcheck disable=SC2086
        row $line
    done
}

# --- all of them ------------------------------------------------------------------------------------

begin=$SECONDS
faults_up "${TEAM_COUNT:-4}" 4
number=0
while read -r plus part phase signal node rest; do
    if [[ $plus != + ]]; then
        [[ -n ${FULL-} ]] || continue
        rest="$node $rest" node=$signal signal=$phase phase=$part part=$plus
    fi
    [[ "$part $phase $signal $node" == ${ONLY-*} ]] || continue
    number=$((number + 1))
    printf '%d %s %s %s %s %s\n' "$number" "$part" "$phase" "$signal" "$node" "$rest"
done < <(rows) >"$TMP/rows"

exec 7<"$TMP/rows"
run_teams

cat "$TMP"/results.* 2>/dev/null | sort -n >"$TMP/results"
while read -r number part phase signal node _; do
    name="$part $([[ $signal == - ]] || echo "$signal ")while $phase"
    IFS='|' read -r _ bad code ended limit emptied last why < <(grep "^$number|" "$TMP/results")
    if [[ -n ${code-} && -z $bad ]]; then
        pass "$name"
    else
        OUT=$TMP/row.$number/out ERR=$TMP/row.$number/err RC=${code-}
        fail "$name" "${why:-the row was not run}"
    fi
    printf '%-11s %-9s %-4s %1s %4s %6s %6s %6s  %s\n' "$phase" "$part" "$signal" "$node" "${code-}" "${ended-}" \
        "${limit-}" "${emptied-}" "${last-}" >>"$TMP/table"
    bad='' code='' ended='' limit='' emptied='' last='' why=''
done <"$TMP/rows"
OUT=/dev/null ERR=/dev/null
lab_nothing_left 'no process is left anywhere'
printf '# %-11s %-9s %-4s %1s %4s %6s %6s %6s  %s\n' phase part with n code ended limit empty 'last line (times: ms from the fault; empty: from the end)'
sed 's/^/# /' "$TMP/table" | cut -c1-170
printf '# %d rows in %d s\n' "$(wc -l <"$TMP/rows")" $((SECONDS - begin))
done_testing
