#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Methods that the configuration leaves out are not tried: as with ssh(1), which is asked the same.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

sshd_beside_ssh 'LogLevel VERBOSE'
print=$(ssh-keygen -lf "$KEY.pub" | cut -d' ' -f2)

offers() { grep -c "$print" "$SSHD/log"; }

allowed() { # LINE...
    write_config "$@"
    probe -c 'echo in' ssh "$at"
    exits "$*" 0
    ok "$*: for ssh, too" ssh_logs_in
}

refused() { # LINE...
    local before
    write_config "$@"
    before=$(offers)
    probe -c 'echo in' ssh "$at"
    is "$*: not opened" "$RC" 1
    has "$*: told" "$ERR" 'failed auth denied: ssh login refused'
    ok "$*: ssh does not log in either" not ssh_logs_in
    is "$*: no key was offered" "$(offers)" "$before"
}

for list in publickey password,publickey gssapi-with-mic,hostbased,publickey,password no-such-method,publickey; do
    allowed "PreferredAuthentications $list"
done
for list in password keyboard-interactive,password hostbased gssapi-with-mic publickeys no-such-method; do
    refused "PreferredAuthentications $list"
done
has 'the keyword is told' "$ERR" 'the ssh config allows no keys (PubkeyAuthentication, PreferredAuthentications)'
refused 'PubkeyAuthentication no'
refused 'PreferredAuthentications publickey' 'PubkeyAuthentication no'
allowed 'Host other' '    PreferredAuthentications password'
# libssh leaks the context of a GSSAPI login that fails.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
allowed 'PreferredAuthentications publickey' 'PreferredAuthentications password' 'GSSAPIAuthentication yes'
allowed 'PreferredAuthentications gssapi-with-mic,publickey' 'GSSAPIAuthentication yes'
allowed 'PreferredAuthentications publickey,gssapi-with-mic' 'GSSAPIAuthentication yes' 'NumberOfPasswordPrompts 0' 'BatchMode yes'
done_testing
