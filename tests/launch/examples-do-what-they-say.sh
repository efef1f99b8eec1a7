#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every example in C runs, and those that fail on purpose show the messages they were written for.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

examples=$BUILD/examples

# --- work that is checked ------------------------------------------------------------------------

hn --local 2 --label none "$examples/hello"
is 'hello greets from each rank' "$(sort "$OUT" | tr '\n' ' ')" \
    'hello from rank 0 of 2 on localhost hello from rank 1 of 2 on localhost '
if [[ -e $BUILD/hn_backend_gloo.so ]]; then
    for shape in '1 1 1' '2 1 2' '4 2 2' '6 2 3'; do
        # shellcheck disable=SC2086
        set -- $shape
        hn_exits "groups: a product on $1 ranks" 0 --local "$1" --label none "$examples/groups" 60
        has "groups: the grid is $2 x $3, and the product right" "$OUT" "grid of $2 x $3 ranks, 60 x 60 elements"
        has 'groups: as the one made alone' "$OUT" ': right, '
    done
    for bench in allreduce alltoall; do
        hn_exits "$bench: gives 0" 0 --local 3 --label none "$examples/$bench" -b 24 -e 96K -f 4 -n 2 -w 1
        is "$bench: the columns of nccl-tests" "$(sed -n 2p "$OUT" | tr -s ' ')" \
            '# size count type redop time algbw busbw #wrong'
        is "$bench: seven sizes, nothing wrong" "$(awk '/^ / { n++; wrong += $8 } END { print n, wrong }' "$OUT")" '7 0'
        is "$bench: says so" "$(tail -n 1 "$OUT")" '# all results are right'
        hn_exits "$bench: bad options are usage" 64 --local 1 --label none "$examples/$bench" -f 1
    done
else
    skip 'groups, allreduce, alltoall' 'built without Gloo'
fi

# --- failures on purpose --------------------------------------------------------------------------

# Those whom the missing rank is missing to may be late on a busy machine, so these take a while.
{
    OUT=barrier.out ERR=barrier.err hn --local 4 "$examples/hang" 2 barrier 5
    echo "$RC" >barrier.code
} &
barrier=$!
{
    OUT=join.out ERR=join.err hn --local 4 --start-timeout 5s "$examples/hang" 2 join
    echo "$RC" >join.code
} &
join=$!

hn_exits 'crash: the exit code is that of the rank' 7 --local 4 "$examples/crash" 2
verdict_has 'crash: and the rank is named, with its last line' 'rank 2 on localhost exited with code 7: crash: rank 2 fails: exit'
hn --local 4 "$examples/crash" 1 report
verdict_has 'crash: what it reported is the reason' 'rank 1 on localhost: data: shard 12 is empty  (exit 7)'
hn_exits 'crash: hn_abort() chooses the code' 9 --local 4 "$examples/crash" 3 abort
verdict_has 'crash: and the words' 'rank 3 on localhost aborted the job: the loss is not a number'
ASAN_OPTIONS=handle_segv=0 hn --local 4 "$examples/crash" 0 signal
exits 'crash: a signal is 128 and its number' 139
verdict_has 'crash: it is named' 'killed by SIGSEGV'
# Whoever fails first stays until the other one has spoken, too.
hn --local 3 --label none sh -c '"$0" 2 leave && exit
    : >"spoke.$RANK"
    until [ -e spoke.0 ] && [ -e spoke.1 ]; do sleep 0.05; done
    exit 1' "$examples/crash"
exits 'crash: who leaves early fails the others' 1
for rank in 0 1; do
    has "crash: rank $rank knows at once" "$OUT" "rank $rank: HN_ERR_PEER: barrier \`world\`: rank 2 (localhost) has already exited"
    has "crash: and where" "$OUT" "rank $rank: it was rank 2 on localhost"
done
hn_exits 'crash: usage' 64 --local 1 "$examples/crash" 0 nonsense

start --local 4 --wait-warn 500ms "$examples/hang" 2
ok 'hang: a wait that lasts is told' wait_for grep -q 'HN404.*ranks 0-1,3 wait in barrier `world` for .*; rank 2 on localhost has not come' "$ERR"
kill -INT "$PID"
finish
wait "$barrier"
read -r RC <barrier.code
cp barrier.err "$ERR"
exits 'hang: the time limit of the barrier' 1
has 'hang: names the missing one' "$ERR" 'HN_ERR_TIMEOUT: barrier `world`: rank 2 (localhost) missing after 5 s'
wait "$join"
read -r RC <join.code
cp join.err "$ERR"
exits 'hang: who does not join ends the job when asked to' 75
has 'hang: and is named' "$ERR" 'rank 2 on localhost did not join within 5s'
hn_exits 'hang: usage' 64 --local 1 "$examples/hang" 0 nonsense

hn_exits 'slow: ends well' 0 --local 4 --label none "$examples/slow" 2 15
# On a busy machine another may be slow for a step.
ok 'slow: the slow rank is named' grep -qE \
    '^step [0-9]+: rank 2 on localhost takes [0-9.]+ times as long as the others$' "$OUT"
nothing_left 'nothing is left'
done_testing
