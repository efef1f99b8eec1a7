#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An agent that a crash of its node has left damaged is noticed and sent again, however the node is reached; one
# that is whole is used as it is.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

# A cache of its own for each node.
export LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=/run/cache"
lab_up 2 1
hosts=(-H "$TMP/hosts.txt" -n 2)
agent="/run/cache/hnlaunch/agent-*"
on_node() { lab exec node002 sh -c "$1"; }

lab_hn -v "${hosts[@]}" true
exits 'a launch' 0
has 'both nodes get the agent' "$ERR" '2 uploaded'
on_node "cp -p $agent /run/whole"
inode=$(on_node "stat -c %i $agent")
lab_hn -v "${hosts[@]}" true
lacks 'which is whole, so it is not sent again' "$ERR" uploaded
is 'nor replaced' "$(on_node "stat -c %i $agent")" "$inode"

try() { # NAME DAMAGE [OPTION...]
    # A copy, because an agent that has not left yet cannot be written to.
    on_node "f=/run/damaged; cp -p /run/whole \$f; $2; mv \$f $agent"
    lab_hn -v "${hosts[@]}" --label none "${@:3}" hostname
    exits "$1" 0
    is "$1: both nodes run" "$(sort "$OUT" | tr '\n' ' ')" 'node001 node002 '
    has "$1: one is told to be sent" "$ERR" '1 uploaded'
    ok "$1: it is whole and executable again" on_node "cmp $agent /run/whole && test -x $agent"
}

empty=': >$f'
cut='truncate -s -512 $f'
zeros='size=$(stat -c %s $f); : >$f; truncate -s $size $f'
part='dd if=/dev/zero of=$f bs=4096 seek=1 count=200 conv=notrunc 2>/dev/null'
for how in "$empty" "$cut" "$zeros" "$part" 'chmod a-x $f'; do
    try "ssh: $how" "$how"
done
for how in "$empty" "$zeros"; do
    try "the site's ssh: $how" "$how" --ssh-command ssh
    try "through another node: $how" "$how" --tree 1
done
lab_nothing_left 'nothing is left'
is 'nor a half file' "$(on_node 'ls -A /run/cache/hnlaunch | wc -l')" 1
done_testing
