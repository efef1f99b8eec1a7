#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A restart that cannot be is a failure, and an order that comes while nodes are connected again
# is followed.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

# With --tree 2 node001 is the parent of node002 and node004, and node002 node003.
lab_up 7 2
work='echo "$(hostname) attempt $HN_RESTART"; [ "$(hostname)" = node001 ] && [ "$MODE" = early ] && exit 0; exec sleep 60'

# The parent's ranks have ended well when its agent dies: it is not lost before it is needed again, and cannot be
# reached then.
lab_start --tree 2 -H "$TMP/hosts.txt" -n 14 --ppn 2 --max-restarts 1 --node-timeout 3s -x MODE=early --log-dir "$TMP/logs" --label none sh -c "$work"
ok 'all ranks are up' wait_for lines_are "$OUT" 14
parent_is_done() { [[ $(grep -c '"rank.exited"' "$TMP"/logs/*/events.ndjson) == 2 ]]; }
ok 'those of the parent have ended' wait_for parent_is_done
lab sshd node001 stop
lab exec node001 pkill -KILL -x 'agent-.*' || true
finish
lab sshd node001 start
exits 'no other attempt without the parent: 125' 125
verdict_has 'which is named' 'lost node001'
lab_nothing_left 'nothing is left'

# Who was behind the lost parent does not answer: the restart waits for it, and is told to end.
lab_start --tree 2 -H "$TMP/hosts.txt" -n 14 --ppn 2 --max-restarts 1 --connect-timeout 30s \
    -x MODE=late --label none sh -c "$work"
ok 'all ranks are up again' wait_for lines_are "$OUT" 14
there=$(lab hosts etc | awk '$2 == "node004" { print $1 }')
lab run ip neigh replace "$there" lladdr 02:00:00:00:00:99 dev br0 nud permanent
lab exec node001 pkill -KILL -x 'agent-.*' || true
reconnecting() { grep -q 'behind a lost one' "$ERR"; }
ok 'those behind it are connected again' wait_for reconnecting
kill -INT "$PID"
begin=$SECONDS
finish
ok 'Ctrl-C ends that' test $((SECONDS - begin)) -lt "$(scaled 15)"
exits 'the first cause stands' 125
is 'there was no other attempt' "$(grep -c 'attempt 1' "$OUT")" 0
lab run ip neigh del "$there" dev br0
lab_nothing_left 'nothing is left at the end'
done_testing
