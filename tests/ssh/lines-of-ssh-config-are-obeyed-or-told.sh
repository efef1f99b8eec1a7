#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A launch obeys a line of ssh_config, or tells it: a warning where ssh(1) would make the same login, an error with exit
# 78 where it would refuse or go elsewhere. Commands of Match exec see none of hnlaunch's streams.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

# shellcheck disable=SC2119
sshd_beside_ssh
node='HostName 127.0.0.1'
hosts() { write_config "$@" 'Host node*' "    Port $PORT" "    $node"; }
launch() { hn --ssh-config "$TMP/ssh_config" "$@"; }
asks_ssh() { ssh -F "$TMP/ssh_config" -oBatchMode=yes node1 true </dev/null >"$TMP/ssh.out" 2>&1; }

# Told once for each line, however many hosts it holds for.
hosts 'Host node[12]' '    SetEnv A=b' 'Host node*' '    SetEnv B=c' '    RemoteForward 1 a:1' '    Tunnel no' \
    'Host other' '    SetEnv A=c'
exits 'lines that are not obeyed' 0 launch --oversubscribe -w node1,node2,node3 true
has 'the number' "$ERR" 'warning[HN240]: 2 lines of the ssh configuration are not obeyed'
has 'the first line' "$ERR" "$TMP/ssh_config: line 4: SetEnv is not obeyed: the variables of ranks are those of --export"
has 'the second line' "$ERR" "$TMP/ssh_config: line 5: RemoteForward is not obeyed: no port is forwarded"
is 'each once' "$(grep -c 'is not obeyed:' "$ERR")" 2
has 'the way out' "$ERR" '= help: --ssh-command ssh obeys all of it'
lacks 'not what is off' "$ERR" Tunnel
lacks 'not what is for others' "$ERR" 'line 8:'

# What ranks do not miss is told with -v, and when a login fails.
hosts 'Host *' '    ForwardAgent yes' '    ForwardX11 yes' '    LocalForward 127.0.0.1:1 a:1' 'Host node9' '    Port 1'
exits 'lines that ranks do not miss' 0 launch -w node1 true
lacks 'say nothing by default' "$ERR" HN240
launch -v -w node1 true
has 'but with -v' "$ERR" 'warning[HN240]: 3 lines of the ssh configuration are not obeyed'
has 'each with its reason' "$ERR" "$TMP/ssh_config: line 2: ForwardAgent is not obeyed: ranks get no ssh-agent"
exits 'a login that fails' 68 launch -w node1,node9 true
has 'and then, too' "$ERR" 'warning[HN240]: 3 lines of the ssh configuration are not obeyed'
hosts 'ServerAliveInterval 15' 'ControlMaster auto' 'ForwardAgent no' 'SendEnv LANG LC_*'
exits 'lines without a meaning here' 0 launch -w node1 true
lacks 'say nothing' "$ERR" HN240

# Refused: ssh(1) would refuse the login, or make another one.
hosts 'Host node1 node2' '    KnownHostsCommand /bin/false %H'
exits 'a line that would change the login' 78 launch -w node[1-3] true
has 'the number' "$ERR" 'error[HN241]: the ssh configuration for 2 nodes cannot be obeyed'
has 'file and line' "$ERR" "$TMP/ssh_config: line 2: KnownHostsCommand is not obeyed: "
has 'the way out' "$ERR" '= help: --ssh-command ssh obeys it, or remove the line for this host'
told_once 'once' 'cannot be obeyed'
exits 'another host' 0 launch -w node3 true
hosts 'Host node1' '    KnownHostsCommand none' 'Host *' '    KnownHostsCommand /bin/false'
exits 'the first value wins' 0 launch -w node1 true
hosts 'Host jump' "    HostName 127.0.0.1" "    Port $PORT" '    CheckHostIP yes'
exits 'at a jump host' 78 launch -w node1 --jump jump true
has 'told as such' "$ERR" "$TMP/ssh_config: line 4: CheckHostIP is not obeyed"
hosts 'RefuseConnection "closed today"'
exits 'RefuseConnection' 78 launch -w node1 true
has 'its text' "$ERR" "$TMP/ssh_config: line 1: RefuseConnection: closed today"
hosts 'IdentityFile /${HN_NOT_SET}/key'
exits 'a variable that is not set' 78 launch -w node1 true
has 'file and line' "$ERR" "$TMP/ssh_config: line 1: IdentityFile: the variable HN_NOT_SET is not set"
ok 'ssh refuses, too' not asks_ssh

# Wrong lines, in any block.
for line in 'Frobnicate yes' 'StrictHostKeyChecking maybe' 'Match nothing x' 'Port 99999' 'User "a'; do
    hosts 'Host other' "    $line"
    launch -w node1 true
    exits "$line" 78
    has "$line: the number" "$ERR" "error[HN242]: $TMP/ssh_config: line 2: "
    ok "$line: ssh refuses, too" not asks_ssh
done
hosts 'Frobnicate yes'
launch -w node1 true
has 'the way out of an unknown keyword' "$ERR" '= help: IgnoreUnknown frobnicate, in a line before, passes over it'
hosts 'IgnoreUnknown Frob*' 'Frobnicate yes'
exits 'IgnoreUnknown' 0 launch -w node1 true

# Match exec has no streams of hnlaunch.
hosts "Match exec \"cat >$TMP/eaten; echo SPOKEN; test \${HN_NOT_SET:-x} = x\"" "    $node" 'Host node1' '    HostName never.invalid'
run "$HNLAUNCH" --ssh-config "$TMP/ssh_config" -w node1 --stdin 0 --label none cat < <(echo 'for rank 0')
exits 'Match exec' 0
is 'standard input is for rank 0' "$(cat "$OUT")" 'for rank 0'
is 'and not for the command' "$(cat "$TMP/eaten")" ''
lacks 'it does not write among the output' "$OUT" SPOKEN

# A proxy command gets ${...} as written, as with ssh(1).
hosts "ProxyCommand echo \${HN_NOT_SET:-unset} %h %n %p >>$TMP/proxied; exec /bin/false"
launch -w node1 true
ok 'ssh runs the proxy command, too' not asks_ssh
is 'with the same words' "$(sort -u "$TMP/proxied")" "unset 127.0.0.1 node1 $PORT"

# RequiredRSASize holds for the keys of hosts.
mkdir "$TMP/sshd.1"
ssh-keygen -q -t rsa -b 2048 -N '' -f "$TMP/sshd.1/host_key"
sshd_start
trust "$PORT"
hosts 'RequiredRSASize 3072'
launch -w node1 true
ok 'a host key that is too short: refused' not test "$RC" = 0
ok 'ssh refuses, too' not asks_ssh
hosts 'RequiredRSASize 2048'
exits 'one that is long enough' 0 launch -w node1 true
ok 'for ssh, too' asks_ssh
done_testing
