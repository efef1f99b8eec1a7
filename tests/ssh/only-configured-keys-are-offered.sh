#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With IdentitiesOnly the server sees no key of the ssh-agent but those that are configured, and a
# private key that others can read is ignored: as with ssh(1), which is asked the same each time.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

for name in locked stranger1 stranger2 plain; do
    [[ $name == locked ]] && pass=secret || pass=
    ssh-keygen -q -t ed25519 -N "$pass" -C "$name" -f "$TMP/$name"
done
cat "$TMP/locked.pub" "$TMP/plain.pub" >>"$TMP/authorized_keys"
sshd_beside_ssh 'LogLevel DEBUG1' 'MaxAuthTries 100'

start_ssh_agent
ssh-add -q "$TMP/stranger1" "$TMP/stranger2" 2>/dev/null
add_locked

for name in locked stranger1 stranger2 plain; do
    ssh-keygen -lf "$TMP/$name.pub" | cut -d' ' -f2 >"$TMP/$name.print"
done

# The names of the keys that the server was offered since the last question.
echo 0 >"$TMP/seen"
offered() {
    local name text
    text=$(tail -n "+$(($(<"$TMP/seen") + 1))" "$SSHD/log")
    wc -l <"$SSHD/log" >"$TMP/seen"
    for name in locked stranger1 stranger2 plain; do
        [[ $text != *"$(<"$TMP/$name.print")"* ]] || printf '%s ' "$name"
    done
}

# ssh(1) asks with the public half of a key that it cannot use, too, and has its agent's keys first.
compare() { # NAME CODE KEYS [KEYS]: of hnlaunch, and then of ssh, if they differ
    offered >/dev/null
    probe -c 'echo in' ssh "$at"
    exits "$1" "$2"
    is "$1: the keys that are offered" "$(offered)" "$3"
    offered >/dev/null
    if (($2)); then
        ok "$1: ssh does not log in" not ssh_logs_in
    else
        ok "$1: ssh logs in" ssh_logs_in
    fi
    is "$1: what ssh offers" "$(offered)" "${4-$3}"
}
KEY=$TMP/locked write_config
compare 'a key with a passphrase, in the agent' 0 'locked '
mv "$TMP/locked.pub" "$TMP/kept.pub"
compare 'without its .pub' 0 'locked '
mv "$TMP/locked" "$TMP/kept"
cp "$TMP/kept.pub" "$TMP/locked.pub"
compare 'only the .pub' 0 'locked '
KEY=$TMP/locked.pub write_config
compare 'the .pub as IdentityFile' 0 'locked '
mv "$TMP/kept" "$TMP/locked"

ssh-add -q -d "$TMP/locked" 2>/dev/null
KEY=$TMP/locked write_config
probe -c 'echo in' ssh "$at"
is 'not in the agent: not opened' "$RC" 1
has 'the file is told' "$ERR" "not usable $TMP/locked: needs its passphrase"
has "the agent's keys are told as not sent" "$ERR" "not sent   ssh-agent  ED25519 $(<"$TMP/stranger1.print")"
lacks 'none as offered' "$ERR" 'offered    ssh-agent'
is 'and none was' "$(offered)" ''
KEY=$TMP/absent write_config
compare 'a key that is nowhere' 1 ''
add_locked
KEY=$TMP/locked write_config "IdentityFile $TMP/plain"
compare 'two keys, one of them in a file' 0 'plain ' 'locked '

# Permissions.
for mode in 644 640 604 602; do
    chmod "$mode" "$TMP/plain"
    KEY=$TMP/plain write_config
    compare "a key with mode $mode" 1 '' 'plain '
    has "mode $mode: told" "$ERR" "not usable $TMP/plain: ignored, because its permissions are too open: 0$mode"
done
has 'with the next step' "$ERR" 'chmod 600'
has 'ssh says the same' "$TMP/ssh.err" 'Permissions 0602'
KEY=$TMP/plain write_config "IdentityFile $TMP/id"
compare 'and another key' 0 ''
printf 'node1 %s\n' "$(sshd_key)" >>"$KNOWN"
KEY=$TMP/plain write_config 'Host node1 node2' '    HostName 127.0.0.1' "    Port $PORT" '    HostKeyAlias node1' \
    'Host *' "IdentityFile $TMP/id"
hn_exits 'a launch with another key' 0 --ssh-config "$TMP/ssh_config" -w node1 -w node2 --oversubscribe --label none echo up
has 'warns' "$ERR" 'warning[HN247]: 1 private key is ignored: other users may access the file'
is 'once' "$(grep -c "| $TMP/plain  0602" "$ERR")" 1
ssh-add -q - <"$TMP/plain" 2>/dev/null
KEY=$TMP/plain write_config
compare 'a key with mode 602 that the agent has' 0 'plain '
chmod 400 "$TMP/plain"
ssh-add -q -d "$TMP/plain" 2>/dev/null
compare 'mode 400' 0 'plain '

# IdentityFile none, IdentityAgent.
KEY=none write_config
compare 'IdentityFile none' 1 ''
KEY=none write_config 'IdentitiesOnly no' 'IdentityAgent none'
compare 'IdentityAgent none' 1 ''
KEY=$TMP/locked write_config 'IdentityAgent SSH_AUTH_SOCK'
compare 'IdentityAgent SSH_AUTH_SOCK' 0 'locked '
unset SSH_AUTH_SOCK
KEY=$TMP/locked write_config "IdentityAgent $TMP/agent"
compare 'IdentityAgent with a path' 0 'locked '
ELSEWHERE=$TMP/agent
export ELSEWHERE
KEY=$TMP/locked write_config 'IdentityAgent $ELSEWHERE'
compare 'IdentityAgent with a variable' 0 'locked '
KEY=$TMP/locked write_config 'IdentityAgent /nowhere'
compare 'IdentityAgent with a path that is not there' 1 '' 'locked '
KEY=$TMP/locked write_config 'PubkeyAuthentication no'
compare 'PubkeyAuthentication no' 1 ''
done_testing
