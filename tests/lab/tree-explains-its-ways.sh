#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --tree: what is wrong between two nodes is told with both of them, and nothing is started.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 4 2
KNOWN=$LAB_DIR/etc/known_hosts
cp "$KNOWN" known
tree=(--tree 1 --connect-timeout 15s --start-timeout 60s)
names_both() { # NAME
    has "$1: child and parent are named" "$ERR" '(from node002)'
    has "$1: whoever is behind was not tried" "$ERR" 'error[HN221]: node004 was not tried'
    lab_nothing_left "$1: nothing is left"
}

grep -v node003 known >"$KNOWN"
exits 'a key that nobody knows' 77 lab_hn "${tree[@]}" -w 'node[001-004]' true
has 'it has a number' "$ERR" 'error[HN222]: the host key of node003 is not trusted by its parent in the tree'
has 'and a next step' "$ERR" 'known_hosts'
names_both 'unknown key'

sed "s/^node003\([ ,][^ ]*\) .*/node003\1 $(awk '/^node001/ { print $2, $3; exit }' known | sed 's,/,\\/,g')/" known >"$KNOWN"
exits 'a key that has changed' 77 lab_hn "${tree[@]}" -w 'node[001-004]' true
has 'the change is told' "$ERR" 'error[HN206]: the host key of node003 has CHANGED'
has 'with the key that was offered' "$ERR" '| offered SHA256:'
has 'whom to ask' "$ERR" 'someone in the middle: ask your admin'
lacks 'nobody is told to add it' "$ERR" 'add its key'
lacks 'nor sent to a file that is gone' "$ERR" '/known-'
names_both 'changed key'

# What this machine knows counts on all nodes: theirs know nothing.
cp known mine
grep node001 known >"$KNOWN"
{
    grep -v UserKnownHostsFile "$LAB_DIR/etc/ssh_config"
    echo "UserKnownHostsFile $PWD/mine"
} >ssh_config
exits 'the nodes need no known_hosts of their own' 0 lab_hn "${tree[@]}" --ssh-config "$PWD/ssh_config" -w 'node[001-004]' true
cp known "$KNOWN"

# Nor RevokedHostKeys, which the ssh of node002 cannot read.
echo "RevokedHostKeys $PWD/revoked" >>ssh_config
awk '/^node003/ { print $2, $3 }' known >revoked
exits 'a key that is revoked here' 77 lab_hn "${tree[@]}" --ssh-config "$PWD/ssh_config" -w 'node[001-004]' true
has 'it has a number' "$ERR" 'error[HN207]: the host key of node003 is revoked'
names_both 'revoked key'
ssh-keygen -q -k -f krl revoked
mv krl revoked
grep -v node003 known >mine
lab_hn "${tree[@]}" --host-key accept-new --ssh-config "$PWD/ssh_config" -w 'node[001-004]' true
exits 'a key that is not known here could be a revoked one' 77
has 'it has a number' "$ERR" 'error[HN208]: the host key of node003 cannot be checked'
cp known mine
rm revoked
exits 'a list that is gone' 77 lab_hn "${tree[@]}" --ssh-config "$PWD/ssh_config" -w 'node[001-004]' true
has 'it has a number' "$ERR" 'error[HN208]: host keys of 4 nodes cannot be checked'
has 'the list is named' "$ERR" "$PWD/revoked: No such file"
lab_nothing_left 'nothing is left of it'

exits 'a login that is refused' 77 lab_hn "${tree[@]}" -w 'node001,node002,nobody@node003,node004' true
has 'it has a number' "$ERR" 'error[HN223]: node003 rejects the login from its parent in the tree'
has 'and says what to try' "$ERR" 'on node002'
names_both 'refused login'

lab sshd node003 stop
exits 'a child without a server' 68 lab_hn "${tree[@]}" --log-dir "$PWD/logs" -w 'node[001-004]' true
is 'nobody counts as connected before it answers' "$(grep -o '"node.connected".*"host":"node00."' logs/latest/events.ndjson |
    grep -o 'node00.' | tr '\n' ' ')" 'node001 node002 '
has 'it has a number' "$ERR" 'error[HN220]: node003 cannot be reached from its parent in the tree'
has 'ssh says why' "$ERR" 'connection refused'
names_both 'no server'
lab sshd node003 start

sed -i '1i ForceCommand exec sleep 1000' "$LAB_DIR/nodes/node003/sshd_config"
lab sshd node003 stop
lab sshd node003 start
# Those before it must answer in that time, too.
exits 'a child that never answers' 68 lab_hn "${tree[@]}" --start-timeout 8s -w 'node[001-004]' true
has 'it is not waited for' "$ERR" 'ssh timed out'
has 'whoever is behind was not tried' "$ERR" 'error[HN221]: node004 was not tried'
lab_nothing_left 'nothing is left of it'
sed -i 1d "$LAB_DIR/nodes/node003/sshd_config"
lab sshd node003 stop
lab sshd node003 start

lab exec node002 mount --bind /dev/null /usr/bin/ssh
exits 'a node that cannot run ssh' 68 lab_hn "${tree[@]}" -w 'node[001-004]' true
has 'what could not be started is told' "$ERR" "/ssh': it is no regular file"
names_both 'no ssh'
lab exec node002 umount /usr/bin/ssh

lab cut node003
exits 'a child whose cable is out' 68 lab_hn "${tree[@]}" --connect-timeout 5s -w 'node[001-004]' true
names_both 'no cable'
lab restore node003

lab sshd node001 stop
exits 'the first node without a server' 68 lab_hn "${tree[@]}" -w 'node[001-004]' true
has 'it is told as ever' "$ERR" 'error[HN201]: node001 cannot be reached'
has 'those behind it are one sentence' "$ERR" 'error[HN221]: 3 nodes were not tried'
lab sshd node001 start
exits 'all is well again' 0 lab_hn "${tree[@]}" -w 'node[001-004]' true
exits 'a chain that is too long' 69 lab_hn --tree 1 -w 'node[001-065]' true
has 'and the next step' "$ERR" 'take --tree 2 or more'
exits 'a K that is no number' 64 lab_hn --tree many -w node001 true
lab_nothing_left 'nothing is left at the end'
done_testing
