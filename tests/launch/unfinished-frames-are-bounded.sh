#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks that are in the middle of large requests on the Unix socket take 64 MiB of the agent together: others wait,
# small requests pass, and all complete. Ranks that stall keep no memory from others. Without sanitizers, because memory
# is measured.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

[[ -x $PLAIN/hnlaunch ]] || skip_all 'no plain build'
HNLAUNCH=$PLAIN/hnlaunch
cat >rank.py <<END
import os, socket, struct, sys
sys.path.insert(0, "$ROOT/tests/lib")
from crowd import MIB, memory, send_all_at_once, stall
from waiting import scaled
HELLO, SET, CHECK = 1, 2, 6
def text(b):
    return struct.pack("<I", len(b)) + b
def request(op, tag, rest):
    body = struct.pack("<IBI", 0, op, tag) + rest
    return struct.pack("<IB", len(body) + 1, 64) + body
class Client:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(scaled(200))
        self.socket.connect(os.environ["HN_STORE"])
        self.ask(HELLO, struct.pack("<q", int(os.environ["RANK"])))
    def answer(self):
        """Whether a request was served."""
        want, data = 4, b""
        while len(data) < want:
            more = self.socket.recv(want - len(data))
            if not more:
                return False
            data += more
            if want == 4 and len(data) == 4:
                want += struct.unpack("<I", data)[0]
        return True
    def ask(self, op, rest):
        self.socket.sendall(request(op, 1, rest))
        return self.answer()
def small():
    assert good.ask(CHECK, struct.pack("<I", 1) + text(b"key"))

good = Client()
large = request(SET, 2, text(b"key") + text(b"v" * (16 * MIB)))
before = memory()
crowd = [Client() for _ in range(40)]
worst = send_all_at_once({c.socket: large for c in crowd}, small)
served = 0
for c in crowd:
    c.socket.settimeout(scaled(60))
    served += c.answer()
    c.socket.close()
print("served:", served)
print("memory:", memory() - before)
print("small requests meanwhile:", worst < scaled(5))

# Eight that stall within a large request: the others go on.
holders = [Client() for _ in range(8)]
stall([c.socket for c in holders], large[:-1])
small()
print("beside stalled ones:", good.ask(SET, text(b"key") + text(b"v" * (16 * MIB))))
print("memory:", memory() - before)
END
"$HNLAUNCH" --local 1 --timeout 300s python3 rank.py >"$OUT" 2>"$ERR" &
PID=$!
exits 'the job ends well' 0 finish
has 'forty large requests at once are served' "$OUT" 'served: 40'
has 'small requests pass meanwhile' "$OUT" 'small requests meanwhile: True'
has 'a large request passes those that stall' "$OUT" 'beside stalled ones: True'
has 'the reason is told, with the rank' "$ERR" 'closed a connection of rank 0 to the store: incomplete command, '
is 'the limit is told once' "$(grep -c 'incomplete commands of connections to the store hold ' "$ERR")" 1
kb=$(sed -n 's/^memory: //p' "$OUT" | sort -n | tail -n 1)
echo "# peak memory of the agent: $kb kB more than before"
# 64 MiB, copies of these while buffers grow, and requests on their way to the head.
ok 'the agent stays small' test "${kb:-999999}" -lt 320000
nothing_left 'nothing is left'
done_testing
