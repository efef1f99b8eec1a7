#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --ssh-command: the same links through a forked ssh.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

# shellcheck disable=SC2119
sshd_beside_ssh
head -c 5000000 /dev/urandom >"$TMP/data"

probe -S 'ssh -o "LogLevel ERROR"' -c cat command "$at" <"$TMP/data"
exits 'through ssh' 0
same 'byte-exact' "$OUT" "$TMP/data"

probe -c 'exit 7' command "$at"
has 'the exit code' "$ERR" 'ended open ended: the remote command ended with exit code 7'

probe -c true command 127.0.0.1:1
has 'a closed port' "$ERR" 'ended connecting refused'
probe -c true command no-such-host.invalid
has 'a name that does not resolve' "$ERR" 'ended resolving no-name'
ssh-keygen -q -t ed25519 -N '' -f "$TMP/wrong"
KEY=$TMP/wrong write_config
probe -c true command "$at"
has 'a refused login' "$ERR" 'ended auth denied: ssh login refused'
has "with ssh's own words" "$ERR" '| '
write_config
printf '[127.0.0.1]:%s %s\n' "$PORT" "$(cut -d' ' -f1,2 "$TMP/wrong.pub")" >"$KNOWN"
probe -c true command "$at"
has 'a changed key' "$ERR" 'ended hostkey key-changed'
: >"$KNOWN"
probe -c true command "$at"
has 'an unknown key' "$ERR" 'ended hostkey key-unknown'
probe -S "$TMP/nowhere/ssh" -c true command "$at"
has 'an ssh that is not there' "$ERR" "failed exec spawn: cannot start $TMP/nowhere/ssh"
probe -S 'ssh "x' -c true command "$at"
has 'a quote that is not closed' "$ERR" 'ssh command: a " is not closed'

done_testing
