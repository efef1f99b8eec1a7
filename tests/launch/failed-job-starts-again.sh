#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --max-restarts starts all ranks again after a failure: same ranks, a fresh store, another MASTER_PORT.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Meanwhile, for it takes a while: Ctrl-C in a long pause.
(
    env --default-signal "$HNLAUNCH" --local 1 --max-restarts 6 --label none sh -c 'echo up; exit 1' \
        >pause.out 2>pause.err &
    wait_for grep -q 'waiting 8.0s before restart 5 of 6' pause.err
    begin=$SECONDS
    kill -INT $!
    code=0
    wait $! || code=$?
    echo "$code $((SECONDS - begin))" >pause.end
) &
pause=$!

cat >twice.sh <<'EOF'
echo "rank $RANK attempt $TORCHELASTIC_RESTART_COUNT $HN_RESTART of $TORCHELASTIC_MAX_RESTARTS port $MASTER_PORT"
[ "$HN_RESTART" = 2 ] && exit 0
: >"spoke.$RANK.$HN_RESTART"
# Not before the other one has spoken.
[ "$RANK" = 1 ] || exec sleep 60
until [ -e "spoke.0.$HN_RESTART" ]; do sleep 0.05; done
exit 3
EOF
hn_exits 'a job that succeeds in its third attempt' 0 --local 2 --max-restarts 3 --label none --log-dir logs sh ./twice.sh
is 'every rank ran three times' "$(grep -c attempt "$OUT")" 6
has 'the count is told to the ranks' "$OUT" 'rank 0 attempt 2 2 of 3'
ports=$(grep -o 'port .*' logs/latest/rank-00000.out)
is 'each attempt has another MASTER_PORT than the one before' "$(uniq <<<"$ports" | wc -l)" 3
is 'all its ranks the same' "$(grep -o 'port .*' logs/latest/rank-00001.out)" "$ports"
has 'a restart is said with its reason' "$ERR" 'restart 1 of 3: rank 1 on localhost exited with code 3'
verdict_has 'the last line tells that it took three' ' (attempt 3)'
has 'the second waits' "$ERR" 'waiting 1.0s before restart 2 of 3'
is 'log files hold all attempts' "$(wc -l <logs/latest/rank-00000.out)" 3
is 'events tell of them' "$(grep -c '"ev":"run.restart"' logs/latest/events.ndjson)" 2

hn --local 2 --max-restarts 1 sh -c '[ $RANK = 0 ] && sleep 60; kill -SEGV $$'
exits 'a job that always fails ends with the code of its last attempt' 139
is 'after as many restarts as were asked for' "$(grep -c restart "$ERR")" 1
ok 'the last line counts the attempts' grep -qE '^hnlaunch: failed after [^ ]+ \(attempt 2\): rank 1 .*\(exit 139\)$' <(verdict)
has 'the report says what ended the first' "$ERR" 'note: attempt 1 ended: rank 1 on localhost was killed by SIGSEGV'

# The cause is a rank that has ended with 0: with its reason, or without a word.
cat >left.sh <<'END'
case $HN_RESTART$RANK$1 in
00*) sleep 1; echo 'step 3: lost rank 1: Connection reset by peer' >&2; exit 9 ;;
01told) printf 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: no label\n' >&2 ;;
esac
END
for how in 'told:: ValueError: no label' 'left: left with exit 0, and others failed without it'; do
    hn_exits "a rank that ends with 0, ${how%%:*}: the next attempt ends well" 0 --local 2 --max-restarts 1 sh left.sh "${how%%:*}"
    has 'the restart names it' "$ERR" "restart 1 of 1: rank 1 on localhost${how#*:}"
done
hn --local 2 --max-restarts 1 --wait-warn 100ms --start-timeout 300ms sh -c '[ $HN_RESTART = 1 ]'
exits 'clocks of the last attempt say nothing in the pause' 0

hn_exits 'the time limit is for all attempts together' 124 --local 1 --max-restarts 1 --timeout 3s sh -c 'sleep 2; exit $((1 - HN_RESTART))'
printf 'one\ntwo\n' >in
run "$HNLAUNCH" --local 1 --max-restarts 1 --stdin 0 --label none sh -c 'wc -l; [ $HN_RESTART = 1 ]' <in
is 'standard input goes to the first attempt' "$(tr '\n' ' ' <"$OUT")" '2 0 '

# With --json, ranks that come to the store are looked for, which has gone during the pause.
hn_exits 'a pause without a store' 0 --json --local 2 --max-restarts 1 sh -c '[ $HN_RESTART = 1 ] || exit 3'

# The failure came before the order, and decides what is told.
start --json --local 2 --on-failure continue --max-restarts 3 sh -c '[ $RANK = 0 ] || exit 3; exec sleep 60'
ok 'a rank has failed, and the other goes on' wait_for grep -q '"ev":"rank.exited"' "$OUT"
exits 'an order to end after a failure: the code of the failure' 3 finish_by TERM
lacks 'and no other attempt begins then' "$OUT" '"ev":"run.restart"'

wait "$pause"
cp pause.out "$OUT"
cp pause.err "$ERR"
read -r RC seconds <pause.end
has 'an attempt that fails again and again waits longer and longer' "$ERR" 'waiting 8.0s before restart 5 of 6'
exits 'Ctrl-C in the pause ends the job' 130
ok 'at once' test "$seconds" -lt "$(scaled 5)"
is 'and no other attempt begins' "$(grep -c up "$OUT")" 5
nothing_left 'nothing is left of any attempt'
done_testing
