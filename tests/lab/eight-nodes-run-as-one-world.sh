#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Eight nodes of four slots over real sshd: one world of 32 ranks, numbered host by host.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 8 4

hello='echo "$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $HN_NUM_NODES $(hostname)"'
for r in {0..31}; do
    printf '%d 32 %d 4 %d 8 node%03d\n' "$r" $((r % 4)) $((r / 4)) $((r / 4 + 1))
done >want

exits 'a launch on eight nodes gives 0' 0 lab_hn -H "$TMP/hosts.txt" --label none sh -c "$hello"
sort -n "$OUT" >got
same 'every rank is where it belongs' got want
is 'the agent was placed in the cache' "$(find "$TMP/cache/hnlaunch" -name 'agent-*' | wc -l)" 1
lab_nothing_left 'nothing is left on the nodes'

agent=$(find "$TMP/cache/hnlaunch" -name 'agent-*')
written=$(stat -c '%i %Y' "$agent")
exits 'the second launch gives 0' 0 lab_hn -H "$TMP/hosts.txt" --label none sh -c "$hello"
is 'the second launch used the agent that was there' "$(stat -c '%i %Y' "$agent")" "$written"

ok 'it is not in use any more' wait_for lab_empty # or it could not be written to
echo garbage >"$agent"
lab_hn -H "$TMP/hosts.txt" --label none sh -c "$hello"
ok 'a damaged agent is replaced or told about' test "$RC" = 0 -o -s "$ERR"
rm -f "$agent"

lab_hn -H "$TMP/hosts.txt" --label none sh -c umask
sort -u "$OUT" >placed
lab_hn -H "$TMP/hosts.txt" --label none sh -c umask
sort -u "$OUT" >there
same 'a launch that places the agent leaves the umask alone' placed there

lab_hn -H "$TMP/hosts.txt" --identity nope true
ok 'a warning comes before the wait for the nodes' awk '/HN214/ { told = 1 } /agent 8/ { exit !told }' "$ERR"

ok 'the slowest node is named, without the time again' grep -qE '^hnlaunch: connect 8/8 in [0-9.]+m?s \(slowest node00[1-8]\)$' "$ERR"

if command -v script >/dev/null; then
    phases() { # COLUMNS: what a terminal shows of the start
        script -qefc "stty cols $1; TERM=xterm $LAB run $LAB_HNLAUNCH -H $TMP/hosts.txt true" /dev/null </dev/null >tty 2>&1
        python3 "$ROOT/tests/lib/screen.py" 1000 <tty | grep -E '^ (✔|ok) '
    }
    is 'on a terminal the phases are one line' "$(phases 100 | grep -cE 'connect 8 .*agent 8 .*start 32 ')" 1
    phases 40 >narrow
    is 'a narrow one has all of them' "$(grep -oE 'connect|agent|start' narrow | xargs)" 'connect agent start'
    ok 'on lines that fit' test "$(wc -L <narrow)" -lt 40
fi

lab_hn -H "$TMP/hosts.txt" sh -c 'echo "here is $RANK"'
ok 'lines carry host and rank' grep -Eqx 'node003:11 +\| here is 11' "$OUT"

lab_hn -H "$TMP/hosts.txt" --label none sh -c 'echo "$MASTER_ADDR $MASTER_PORT"'
is 'MASTER_ADDR is an address of node001 on all nodes' "$(cut -d' ' -f1 "$OUT" | sort -u)" "$LAB_NET.0.2"
is 'MASTER_PORT is the same on all nodes' "$(sort -u "$OUT" | wc -l)" 1

lab_hn -H "$TMP/hosts.txt" --map node -n 10 --label none sh -c 'echo "$RANK $(hostname) $LOCAL_RANK"'
ok 'round robin: rank 9 is the second on node002' grep -qx '9 node002 1' "$OUT"

lab_hn -w 'node[002-003]:1,node005:2' --label none sh -c 'echo "$RANK $(hostname)"'
is '-w with ranges' "$(sort -n "$OUT" | tr '\n' ' ')" '0 node002 1 node003 2 node005 3 node005 '

exits 'a megabyte per rank and stream' 0 lab_hn -q -H "$TMP/hosts.txt" "$WORKERS/worker_numbers" 1000000
ok 'no line of stdout is torn on its way' sh -c "'$WORKERS/worker_checklines' 32 o <'$OUT'"
ok 'no line of stderr is torn on its way' sh -c "'$WORKERS/worker_checklines' 32 e <'$ERR'"

export ODD=$'every\tbyte \377 $x `y`\n' TEXT=outer
lab_hn -w node004:1 "$WORKERS/worker_dump" '' "$ODD" '* ? ~'
printf '\0%s\0* ? ~\0' "$ODD" >want.argv
same 'argv arrives byte-identical over ssh' "$TMP/dump/0.argv" want.argv
printf 'ODD=%s\0' "$ODD" >want.env
grep -za '^ODD=' "$TMP/dump/0.env" >got.env
same 'a variable arrives byte-identical over ssh' got.env want.env

export CUDA_VISIBLE_DEVICES=7 SSH_TEST=7 PLAIN_TEST=7
lab_hn -w node002:1 --label none sh -c 'echo "${CUDA_VISIBLE_DEVICES-no} ${SSH_TEST-no} ${PLAIN_TEST-no}"'
is 'variables of this host and session stay home, others go out' "$(cat "$OUT")" 'no no 7'
lab_nothing_left 'nothing is left at the end'
done_testing
