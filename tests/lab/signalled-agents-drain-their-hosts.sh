#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# SIGTERM to one agent, as of a cloud that takes the node away, drains its host; SIGTERM to all of them ends the run, and
# puts no host out.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

command -v python3 >/dev/null || skip_all 'needs python3'
lab_up 4 2
sed 's/^\(node004.*\)/\1 spare/' "$TMP/hosts.txt" >spare.txt
export HNLAUNCH_LIBRARY=$PLAIN/libhnlaunch.so.0 PYTHONPATH=$ROOT/packaging/python SAVES=store
begin() { # ARG...: starts, and waits until steps are done
    rm -rf steps saved bad
    lab_start -H spare.txt --restart auto --bad-hosts "$PWD/bad" -x HNLAUNCH_LIBRARY --label none --log-dir logs "$@" \
        python3 "$ROOT/tests/lab/training.py" 60
    wait_for test -s steps || fail 'the training is at work' "$(cat "$ERR")"
}
end_agent() { lab exec "$1" pkill -TERM 'agent-|hnlaunch-guard'; }
six() { [[ $(grep -c "$1" "$OUT") == 6 ]]; }

begin -o run.drain_time=1m
end_agent node001
exits 'one agent: the run ends well' 0 finish
ok 'all ranks have saved, also those of other hosts' six 'saved step'
ok 'no step is lost, and none is done twice' diff <(seq 60) steps
has 'the spare host comes in' "$ERR" 'node004 takes the place of node001'
has 'the reason is told' "$ERR" 'node001 was drained: SIGTERM to its agent, all ranks have ended'
ok 'and noted for later runs' grep -q '"host": *"node001", *"reason": *"SIGTERM to its agent"' bad

# With some managers the ranks get the signal, too.
begin -o run.drain_time=1m
end_agent node002
lab exec node002 pkill -TERM python3
exits 'its ranks get SIGTERM, too: the run ends well' 0 finish
has 'by the spare host' "$ERR" 'node004 takes the place of node002'
has 'as a drain' "$ERR" 'node002 was drained: SIGTERM to its agent, all ranks have ended'

export HANGS=1
begin -o run.drain_time=1m
unset HANGS
for node in node001 node002 node003; do
    end_agent $node &
done
exits 'all agents: the run ends, 143' 143 finish
has 'by the signal' "$ERR" 'SIGTERM  (exit 143)'
lacks 'there is no other attempt' "$ERR" 'attempt 2'
ok 'no host is put out' test ! -s bad

# All ranks have ended before the others get the signal.
begin -o run.drain_time=1m
end_agent node001
ok 'the ranks save and end' wait_for six 'saved step'
end_agent node002 &
end_agent node003
exits 'all agents, one after the other: 143' 143 finish
has 'it is told' "$ERR" 'all agents got SIGTERM: the run ends, and no host is drained'
lacks 'there is no other attempt either' "$ERR" 'attempt 2'
ok 'no host is put out here either' test ! -s bad

lab_start -H spare.txt --bad-hosts "$PWD/bad" --label none sh -c 'echo up; exec sleep 60'
wait_for six up || fail 'six ranks are up' "$(cat "$ERR")"
end_agent node002
exits 'without restarts the node is lost: 125' 125 finish
has 'as ever' "$ERR" 'lost node002: its agent was ended (Terminated)'
# --requeue-exit: the ranks save, and no other attempt follows.
requeue() { # SCRIPT: starts it on three hosts
    lab_start -H three.txt --bad-hosts none --requeue-exit 99 --grace 20s --label none sh -c "$1"
    wait_for six up || fail 'six ranks are up' "$(cat "$ERR")"
}
head -n 3 "$TMP/hosts.txt" >three.txt
saves='trap "echo saved; exit 0" TERM; echo up; while :; do sleep 0.1; done'
requeue "$saves"
exits 'SIGTERM to hnlaunch, and all ranks have saved: the code of --requeue-exit' 99 finish_by TERM
requeue "$saves"
end_agent node002
exits 'one node goes, and all have saved: the same' 99 finish
ok 'six ranks have' six saved
requeue '[ $RANK = 3 ] || trap "exit 0" TERM; echo up; while :; do sleep 0.1; done'
exits 'a rank that has not saved: 143' 143 finish_by TERM
requeue "$saves"
"$LAB" run "$LAB_HNLAUNCH" stop "$(sed -n 's/^hnlaunch: run \([a-z0-9]*\):.*/\1/p' "$ERR")" >stop.out 2>&1
exits 'hnlaunch stop is no preemption: 143' 143 finish
lab_nothing_left 'nothing is left'
done_testing
