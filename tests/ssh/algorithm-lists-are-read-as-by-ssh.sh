#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lists of algorithms with + - ^ and patterns: the server sees the same choice of hnlaunch as of
# ssh(1), or neither logs in.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

ssh-keygen -q -t rsa -b 2048 -N '' -f "$TMP/host_rsa"
ssh-keygen -q -t rsa -b 2048 -N '' -f "$TMP/rsa"
cat "$TMP/rsa.pub" >>"$TMP/authorized_keys"
sshd_beside_ssh 'LogLevel DEBUG1' "HostKey $TMP/host_rsa"
printf '[127.0.0.1]:%s %s\n' "$PORT" "$(cut -d' ' -f1,2 "$TMP/host_rsa.pub")" >>"$KNOWN"

# What the server tells of the last connection: key exchange, host key, cipher and MAC of the client.
chosen() {
    sed -n -e 's/^debug1: kex: algorithm: \([^ ]*\).*/kex \1/p' \
        -e 's/^debug1: kex: host key algorithm: \([^ ]*\).*/key \1/p' \
        -e 's/^debug1: kex: client->server cipher: \([^ ]*\) MAC: \([^ ]*\).*/cipher \1\nmac \2/p' \
        "$SSHD/log" | grep "^$1 " | tail -n 1
}

chooses() { # NAME KIND ALGORITHM, for what write_config wrote
    probe -c 'echo in' ssh "$at"
    exits "$1" 0
    is "$1: the choice" "$(chosen "$2")" "$2 $3"
    ok "$1: ssh logs in" ssh_logs_in
    is "$1: with the same choice" "$(chosen "$2")" "$2 $3"
}

refuses() { # NAME TEXT
    probe -c 'echo in' ssh "$at"
    is "$1: not opened" "$RC" 1
    has "$1: the reason" "$ERR" "$2"
    ok "$1: ssh does not log in" not ssh_logs_in
}

write_config 'Ciphers -aes*'
chooses 'a cipher less, by a pattern' cipher chacha20-poly1305@openssh.com
write_config 'Ciphers ^aes192-ctr'
chooses 'a cipher in front' cipher aes192-ctr
write_config 'Ciphers aes256-ctr'
chooses 'one cipher' cipher aes256-ctr
write_config 'Ciphers -aes*,chacha20*'
refuses 'no cipher is left' 'Ciphers -aes*,chacha20*: the ssh library has none of these'
write_config 'Ciphers no-such-cipher'
refuses 'a cipher that nobody has' 'Ciphers no-such-cipher: the ssh library has none of these'

write_config 'Ciphers aes128-ctr' 'MACs ^hmac-sha2-512'
chooses 'a MAC in front' mac hmac-sha2-512
write_config 'Ciphers aes128-ctr' 'MACs -*'
refuses 'no MAC is left' 'MACs -*: the ssh library has none of these'

write_config 'KexAlgorithms ^ecdh-sha2-nistp384'
chooses 'a key exchange in front' kex ecdh-sha2-nistp384
write_config 'KexAlgorithms -*'
refuses 'no key exchange is left' 'KexAlgorithms -*: the ssh library has none of these'

write_config 'HostKeyAlgorithms -ssh-ed25519*'
chooses 'a type of host keys less' key rsa-sha2-512
write_config 'HostKeyAlgorithms ^rsa-sha2-256'
chooses 'a type of host keys in front' key rsa-sha2-256
write_config 'HostKeyAlgorithms rsa-sha2-256,ssh-ed25519'
chooses 'an order of host keys' key rsa-sha2-256
write_config 'HostKeyAlgorithms -ssh-ed25519,rsa-*'
refuses 'no type of the host is left' 'ssh handshake on port'
printf '[127.0.0.1]:%s %s\n' "$PORT" "$(cut -d' ' -f1,2 "$TMP/host_rsa.pub")" >"$KNOWN"
write_config 'HostKeyAlgorithms +ssh-rsa'
chooses 'with +, known types are first' key rsa-sha2-512
trust "$PORT"

for keyword in PubkeyAcceptedAlgorithms PubkeyAcceptedKeyTypes; do
    write_config "$keyword -ssh-ed25519*"
    refuses "$keyword without the type of the key" 'failed auth denied: ssh login refused'
done
KEY=$TMP/rsa write_config 'PubkeyAcceptedAlgorithms -ssh-ed25519*'
probe -c 'echo in' ssh "$at"
exits 'a key of another type' 0
ok 'for ssh, too' ssh_logs_in
KEY=$TMP/rsa write_config 'PubkeyAcceptedAlgorithms ssh-ed25519,ecdsa-*'
refuses 'a list without the type of the key' 'failed auth denied: ssh login refused'

# ssh refuses the whole line; a list that is only shorter keeps what it asks for.
write_config 'Ciphers no-such-cipher,aes256-ctr'
probe -c 'echo in' ssh "$at"
exits 'a cipher that nobody has, and another' 0
is 'the other is used' "$(chosen cipher)" 'cipher aes256-ctr'
done_testing
