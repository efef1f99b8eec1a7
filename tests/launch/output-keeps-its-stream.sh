#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stdout belongs to the program, stderr carries the ranks' stderr and hnlaunch's own words; every
# line says whose it is unless --label none.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hn_exits 'writing on both streams gives 0' 0 --local 2 sh -c 'echo "out $RANK"; echo "err $RANK" >&2'
is 'stdout has only what ranks wrote there' "$(wc -l <"$OUT")" 2
ok 'stdout of rank 1 is labelled' grep -Eqx '([^ ]+:)? *1 \| out 1' "$OUT"
ok 'stderr of rank 1 is labelled' grep -Eqx '([^ ]+:)? *1 \| err 1' "$ERR"
lacks 'stderr did not get stdout' "$ERR" 'out 0'
verdict_has 'hnlaunch speaks last, on stderr' hnlaunch:

hn --local 2 sh -c 'printf "one $RANK\ntwo $RANK\n\nhalf "; sleep 0.5; printf "of four $RANK\n"'
is 'of many lines written together each is labelled, and one in two pieces once' \
    "$(grep '1 *|' "$OUT" | sed 's/^.*| //')" $'one 1\ntwo 1\n\nhalf of four 1'
is 'those are all lines' "$(wc -l <"$OUT")" 8

hn --local 2 --label none sh -c 'echo "out $RANK"; echo "err $RANK" >&2'
is '--label none: bare lines' "$(sort "$OUT" | tr '\n' ' ')" 'out 0 out 1 '
ok '--label none: stderr too' grep -qx 'err 1' "$ERR"

hn --local 2 --label 'r{rank}> ' sh -c 'echo "out $RANK"'
is 'a label template' "$(sort "$OUT" | tr '\n' ' ')" 'r0> out 0 r1> out 1 '

hn -q --local 2 --label none sh -c 'echo "err $RANK" >&2'
is '-q: no word from hnlaunch when all is well' "$(sort "$ERR" | tr '\n' ' ')" 'err 0 err 1 '

hn_exits '-q keeps the exit code' 3 -q --local 2 sh -c 'exit 3'
ok '-q still tells the verdict of a failure' grep -q '(exit 3)' "$ERR"

hn --local 1 --label none printf 'no newline'
is 'a last line without newline arrives' "$(cat "$OUT")" 'no newline'

hn --local 1 --label none sh -c 'sleep 0.5; printf abc; exec 1>&-; sleep 0.1'
is 'a stream may be closed early' "$(cat "$OUT")" abc

hn --local 4 --show 0,2 --label none sh -c 'echo "out $RANK"'
is '--show 0,2 shows those ranks' "$(sort "$OUT" | tr '\n' ' ')" 'out 0 out 2 '
hn_exits 'ranks that there are not cannot be shown' 64 --local 4 --show 0,2-9 touch "$TMP/ran"
has 'those that there are' "$ERR" 'error[HN104]: --show 0,2-9: not ranks of 0 to 3'
ok 'nothing was started' test ! -e "$TMP/ran"

hn --local 8 --label none sh -c 'i=0; while [ $i -lt 200 ]; do echo $RANK $i; i=$((i+1)); done'
is 'nothing is lost at the end of a rank' "$(wc -l <"$OUT")" 1600

# The rank ends with its last bytes still in the pipe, since the window is full.
for n in 540000 580000 620000; do
    "$HNLAUNCH" -q --local 1 head -c $n /dev/zero 2>"$ERR" | { sleep 1 && wc -c; } >"$OUT"
    is "nor when the reader sleeps until after that: $n bytes" "$(cat "$OUT")" "$n"
done

comes_up 'a line is shown when it was written, not at the end' 1 start --local 1 --label none sh -c 'echo first; sleep 20'
kill -KILL "$PID"
wait "$PID" 2>/dev/null
PID=
nothing_left 'nothing is left'

"$HNLAUNCH" --local 2 sh -c 'while echo y; do :; done' 2>"$ERR" | head -n 5 >"$OUT"
is 'a reader that goes away ends the job' "$(wc -l <"$OUT")" 5
nothing_left 'nothing is left when the reader went away'
done_testing
