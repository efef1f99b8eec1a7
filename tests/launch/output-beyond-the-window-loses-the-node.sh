#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An agent that sends more output than hnlaunch has granted, or tells that a rank has read more standard input than was
# sent, breaks the flow control: its node is lost at once, and hnlaunch keeps no more than the window.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

VERSION=$(sed -n 's/^#define MSG_VERSION *//p' "$ROOT/src/wire/msg.h")
export ENDPOINT_OPENED=41731 VERSION PYTHONPATH=$ROOT/tests/lib
fake() { hn --agent "$ROOT/tests/lib/fake_agent.py" --local 1 "$@" never-run; }

# The reader of standard output begins when the flood is over, taken or refused.
export FLOODED=$TMP/flooded ORDERED='STARTED FLOOD:64000000 EXITED GONE'
flood_is_over() { [[ -e $FLOODED ]] || grep -q '"node.lost"' events; }
mkfifo fifo
"$HNLAUNCH" --json=events --agent "$ROOT/tests/lib/fake_agent.py" --local 1 --label none never-run >fifo 2>"$ERR" &
PID=$!
exec 3<fifo
wait_for flood_is_over
cat <&3 >"$OUT" &
reader=$!
exec 3<&-
finish
wait "$reader"
exits 'output beyond the window: the node is lost' 125
lacks 'the agent could not write all of it' <(ls "$TMP") flooded
has 'told with the rank and the bytes' "$ERR" \
    'the agent sent a message with 60000 bytes of output of rank 0, of which '
is 'once' "$(grep -c 'of output of rank 0, of which' "$ERR")" 1
has 'as an error with a number' "$ERR" 'error[HN310]: '
has 'with a word about its output' "$ERR" 'the last output of its ranks may be missing'
ok 'hnlaunch took no more than the window and what the reader took' test "$(wc -c <"$OUT")" -lt 2000000
ok 'what was granted is printed' test "$(wc -c <"$OUT")" -ge 300000

# Up to the window, which is 512 KiB for one rank, all is well.
ORDERED='STARTED FLOOD:524288 EXITED GONE' fake --label none
exits 'a full window is no flood' 3
is 'and is printed' "$(wc -c <"$OUT")" 524288

for mode in 0 all; do
    ORDERED='STARTED CREDIT:4294967295' fake --stdin "$mode" <<<'hello'
    exits "--stdin $mode: more is read than was sent: the node is lost" 125
    has "--stdin $mode: told with the bytes" "$ERR" \
        'CREDIT for more input than rank 0 was sent'
done
nothing_left 'nothing is left'
done_testing
