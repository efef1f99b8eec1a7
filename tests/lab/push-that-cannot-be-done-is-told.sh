#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Whatever keeps files from their nodes: told with place and next step, no rank starts, nothing stays.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

export LAB_PRIVATE='/dev/shm /run /var/tmp'
mkdir "$TMP/cache"
lab_up 3 1
for node in node001 node002 node003; do
    lab exec "$node" mount -t tmpfs -o size=64m lab "$TMP/cache"
done
stored() {
    local node
    for node in node001 node002 node003; do
        lab exec "$node" find "$TMP/cache" /var/tmp /dev/shm -path '*hnlaunch-stage-*'
    done
}
nothing_stored() { [[ -z $(stored) ]]; }
# The head's uplink: what all nodes get together. Slow enough that a busy machine has its time to do what
# is to happen on the way; what comes after that need not take long.
uplink() { lab run tc qdisc replace dev br0 root tbf rate "$1" burst 64k latency 200ms; }
under_way() { # NODE: it has begun to store the file
    wait_for lab exec "$1" sh -c "ls $TMP/cache/hnlaunch-stage-0/file/.*-*"
}

head -c 3000000 /dev/urandom >file

# A full home: elsewhere, as the agent itself.
lab exec node002 mount -t tmpfs -o size=2m lab "$TMP/cache"
exits 'a home without room is left aside' 0 lab_hn -v -H "$TMP/hosts.txt" --push file cmp file file
has 'for the next best place' "$ERR" 'node002: pushed files are in /tmp/hnlaunch-stage-0/'
for place in /tmp/hnlaunch-stage-0 /var/tmp /dev/shm; do
    lab exec node002 sh -c "mkdir -p $place && mount -t tmpfs -o size=2m lab $place"
done
lab exec node002 mkdir -p /run/user/0
lab exec node002 mount -t tmpfs -o size=2m lab /run/user/0
exits 'no room anywhere is an error' 69 lab_hn -H "$TMP/hosts.txt" --push file touch "$TMP/ran"
has 'its code' "$ERR" 'error[HN235]: no room for the files on node002'
ok 'how much is needed' grep -qE '[0-9.]+ MB are to be stored' "$ERR"
ok 'how much there is, in units as well' grep -qE '[0-9.]+ [kM]B are free there' "$ERR"
has 'where' "$ERR" "node002:$TMP/cache/hnlaunch"
has 'the next step' "$ERR" HNLAUNCH_STAGE_DIR
ok 'nothing was started' test ! -e "$TMP/ran"
ok 'nothing is left' wait_for nothing_stored
exits 'the other nodes are fine' 0 lab_hn -w node001,node003 --push file true

printf '#!/bin/sh\nexit 0\n' >run.sh
chmod +x run.sh
lab_hn -w node001 --push file ./run.sh
exits 'a program of this folder that is not among the copies' 127
has 'is to be pushed, too' "$ERR" 'help: ranks start among the pushed files: add --push ./run.sh'
lacks 'and not to be on the nodes' "$ERR" 'must exist on every node'
lab_hn -w node001 --push file --push run.sh ./run.sh
exits 'as it then is' 0

# Too little room only becomes known when a file is written: another job fills the disk.
lab exec node003 mount -t tmpfs -o size=8m lab "$TMP/cache"
lab_hn -w node003 true # the agent is there from now on
uplink 2mbit
lab_start -w node001,node003 --push file touch "$TMP/ran"
ok 'a file is on its way' under_way node003
lab exec node003 dd if=/dev/zero of="$TMP/cache/fill" bs=1M count=20 status=none 2>/dev/null
uplink 500mbit
exits 'a disk that fills up under way' 69 finish
has 'is told as such' "$ERR" 'error[HN235]: no room for the files on node003'
lab exec node003 umount -l "$TMP/cache"
ok 'and nothing is left' wait_for nothing_stored

# On its way one byte changes that ssh does not protect: before it is encrypted.
# ssh makes its standard output non-blocking, which is the same socket as standard input here.
cat >"$TMP/spoil" <<'END'
#!/bin/bash
python3 -u -c '
import os, select
data = b"-"
while data:
    select.select([0], [], [])
    try:
        data = os.read(0, 1 << 16)
    except BlockingIOError:
        continue
    os.write(1, data.replace(b"spoil me", b"spoil Me"))' | ssh "$@"
END
chmod +x "$TMP/spoil"
echo 'spoil me' >small
exits 'a content that changes on the way' 69 lab_hn -w node001,node003 --ssh-command "$TMP/spoil" --push small touch "$TMP/ran"
# On both, when they are equally fast.
has 'is told by its hash' "$ERR" 'error[HN236]: a pushed file has arrived damaged on node'
has 'with its name' "$ERR" 'small arrived with a wrong hash'
{ echo 'spoil me'; head -c 3000000 /dev/urandom; } >large
lab_hn -w node001,node003 --ssh-command "$TMP/spoil" --push small --push large touch "$TMP/ran"
exits 'and one that passes from node to node' 69
has 'is told with a node' "$ERR" 'error[HN236]: a pushed file has arrived damaged on node'
has 'and the file' "$ERR" 'large arrived with a wrong hash'
ok 'and nothing is left' wait_for nothing_stored

roots="$TMP/cache/hnlaunch-stage-0 $TMP/cache/hnlaunch/hnlaunch-stage-0 /var/tmp/hnlaunch-stage-0 /run/user/0/hnlaunch-stage-0 /dev/shm/hnlaunch-stage-0"
lab exec node003 sh -c "mkdir -p /run/user/0 $TMP/cache/hnlaunch; rm -rf $roots; touch $roots; mkdir -p /tmp/hnlaunch-stage-0 && mount -t tmpfs -o ro lab /tmp/hnlaunch-stage-0"
exits 'a node that cannot store anything' 69 lab_hn -w node001,node003 --push small touch "$TMP/ran"
has 'is told' "$ERR" 'error[HN234]: cannot store the pushed files on node003'
has 'with the reason' "$ERR" 'Not a directory'
lab exec node003 sh -c "rm $roots; umount /tmp/hnlaunch-stage-0"

# More than a window, so that there is still something to be read.
head -c 16000000 /dev/urandom >file

# The file changes while it is on its way.
uplink 8mbit
lab_start -w node001,node003 --push file touch "$TMP/ran"
ok 'a large file is on its way' under_way node001
printf 'changed!' | dd of=file bs=8 seek=1999999 conv=notrunc status=none
uplink 500mbit
exits 'a file that changes meanwhile' 66 finish
has 'is named' "$ERR" "error[HN237]: --push: cannot send $PWD/file: the file has changed since it was hashed"
ok 'and nothing is left' wait_for nothing_stored

uplink 8mbit
lab_start -w node001,node003 --push file touch "$TMP/ran"
ok 'it is on its way again' under_way node001
kill -INT "$PID"
uplink 500mbit
exits 'Ctrl-C while files are on their way' 130 finish
ok 'nothing is left' wait_for nothing_stored

uplink 8mbit
lab_start -w node001,node003 --push file touch "$TMP/ran"
ok 'and again' under_way node001
lab exec node001 pkill -KILL -x 'agent-.*'
uplink 500mbit
exits 'an agent that is killed meanwhile' 68 finish
has 'is a lost node' "$ERR" node001
ok 'nothing is left' wait_for nothing_stored

uplink 8mbit
# Ten times as long, since files are on their way, but less than the minute in which TCP gives up.
lab_start -w node001 --push file --node-timeout 1s touch "$TMP/ran"
ok 'and once more' under_way node001
lab cut node001
uplink 500mbit
exits 'a node that falls silent meanwhile' 68 finish
has 'is told' "$ERR" 'silent for'
lab restore node001
ok 'no rank has ever run' test ! -e "$TMP/ran"
ok 'nothing is left' wait_for nothing_stored
lab_nothing_left 'no process is left'
done_testing
