#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A host key that RevokedHostKeys names is refused although known_hosts has it, and so is every key
# when the file cannot be used: both as ssh(1) does, which is asked the same each time.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

sshd_beside_ssh 'LogLevel VERBOSE'
key=$SSHD/host_key.pub
print=$(ssh-keygen -lf "$key" | cut -d' ' -f2)
ssh-keygen -q -t ed25519 -N '' -f "$TMP/other"
ssh-keygen -q -t ed25519 -N '' -f "$TMP/ca"

refused() { # NAME CAUSE
    key_refused "$@"
    ok "$1: ssh refuses it, too" not ssh_logs_in
}

allowed() { # NAME
    probe -c 'echo in' ssh "$at"
    exits "$1" 0
    ok "$1: for ssh, too" ssh_logs_in
}

list=$TMP/revoked
write_config "RevokedHostKeys $list"

cp "$TMP/other.pub" "$list"
allowed 'another key is revoked'
{
    echo '# keys that were stolen'
    cat "$TMP/other.pub" "$key"
} >"$list"
refused 'the key in a list' key-revoked
has 'file and line are told' "$ERR" "revoked $list:3"
has 'and the key' "$ERR" "offered ED25519 $print"

: >"$list"
allowed 'an empty list'
rm "$list"
refused 'a list that is not there' key-unchecked
has 'the reason is told' "$ERR" "$list: No such file"
echo garbage >"$list"
refused 'a list that is none' key-unchecked
has 'its line is told' "$ERR" "$list: line 1 is not a public key"

rm "$list"
ssh-keygen -q -k -f "$list" "$TMP/other.pub"
allowed 'another key in a KRL'
ssh-keygen -q -k -u -f "$list" "$key"
refused 'the key in a KRL' key-revoked
has 'the file is told' "$ERR" "revoked $list"
for hash in sha1 sha256; do
    rm "$list"
    echo "$hash: $(cat "$key")" | ssh-keygen -q -k -f "$list" - >"$TMP/keygen.log" 2>&1
    refused "its hash in a KRL, $hash" key-revoked
done
rm "$list"
echo 'serial: 1' | ssh-keygen -q -k -s "$TMP/ca.pub" -f "$list" - >"$TMP/keygen.log" 2>&1
allowed 'a KRL of certificates'
rm "$list"
ssh-keygen -q -k -f "$list" "$TMP/other.pub"
head -c -3 "$list" >"$TMP/cut" && cp "$TMP/cut" "$list"
refused 'a KRL that is cut short' key-unchecked

# Where it may stand.
cp "$key" "$list"
write_config "RevokedHostKeys none" "RevokedHostKeys $list"
allowed 'the first word counts: none'
write_config 'Host other' "    RevokedHostKeys $list" 'Host *'
allowed 'in a block for another host'
write_config 'Match host 127.0.0.1' "    RevokedHostKeys $TMP/%h" 'Host *'
cp "$key" "$TMP/127.0.0.1"
refused 'in a Match, with a token' key-revoked

rm -f "$KNOWN"
write_config "RevokedHostKeys $list"
probe -a -c 'echo in' ssh "$at"
has 'accept-new does not take it' "$ERR" 'failed hostkey key-revoked'
ok 'and does not store it' test ! -e "$KNOWN"
trust "$PORT"

write_config "Match originalhost inner" "    RevokedHostKeys $list" 'Host inner' '    HostName 127.0.0.1'
probe -J "127.0.0.1:$PORT" -c 'echo in' ssh "inner:$PORT"
has 'behind a jump host' "$ERR" 'failed hostkey key-revoked'

# The whole program. (127.0.0.1 would need no ssh.)
launch() { hn --ssh-config "$TMP/ssh_config" -p "$PORT" -w node1 "$@"; }
node1=('Host node1' '    HostName 127.0.0.1' 'Host *')
write_config "${node1[@]}" "RevokedHostKeys $list"
exits 'a launch' 77 launch true
has 'its number' "$ERR" 'error[HN207]: the host key of node1 is revoked'
has 'names file and line' "$ERR" "revoked $list:1"
exits "through the site's ssh" 77 launch --ssh-command ssh true
has 'the same number' "$ERR" 'error[HN207]: the host key of node1 is revoked'
rm "$list"
exits 'without the file' 77 launch true
has 'another number' "$ERR" 'error[HN208]: the host key of node1 cannot be checked'
has 'with the reason' "$ERR" "$list: No such file"
exits "and through the site's ssh" 77 launch --ssh-command ssh true
has 'the same' "$ERR" 'error[HN208]: the host key of node1 cannot be checked'

write_config 'RevokedHostKeys' "${node1[@]}"
launch true
ok 'without a file name nothing is started' test "$RC" != 0
has 'and the line is told' "$ERR" "$TMP/ssh_config: line 1: RevokedHostKeys has no value"
done_testing
