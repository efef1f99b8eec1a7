#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Clients of the TCP endpoint that are in the middle of large commands take 64 MiB of the agent together: others wait,
# small commands pass, and all complete. A client that stalls is closed, also after whole commands; a client that is only
# slow is not. Without sanitizers, because memory is measured.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

HNLAUNCH=$PLAIN/hnlaunch
cat >rank.py <<END
import os, sys, threading, time
sys.path.insert(0, "$ROOT/tests/lib")
from crowd import MIB, memory, send_all_at_once, stall
from store_client import Client, text
from waiting import scaled
port = int(os.environ["MASTER_PORT"])
def client():
    c = Client(port, timeout=200)
    c.ping()
    return c
before = memory()
good, slow, stalled = client(), client(), client()
large = good.op("SET", text(b"key"), text(b"v" * (8 * MIB)))

# A byte every nine seconds, for longer than half a minute.
def drip():
    for one in slow.op("PING", b"")[:1] + b"wxyz":
        slow.say(bytes([one]))
        time.sleep(9)
    print("slow:", slow.hear(4))
dripping = threading.Thread(target=drip)
dripping.start()
stalled.say(large[:9])

# All at once, and each is served.
crowd = [client() for _ in range(80)]
worst = send_all_at_once({c.socket: large + c.op("PING", b"done") for c in crowd}, good.ping)
served = 0
for c in crowd:
    c.socket.settimeout(scaled(60))
    served += c.hear(4) == b"done"
    c.close()
print("served:", served)
print("memory:", memory() - before)
print("small commands meanwhile:", worst < scaled(5))

# Twelve that stall within a large command: the others go on.
holders = [client() for _ in range(12)]
stall([c.socket for c in holders], large[:-1])
good.ping()
good.set(b"key", b"v" * (8 * MIB))
print("beside stalled ones:", good.ping())
print("memory:", memory() - before)
print("stalled are closed:", all(c.closed(100) for c in holders))
print("also after whole commands:", stalled.closed(60))
dripping.join()
END
"$HNLAUNCH" --local 1 --timeout 500s python3 rank.py >"$OUT" 2>"$ERR" &
PID=$!
exits 'the job ends well' 0 finish
has 'eighty large commands at once are served' "$OUT" 'served: 80'
has 'small commands pass meanwhile' "$OUT" 'small commands meanwhile: True'
has 'a large command passes those that stall' "$OUT" 'beside stalled ones: 7'
has 'those are closed' "$OUT" 'stalled are closed: True'
has 'also after whole commands' "$OUT" 'also after whole commands: True'
has 'a slow client is not' "$OUT" "slow: b'wxyz'"
has 'the reason is told' "$ERR" ': incomplete command, '
is 'the limit is told once' "$(grep -c 'incomplete commands of connections to the store hold ' "$ERR")" 1
kb=$(sed -n 's/^memory: //p' "$OUT" | sort -n | tail -n 1)
echo "# peak memory of the agent: $kb kB more than before"
# 64 MiB, copies of these while buffers grow, and commands on their way to the head.
ok 'the agent stays small' test "${kb:-999999}" -lt 320000
nothing_left 'nothing is left'
done_testing
