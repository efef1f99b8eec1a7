#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What hnlaunch itself says begins on a new line, whatever a rank has left unfinished on the same
# terminal or in the same file; nothing is added to a stdout of its own.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

together() { # ARG...: hnlaunch with both streams in the file $OUT
    RC=0
    timeout 60 "$HNLAUNCH" "$@" >"$OUT" 2>&1 || RC=$?
}

own_lines_are_whole() { # every word of hnlaunch's own stands at the beginning of a line
    ! grep -avE '^(hnlaunch: |error\[|warning\[|note:| += note:)' "$OUT" | grep -aE 'hnlaunch: |error\[HN|warning\[HN|note:'
}

together --local 1 sh -c 'printf x; exit 3'
exits 'the code is that of the rank' 3
ok 'the last line is the verdict' grep -qx 'hnlaunch: failed after .*' <(tail -n 1 "$OUT")
ok 'so begin "stopping" and the report' own_lines_are_whole
ok 'what the rank wrote is one line' grep -qx x "$OUT"

# Rank 1 fails when rank 0 has written: before that rank 0 may be stopped without a word.
together --local 2 sh -c 'printf "no newline"; if [ "$RANK" = 0 ]; then : >wrote; else until [ -e wrote ]; do sleep 0.01; done; fi
    exit "$RANK"'
ok 'the same with two ranks' own_lines_are_whole
is 'both ranks have a line of their own' "$(grep -c '^[01] | no newline$' "$OUT")" 2

together --local 1 sh -c 'printf x >&2'
is 'stderr, too' "$(head -n 2 "$OUT" | tail -n 1)" x
ok 'the verdict of a success begins a line' grep -qx 'hnlaunch: finished: .*' <(tail -n 1 "$OUT")

RC=0
"$HNLAUNCH" --local 1 sh -c 'printf x' >>"$TMP/twice" 2>>"$TMP/twice" || RC=$?
ok 'a file that was opened twice is one file' grep -q '^hnlaunch: finished' "$TMP/twice"

hn --local 1 sh -c 'printf x; exit 3'
is 'nothing is added to a stdout of its own' "$(od -c "$OUT")" "$(printf x | od -c)"
hn -q --local 1 sh -c 'printf x >&2'
is 'nor to stderr when nothing is said' "$(od -c "$ERR")" "$(printf x | od -c)"
hn --local 1 sh -c 'printf x >&2'
ok 'else it is' grep -q '^hnlaunch: finished' "$ERR"

# While the ranks run: an answer to Ctrl-\, then the order to stop.
: >"$OUT"
env --default-signal "$HNLAUNCH" --local 1 sh -c 'printf half; : >ready; exec sleep 600' >"$OUT" 2>&1 &
PID=$!
wait_for test -e ready
wait_for grep -q half "$OUT"
kill -QUIT "$PID"
ok 'a table begins a line' wait_for grep -q '^note: ' "$OUT"
kill -TERM "$PID"
finish
exits 'the order to stop is obeyed' 143
ok 'the order to stop begins a line' own_lines_are_whole

together --local 1 --max-restarts 1 sh -c 'printf x; exit 3'
ok 'so does what is said of a restart' own_lines_are_whole

script -qefc "stty cols 80; $HNLAUNCH --local 1 sh -c 'printf x; exit 3'" /dev/null >"$OUT" 2>&1
tr -d '\r' <"$OUT" >tty
ok 'a terminal is one file, too' sh -c "grep -qx x tty && grep -q '^hnlaunch: failed' tty"

# A reader that does not read keeps nobody waiting: own lines come behind the ranks' bytes.
mkfifo fifo
{
    until [[ -e read ]]; do sleep 0.05; done
    cat
} <fifo >piped &
reader=$!
"$HNLAUNCH" --local 2 sh -c 'head -c 300000 /dev/zero | tr "\0" Q; echo; exit 0' >fifo 2>&1 &
PID=$!
wait_for processes
: >read
finish
wait "$reader"
exits 'a job with a slow reader ends well' 0
is 'all bytes have come' "$(tr -cd Q <piped | wc -c)" 600000
cp piped "$OUT"
ok 'and every line is whole' own_lines_are_whole
done_testing
