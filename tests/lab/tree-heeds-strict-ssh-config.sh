#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --tree: a line of ssh_config that makes the login of a node to the next one stricter, here or on the node, is obeyed
# or ends the launch.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 3 2
cp "$LAB_DIR/etc/ssh_config" plain
# Lines for one node in the configuration here; the nodes have none of them.
here() { # LINE...
    printf '%s\n' 'Host node002' "$@" 'Host *' | cat - plain >ssh_config
}
# Lines in the configuration of the nodes, which is mounted: it is written in place.
there() { # LINE...
    here
    printf '%s\n' 'Host node002' "$@" 'Host *' | cat - plain >"$LAB_DIR/etc/ssh_config"
}
launch() { lab_hn --tree 1 --connect-timeout 15s --start-timeout 60s --ssh-config "$PWD/ssh_config" -w 'node[001-003]:1' true; }

here
exits 'no such line' 0 launch

for line in 'KnownHostsCommand /bin/false %H' 'RefuseConnection "closed today"'; do
    here "$line"
    launch
    exits "$line: 78" 78
    has "$line: the number" "$ERR" 'error[HN241]: the ssh configuration for node002 cannot be obeyed'
    has "$line: file and line" "$ERR" "node002          $PWD/ssh_config: line 2: ${line%% *}"
done

# Sets the algorithms that node002 has not, in its parent's ssh.
refused() { # NAME TEXT
    exits "$1: 68" 68
    has "$1: the node is named" "$ERR" 'error[HN220]: node002 cannot be reached from its parent in the tree'
    has "$1: and the parent" "$ERR" '(from node001)'
    has "$1: its ssh says why" "$ERR" "$2"
}
here 'KexAlgorithms diffie-hellman-group1-sha1'
launch
refused 'KexAlgorithms' 'no matching key exchange method found'
here 'Ciphers 3des-cbc'
launch
refused 'Ciphers' 'no matching cipher found'
here 'Ciphers aes128-ctr' 'MACs hmac-md5'
launch
refused 'MACs' 'no matching MAC found'
here 'HostKeyAlgorithms ssh-rsa'
launch
refused 'HostKeyAlgorithms' 'no matching host key type found'
here 'Ciphers aes128-ctr' 'MACs +hmac-md5' 'HostKeyAlgorithms ^ssh-ed25519' 'RequiredRSASize 4096'
exits 'lists that have what node002 has' 0 launch

# The file for all users may name what an older ssh of a node has not.
printf '%s\n' 'Host node002' 'HostKeyAlgorithms ssh-ed25519,new@example.org' 'Host *' | cat - plain >for-all
here 'HostKeyAlgorithms ssh-ed25519,new@example.org'
launch
refused 'a name that the ssh of the node has not' "Bad key types 'ssh-ed25519,new@example.org'"
exits '... of the file for all users' 0 lab_run unshare --mount sh -c 'mount --bind "$0" /etc/ssh/ssh_config && exec "$@"' "$PWD/for-all" \
    "$LAB_HNLAUNCH" --tree 1 --connect-timeout 15s --start-timeout 60s -w 'node[001-003]:1' true

# What the nodes have in their own configuration.
there 'HostKeyAlgorithms ssh-rsa'
launch
refused 'a line of the node' 'no matching host key type found'
there 'RemoteCommand hostname'
launch
refused 'a line with which ssh runs no command' 'Cannot execute command-line and remote command.'
there 'HostName node003' 'Port 1' 'User nobody'
exits 'where to is decided here' 0 launch

# A host key of RSA.
node=$LAB_DIR/nodes/node002
ssh-keygen -q -t rsa -b 2048 -N '' -f "$PWD/rsa"
sed -i "s,^HostKey .*,HostKey $PWD/rsa," "$node/sshd_config"
sed -i "s,^\(node002[^ ]*\) .*,\1 $(cut -d' ' -f1,2 rsa.pub)," "$LAB_DIR/etc/known_hosts"
lab sshd node002 stop
lab sshd node002 start
there
here 'RequiredRSASize 2048'
exits 'RequiredRSASize: a key that is long enough' 0 launch
here 'RequiredRSASize 4096'
launch
refused 'RequiredRSASize' 'Invalid key length'
lab_nothing_left 'nothing is left at the end'
done_testing
