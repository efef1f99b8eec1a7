#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Nothing of the user is shown to a host whose key is not known, whatever the user's config says.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

sshd_start 'LogLevel VERBOSE'
at=127.0.0.1:$PORT
bare=127.0.0.1
ssh-keygen -q -t ed25519 -N '' -f "$TMP/other"
ssh-keygen -q -t rsa -b 2048 -N '' -f "$TMP/rsa"
other=$(cut -d' ' -f1,2 "$TMP/other.pub")
rsa=$(cut -d' ' -f1,2 "$TMP/rsa.pub")
print=$(ssh-keygen -lf "$SSHD/host_key.pub" | cut -d' ' -f2)
other_print=$(ssh-keygen -lf "$TMP/other.pub" | cut -d' ' -f2)

known() { printf '%s\n' "$@" >"$KNOWN"; } # LINE...

allowed() { # NAME
    probe -c 'echo in' ssh "$at"
    exits "$1" 0
}

known "[$bare]:$PORT $(sshd_key)"
allowed 'a known key'

known
key_refused 'no line' key-unknown
has 'the offered key is shown' "$ERR" "$print"
has 'the files are named' "$ERR" "$KNOWN"

known "[$bare]:$PORT $other"
key_refused 'another key' key-changed
has 'the known key is shown with file and line' "$ERR" "$other_print  $KNOWN:1"
has 'and the offered one' "$ERR" "offered ED25519 $print"

known '# first' "[$bare]:$PORT $other" "[$bare]:$PORT $(sshd_key)"
allowed 'one of two keys is right'

known "[$bare]:$PORT $rsa"
key_refused 'only a key of another type' key-changed

known "@revoked * $(sshd_key)" "[$bare]:$PORT $(sshd_key)"
key_refused 'a revoked key' key-revoked

known "$bare $(sshd_key)"
allowed 'the name without the port'

known "$bare $other"
key_refused 'a line for port 22 says nothing about other ports' key-unknown

known "nothing-like-it,[$bare]:$PORT $(sshd_key)"
allowed 'a list of names'

known "[127.0.*]:$PORT $(sshd_key)"
allowed 'a pattern'

known "[127.0.*]:$PORT,![$bare]:$PORT $(sshd_key)"
key_refused 'a negated pattern' key-unknown

known "[$bare]:$PORT $(sshd_key)"
ssh-keygen -q -H -f "$KNOWN" >/dev/null 2>&1
has 'the file is hashed now' "$KNOWN" '|1|'
allowed 'a hashed name'

known "[$bare]:$PORT $other"
ssh-keygen -q -H -f "$KNOWN" >/dev/null 2>&1
key_refused 'another key under a hashed name' key-changed

known 'garbage' "[$bare]:$PORT ssh-ed25519 AAAAnotbase64!" "$(head -c 20000 /dev/zero | tr '\0' x) y z" \
    "[$bare]:$PORT $(sshd_key)"
allowed 'lines that cannot be read are skipped, long ones too'

known "[$bare]:$PORT $other"
write_config 'StrictHostKeyChecking no'
key_refused 'a changed key with StrictHostKeyChecking no' key-changed
known
key_refused 'an unknown key with StrictHostKeyChecking no' key-unknown
write_config "Host $bare" '    HostKeyAlias cluster'
known "cluster $(sshd_key)"
allowed 'HostKeyAlias'
write_config

known "[$bare]:$PORT $other"
probe -a -c 'echo in' ssh "$at"
has 'accept-new does not cover a changed key' "$ERR" 'failed hostkey key-changed'
rm -f "$KNOWN"
probe -a -c 'echo in' ssh "$at" "$at"
exits 'accept-new takes an unknown key' 0
is 'and writes it down, once' "$(cat "$KNOWN")" "[$bare]:$PORT $(sshd_key)"
is 'for the user alone' "$(stat -c %a "$KNOWN")" 600
has 'and tells it' "$ERR" "$at stored $bare  ED25519 $print  $KNOWN:1"
is 'once' "$(grep -c ' stored ' "$ERR")" 1
allowed 'then it is known'
lacks 'and not told again' "$ERR" ' stored '
printf '# mine\n# too' >"$KNOWN"
write_config 'Host inner' "    HostName $bare" "    Port $PORT" '    HostKeyAlias inner'
probe -a -J "$at" -c 'echo in' ssh inner
has 'the key of a jump host is told, too' "$ERR" "inner stored $bare  ED25519 $print  $KNOWN:3"
has 'beside that of the host' "$ERR" "inner stored inner  ED25519 $print  $KNOWN:4"

# The whole program tells them in one go.
: >"$KNOWN"
lines=()
for i in 1 2 3; do
    lines+=("Host node$i" "    HostName $bare" "    Port $PORT" "    HostKeyAlias node$i")
done
write_config "${lines[@]}"
hn_exits 'three nodes that are not known' 77 --ssh-config "$TMP/ssh_config" -w 'node[1-3]' true
has 'are one error' "$ERR" 'error[HN205]: host keys of 3 nodes are not known'
has 'with one key, offered by three' "$ERR" "| node[1-3]        offered ED25519 $print"
has 'and one line that says where it was looked for' "$ERR" "= note: looked in $KNOWN, /dev/null"
has 'and the command that adds it' "$ERR" 'and add it: hnlaunch trust; or'
is 'each said once' "$(grep -c -e offered -e 'looked ' "$ERR")" 2
hn --ssh-config "$TMP/ssh_config" --host-key accept-new -w 'node[1-3]' --oversubscribe --label none echo up
exits 'a launch that accepts new keys' 0
has 'they are counted' "$ERR" 'warning[HN215]: 3 new host keys were accepted and stored'
for i in 1 2 3; do
    line=$(grep -n "^node$i " "$KNOWN" | cut -d: -f1)
    has "and listed: node$i" "$ERR" "| node$i  ED25519 $print  $KNOWN:$line"
done
hn --ssh-config "$TMP/ssh_config" --host-key accept-new -w 'node[1-3]' --label none echo up
lacks 'known ones are not' "$ERR" HN215

done_testing
