#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# 63 ranks write 4 MB each to a slow reader: every byte arrives, head and agent stay small, pings and
# the store go on as if nothing were. Without sanitizers, because memory is measured.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

bytes=2000000
HNLAUNCH=$PLAIN/hnlaunch
# Ranks of one digit write shorter lines, and more of them.
one=$(RANK=0 "$WORKERS/worker_numbers" "$bytes" 2>/dev/null | wc -l)
two=$(RANK=10 "$WORKERS/worker_numbers" "$bytes" 2>/dev/null | wc -l)
mkfifo fifo

# Rank 63 asks the store while the others write: they begin when it is there, and tell when they are
# done.
mkdir written
cat >store.py <<END
import os, sys, time
sys.path.insert(0, "$ROOT/tests/lib")
from store_client import Client
c = Client(int(os.environ["MASTER_PORT"]))
worst, n = 0, 0
assert c.add(b"warm", 1) == 1
open("ready", "w").close()
start = time.monotonic()
while len(os.listdir("written")) < 63:
    begin = time.monotonic()
    n += 1
    assert c.add(b"n", 1) == n
    worst = max(worst, time.monotonic() - begin)
    time.sleep(0.005)
open("$TMP/store", "w").write("%d %d %d\n" % (n, worst * 1000, (time.monotonic() - start) * 1000))
END
cat >rank <<END
#!/bin/sh
[ "\$RANK" = 63 ] && exec python3 store.py
until [ -e ready ]; do sleep 0.1; done
$WORKERS/worker_numbers $bytes && : >"written/\$RANK"
END
chmod +x rank

high_water() { awk '/^VmHWM/ { print $2 }' "/proc/$1/status" 2>/dev/null; }

"$WORKERS/worker_checklines" 64 oe slow <fifo >report &
reader=$!
"$HNLAUNCH" -q --local 64 --node-timeout 2s ./rank >fifo 2>&1 &
PID=$!
head=0 agent=0
while now=$(high_water "$PID") && [[ -n $now ]]; do
    head=$now
    for p in $(pgrep -P "$(pgrep -P "$PID" | head -n 1)" hnlaunch-agent); do
        now=$(high_water "$p")
        [[ -z $now ]] || agent=$now
    done
    sleep 0.2
done
finish
exits 'the flood ends well, and no node is taken for lost' 0
wait "$reader"
is 'no line is torn, lost, doubled or out of order' $? 0
grep '^line ' report | cut -c1-300 | sed 's/^/# /'
cp report "$OUT"
for s in o e; do
    is "stream $s of 63 ranks is complete" \
        "$(awk -v s="$s" -v one="$one" -v two="$two" '$2 == s && $3 == ($1 < 10 ? one : two)' report | wc -l)" 63
done
printf '# peak memory: hnlaunch %s kB, agent %s kB; store (operations, worst and all in ms): %s\n' "$head" "$agent" \
    "$(cat "$TMP/store")"
# Of each of the 128 streams a window of 512 kB may be under way, and the next one in a buffer.
ok 'hnlaunch stayed below 160 MB' test "$head" -gt 0 -a "$head" -lt 163840
ok 'so did the agent' test "$agent" -gt 0 -a "$agent" -lt 65536
read -r count worst all <"$TMP/store"
ok 'the store answered meanwhile, again and again' test "$count" -gt 50
# Behind the output an answer would take as long as the flood, which a busy machine makes longer.
limit=$((all / 4 > 2000 ? all / 4 : 2000))
ok 'and no answer took two seconds, or a quarter of the flood' test "$worst" -lt "$limit"

nothing_left 'nothing is left'
done_testing
