#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A home directory that is read-only, noexec or full does not stop a launch: the agent goes elsewhere.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

export LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=$TMP/cache"
# Only the node's own folders are left to fall back to.
export LAB_PRIVATE='/dev/shm /run /var/tmp'
mkdir "$TMP/cache"
lab_up 4 1

lab exec node001 mount -t tmpfs -o ro lab "$TMP/cache"
lab exec node002 mount -t tmpfs -o noexec lab "$TMP/cache"
lab exec node003 mount -t tmpfs -o size=64k lab "$TMP/cache"

for time in first second; do
    lab_hn -H "$TMP/hosts.txt" -n 4 --label none hostname
    exits "the $time launch gives 0" 0
    is "the $time launch reaches all nodes" "$(sort "$OUT" | tr '\n' ' ')" 'node001 node002 node003 node004 '
done
lab_nothing_left 'nothing is left'

# What sshd itself needs is there.
for place in /var/tmp /dev/shm /run; do
    lab exec node001 sh -c "mount -t tmpfs lab $place && mkdir -p $place/sshd && mount -o remount,ro $place"
done
lab_hn -w node001:1 true
ok 'a node where nothing can be written is an error' test "$RC" != 0
has 'it is named' "$ERR" node001
has 'with what was tried' "$ERR" 'no folder for the agent is writable and executable'
done_testing
