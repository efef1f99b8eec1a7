#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --hang-after: ranks that wait for others while nothing goes on are told once, unasked, and --on-hang ends them or
# starts them again. Ranks that compute, sleep on their own, write or meet are no hang.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/why.sh"

runtime_dir
hanging=$BUILD/tests/clients/hanging
count_is() { [[ $(grep -cE "$1" "$ERR") == "$2" ]]; }

# --- a hang, told once, and once more when the ranks have gone on ---------------------------------

start_twice --hang-after 2s --json=events.json
ok 'a hang is told unasked' wait_for count_is 'warning.HN811.: the ranks hang: ranks 0,2 wait in ' 1
has 'and for how long' "$ERR" 'note: no rank has gone on for 2.0s (--hang-after)'
has 'with the rank that the others wait for' "$ERR" '; rank 1 (localhost, pid '
has 'as the one that differs' "$ERR" '(differs)'
has 'and what can be done' "$ERR" '--on-hang stop ends such a run'
file=$(sed -n 's/.* note: all stacks are in //p' "$ERR")
is 'the stacks of all ranks are kept' "$(grep -c '^=== rank [0-2] on localhost, pid' "$file")" 3
event_is() { [[ $(hang_events events.json ms) == "$1" ]]; }
ok 'an event tells it, too' wait_for event_is '(1, 2000)'
ok 'the job goes on' kill -0 "$PID"
touch go
ok 'the next hang is told, too' wait_for count_is 'HN811' 2
touch end
exits 'a hang that ends by itself is no failure' 0 finish
is 'each was told once' "$(grep -c HN811 "$ERR")" 2

# A rank that lives on behind its exception keeps the others waiting.
cat >raised.py <<'END'
import time
import traceback
import hnlaunch as hn

hn.init()
if hn.rank() == 1:
    try:
        raise ValueError("shard 7 is empty")
    except ValueError:
        traceback.print_exc()
    time.sleep(1000)
hn.barrier()
END
LD_LIBRARY_PATH=$PLAIN start --local 3 --hang-after 2s --label none python3 raised.py
ok 'a hang behind an exception is told' wait_for count_is 'warning.HN811.: the ranks hang: ranks 0,2 wait in ' 1
told='note: rank 1 on localhost has not ended after ValueError: shard 7 is empty'
ok 'with the exception' wait_for grep -qF "$told" "$ERR"
"$HNLAUNCH" why >asked 2>&1
has 'why tells it, too' asked "$told"
exits 'the hang behind an exception: Ctrl-C' 130 finish_by INT

# --- --on-hang ------------------------------------------------------------------------------------

hn_exits '--on-hang stop: 124' 124 --local 4 --hang-after 1s --on-hang stop --label none "$hanging" stop 2
verdict_has 'the verdict says what hangs' 'failed after' ': rank 2 on localhost is stopped by a signal (state T)' '; 3 ranks wait in hn_barrier' '; the ranks hang (--on-hang stop)  (exit 124)'
has 'the order to stop names the option: the warning above has the cause' "$ERR" 'hnlaunch: stopping all ranks: --on-hang stop'
nothing_left 'also the stopped rank is gone'
hn --local 4 --log-dir kept --hang-after 1s --on-hang stop --label none "$hanging" stop 2
has 'with --log-dir the stacks are in its folder' "$ERR" "note: all stacks are in kept/$(readlink kept/latest)/hang.txt"
is '... of all ranks' "$(grep -c '^=== rank ' kept/latest/hang.txt)" 4
hn report
has 'the report says what the ranks did' "$OUT" 'why: ranks 0-1,3 wait in hn_barrier'
is 'once' "$(grep -c 'ranks 0-1,3 wait in hn_barrier' "$OUT")" 1
hn why "$(readlink kept/latest)"
has 'why of the run names the file of the stacks' "$ERR" "/hang.txt"
hn report --json
is 'so does its JSON' "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["why"].split(";")[1].split("(")[0])' <"$OUT")" ' rank 2 '
hn report --html page.html
has 'and the page' page.html '<b>Why:</b> ranks 0-1,3 wait in hn_barrier'
is 'only once' "$(grep -c 'ranks 0-1,3 wait in hn_barrier' page.html)" 1
start --local 4 --hang-after 1s --grace 1s --label none "$hanging" stop 2
ok 'a hang is told' wait_for count_is 'HN811' 1
id=$(sed -n 's/^hnlaunch: run \([^:]*\):.*/\1/p' "$ERR")
"$HNLAUNCH" ps >listed 2>&1
ok 'ps tells the hang' grep -qE "^$id .* running, hangs for [0-9]" listed
"$HNLAUNCH" top >shown 2>&1
ok 'so does top, in its first line' grep -qE '^run .*  hangs for [0-9]+[sm]$' shown
ok '... and names the rank, with what it does' grep -qE '^rank 2 on localhost is stopped by a signal .*; 3 ranks wait in hn_barrier' shown
ok '... in its row, too' grep -qE '^  rank 2 .* hangs$' shown
"$HNLAUNCH" top --json | head -n 1 >shown
is 'its JSON has rank and cause' "$(python3 -c 'import json, sys
t = json.load(open("shown"))
print(t["hang"]["rank"], t["hang"]["text"].split("; ")[1].split("hn_")[0])')" '2 3 ranks wait in '
"$HNLAUNCH" stop "$id" >stopped 2>&1 &
stopper=$!
finish
wait "$stopper"
exits 'a run that hangs, and is stopped' 143
verdict_has 'who has ordered it, and what it waited for' 'stopped after' ': rank 2 on localhost is stopped by a signal (state T)' \
    "; hnlaunch stop (pid $stopper)  (exit 143)"
ok 'the line about stopping names the order' grep -qx "hnlaunch: stopping all ranks: hnlaunch stop (pid $stopper)" "$ERR"
has 'stop says the same' stopped "; hnlaunch stop (pid $stopper)"
hn ps
has 'and ps that it was stopped' "$OUT" ' stopped (143) '
cat >once.sh <<'END'
if [ "$HN_RESTART" = 0 ]; then exec "$1" sleep 1; fi
echo "attempt $HN_RESTART"
END
hn --local 2 --hang-after 1s --on-hang restart --max-restarts 2 --label none sh once.sh "$hanging"
exits '--on-hang restart: the next attempt ends well' 0
is 'it is the second one' "$(grep attempt "$OUT" | sort -u)" 'attempt 1'
has 'and the hang is its reason' "$ERR" 'restart 1 of 2: rank 1 on localhost sleeps in '
hn_exits '--on-hang restart without a number of restarts is refused' 64 --local 2 --on-hang restart true
has 'which is told' "$ERR" '--on-hang restart needs a number of restarts'

# --- before ranks are stopped that another one has waited for -------------------------------------

cat >waited.sh <<'END'
case $HN_RESTART$RANK$1 in
0?all | 00*)
    until [ -e "up.$HN_RUN_ID" ] || [ "$1" = all ]; do sleep 0.05; done
    echo "RuntimeError: [gloo] Timed out waiting 5ms for recv operation to complete" >&2
    exit 4
    ;;
0?*)
    : >"up.$HN_RUN_ID"
    exec sleep 600
    ;;
1*) sleep 3; echo "attempt 2" ;;
esac
END
hn_exits 'a wait in vain: the code of the rank that has waited' 4 --local 2 --label none sh waited.sh
verdict_has 'the last line names the rank that was elsewhere' ': rank 1 on localhost sleeps' \
    '; rank 0 failed: RuntimeError: [gloo] Timed out waiting 5ms for recv operation to complete  (exit 4)'
hn_exits 'two ranks elsewhere: the code of the rank that has waited' 4 --local 3 --label none sh waited.sh
is 'it is told where the ranks are, before any line about stopping' \
    "$(grep -oE 'where the ranks are|stopping all ranks' "$ERR" | head -1)" 'where the ranks are'
# The look ends after 3 s, also on a machine that is too busy for the tools.
where_they_are() { for _ in 1 2 3 4 5; do
    hn --local 3 --label none sh waited.sh
    ! grep -qE '\| ranks 1-2 .*sleep' "$ERR" || return 0
done; return 1; }
ok 'with their stacks' where_they_are
hn -q --local 3 --label none sh waited.sh
lacks 'not with -q' "$ERR" 'where the ranks are'
# The attempt ends during the look; the next one is not touched.
hn_exits 'the look at an attempt that has ended stops no other' 0 --local 2 --label none --max-restarts 1 sh waited.sh all
is 'which comes to its end' "$(grep -c 'attempt 2' "$OUT")" 2

# --- what is none ---------------------------------------------------------------------------------

# Each is looked at, which -v tells, and not once is a hang told.
is_no_hang() { # HOW TEXT [FILE]
    start -v --local 4 --hang-after 1s --on-hang stop --label none "$hanging" "$1" 2 "${3-}"
    ok "$1: a look finds no hang" wait_for grep -q "no rank has gone on for 1.0s, but no hang is visible: .*$2" "$ERR"
    exits "$1: it went on" 130 finish_by INT
    lacks "$1: nothing is told" "$ERR" HN811
}
is_no_hang all-compute 'each computes ('
is_no_hang all-sleep 'no rank is seen to wait for another'
is_no_hang compute 'does not: it computes ('
is_no_hang write 'does not: it reads or writes (' "$TMP/slow.file"

# Ranks that meet, or write, are not looked at, unless hnlaunch itself was not given a processor for so long.
hn --local 4 --hang-after 1s --on-hang stop --timeout 3s --label none "$hanging" all-meet 2
verdict_has 'all-meet: it goes on to the end of its time' 'time limit of 3s reached'
hn --local 2 --hang-after 1s --on-hang stop sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.2; done'
exits 'output: it comes to its end' 0
hn -v --local 1 --hang-after 200ms sleep 1
lacks 'a rank alone waits for none' "$ERR" 'no rank has gone on'
hn -v --local 2 --hang-after 0 sleep 1
lacks '--hang-after 0: no look' "$ERR" 'no rank has gone on'

nothing_left 'nothing is left'
done_testing
