#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Eight ranks write 20 MB on each stream to a slow reader: every line arrives whole and in order, and
# hnlaunch does not keep the flood in memory. Without sanitizers, because memory is measured.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

bytes=20000000
RANK=0 "$WORKERS/worker_numbers" "$bytes" 2>/dev/null | wc -l >"$TMP/lines"
lines=$(cat "$TMP/lines")
mkfifo fifo

all_lines() { # FILE STREAM
    [[ $(awk -v s="$2" -v n="$lines" '$2 == s && $3 == n' "$1" | wc -l) == 8 ]]
}

"$WORKERS/worker_checklines" 8 oe slow <fifo >report &
reader=$!
"$PLAIN/hnlaunch" -q --local 8 "$WORKERS/worker_numbers" "$bytes" >fifo 2>&1 &
PID=$!
peak=0
while now=$(awk '/^VmHWM/ { print $2 }' "/proc/$PID/status" 2>/dev/null) && [[ -n $now ]]; do
    peak=$now
    sleep 0.1
done
finish
exits 'the flood ends well' 0
wait "$reader"
is 'no line is torn, lost, doubled or out of order' $? 0
cp report "$OUT"
ok 'stdout of all eight ranks is complete' all_lines report o
ok 'stderr of all eight ranks is complete' all_lines report e
ok "memory stayed below 64 MB (was $peak kB)" test "$peak" -gt 0 -a "$peak" -lt 65536
printf '# peak memory of hnlaunch: %s kB\n' "$peak"

hn --local 2 --label none sh -c 'head -c 3000000 /dev/zero | tr "\0" a; echo'
is 'very long lines keep their bytes' "$(tr -cd a <"$OUT" | wc -c)" 6000000
done_testing
