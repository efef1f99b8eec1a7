#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With HashKnownHosts, names of accepted keys are stored as ssh(1) stores them: ssh-keygen -F and
# ssh find them, and the file does not show them.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

type -P ssh >/dev/null || skip_all 'no ssh here'
sshd_start 'LogLevel VERBOSE'
at=127.0.0.1:$PORT
config() { # [LINE...]
    write_config "$@" 'Host inner' '    HostName 127.0.0.1' "    Port $PORT" '    HostKeyAlias Inner' 'Host *'
}
found() { ssh-keygen -F "$1" -f "$KNOWN" | grep -v '^#' | cut -d' ' -f2-; } # NAME
forms() { sed -E 's/^\|1\|[A-Za-z0-9+/=]{28}\|[A-Za-z0-9+/=]{28} /hashed /' "$KNOWN"; }

config 'HashKnownHosts yes'
rm -f "$KNOWN"
probe -a -c 'echo in' ssh "$at" "$at"
exits 'a key is accepted' 0
is 'its name is hashed' "$(forms)" "hashed $(sshd_key)"
has 'it is told by name' "$ERR" "$at stored 127.0.0.1  ED25519"
is 'ssh-keygen finds it with its port' "$(found "[127.0.0.1]:$PORT")" "$(sshd_key)"
is 'and not without' "$(found 127.0.0.1)" ''
ok 'ssh knows it' ssh -F "$TMP/ssh_config" -oBatchMode=yes -oStrictHostKeyChecking=yes -p "$PORT" 127.0.0.1 true
probe -c 'echo in' ssh "$at"
exits 'hnlaunch knows it' 0

probe -a -J "$at" -c 'echo in' ssh inner
exits 'behind a jump host' 0
is 'an alias is hashed, too' "$(forms)" "$(printf 'hashed %s\n' "$(sshd_key)" "$(sshd_key)")"
is 'ssh-keygen finds it' "$(found inner)" "$(sshd_key)"
is 'each with a salt of its own' "$(cut -d'|' -f3 "$KNOWN" | sort -u | wc -l)" 2

# What ssh itself writes has the same form.
rm -f "$KNOWN"
ssh -F "$TMP/ssh_config" -oBatchMode=yes -oStrictHostKeyChecking=accept-new -p "$PORT" 127.0.0.1 true 2>"$TMP/ssh.err"
is 'as ssh does' "$(forms)" "hashed $(sshd_key)"
probe -c 'echo in' ssh "$at"
exits 'which hnlaunch knows' 0

for line in 'HashKnownHosts no' ''; do
    config "$line"
    rm -f "$KNOWN"
    probe -a -c 'echo in' ssh "$at"
    is "in clear with '$line'" "$(cat "$KNOWN")" "[127.0.0.1]:$PORT $(sshd_key)"
done

# A file that cannot be read, as a folder, may have another key or revoke this one.
config "UserKnownHostsFile $KNOWN $TMP"
rm -f "$KNOWN"
probe -a -c 'echo in' ssh "$at"
exits 'beside a file that cannot be read no key is accepted' 1
has 'which is told' "$ERR" "cannot read $TMP: Is a directory"
ok 'or stored' test ! -e "$KNOWN"

config 'HashKnownHosts yes'
rm -f "$KNOWN"
hn --ssh-config "$TMP/ssh_config" --host-key accept-new -w inner --label none echo up
exits 'a launch' 0
is 'hashes' "$(forms)" "hashed $(sshd_key)"
has 'and tells file and line' "$ERR" "$KNOWN:1"
done_testing
