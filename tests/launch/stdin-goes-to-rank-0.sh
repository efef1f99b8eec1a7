#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --stdin 0 gives standard input to rank 0, --stdin all to every rank, --stdin none to nobody.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

printf 'line %s\n' 1 2 3 >in
run "$HNLAUNCH" --local 2 --label none --stdin 0 sh -c 'echo "$RANK $(wc -l)"' <in
is 'rank 0 reads the three lines, rank 1 reads nothing' "$(sort "$OUT" | tr '\n' ' ')" '0 3 1 0 '

run "$HNLAUNCH" --local 1 --label none --stdin none cat <in
exits '--stdin none: end of file at once' 0
is '--stdin none: no bytes' "$(wc -c <"$OUT")" 0

head -c 5000000 /dev/urandom >blob
run "$HNLAUNCH" -q --local 1 --label none --stdin 0 cat <blob
same 'five megabytes go there and back' "$OUT" blob

run "$HNLAUNCH" --local 2 --stdin 0 true <blob
exits 'input that nobody reads does not block' 0

run "$HNLAUNCH" --local 3 --label none --stdin all sh -c 'echo "$RANK $(md5sum | cut -c1-32)"' <blob
is '--stdin all: every rank reads all of it' "$(cut -d' ' -f2 "$OUT" | sort | uniq -c | tr -s ' ')" \
    " 3 $(md5sum <blob | cut -c1-32)"

run "$HNLAUNCH" --local 3 --label none --stdin all sh -c '[ $RANK = 1 ] || exec md5sum; exit 0' <blob
exits '--stdin all: a rank that reads nothing does not hold up the others' 0
is 'they read all of it' "$(sort "$OUT" | uniq -c | sed 's/^ *//')" "2 $(md5sum <blob)"

run "$HNLAUNCH" --local 2 --label none --stdin blob sh -c 'echo "$RANK $(wc -c)"'
is '--stdin FILE: rank 0 reads the file' "$(sort "$OUT" | tr '\n' ' ')" '0 5000000 1 0 '

hn --local 1 --stdin nowhere/file true
exits '--stdin FILE that is not there: 66' 66
has 'it is named' "$ERR" 'cannot read --stdin nowhere/file'

# The disk, or the file server, fails at the second piece.
if "$WORKERS/inject" count true 2>/dev/null; then
    run "$WORKERS/inject" -o report head read:file 2 5@blob "$HNLAUNCH" --local 1 --label none --stdin blob sh -c 'wc -c'
    exits 'a read that fails is no failure of the job' 0
    has 'the read has failed' report hit
    has 'it is told' "$ERR" 'warning[HN124]: cannot read --stdin blob: Input/output error'
    is 'the bytes before have come' "$(cat "$OUT")" 32768
else
    skip 'a read that fails is told' 'cannot hold system calls here'
fi

written() { awk '/^wchar/ { print $2 }' "/proc/$writer/io"; }
# The head has taken some of the input, and takes no more.
input_stands_still() {
    local before
    before=$(written)
    sleep 0.3
    ((before > 65536 && before == $(written)))
}

# Without sanitizers, because memory is measured.
for who in 0 all; do
    rm -f go endless
    mkfifo endless
    yes >endless 2>/dev/null &
    writer=$!
    "$PLAIN/hnlaunch" -q --local 2 --stdin $who sh -c 'until [ -e go ]; do sleep 0.1; done' <endless 2>"$ERR" &
    PID=$!
    ok "--stdin $who: input that no rank reads is not read any more" wait_for input_stands_still
    peak=$(awk '/^VmHWM/ { print $2 }' "/proc/$PID/status")
    ok "--stdin $who: a rank that does not read yet costs little memory ($peak kB)" \
        test "${peak:-0}" -gt 0 -a "${peak:-99999}" -lt 12288
    touch go
    finish
    exits "--stdin $who: it ends without having read" 0
done

mkfifo open
sleep 30 >open &
holder=$!
run "$HNLAUNCH" --local 1 --stdin 0 sh -c 'exit 3' <open
exits 'an input that stays open does not hold up the end' 3
kill "$holder"
# Of ranks that are chosen, the first.
printf 'a line\n' >line
run "$HNLAUNCH" --local 4 --ranks 3,1-2 --stdin 0 --label none sh -c 'echo "$RANK $(cat)"' <line
is 'with --ranks the first of these reads' "$(sort "$OUT" | xargs)" '1 a line 2 3'

# A role that starts later finds its input whole.
roles=(-w localhost:2,127.0.0.1:2 --gpus-per-rank 0 --timeout 60s --label none)
run "$HNLAUNCH" "${roles[@]}" --stdin all --role b --after a --nodes 1 -n 2 md5sum : --role a --nodes 1 -n 1 --ready line:up sh -c 'sleep 1; echo up; exec md5sum' <blob
exits '--stdin all waits for a role that starts later' 0
is 'which reads all of it, as the others' "$(grep -v up "$OUT" | sort | uniq -c | sed 's/^ *//')" "3 $(md5sum <blob)"
run "$HNLAUNCH" "${roles[@]}" --stdin 0 --role b --after a --nodes 1 -n 1 sh -c 'echo "b $(cat)"' : --role a --nodes 1 -n 1 --ready line:up sh -c 'sleep 1; echo up; sleep 1' <line
exits '--stdin 0 waits for rank 0' 0
has 'with the end' "$OUT" 'b a line'
run "$HNLAUNCH" "${roles[@]}" --stdin 0 --role b --after a --nodes 1 -n 1 md5sum : --role a --nodes 1 -n 1 --ready line:up sh -c 'sleep 1; echo up; sleep 2' <blob
has 'and much of it' "$OUT" "$(md5sum <blob)"
# A role that is ready by its input holds none of it back from the next.
run "$HNLAUNCH" "${roles[@]}" --stdin all --role b --after a --nodes 1 -n 1 sh -c 'echo "b $(cat)"' : --role a --nodes 1 -n 1 --ready line:up sh -c 'cat >/dev/null; echo up; sleep 1' <line
exits 'a role reads its input before another starts' 0
has 'which gets it, too' "$OUT" 'b a line'
done_testing
