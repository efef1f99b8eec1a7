#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every way to log in, and what is said when none works.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

ssh-keygen -q -t ed25519 -N '' -f "$TMP/ca"
sshd_start "TrustedUserCAKeys $TMP/ca.pub"
trust "$PORT"
at=127.0.0.1:$PORT
print() { ssh-keygen -lf "$1.pub" | cut -d' ' -f2; }

probe -c 'echo in' ssh "$at"
exits 'the key of the config' 0
is 'the command ran' "$(cat "$OUT")" in

for type in rsa ecdsa; do
    ssh-keygen -q -t "$type" -N '' -f "$TMP/$type"
    cat "$TMP/$type.pub" >>"$TMP/authorized_keys"
    KEY=$TMP/$type write_config
    probe -c 'echo in' ssh "$at"
    exits "a key of type $type" 0
done
write_config

ssh-keygen -q -t ed25519 -N '' -C wrong -f "$TMP/wrong"
KEY=$TMP/wrong write_config
probe -c 'echo in' ssh "$at"
is 'a key that the server does not know' "$RC" 1
has 'is refused' "$ERR" 'failed auth denied: ssh login refused'
has 'the offered key is shown' "$ERR" "offered    file       ED25519 $(print "$TMP/wrong")"
has 'and what the server takes' "$ERR" 'accepted by server: publickey'
has 'and who was to log in' "$ERR" "port $PORT user $ME"
probe -i "$KEY" -c 'echo in' ssh "$at"
exits 'unless --identity names a better one' 0

probe -c 'echo in' ssh "nobody-here@$at"
has 'the name from the target counts' "$ERR" 'user nobody-here'

ssh-keygen -q -t ed25519 -N secret -C locked -f "$TMP/locked"
cat "$TMP/locked.pub" >>"$TMP/authorized_keys"
KEY=$TMP/locked write_config
probe -c 'echo in' ssh "$at"
is 'a key with a passphrase' "$RC" 1
has 'is told, and nobody is asked' "$ERR" "$TMP/locked: needs its passphrase"
has 'with the next step' "$ERR" 'ssh-add'

# Everything up to the keys of the connection, and nothing of the login.
cat >"$TMP/cut" <<'END'
import os, socket, sys, threading
server = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
def upward():
    while data := os.read(0, 1 << 16):
        server.sendall(data)
threading.Thread(target=upward, daemon=True).start()
stream, kind = server.makefile('rb'), 0
os.write(1, stream.readline())
while kind != 21:
    length = stream.read(4)
    packet = stream.read(int.from_bytes(length, 'big'))
    os.write(1, length + packet)
    kind = packet[1]
stream.read(1)
END
write_config "ProxyCommand python3 $TMP/cut $PORT"
probe -c 'echo in' ssh "$at"
has 'a server that goes away is no refusal' "$ERR" \
    'failed auth dropped: the server closes the connection during the login'
has 'libssh tells what it saw' "$ERR" '| libssh: '
write_config

KEY=$TMP/absent write_config
probe -c 'echo in' ssh "$at"
has 'a key that is not there' "$ERR" "$TMP/absent: no such file"

start_ssh_agent
add_locked
KEY=$TMP/locked write_config
probe -c 'echo in' ssh "$at"
exits 'the agent has the locked key' 0
write_config 'IdentityAgent none'
KEY=$TMP/locked write_config 'IdentityAgent none'
probe -c 'echo in' ssh "$at"
is 'IdentityAgent none' "$RC" 1
ssh-add -q -D 2>/dev/null
ssh-add -q "$TMP/wrong" 2>/dev/null
KEY=$TMP/wrong write_config 'IdentitiesOnly no'
probe -c 'echo in' ssh "$at"
has "the agent's keys are shown" "$ERR" "ssh-agent  ED25519 $(print "$TMP/wrong") wrong"
kill "$AGENT_PID"
AGENT_PID=
unset SSH_AUTH_SOCK SSH_AGENT_PID

ssh-keygen -q -t ed25519 -N '' -f "$TMP/signed"
KEY=$TMP/signed write_config
probe -c 'echo in' ssh "$at"
is 'a key that only has a certificate: without it' "$RC" 1
ssh-keygen -q -s "$TMP/ca" -I me -n "$ME" "$TMP/signed.pub"
probe -c 'echo in' ssh "$at"
exits 'with the certificate beside it' 0
mv "$TMP/signed-cert.pub" "$TMP/elsewhere.pub"
KEY=$TMP/signed write_config "CertificateFile $TMP/elsewhere.pub"
probe -c 'echo in' ssh "$at"
exits 'with CertificateFile' 0

done_testing
