#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Each way not to get through has its own sentence and comes within its deadline.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

# A port that is surely closed: bound, but nobody listens. One whose queue is full, so that
# handshakes are never answered. One that accepts and says nothing. One that accepts and hangs up.
# All by one process.
python3 - >"$TMP/ports" <<'END' &
import socket, time
closed = socket.socket(); closed.bind(('127.0.0.1', 0))
full = socket.socket(); full.bind(('127.0.0.1', 0)); full.listen(0)
fillers = []
for i in range(3):
    s = socket.socket(); s.setblocking(False); s.connect_ex(full.getsockname()); fillers.append(s)
hasty = socket.socket(); hasty.bind(('127.0.0.1', 0)); hasty.listen(8)
mute = socket.socket(); mute.bind(('127.0.0.1', 0)); mute.listen(8)
print(*(s.getsockname()[1] for s in (closed, full, mute, hasty)), flush=True)
end = time.monotonic() + 200
hasty.settimeout(1)
while time.monotonic() < end:
    try:
        hasty.accept()[0].close()
    except TimeoutError:
        pass
END
sshds+=("$!")
wait_for test -s "$TMP/ports"
read -r closed full mute hasty <"$TMP/ports"

probe -c true ssh "127.0.0.1:$closed"
has 'a closed port' "$ERR" "failed connecting refused: connection refused on port $closed (127.0.0.1)"

probe -c true ssh no-such-host.invalid
has 'a name that does not resolve' "$ERR" 'failed resolving no-name: name does not resolve'

SECONDS=0
probe -t 2500 -c true ssh "127.0.0.1:$full" "127.0.0.1:$mute" "127.0.0.1:$hasty"
ok 'all within twice the deadline' test "$SECONDS" -le "$(scaled 20)"
has 'no answer' "$ERR" "failed connecting timed-out: no answer on port $full in 2.5s (127.0.0.1)"
has 'a server that never speaks' "$ERR" "failed kex timed-out: no ssh handshake on port $mute in 2.5s"
has 'a server that hangs up' "$ERR" "the server closes the connection during the handshake on port $hasty"
has 'in the words of libssh, too' "$ERR" '| libssh: '

probe -c true ssh 'bad;name'
has 'a name that no host can have' "$ERR" "'bad;name' is not a host name"

# shellcheck disable=SC2046
SECONDS=0
probe -f 4 -c true ssh $(for i in 1 2 3 4 5 6 7 8; do echo "127.0.0.1:$closed"; done)
is 'a window of 4 lets all 8 through' "$(grep -c 'failed connecting refused' "$ERR")" 8
ok 'one after the other, at once' test "$SECONDS" -lt "$(scaled 10)"

sshd_start
trust "$PORT"
probe -t 4000 -c 'echo in' ssh "127.0.0.1:$full" "127.0.0.1:$closed" "127.0.0.1:$PORT"
is 'a good host among bad ones' "$(cat "$OUT")" in

done_testing
