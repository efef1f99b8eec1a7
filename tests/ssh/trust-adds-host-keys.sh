#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch trust shows the keys of all hosts, asks, and adds new ones to known_hosts; a changed key is never replaced.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

sshd_start 'LogLevel VERBOSE'
one=$PORT one_key=$(sshd_key) one_print=$(ssh-keygen -lf "$SSHD/host_key.pub" | cut -d' ' -f2)
sshd_start 'LogLevel VERBOSE'
two=$PORT two_key=$(sshd_key) two_print=$(ssh-keygen -lf "$SSHD/host_key.pub" | cut -d' ' -f2)
lines=()
for host in node1 node2 node3 odd; do
    lines+=("Host $host" '    HostName 127.0.0.1' "    Port $one" "    HostKeyAlias $host")
done
lines+=('Host other' '    HostName 127.0.0.1' "    Port $two" 'Host gone' '    HostName 127.0.0.1' '    Port 1')
config() { write_config "$@" "${lines[@]}"; }
config
trust_hosts() { hn trust --ssh-config "$TMP/ssh_config" "$@" </dev/null; }
on_terminal() { # ANSWER ARG...: all output is in $OUT
    run python3 -c '
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
text = b""
asked = False
while True:
    try:
        more = os.read(fd, 4096)
    except OSError:
        more = b""
    if not more:
        break
    text += more
    if b"(yes/no) " in text and not asked:
        asked = True
        os.write(fd, sys.argv[1].encode() + b"\n")
sys.stdout.write(text.decode().replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))' "$1" "$HNLAUNCH" trust --ssh-config "$TMP/ssh_config" "${@:2}"
}
rm -f "$KNOWN"

exits 'without a terminal, and without --yes: 77' 77 trust_hosts 'node[1-3]' other
is 'equal keys share a row' "$(<"$OUT")" "new    ED25519  $one_print  node[1-3]
new    ED25519  $two_print  other"
has 'which says what to do' "$ERR" 'error[HN225]: 4 new host keys were not added: standard input is no terminal to ask at'
ok 'nothing is stored' test ! -e "$KNOWN"

on_terminal no 'node[1-3]'
exits 'no is an answer: 77' 77
has 'after a question' "$OUT" "add 3 host keys to $KNOWN? (yes/no) "
has 'nothing was added' "$OUT" 'error[HN225]: 3 new host keys were not added'
ok 'nor stored' test ! -e "$KNOWN"
on_terminal yes 'node[1-3]' node2
exits 'yes' 0
has 'is told' "$OUT" "hnlaunch: added 3 host keys to $KNOWN"
is 'the lines are those of ssh' "$(<"$KNOWN")" "$(printf "%s $one_key\n" node1 node2 node3)"
exits 'once more: nothing is to do' 0 trust_hosts 'node[1-3]'
is 'the keys are known' "$(<"$OUT")" "known  ED25519  $one_print  node[1-3]"
is 'and no line is added' "$(grep -c . "$KNOWN")" 3
is 'no login was tried' "$(cat "$TMP"/sshd.*/log 2>/dev/null | grep -c 'Accepted')" 0

# Ports stand in the line; names that are one in known_hosts get one line.
config 'Host again' '    HostName 127.0.0.1' "    Port $two"
exits '--yes' 0 trust_hosts other again --yes
is 'a port other than 22 stands in the line, once' "$(tail -n +4 "$KNOWN")" "[127.0.0.1]:$two $two_key"
config 'HashKnownHosts yes'
rm -f "$KNOWN"
exits 'HashKnownHosts' 0 trust_hosts -w node1 --yes
ok 'the name is hashed' grep -q '^|1|' "$KNOWN"
is 'and found' "$(ssh-keygen -F node1 -f "$KNOWN" | grep -v '^#' | cut -d' ' -f2-)" "$one_key"
config

# What cannot be trusted is told; the others are added all the same.
printf 'odd %s\n' "$two_key" >"$KNOWN"
printf 'node1\nodd\ngone\n' >hosts.txt
exits 'a changed key: 77' 77 trust_hosts -H hosts.txt --yes
has 'it is named' "$ERR" 'error[HN206]: the host key of odd has CHANGED'
has 'with the known key' "$ERR" "known   ED25519 $two_print  $KNOWN:1"
has 'and the offered one' "$ERR" "offered ED25519 $one_print"
has 'a host without an answer is named' "$ERR" 'error[HN201]: gone cannot be reached'
has 'with the reason' "$ERR" 'connection refused on port 1'
is 'only the new key is added' "$(<"$KNOWN")" "$(printf 'odd %s\nnode1 %s' "$two_key" "$one_key")"
exits 'a host that cannot be reached: 68' 68 trust_hosts node1 gone
has 'with the next step' "$ERR" 'help: try ssh gone'
printf '@revoked * %s\n' "$one_key" >"$KNOWN"
exits 'a revoked key: 77' 77 trust_hosts node1 --yes
has 'is told' "$ERR" 'error[HN207]: the host key of node1 is revoked'

config "UserKnownHostsFile $PWD/no/such/folder/known"
printf x >no
exits 'a file that cannot be written: 73' 73 trust_hosts node2 --yes
has 'is told' "$ERR" 'error[HN226]: cannot store the host key of node2'
config 'Host node1' '    KnownHostsCommand /bin/true'
exits 'a line that is not obeyed: 78' 78 trust_hosts node1 --yes
has 'the help names the command that obeys it' "$ERR" 'help: ssh node1 obeys it, or remove the line for this host'
config 'Include %h'
exits 'an Include that is not obeyed: 78' 78 trust_hosts node1 --yes
has 'likewise' "$ERR" 'help: ssh HOST obeys it'
lacks 'and no option that this command refuses' "$ERR" '--ssh-command'
hn_exits 'no hosts: 64' 64 trust
hn_exits 'this machine needs no ssh, and is not asked' 0 trust localhost
is 'so there is nothing to show' "$(cat "$OUT" "$ERR")" ''
done_testing
