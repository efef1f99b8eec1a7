#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --tree: a node with children is lost. That is one failure, all ranks end, and nothing is left anywhere.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 8 2
sed '8s/$/ spare/' "$TMP/hosts.txt" >spare.txt
head -n 7 "$TMP/hosts.txt" >seven.txt
# node001 is the parent of node002 (the parent of node003) and node004; node005 is the parent of node006 and node007.

# A peer that lost its power says nothing: its neighbours' sshd waits for the network.
no_ranks() { # NODE...
    ! lab ps "$@" | grep -v sshd:
}

others() { # NODE: no process of a job on any other node
    local n list=(head)
    for n in node00{1..8}; do
        [[ $n == "$1" ]] || list+=("$n")
    done
    no_ranks "${list[@]}"
}

up() { # OPTION...
    lab_start --tree 2 -H seven.txt --grace 1s --node-timeout 3s "$@" --label none sh -c 'echo up; exec sleep 100'
    ok 'fourteen ranks are up' wait_for lines_are "$OUT" 14
}

lost() { # NODE N
    exits "$1: 125" 125
    verdict_has "$1 is the one that is named" "lost $1"
    has "$1: those behind it are told once" "$ERR" "$2 behind it"
    is "$1: one error" "$(grep -c '^error\[HN' "$ERR")" 1
}

up
lab crash node001
begin=$SECONDS
finish
ok 'it took seconds' test $((SECONDS - begin)) -lt "$(scaled 20)"
lost node001 '3 nodes'
ok 'the others are empty' wait_for others node001
lab boot node001

up
lab freeze node005
finish
lost node005 '2 nodes'
ok 'the others are empty' wait_for others node005
lab thaw node005

up
lab crash node002
finish
lost node002 '1 node'
ok 'the others are empty' wait_for others node002
lab boot node002

up
lab cut node006
exits 'the way between two nodes is cut: 125' 125 finish
verdict_has 'the leaf is named' 'lost node006'
ok 'the others are empty' wait_for others node006
ok 'the ranks behind the cut end, too' wait_for no_ranks node006
lab restore node006

up
lab exec node001 pkill -KILL -x 'agent-.*' || true
exits 'the agent of an inner node is killed: 125' 125 finish
verdict_has 'it is named' 'lost node001'
ok 'everything is empty' wait_for lab_empty

up
kill -KILL "$PID"
wait "$PID" 2>/dev/null
ok 'a head that is killed leaves nothing anywhere' wait_for lab_empty

lab_start --tree 2 -H seven.txt --node-timeout 3s --label none sh -c 'echo up; exec sleep 6'
ok 'fourteen ranks are up for a hiccup' wait_for lines_are "$OUT" 14
lab stall node001 1.6
exits 'an inner node that hangs for less than two seconds is not lost' 0 finish

cat >work.sh <<'EOF'
echo "rank $RANK of $WORLD_SIZE on $(hostname) attempt $HN_RESTART"
[ "$HN_RESTART" = 0 ] && exec sleep 60
exit 0
EOF
lab_start --tree 2 -H spare.txt --max-restarts 1 --node-timeout 3s --label none sh "$PWD/work.sh"
ok 'fourteen ranks are up with a spare host' wait_for lines_are "$OUT" 14
lab crash node001
exits 'the second attempt ends well' 0 finish
has 'the spare host takes over' "$ERR" 'node008 takes the place of node001'
has 'those behind the lost one are connected again' "$ERR" '3 nodes behind a lost one are connected directly now'
is 'and have their ranks' "$(grep -c 'on node00[2-4] attempt 1' "$OUT")" 6
lab boot node001
ok 'neither agent nor rank is left at the end' wait_for no_ranks head node00{1..8}
done_testing
