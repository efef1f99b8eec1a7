#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# signal --role and stop --role reach the ranks of a role, of a replica, or one rank, and no others; the job goes on by its rules.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

job=(-w localhost:4,127.0.0.1:4 --gpus-per-rank 0)
rank='trap "echo got USR1" USR1; trap "echo got TERM; exit 0" TERM; echo up; while :; do sleep 0.05; done'

begin() { # OPTION...: starts the job and waits until its six ranks are up
    : >run.out
    "$HNLAUNCH" "${job[@]}" "$@" >>run.out 2>run.err &
    pid=$!
    ok 'the ranks are up' wait_for all_up
    id=$(sed -n 's/^hnlaunch: run \([a-z0-9]*\).*/\1/p' run.err | head -1)
}
all_up() { [ "$(grep -c 'up$' run.out)" = 6 ]; }
got() { grep "got $1" run.out | cut -d' ' -f1 | sort -u | tr '\n' ' '; }
has_got() { [ "$(got "$1")" = "$2" ]; }
sends() { # NAME WANT SIGNAL OPTION...
    local name=$1 want=$2 signal=$3
    shift 3
    : >run.out
    hn_exits "$name" 0 signal "$id" "$signal" "$@"
    ok "$name: they get it" wait_for has_got "$signal" "$want"
    sleep 0.3
    is 'and no others' "$(got "$signal")" "$want"
}

begin --role a --nodes 1 --replicas 2 -n 1 bash -c "$rank" : --role b --on a:0 bash -c "$rank" : --role c --on a:1 -n 3 bash -c "$rank"
sends 'signal without --role' 'a:0:0 a:1:0 b:0 c:0 c:1 c:2 ' USR1
sends 'signal --role' 'c:0 c:1 c:2 ' USR1 --role c
sends 'signal --role NAME:RANK' 'c:2 ' USR1 --role c:2
sends 'signal --role NAME:REPLICA' 'a:1:0 ' USR1 --role a:1
sends 'signal --role NAME:REPLICA:RANK' 'a:0:0 ' USR1 --role a:0:0
hn_exits 'a role that is not there' 69 signal "$id" USR1 --role e
has 'is told' "$ERR" "run $id: it has no role e, but a, b, c"
hn_exits 'stop --role with --grace' 64 stop "$id" --role a --grace 1s
has 'is refused with the lines to write' "$ERR" "hnlaunch stop $id --role a sends SIGTERM"
: >run.out
hn_exits 'stop --role' 0 stop "$id" --role b
ok 'ends the ranks of the role' wait_for has_got TERM 'b:0 '
sleep 0.3
ok 'and the others go on' kill -0 "$pid"
is 'without a signal' "$(got TERM)" 'b:0 '
hn stop "$id"
wait "$pid"
is 'stop without --role ends them all' "$(got TERM)" 'a:0:0 a:1:0 b:0 c:0 c:1 c:2 '

"$HNLAUNCH" --log-dir rec "${job[@]}" --role a --nodes 1 -n 1 bash -c "$rank" : --role b --nodes 1 -n 1 sleep 60 >run.out 2>run.err &
pid=$!
wait_for grep -q up run.out
id=$(sed -n 's/^hnlaunch: run \([a-z0-9]*\).*/\1/p' run.err | head -1)
hn stop "$id" --role b
wait "$pid"
is 'a rank that does not take SIGTERM well has failed' $? 143
has 'the last line says who sent it' run.err 'hnlaunch signal'
has 'and the event which role' rec/latest/events.ndjson 'sent SIGTERM to role b"'

"$HNLAUNCH" --local 1 bash -c "$rank" >run.out 2>run.err &
pid=$!
wait_for grep -q up run.out
id=$(sed -n 's/^hnlaunch: run \([a-z0-9]*\).*/\1/p' run.err | head -1)
hn_exits 'a job without roles' 69 signal "$id" USR1 --role a
has 'says so' "$ERR" 'it has no roles'
hn stop "$id"
wait "$pid"
done_testing
