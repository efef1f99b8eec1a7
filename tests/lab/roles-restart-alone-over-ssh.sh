#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --restart-scope on nodes: a role of two nodes, and a replica, start again while others run; a lost node starts the whole job again.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/lab.sh
. "$ROOT/tests/lib/lab.sh" || exit 1

export LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=$TMP/cache"
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

lab_start "${job[@]}"
ok 'four ranks of three roles are up' wait_for lines_are "$OUT" 4
touch die
ok 'both nodes of a role start it again' wait_for lives w 1 2
is 'at the port of before' "$(sed -n 's/^w.* at //p' "$OUT" | sort -u | wc -l)" 1
ok 'no other role' lives '[th]' 1 0
lab crash node002
ok 'a lost node starts all roles again' wait_for lives t 1 1
ok 'also the one that has started again before' wait_for lives w 2 2
has 'on another node' "$ERR" 'node004 takes the place of node002'
kill -INT "$PID"
finish
exits 'Ctrl-C ends it' 130
lab boot node002
lab_nothing_left 'nothing is left'

done_testing
