#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With --tree, too, nodes pass files on to each other: the login node sends each content once.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

mkdir "$TMP/cache"
lab_up 4 1
push() { lab_hn -v -H "$TMP/hosts.txt" "$@"; }
uplink() { sed -n 's/.*push [0-9/]* in .*(\(.*\) sent)/\1/p' "$ERR"; }
passed() { grep -c 'others come through node' "$ERR"; }

# Before the nodes have homes of their own: all share one, and whoever fetches may have a parent that waits.
mkdir data
head -c 3000000 /dev/urandom >data/large
for i in 1 2 3 4 5 6 7 8 9; do head -c $((i * 1000)) /dev/urandom >"data/small$i"; done
exits 'a chain of nodes that share their home' 0 push --tree 1 --push data --label none sha256sum data/large data/small7
is 'is fed once' "$(uplink)" '3.0 MB'

for node in node001 node002 node003 node004; do
    lab exec "$node" mount -t tmpfs -o size=64m lab "$TMP/cache"
done
sha256sum data/* >"$TMP/want"
for tree in 1 2 3; do
    push --tree "$tree" --push data --label none sha256sum data/large data/small{1..9}
    exits "--tree $tree gives 0" 0
    is "--tree $tree: every node has every file" "$(sort "$OUT" | uniq -c | awk '$1 == 4' | wc -l)" 10
    is "--tree $tree: and none another" "$(sort -u "$OUT" | sort -k2 | sha256sum)" "$(sort -k2 "$TMP/want" | sha256sum)"
done
is 'one of four is fed by the login node' "$(uplink)" '3.0 MB'
is 'the others by another node' "$(passed)" 3

# A new agent, for a node that was lost with its parent, has none of the files.
printf 'node001 slots=1\nnode002 slots=1\nnode003 slots=1 spare\n' >hosts
lab_start -v -H hosts --tree 1 --max-restarts 1 --push data --label none sh -c \
    "touch $TMP/begun-\$HN_RESTART-\$HN_RANK; [ \$HN_RESTART = 1 ] || sleep 60; sha256sum data/small1"
ok 'two ranks have begun' wait_for test -e "$TMP/begun-0-0" -a -e "$TMP/begun-0-1"
lab exec node001 pkill -KILL -x 'agent-.*'
exits 'a job whose first parent is killed starts again' 0 finish
is 'with its files' "$(sort "$OUT" | uniq -c | awk '{ print $1, $2 }')" "2 $(sha256sum <data/small1 | cut -d' ' -f1)"

# Slow enough that it is under way for long, also for a busy machine.
lab run tc qdisc replace dev br0 root tbf rate 8mbit burst 64k latency 200ms
head -c 16000000 /dev/urandom >data/large
lab_start -v -H "$TMP/hosts.txt" --tree 1 --push data touch "$TMP/ran"
ok 'a large file is on its way' wait_for lab exec node001 sh -c "ls $TMP/cache/hnlaunch-stage-0/file/.*-*"
lab exec node001 pkill -KILL -x 'agent-.*'
exits 'a parent that is killed meanwhile' 68 finish
has 'is told' "$ERR" node001
ok 'nothing was started' test ! -e "$TMP/ran"
ok 'nothing is left on any node' wait_for no_staged_files node00{1..4}
lab_nothing_left 'no process is left'
done_testing
