#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A reader of stdout that pauses keeps hnlaunch waiting without limit, but not the ranks: nothing is lost, and no node is
# blamed. An order to end counts what the reader did not get.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# More than the pipe of the reader and the window of a rank hold: the rest stays in the rank's own pipe.
cat >rank <<'END'
#!/bin/sh
seq -f 'line %.0f' 1 50000
echo THE-LAST-LINE
: >"ended$1"
exit "${2:-0}"
END
chmod +x rank
./rank x >whole
mkfifo late timed pipe
exec 5<>late 6<>timed

# Two runs whose readers come back after the grace time, the looks for late nodes (5 s), and the time limit.
env --default-signal "$HNLAUNCH" -q --log-dir none --grace 200ms --local 1 ./rank 1 7 >&5 2>late.err &
late=$!
env --default-signal "$HNLAUNCH" -q --log-dir none --timeout 1s --local 1 ./rank 2 >&6 2>timed.err &
timed=$!
ok 'two ranks have ended' wait_for test -e ended1 -a -e ended2
sleep 1
paused=$SECONDS

paused() { # ARG...: starts hnlaunch, whose reader (9) never reads
    exec 9<>pipe
    env --default-signal "$HNLAUNCH" "$@" >&9 2>"$ERR" &
    PID=$!
}
what_came() {
    finish
    dd bs=64k iflag=nonblock <&9 >"$OUT" 2>/dev/null
    exec 9>&-
}

# What is told is what is missing.
counted() { # NAME RANKS PRODUCED RECEIVED
    verdict_has "$1" "; $(($3 - $4)) bytes of $2 were not written  (exit $RC)"
    has "$1, as a warning" "$ERR" "warning[HN813]: $(($3 - $4)) bytes of $2 were not written: "
}
size() { wc -c <"$1"; }
window_is_full() { python3 -c 'import select, sys; sys.exit(bool(select.select([], [9], [], 0)[1]))'; }

paused --grace 200ms --local 1 ./rank 3 7
ok 'a rank has failed' wait_for grep -q 'stopping all ranks' "$ERR"
kill -TERM "$PID"
what_came
exits 'TERM ends the wait for the reader: the code of the rank' 7
counted 'the last line counts' 'rank 0' "$(size whole)" "$(size "$OUT")"
ok 'something came' test -s "$OUT"
run=$(sed -n 's/^hnlaunch: run \([a-z0-9]*\): .*/\1/p' "$ERR")
has 'and it is told where the rest is' "$ERR" "hnlaunch logs $run shows the output that was recorded"
hn logs "$run"
same 'there it is, with what the rank had still in its pipe' "$OUT" whole
has 'the summary has the words' "$XDG_STATE_HOME/hnlaunch/runs/$run/summary.json" ' bytes of rank 0 were not written'

paused --local 1 ./rank 4
ok 'a rank has ended well' wait_for test -e ended4
sleep 0.5
kill -INT "$PID"
what_came
exits 'one Ctrl-C ends the wait for the reader when no rank is left' 130
counted 'also there' 'rank 0' "$(size whole)" "$(size "$OUT")"
lacks 'no node is blamed' "$ERR" 'lost localhost'

paused --grace 200ms --local 1 sh -c 'trap "" TERM INT; ./rank 5; while :; do sleep 0.05; done'
ok 'a deaf rank has written' wait_for test -e ended5
kill -INT "$PID"
ok 'its reader pauses' window_is_full
wait_for grep -q 'stopping all ranks: SIGINT' "$ERR"
sleep 0.1 # two within 50 ms are one
kill -INT "$PID"
what_came
exits 'a second order kills, and ends the wait as well' 130
counted 'it counts, too' 'rank 0' "$(size whole)" "$(size "$OUT")"

paused -q --local 3 --label none --log-dir logs sh -c '[ $RANK = 1 ] || ./rank "x$RANK"; : >"done$RANK"'
ok 'two of three ranks have written' wait_for test -e done0 -a -e done1 -a -e done2
sleep 0.5
kill -TERM "$PID"
what_came
exits 'TERM with two ranks' 143
counted 'both are named' 'ranks 0,2' $((2 * $(size whole))) "$(size "$OUT")"
has 'the files are named' "$ERR" "the files of the ranks in logs/"
for rank in 0 2; do
    same "the file of rank $rank is whole" "logs/latest/rank-0000$rank.out" whole
done

paused -q --local 2 --timestamps sh -c './rank "y$RANK"'
ok 'two ranks with labels have written' wait_for test -e endedy0 -a -e endedy1
sleep 0.5
kill -TERM "$PID"
what_came
counted 'labels do not count' 'ranks 0-1' $((2 * $(size whole))) "$(python3 -c '
import sys
label = len("HH:MM:SS.mmm 0 | ")
print(sum(max(0, len(line) - label) for line in open(sys.argv[1], "rb")))' "$OUT")"

# With one pipe for both nobody can read the last line.
exec 9<>pipe
env --default-signal "$HNLAUNCH" --local 1 ./rank 6 >&9 2>&1 &
PID=$!
ok 'a rank with one pipe for all has ended' wait_for test -e ended6
sleep 0.5
kill -TERM "$PID"
finish
exits 'a pipe of stdout and stderr is not waited for either' 143
exec 9>&-
is 'the records have the words' \
    "$(grep -l ' bytes of rank 0 were not written' "$XDG_STATE_HOME"/hnlaunch/runs/*/summary.json | wc -l)" 4

# A reader that goes on within a second gets all of it.
exec 9<>pipe
env --default-signal "$HNLAUNCH" --local 1 ./rank 7 >&9 2>"$ERR" &
PID=$!
ok 'a rank has ended' wait_for test -e ended7
sleep 0.5
kill -TERM "$PID"
timeout 5 head -c "$(size whole)" <&9 >"$OUT"
finish
exec 9>&-
exits 'TERM, and a reader that comes back' 143
same 'has lost nothing' "$OUT" whole
lacks 'and nothing is told' "$ERR" 'not written'

while ((SECONDS - paused < 7)); do sleep 0.2; done
ok 'the paused runs wait' kill -0 "$late" "$timed"
timeout 20 head -c "$(size whole)" <&5 >late.out
timeout 20 head -c "$(size whole)" <&6 >timed.out
wait "$late"
is 'the failed rank decides' $? 7
wait "$timed"
is 'a time limit is none for the reader' $? 0
same 'all has come after the grace time' late.out whole
same 'and after the time limit' timed.out whole
lacks 'the node is not blamed' late.err 'lost localhost'

# An agent that does not report the end of its rank is given up, whatever its reader does.
VERSION=$(sed -n 's/^#define MSG_VERSION *//p' "$ROOT/src/wire/msg.h")
exec 9<>pipe
env --default-signal PONGS=yes VERSION="$VERSION" ENDPOINT_OPENED=41731 PYTHONPATH="$ROOT/tests/lib" ORDERED='STARTED FLOOD:400000' FLOODED="$PWD/flooded" "$HNLAUNCH" --grace 100ms \
    --json=events --agent "$ROOT/tests/lib/fake_agent.py" --local 1 never-run >&9 2>"$ERR" &
PID=$!
ok 'an agent has sent output' wait_for test -e flooded
kill -TERM "$PID"
ok 'its node is given up' wait_for grep -q 'did not end its ranks within the grace time' events
kill -TERM "$PID"
what_came
has 'with a word about its output' "$ERR" 'their last output may be missing'
exits 'the order decides' 143
counted 'and its output is counted' 'rank 0' 400000 "$(size "$OUT")"
nothing_left 'nothing is left'
done_testing
