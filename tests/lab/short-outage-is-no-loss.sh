#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node that is silent for some seconds is told, and goes on; it is lost on evidence, or after --node-timeout, and
# never do ranks of two attempts live at the same time. A node that ends its agent gives its ranks --grace. All jobs run at the same time, each on nodes of its own.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 27 1

# Ranks write "ATTEMPT RANK MICROSECONDS" ten times a second into the folder $1, for $2 seconds in the attempt $3 and
# those behind it, else for ever.
cat >beat.sh <<'END'
until="" dir=$1
[ "$HN_RESTART" -lt "$3" ] || until=$(($(date +%s) + $2))
echo up
while [ -z "$until" ] || [ "$(date +%s)" -lt "$until" ]; do
    echo "$HN_RESTART $RANK $(date +%s%6N)" >>"$dir/beats.$RANK"
    sleep 0.1
done
END

begin() { # JOB OPTION...: starts hnlaunch on the hosts in JOB/hosts, and waits for its ranks
    D=$PWD/$1 OUT=$PWD/$1/out ERR=$PWD/$1/err
    shift
    lab_start -H "$D/hosts" --log-dir "$D/logs" --label none "$@"
    ok 'the ranks are up' wait_for lines_are "$OUT" "$(grep -vc spare "$D/hosts")"
    BEGAN=$(now_ms)
}
now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
took() { [[ $(($(now_ms) - BEGAN)) -le $(scaled "$1") ]]; } # MS since the ranks were up
event() { grep -c "\"ev\":\"$1\"" "$D/logs/latest/events.ndjson"; }
says() { grep -c "$1" "$ERR"; }
told() { wait_for grep -q "$1" "$ERR"; }

# --- jobs: each with the names of its nodes ---------------------------------------------------------

a_cut() {
    begin "$1" sh beat.sh "$PWD/$1" 12 0
    lab cut "$3"
    sleep 4
    is 'ps has it' "$(lab run "$LAB_HNLAUNCH" ps --json | python3 -c '
import json, sys
print(*[r["silent_nodes"] for r in json.load(sys.stdin)["runs"] if sys.argv[1] in " ".join(r.get("argv", []))])' "$D 12")" 1
    sleep 2
    lab restore "$3"
    exits 'a cable that is out for six seconds loses nothing' 0 finish
    is 'the silence is told once' "$(says "$3 has been silent for .*; the limit is 30s (--node-timeout)")" 1
    is 'and its end' "$(says "$3 answers again after ")" 1
    is 'in events, too' "$(event node.silent) $(event node.heard) $(event node.lost)" '1 1 0'
}

a_cut_of_a_caller() { # longer than TCP would keep an idle connection of --dial-in
    local r place="$2:29400" pids=()
    D=$PWD/$1 OUT=$PWD/$1/out ERR=$PWD/$1/err
    echo 0123456789abcdef0123456789abcdef >"$D/secret"
    for r in 0 1; do
        lab exec "${@:r+2:1}" env --default-signal "$LAB_HNLAUNCH" --dial-in "$place" --nodes 2 --node-rank "$r" \
            --dial-secret "$D/secret" --oversubscribe --node-timeout 60s --ppn 1 --label none \
            sh -c "echo up; until [ -e '$D/go' ]; do sleep 0.1; done" >"$OUT$r" 2>"$ERR$r" &
        pids+=($!)
    done
    ok 'the ranks are up' wait_for lines_are "$OUT"0 2
    lab cut "$3"
    sleep 22
    lab restore "$3"
    ok 'a node that dials in is heard again after 22 seconds' wait_for grep -q "$3 answers again after " "$ERR"0
    touch "$D/go"
    wait "${pids[0]}"
    is 'and the job ends well' $? 0
    wait "${pids[1]}"
}

a_stall() {
    begin "$1" sh beat.sh "$PWD/$1" 9 0
    lab stall "$3" 5
    exits 'a node that hangs for five seconds is not lost' 0 finish
}

a_stall_of_a_child() {
    begin "$1" --tree 1 sh beat.sh "$PWD/$1" 11 0
    lab cut "$3"
    sleep 5
    lab restore "$3"
    exits 'nor one below another node' 0 finish
    is 'its parent tells the silence' "$(event node.silent) $(event node.heard)" '1 1'
}

a_loss() {
    begin "$1" --node-timeout 6s sh beat.sh "$PWD/$1" 100 0
    lab cut "$3"
    exits 'a cable that stays out: 125' 125 finish
    verdict_has 'the verdict names the node' "lost $3: silent for " '6s (--node-timeout)'
    is 'it was silent first' "$(event node.silent) $(event node.heard) $(event node.lost)" '1 0 1'
    ok 'it took as long as it should' took 12000
    lab restore "$3"
}

a_reset() {
    begin "$1" sh beat.sh "$PWD/$1" 100 0
    lab crash "$3"
    lab boot "$3"
    exits 'a node that comes back without the connection: 125' 125 finish
    verdict_has 'the verdict names it' "lost $3"
    ok 'it is lost at once' took 20000
}

a_stop() {
    begin "$1" --grace 2s sh beat.sh "$PWD/$1" 100 0
    lab cut "$3"
    ok 'a node is silent' told "$3 has been silent for"
    kill -INT "$PID"
    BEGAN=$(now_ms)
    exits 'Ctrl-C while a node is silent: 130' 130 finish
    ok 'it waits for the grace time' took 5000
    lab restore "$3"
}

a_pause() {
    begin "$1" sh beat.sh "$PWD/$1" 14 0
    kill -STOP "$PID"
    sleep 10
    exits 'a head that does not run for ten seconds loses nothing' 0 finish_by CONT
    is 'nor is a node silent for that' "$(event node.silent)" 0
}

cat >save.sh <<'END'
trap 'sleep 3; echo saved; exit 0' TERM
echo up
[ "$HN_RESTART" = 0 ] || exit 0
while :; do sleep 0.1; done
END

a_leave() { # as systemd ends the sessions of a node that goes down
    begin "$1" --max-restarts 1 --grace 30s sh save.sh
    lab exec "$3" pkill -TERM 'agent-|hnlaunch-guard'
    exits 'a node that ends the agent is replaced' 0 finish
    is 'all ranks had the grace time' "$(grep -c saved "$OUT")" 2
    has 'the reason is told' "$ERR" "$3 was drained: SIGTERM to its agent"
    has 'a spare host takes the place' "$ERR" "$4 takes the place of $3"
}

apart() { # DIR: no beat of attempt 0 follows one of attempt 1
    cat "$1"/beats.* | awk '$1 == 0 && $3 > old { old = $3 } $1 == 1 && (!new || $3 < new) { new = $3 }
        END { print "last of attempt 0: " old ", first of attempt 1: " new; exit !(old && new && old < new) }'
}

a_spare() {
    begin "$1" --node-timeout 6s --max-restarts 1 sh beat.sh "$PWD/$1" 4 1
    lab cut "$3"
    exits 'the job goes on on a spare node' 0 finish
    has 'which takes the place' "$ERR" "$4 takes the place of $3"
    ok 'no rank lived in two attempts' apart "$D"
    lab restore "$3"
}

an_evil_spare() { # sshd is killed: the connection ends at once, the ranks live on for a moment
    begin "$1" --max-restarts 1 sh beat.sh "$PWD/$1" 4 1
    lab exec "$3" pkill -KILL -f 'sshd: root@notty'
    exits 'a session that ends is replaced' 0 finish
    ok 'no rank lived in two attempts then either' apart "$D"
    ok 'it took seconds' took 25000
}

a_return() {
    begin "$1" --node-timeout 6s --max-restarts 1 sh beat.sh "$PWD/$1" 4 1
    lab cut "$3"
    ok 'it is waited for without a spare node' told 'hnlaunch: waiting 6s for the return of 1 lost node'
    lab restore "$3"
    exits 'a lost node that comes back is used again' 0 finish
    ok 'no rank lived in two attempts here either' apart "$D"
}

n=0
add() { # NODES JOB [spare]
    local i nodes=()
    for ((i = 1; i <= $1; i++)); do nodes+=("$(printf 'node%03d' $((n + i)))"); done
    n=$((n + $1))
    mkdir "$2"
    printf '%s slots=1\n' "${nodes[@]}" >"$2/hosts"
    [[ -z ${3-} ]] || sed -i '$s/$/ spare/' "$2/hosts"
    (
        trap - EXIT
        tests=0 failures=0
        "$2" "$2" "${nodes[@]}"
        lab_empty_of "${nodes[@]}"
    ) >"$2/results" 2>&1 &
    JOBS+=($!)
    ALL+=("$2")
}
lab_empty_of() { ok 'nothing is left' wait_for quiet "$@"; }
quiet() { [[ -z $(lab ps "$@") ]]; }

JOBS=() ALL=()
add 2 a_cut
add 2 a_cut_of_a_caller
add 2 a_stall
add 2 a_stall_of_a_child
add 2 a_loss
add 2 a_reset
add 2 a_stop
add 2 a_pause
add 3 a_spare spare
add 3 an_evil_spare spare
add 2 a_return
add 3 a_leave spare
wait "${JOBS[@]}"
for job in "${ALL[@]}"; do
    tell_results sed -E "s/^((not )?ok) [0-9]+ - /\1 $job: /" "$job/results"
done
done_testing
