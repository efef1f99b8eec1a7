#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch drain: all ranks learn of it, save and end, and go on without the host; not a step is done twice. When the
# time is over, the ranks of the host get SIGTERM, and the others some seconds later.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

command -v python3 >/dev/null || skip_all 'needs python3'
lab_up 5 2
sed 's/^\(node00[45].*\)/\1 spare/' "$TMP/hosts.txt" >spare.txt
STEPS=60
export HNLAUNCH_LIBRARY=$PLAIN/libhnlaunch.so.0 PYTHONPATH=$ROOT/packaging/python
train() { lab_start -H spare.txt --restart auto --bad-hosts "$PWD/bad" -x HNLAUNCH_LIBRARY --label none --log-dir logs "$@" \
    python3 "$ROOT/tests/lab/training.py" "$STEPS"; }
run_id() { sed -n 's/^hnlaunch: run \([a-z0-9]*\):.*/\1/p' "$ERR"; }
six() { [[ $(grep -c "$1" "$OUT") == 6 ]]; }
begin() { # ARG...: starts, and waits until steps are done
    rm -rf steps saved bad
    train "$@"
    wait_for test -s steps || fail 'the training is at work' "$(cat "$ERR")"
    ID=$(run_id)
}
drain() { # ARG...: beside the run, whose output stays in $OUT and $ERR
    "$LAB" run "$LAB_HNLAUNCH" drain "$@" >drain.out 2>&1
    RC=$?
}
all_steps() { diff <(seq 60) steps; }

for saves in store signal call; do
    export SAVES=$saves
    begin --drain-signal USR1 --grace 1m
    drain "$ID" node002
    exits "$saves: the order is taken" 0
    exits "$saves: the run ends well" 0 finish
    ok "$saves: all six ranks have saved" six 'saved step'
    ok "$saves: no step is lost, and none is done twice" all_steps
    has "$saves: the head tells of the drain" "$ERR" 'node002 is drained (hnlaunch drain): the ranks have 120s to save and end'
    has "$saves: a spare host comes in" "$ERR" 'node004 takes the place of node002'
    is "$saves: it has the ranks of the host" "$(grep -c 'rank [23] on node004 attempt 1' "$OUT")" 2
    is "$saves: the others stay" "$(grep -c 'rank [0145] on node00[13] attempt 1' "$OUT")" 4
done

is 'each rank sees the keys' "$(grep -c 'sees node002 120000 node002 120000$' "$OUT")" 6
has 'and hn_drained() is the answer' "$ERR" 'node002 was drained: hnlaunch drain, all ranks have saved'
has 'the event is that of a drain' logs/latest/events.ndjson '"ev":"node.drained","node":1,"host":"node002","text":"hnlaunch drain"'
lacks 'and no host was put out for a failure' logs/latest/events.ndjson node.retired
ok 'the host is noted for later runs' grep -q '"host": *"node002", *"reason": *"hnlaunch drain"' bad
ok 'the summary has the attempt' python3 -c 'import json
a = json.load(open("logs/latest/summary.json"))["attempts"][0]
assert (a["evidence"], a["decision"], a["host"]) == ("drained", "host out", "node002"), a'

# With fewer nodes.
rm -rf steps saved bad
export SAVES=store
lab_start -H "$TMP/hosts.txt" --nodes 2:3 --restart auto --bad-hosts "$PWD/bad" -x HNLAUNCH_LIBRARY --label none --log-dir logs \
    python3 "$ROOT/tests/lab/training.py" "$STEPS"
wait_for test -s steps || fail 'the training is at work' "$(cat "$ERR")"
drain "$(run_id)" node001
exits 'no spare host, with --nodes MIN:MAX: the run ends well' 0 finish
has 'without the host' "$ERR" 'hnlaunch: going on without node001, with 4 ranks on 2 nodes'
ok 'no step is lost here either' all_steps
rm -rf steps saved bad
exits 'rerun --without-bad does it once more' 0 lab_hn rerun --without-bad "$(readlink logs/latest)"
has 'without the drained host' "$ERR" 'hnlaunch -o run.leave_out=node001 -H '

# Two hosts at once, of which one has rank 0; the program answers to neither the key nor the signal: its time is over.
export HANGS=1 SAVES=store
STEPS=1000000
begin --grace 5s
drain "$ID" node001 --in 1m
exits 'the first of two hosts' 0
drain "$ID" node003 --in 1s
exits 'the second ends sooner' 0
begun() { six 'attempt 1 begins'; }
ok 'when the shorter time is over, the next attempt begins' wait_for begun
drain "$ID" node002
exits 'a drain of a later attempt' 0
has 'the reason of the first' "$ERR" 'node001 was drained: hnlaunch drain, the time for its ranks is over'
ok 'both hosts are replaced' test "$(grep -c 'rank [0145] on node00[45] attempt 1' "$OUT")" = 4
is 'the third stays' "$(grep -c 'rank [23] on node002 attempt 1' "$OUT")" 2
drain "$ID" node001
exits 'a host that is gone cannot be drained: 69' 69
has 'it is HN814' drain.out "error[HN814]: run $ID: no rank runs on node001"
drain "$ID" node009
exits 'nor can a stranger' 69
has 'that is told' drain.out "run $ID: node009 is not one of its hosts"
exits 'an order to end is no drain: 143' 143 finish_by TERM
lacks 'and retires no host' bad node002

# Spare hosts: connected ones, and one that stands by unconnected.
loops=(--label none sh -c 'echo "up $HN_RESTART"; while :; do sleep 0.1; done')
again() { [[ $(grep -c 'up 1' "$OUT") == 6 ]]; }
for way in "-H spare.txt" "-H $TMP/hosts.txt --nodes 3 --spares auto"; do
    rm -f bad
    # shellcheck disable=SC2086
    lab_start $way --restart auto --bad-hosts "$PWD/bad" --grace 1s --log-dir logs "${loops[@]}"
    wait_for six up || fail 'six ranks are up'
    drain "$(run_id)" node004
    exits "$way: the drain of a spare host is taken" 0
    ok 'and told' wait_for grep -qF 'node004 is drained (hnlaunch drain): it is no spare host any more' "$ERR"
    ok 'the host is noted at once' grep -q '"host": *"node004", *"reason": *"hnlaunch drain"' bad
    drain "$(run_id)" node004
    exits 'a second time it is refused' 69
    lacks 'no rank has learned of it' "$ERR" 'attempt 2'
    drain "$(run_id)" node002 --in 1s
    ok 'a host with ranks goes later' wait_for again
    has 'and the other spare host takes the place' "$ERR" 'node005 takes the place of node002'
    is 'both are noted' "$(grep -c . bad)" 2
    finish_by TERM
    has 'the event tells of it' logs/latest/events.ndjson '"host":"node004","text":"hnlaunch drain"'
done

# When the time is over, SIGTERM is for the ranks of the host; the others answer, fail for lack of them, or hang.
for way in 'exit 0' 'exit 1' 'while :; do sleep 0.1; done'; do
    rm -rf left && mkdir left
    lab_start -H spare.txt --restart auto --bad-hosts none --label none --log-dir logs --grace 1m sh -c '
        [ $HN_RESTART = 0 ] || exit 0
        trap "echo term $RANK; >left/$RANK; exit 3" TERM
        echo up
        until [ -e left/2 ] && [ -e left/3 ]; do sleep 0.1; done
        '"$way"
    wait_for six up || fail 'six ranks are up'
    drain "$(run_id)" node002 --in 1s
    exits "others $way: the next attempt ends well" 0 finish
    has 'the time of the host is over' "$ERR" 'the time of node002 is over: its ranks get SIGTERM'
    is 'its ranks are the first to get SIGTERM' "$(grep -m 2 '^term' "$OUT" | sort | xargs)" 'term 2 term 3'
    case $way in
    'exit 0')
        is 'and the only ones' "$(grep -c '^term' "$OUT")" 2
        has 'all have ended then' "$ERR" 'node002 was drained: hnlaunch drain, all ranks have ended'
        ;;
    *) has 'the reason is the time' "$ERR" 'node002 was drained: hnlaunch drain, the time for its ranks is over' ;;
    esac
    is 'it is a drain, and no failure' \
        "$(grep -c 'node.drained' logs/latest/events.ndjson)$(grep -c 'node.retired' logs/latest/events.ndjson)" 10
done
is 'those that hang get SIGTERM, too' "$(grep '^term' "$OUT" | sort | xargs)" 'term 0 term 1 term 2 term 3 term 4 term 5'

# The ranks get SIGTERM for the drain, and do not end.
rm -f bad
lab_start -H spare.txt --restart auto --bad-hosts "$PWD/bad" --grace 10s --label none sh -c 'trap "" TERM; echo up; while :; do sleep 0.1; done'
wait_for six up || fail 'six ranks are up'
drain "$(run_id)" node001 --in 1s
ok 'the time is over' wait_for grep -q 'stopping all ranks: node001 was drained' "$ERR"
kill -INT "$PID"
ok 'Ctrl-C then is the end of the run' wait_for grep -q 'SIGINT: no other attempt follows the drain' "$ERR"
sleep 0.1 # within 50 ms both would be one
exits 'a second one ends it at once: 130' 130 finish_by INT
verdict_has 'the last line has the order' ': SIGINT; 6 ranks killed at once by another SIGINT  (exit 130)'
lab_nothing_left 'no rank is left'

# A rank has failed, which stops no other.
lab_start -H spare.txt --restart auto --on-failure continue --bad-hosts none --label none --log-dir logs --grace 1m \
    sh -c 'trap "exit 0" TERM; echo "up $HN_RESTART.$RANK $(hostname)"; [ $HN_RESTART = 0 ] || exit 0; [ $RANK != 5 ] || exit 3; while :; do sleep 0.1; done'
wait_for six 'up 0' || fail 'six ranks are up'
ok '--on-failure continue: a rank has failed' wait_for grep -q '"rank":5,"code":3' logs/"$(run_id)"/events.ndjson
drain "$(run_id)" node001 --in 1s
exits '--on-failure continue: the order is taken' 0
exits '--on-failure continue: the next attempt ends well' 0 finish
is 'with all ranks, those of the host on the spare one' \
    "$(sed -n 's/^up 1\.//p' "$OUT" | sort -n | xargs)" '0 node004 1 node004 2 node002 3 node002 4 node003 5 node003'
is 'the drain is no failure' "$(grep -c 'node.drained' logs/latest/events.ndjson)$(grep -c 'node.retired' logs/latest/events.ndjson)" 10

lab_start -H spare.txt --restart auto --bad-hosts none --requeue-exit 99 --grace 1m --label none \
    sh -c 'trap "sleep 2; exit 0" TERM; echo up; while :; do sleep 0.1; done'
wait_for six up || fail 'six ranks are up'
drain "$(run_id)" node001 --in 1s
ok 'the time is over again' wait_for grep -q 'stopping all ranks: node001 was drained' "$ERR"
exits 'Ctrl-C, and all ranks save: not the code of --requeue-exit' 130 finish_by INT

head -n 3 "$TMP/hosts.txt" >three.txt
rm -f bad
lab_start -H three.txt --label none sh -c 'echo up; exec sleep 60'
wait_for six up || fail 'six ranks are up'
drain "$(run_id)" node001
exits 'a run without restarts refuses it: 69' 69
has 'and says why' drain.out 'it cannot go on without a host'
finish_by TERM

head -n 2 "$TMP/hosts.txt" >two.txt
lab_start -H two.txt --restart auto --bad-hosts "$PWD/bad" --drain-signal USR1 --label none --grace 1s \
    sh -c 'trap "exit 0" USR1; echo up; while :; do sleep 0.1; done'
four() { [[ $(grep -c up "$OUT") == 4 ]]; }
wait_for four || fail 'four ranks are up'
drain "$(run_id)" node002 --in 1s
exits 'without a spare host the job ends: 125' 125 finish
has 'with the reason' "$ERR" '| node002: hnlaunch drain'
lab_nothing_left 'nothing is left'
done_testing
