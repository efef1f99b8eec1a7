#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --tree K: the head pings K nodes, and these those behind them. Who hangs is told in --node-timeout however deep
# it is, under its own name; clocks of the deepest are known; Ctrl-Z puts all doubts to rest.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 9 1
head -n 3 "$TMP/hosts.txt" >three.txt
head -n 4 "$TMP/hosts.txt" >four.txt

up() { comes_up "$1 ranks are up" "$1" lab_start --label none "${@:2}"; } # RANKS OPTION... PROGRAM

# --- what the head has to do ----------------------------------------------------------------------

steady() { # NODES FILE: sets BYTES, those of four seconds of pings to K = 2
    local begin
    up "$1" --tree 2 -H "$2" sh -c 'echo up; exec sleep 100'
    sleep 1
    begin=$(head_sent)
    sleep 4
    BYTES=$(($(head_sent) - begin))
    finish_by INT
}

steady 3 three.txt
few=$BYTES
steady 9 "$TMP/hosts.txt"
echo "# bytes sent in four seconds: $few to 3 nodes, $BYTES to 9"
ok 'pings are sent at all' test "$few" -gt 1000
ok 'those to nine nodes cost what those to three do' test $((BYTES * 2)) -lt $((few * 3))

# --- who hangs ------------------------------------------------------------------------------------

now_ms() { MS=$((${EPOCHREALTIME/./} / 1000)); }

# node001 is the parent of node002, the parent of node003, the parent of node004.
hangs() { # HOW UNDO NODE BEHIND
    local begin
    up 4 --tree 1 -H four.txt --node-timeout 4s sh -c 'echo up; exec sleep 100'
    lab "$1" "$3"
    now_ms
    begin=$MS
    finish
    now_ms
    exits "$1 $3: 125" 125
    verdict_has 'it is the one that is named' "lost $3: silent for "
    ok 'it was silent for as long as it may' grep -qE 'silent for (3\.[6-9]|4|5)' "$ERR"
    ok "it is told in time ($((MS - begin)) ms)" test $((MS - begin)) -lt "$(scaled 9000)"
    is 'how many are behind it' "$(grep -oE '[0-9]+ nodes? behind it' "$ERR")" "$4"
    lab "$2" "$3"
    lab_nothing_left 'nothing is left'
}

hangs freeze thaw node004 ''
hangs cut restore node004 ''
hangs freeze thaw node002 '2 nodes behind it'
hangs freeze thaw node003 '1 node behind it'

# Ranks that have ended do not end the watch.
work='echo up; case $(hostname) in node00[12]) exit 0 ;; *) exec sleep 100 ;; esac'
two_have_ended() { [[ $(grep -c '"rank.exited"' "$TMP/$node"/*/events.ndjson) == 2 ]]; }
for node in node003 node002 node001; do
    up 3 --tree 1 -H three.txt --node-timeout 3s --log-dir "$TMP/$node" sh -c "$work"
    ok 'the first two have ended' wait_for two_have_ended
    lab freeze $node
    exits "$node hangs, and not all ranks on the way to the last node run: 125" 125 finish
    verdict_has 'it is the one that is named' "lost $node: silent for "
    lab thaw $node
    lab_nothing_left 'nothing is left'
done

# --- what is no loss ------------------------------------------------------------------------------

up 4 --tree 1 -H four.txt --node-timeout 2s sh -c 'echo up; sleep 6; echo done'
kill -TSTP "$PID"
sleep 3.5
exits 'Ctrl-Z for longer than a node may be silent loses nobody' 0 finish_by CONT
is 'all ranks have ended well' "$(grep -c 'done' "$OUT")" 4

up 4 --tree 1 -H four.txt --node-timeout 3s sh -c 'echo up; sleep 6'
lab stall node003 1.5
exits 'an inner node that hangs for half the time loses nobody' 0 finish

# --- clocks ---------------------------------------------------------------------------------------

# Rank 2 fails a second after rank 3, whichever of them comes to run first.
cat >fail.sh <<'END'
case $RANK in
    3) echo >first && exit 7 ;;
    2) until [ -s first ]; do sleep 0.1; done && sleep 1 && exit 8 ;;
esac
END
exits 'the first failure counts, however deep' 7 lab_hn --tree 1 -H four.txt --on-failure continue --label none sh fail.sh
ok 'when the next came is known to the clocks of both' grep -qE \
    'next failure [0-9.]+m?s later \(clock error ±[0-9.]+ms\): rank 2 on node003' "$ERR"
lab_nothing_left 'nothing is left at the end'
done_testing
