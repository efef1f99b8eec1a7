#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --restart-scope on nodes: a role of two nodes, and a replica, start again while others run; a lost node starts the whole job again.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 4 1
hosts=$TMP/hosts.txt

cat >work.sh <<'END'
echo "$HN_ROLE.$HN_ROLE_INDEX.$RANK life $HN_RESTART on $(hostname) at $MASTER_PORT"
while [ "$HN_ROLE.$RANK.$HN_RESTART" != w.1.0 ] || [ ! -e "$1" ]; do sleep 0.1; done
exit 3
END
job=(-H "$hosts" --node-timeout 3s --gpus-per-rank 0 --label none --spares 1 --max-restarts 3 --role t --nodes 1 sh "$PWD/work.sh" "$PWD/die" : --role w --nodes 2 --restart-scope role sh "$PWD/work.sh" "$PWD/die" :
    --role h --on t --per-node --restart-scope alone sh "$PWD/work.sh" "$PWD/die")
lives() { [[ $(grep -c "^$1.* life $2 " "$OUT") == "$3" ]]; }

comes_up 'four ranks of three roles are up' 4 lab_start "${job[@]}"
touch die
ok 'both nodes of a role start it again' wait_for lives w 1 2
is 'at the port of before' "$(sed -n 's/^w.* at //p' "$OUT" | sort -u | wc -l)" 1
ok 'no other role' lives '[th]' 1 0
lab crash node002
ok 'a lost node starts all roles again' wait_for lives t 1 1
ok 'also the one that has started again before' wait_for lives w 2 2
has 'on another node' "$ERR" 'node004 takes the place of node002'
exits 'Ctrl-C ends it' 130 finish_by INT
lab boot node002
lab_nothing_left 'nothing is left'

# A role that waits to start again when a host is drained starts with the next attempt, and nobody waits for it.
cat >crash.sh <<'END'
[ ! -e saved ] || { echo "$HN_ROLE life $HN_RESTART"; exit 0; }
[ "$HN_ROLE" = t ] || exit 3
trap 'touch saved; exit 0' USR1
while :; do sleep 0.1; done
END
lab_start -w node001:1,node002:1,node003:1 --spares 1 --gpus-per-rank 0 --label none --max-restarts 9 --drain-signal USR1 --role t --nodes 1 sh "$PWD/crash.sh" : \
    --role c --nodes 1 --restart-scope role sh "$PWD/crash.sh"
ok 'a role has failed four times, and waits 4 s' wait_for grep -q 'restart 4 of 9, of role c' "$ERR"
"$LAB" run "$LAB_HNLAUNCH" drain "$(sed -n 's/^hnlaunch: run \([a-z0-9]*\):.*/\1/p' "$ERR")" node001 >drain.out 2>&1
exits 'the run ends well after the drain of a host' 0 finish
has 'which has waited for no start' "$ERR" 'node001 was drained: hnlaunch drain, all ranks have ended'
is 'both roles have gone on in the next attempt only' "$(sed 's/ life.*//' "$OUT" | sort | xargs)" 'c t'
lab_nothing_left 'nothing is left of this one'

done_testing
