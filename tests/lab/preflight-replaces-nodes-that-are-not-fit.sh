#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --preflight over ssh: a node that is not fit is replaced, left out, or ends the launch (--on-bad-node); a warning does not.
# Clean starts raise no alarm.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

export LAB_PRIVATE='/dev/shm /run /mnt'
lab_up 6 2
hosts=$TMP/hosts.txt
say='echo rank $RANK of $WORLD_SIZE on $(hostname)'
launch() { lab_hn -H "$hosts" --label none --preflight "$@" sh -c "$say"; }
on_hosts() { sort -t' ' -k2n "$OUT" | awk '{ print $6 }' | uniq | xargs; }
break_node() { lab exec "$1" mount -o remount,size=32m /dev/shm; } # as in the test of check
mend_node() { lab exec "$1" mount -o remount,size=512m /dev/shm; }
for i in 1 2 3 4 5 6; do mend_node "node00$i"; done

# --- clean starts
alarms=''
for i in {1..10}; do
    launch --spares 2
    [[ $RC == 0 && $(on_hosts) == 'node001 node002 node003 node004' ]] && ! grep -q -e 'HN61' -e 'takes the place' "$ERR" ||
        alarms+="$i: $(<"$ERR")"
done
is '10 clean starts raise no alarm' "$alarms" ''
launch --spares 2 -v
ok 'nodes are asked once' grep -qE '^hnlaunch: preflight: 6 nodes asked in [0-9]+ ms$' "$ERR"
lab_hn -H "$hosts" --label none -v true
lacks 'without the option they are not' "$ERR" preflight

# --- a spare host takes the place
break_node node002
exits 'a spare host takes the place: the job runs' 0 launch --spares 2
has 'one line tells why' "$ERR" \
    'hnlaunch: node005 takes the place of node002: not fit: it has only 33.6 MB in /dev/shm for 2 ranks'
is 'the ranks keep their order' "$(on_hosts)" 'node001 node005 node003 node004'
launch --spares 2 --json
has 'an event has the host and why' "$OUT" '"ev":"node.failed","node":1,"host":"node002","text":"not fit: it has only 33.6 MB'
ok '... and who takes the place' grep -q '"ev":"node.replaced".*"host":"node002".*"text":"node005"' "$OUT"
lab_run "$LAB_HNLAUNCH" report "$(sed -n 's/.*"ev":"run.start","run":"\([^"]*\)".*/\1/p' "$OUT")"
has 'the report has it' "$OUT" 'not fit: it has only 33.6 MB in /dev/shm for 2 ranks'
launch -n 8 --spares auto
is 'one that stands by unconnected does so, too' "$RC $(on_hosts)" '0 node001 node005 node003 node004'
break_node node005
launch --spares 2
is 'a spare host that is not fit is not used' "$RC $(on_hosts)" '0 node001 node006 node003 node004'
has '... and told' "$ERR" 'starting without the spare host node005: not fit: it has only 33.6 MB'
launch -n 8 --spares auto
is '... nor one that was not connected' "$RC $(on_hosts)" '0 node001 node006 node003 node004'
has '... a line for each' "$ERR" 'node006 takes the place of node005: not fit'
launch --spares 2 --tree 2
is '... nor in a tree' "$RC $(on_hosts)" '0 node001 node006 node003 node004'
break_node node003
exits 'no spare host is left: 69' 69 launch --spares 2
has '... which is an error' "$ERR" 'error[HN610]: 3 of 6 nodes are not fit'
has '... with the check' "$ERR" '| shm.size: node[002-003,005]: 33.6 MB, expected at least 134 MB'
has '... with the way out' "$ERR" "leave out all that failed: --exclude 'node[002-003,005]'"
lacks '... and no rank runs' "$OUT" rank
lacks '... and nothing tells of a start' "$ERR" 'starting without'
launch --exclude 'node[002-003,005]'
is '... which works' "$RC $(on_hosts)" '0 node001 node004 node006'

# --- left out
launch --min-nodes 3 --on-bad-node drop
is 'bad nodes are left out, and the ranks are dense' "$RC $(on_hosts) $(grep -c 'of 6' "$OUT")" '0 node001 node004 node006 6'
has '... a line for each' "$ERR" 'starting without node003: not fit: it has only 33.6 MB'
exits '... not below the least number: 69' 69 launch --nodes 4:6 --on-bad-node drop
has '... which is the same error' "$ERR" 'error[HN610]: 3 of 6 nodes are not fit'
exits '... and only where it was asked for' 69 launch --min-nodes 3

# --- ends the launch
exits 'stop: 69' 69 launch --spares 1 --on-bad-node stop
has '... with the nodes' "$ERR" "leave out all that failed: --exclude 'node[002-003,005]'"
lacks '... and none is replaced' "$ERR" 'takes the place'
exits 'without spare hosts: 69' 69 launch
has '... with the next step' "$ERR" '--spares N keeps N hosts to replace them'
exits '... nor with stop' 69 launch --on-bad-node stop
lacks '... where spare hosts would not help' "$ERR" '--spares'
exits 'none asks nothing' 0 launch --exclude 'node[003-006]' --preflight=none
for i in 2 3 5; do mend_node "node00$i"; done

# --- files of the program
lab exec node003 mkdir /mnt/data
exits 'a folder that only a spare host has' 0 launch --spares 5 --chdir /mnt/data
is '... is found there' "$(on_hosts)" node003
for i in 1 2 4 5 6; do lab exec "node00$i" mkdir /mnt/data; done
lab exec node003 rmdir /mnt/data
launch --spares 2 --chdir /mnt/data
has 'a missing folder' "$ERR" 'node005 takes the place of node003: not fit: it has no usable working directory: it is missing'
launch --spares 2 --chdir /mnt/data --preflight=0
lacks '0 does not look at it' "$ERR" 'not fit'
exits 'it is missing on all nodes: 69' 69 launch --spares 2 --chdir /nowhere
lacks '... and none is replaced' "$ERR" 'takes the place'
lacks '... nor left out' "$ERR" '--exclude'
lab exec node003 mkdir /mnt/data
cp /bin/sh tool
lab exec node004 sh -c "mkdir /mnt/bin && printf '#!/bin/sh\\n' >/mnt/bin/tool && chmod +x /mnt/bin/tool && mount --bind /mnt/bin/tool $PWD/tool"
exits 'another content of the program: 69' 69 lab_hn -H "$hosts" --label none --preflight ./tool -c "$say"
ok '... is told between the nodes' grep -qE '\| program: node004: .*, 5 others have ' "$ERR"
for i in 3 5 6; do
    lab exec "node00$i" sh -c "mkdir /mnt/bin && printf '#!/bin/sh\\n' >/mnt/bin/tool && chmod +x /mnt/bin/tool && mount --bind /mnt/bin/tool $PWD/tool"
done
lab_hn -H "$hosts" --label none --preflight --spares 4 ./tool -c "$say"
is 'spare hosts with another program have no vote about it' "$RC $(on_hosts)" '0 node001 node002'
has '... and are not used' "$ERR" 'starting without the spare host node003: not fit: '
# Roles: a program counts on the nodes where it runs.
for i in 3 4 5 6; do lab exec "node00$i" umount "$PWD/tool"; done
lab exec node002 mkdir /mnt/only
lab_hn -H "$hosts" --label none --preflight --role a --nodes 1 sh -c "$say" : --role b --nodes 1 --chdir /mnt/only sh -c "$say"
exits 'roles: a folder is missed only where its role runs' 0

# --- between the nodes: of four nodes each pair is tried
lab exec node002 ip route add unreachable "$LAB_NET.0.4"
launch --exclude 'node[005-006]' --min-nodes 3 --on-bad-node drop
is 'of two nodes with one broken connection one is left out' "$RC $(on_hosts)" '0 node001 node002 node004'
lab exec node002 ip route del unreachable "$LAB_NET.0.4"
lab exec node002 ip route add unreachable "$LAB_NET.0.4"
lab exec node002 ip route add unreachable "$LAB_NET.0.2"
lab exec node002 ip route add unreachable "$LAB_NET.0.5"
lab exec node002 ip route add unreachable "$LAB_NET.0.6"
lab exec node002 ip route add unreachable "$LAB_NET.0.7"
launch --spares 2
has 'a node that reaches no other is replaced' "$ERR" 'node005 takes the place of node002: not fit: '
launch --spares 2 --preflight=0
lacks '0 does not try it' "$ERR" 'not fit'
for i in 2 4 5 6 7; do lab exec node002 ip route del unreachable "$LAB_NET.0.$i"; done
exits 'pairs are measured' 0 launch --spares 2 --preflight=pairs -v
ok '... and none is blamed' not grep -q 'not fit' "$ERR"

# --- a later attempt
lab exec node003 mount -o remount,size=32m /dev/shm
lab_start -H "$hosts" --max-restarts 2 --node-timeout 3s --nodes 1 --spares auto --exclude node002 --preflight --label none sh -c "$say; [ \$HN_RESTART != 0 ] || exec sleep 60"
ok 'two ranks are up' wait_for lines_are "$OUT" 2
lab crash node001
exits 'a host that takes a place later is asked, too' 0 finish
has '... and told' "$ERR" 'node003 is not fit: it has only 33.6 MB in /dev/shm'
has '... another one is used' "$OUT" 'on node004'
lab_nothing_left 'nothing is left'
done_testing
