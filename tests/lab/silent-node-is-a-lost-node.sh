#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node that is cut off, hangs or loses power is noticed within seconds: 125, and the rest is stopped.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 4 2

quiet_node() { # NODE...: no process of a job there
    [[ -z $(lab ps "$@") ]]
}

no_ranks() { # NODE...: a cut node's sshd may still wait for the network, or for a head that stands still
    ! lab ps "$@" | grep -v sshd:
}

comes_up 'eight ranks are up' 8 lab_start -H "$TMP/hosts.txt" --node-timeout 3s --label none sh -c 'echo up; exec sleep 100'
lab cut node003
begin=$SECONDS
exits 'a node whose cable was pulled: 125' 125 finish
ok 'it took seconds' test $((SECONDS - begin)) -lt "$(scaled 20)"
verdict_has 'the verdict names the node, and for how long it was silent' \
    'lost node003: silent for 3' 's (--node-timeout)  (exit 125)'
ok 'its time is that of the loss, not of the last heartbeat' grep -qE '^hnlaunch: failed after [0-9.]+s: lost node' "$ERR"
ok 'the other nodes are empty' wait_for quiet_node head node001 node002 node004
ok 'the ranks on the cut node end, too' wait_for no_ranks node003
lab restore node003

comes_up 'eight ranks are up again' 8 lab_start -H "$TMP/hosts.txt" --node-timeout 3s --label none sh -c 'echo up; exec sleep 100'
lab crash node002
exits 'a node that lost its power: 125' 125 finish
verdict_has 'the verdict names it' node002
ok 'the others are empty' wait_for quiet_node head node001 node003 node004
lab boot node002

comes_up 'eight ranks are up once more' 8 lab_start -H "$TMP/hosts.txt" --node-timeout 3s --label none sh -c 'echo up; exec sleep 100'
lab freeze node004
exits 'a node that hangs: 125' 125 finish
verdict_has 'the verdict names it' node004
lab thaw node004
hn report "$(sed -n 's/^hnlaunch: run \([^:]*\):.*/\1/p' "$ERR")"
is 'the report tells the reason once' "$(grep -c -e '(--node-timeout)' "$OUT")" 1

# As when this machine's own cable is out.
lab_start -H "$TMP/hosts.txt" --node-timeout 3s --label none sh -c 'echo up; exec sleep 100'
ok 'eight ranks are up on a network that breaks' wait_for lines_are "$OUT" 8
lab cut node001 node002 node003 node004
exits 'all nodes fall silent together: 125' 125 finish
question="no node answers: is this machine's network down?"
ok 'the network of this machine is suspected' grep -q "^hnlaunch: failed after [^ ]*: $question  (exit 125)$" <(verdict)
has 'it is an error with a number' "$ERR" 'error[HN311]: '
is 'it is told once' "$(grep -c "${question%:*}" "$ERR")" 1
lacks 'no node is blamed' "$ERR" 'lost node0'
lacks 'nor to be left out' "$ERR" '--exclude'
for node in node001 node002 node003 node004; do
    ok "the ranks on $node end by themselves" wait_for no_ranks "$node"
done
lab restore node001 node002 node003 node004

comes_up 'eight ranks are up for a hiccup' 8 lab_start -H "$TMP/hosts.txt" --label none sh -c 'echo up; exec sleep 8'
lab stall node004 1.8
exits 'a node that hangs for less than two seconds is not lost' 0 finish

lab_start -H "$TMP/hosts.txt" --node-timeout 20s --label none sh -c 'echo up; exec sleep 10'
ok 'eight ranks are up with more patience' wait_for lines_are "$OUT" 8
lab stall node001 5
exits '--node-timeout gives a node more time' 0 finish
lab_start -H "$TMP/hosts.txt" --node-timeout 3s --label none sh -c 'echo up; exec sleep 9'
ok 'eight ranks are up while the head sleeps' wait_for lines_are "$OUT" 8
kill -TSTP "$PID"
sleep 5
exits 'nobody is lost because the head was suspended' 0 finish_by CONT

# As when a batch system stops the head, or its machine sleeps: nothing asks the nodes to wait.
lab_start -H "$TMP/hosts.txt" --node-timeout 3s --label none --max-restarts 1 \
    sh -c 'echo up; test $HN_RESTART = 1 || exec sleep 100'
ok 'eight ranks are up while the head stands still' wait_for lines_are "$OUT" 8
kill -STOP "$PID"
ok 'the ranks end meanwhile' wait_for no_ranks node001 node002 node003 node004
exits 'the job is started again' 0 finish_by CONT
has 'the pause is the cause' "$ERR" ', and its nodes ended their ranks'
lacks 'no node is blamed for it' "$ERR" 'lost node0'

lab_start -H "$TMP/hosts.txt" --node-timeout 3s --label none sh -c 'echo up; exec sleep 100'
ok 'eight ranks are up before another pause' wait_for lines_are "$OUT" 8
kill -STOP "$PID"
ok 'its ranks end meanwhile' wait_for no_ranks node001 node002 node003 node004
exits 'without restarts: 125' 125 finish_by CONT
verdict_has 'the last line tells the pause' 'hnlaunch did not run for ' ', and its nodes ended their ranks  (exit 125)'
has 'with its number' "$ERR" 'error[HN336]: hnlaunch did not run for a while'
lacks 'no node is to be left out' "$ERR" '--without'

lab_nothing_left 'the ranks of a hung node end when it wakes up, those of a cut one when it is back'
done_testing
