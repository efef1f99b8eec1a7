#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node is lost: its ranks go on, with their numbers, on a host that the hostfile calls spare. Without one
# the job ends and says so.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 4 2
sed 's/^\(node004.*\)/\1 spare/' "$TMP/hosts.txt" >spare.txt

cat >work.sh <<'EOF'
echo "rank $RANK of $WORLD_SIZE on $(hostname) attempt $HN_RESTART master $MASTER_ADDR:$MASTER_PORT"
[ "$HN_RESTART" = 0 ] && exec sleep 60
exit 0
EOF
lab_hn plan -H spare.txt true
lacks 'a spare host has no ranks in the plan' "$OUT" '6-7'

comes_up 'six ranks are up on three nodes' 6 lab_start -H spare.txt --max-restarts 2 --node-timeout 3s --label none sh "$PWD/work.sh"
lacks 'none on the spare one' "$OUT" node004
lab crash node002
exits 'the second attempt ends well' 0 finish
has 'the spare host takes over' "$ERR" 'node004 takes the place of node002'
is 'with the ranks of the lost node' "$(grep -c 'rank [23] of 6 on node004 attempt 1' "$OUT")" 2
is 'the others stay where they were' "$(grep -c 'rank [0145] of 6 on node00[13] attempt 1' "$OUT")" 4
lab boot node002

comes_up 'six ranks are up again' 6 lab_start -H spare.txt --max-restarts 2 --node-timeout 3s --label none sh "$PWD/work.sh"
lab crash node001
exits 'even the node of rank 0 can be replaced' 0 finish
is 'MASTER_ADDR moves with it' "$(grep -c "attempt 1 master $(lab hosts etc | awk '/node004/ { print $1 }'):" "$OUT")" 6
lab boot node001

lab_start -H "$TMP/hosts.txt" --max-restarts 2 --node-timeout 3s --label none sh "$PWD/work.sh"
ok 'eight ranks are up without a spare host' wait_for lines_are "$OUT" 8
lab crash node003
exits 'a lost node without a spare one ends the job: 125' 125 finish
has 'and says why' "$ERR" 'the job is not started again without node003'
lab boot node003
lab_nothing_left 'nothing is left'
done_testing
