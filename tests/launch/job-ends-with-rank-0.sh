#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With --ends-with rank0 the job ends when rank 0 has exited with 0: the others are stopped, and the exit code is 0.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Rank 0 waits for the others, which serve until they are told to end.
cat >serve.sh <<'EOF'
if [ "$RANK" = 0 ]; then
    until [ "$(ls up.* 2>/dev/null | wc -l)" = $((WORLD_SIZE - 1)) ]; do sleep 0.05; done
    rm -f up.*
    echo "driver done"
    exit "${CODE:-0}"
fi
trap 'echo "rank $RANK stopped"; exit "${STOP_CODE:-0}"' TERM
: >"up.$RANK"
while :; do sleep 0.05; done
EOF

begin=$SECONDS
hn --local 3 --label none --ends-with rank0 --log-dir logs sh serve.sh
exits 'rank 0 has ended, the others are stopped: 0' 0
ok 'without a wait' test $((SECONDS - begin)) -lt "$(scaled 10)"
is 'in order, by SIGTERM' "$(sort "$OUT")" $'driver done\nrank 1 stopped\nrank 2 stopped'
has 'the reason is told' "$ERR" 'hnlaunch: stopping all ranks: rank 0 has exited with 0 (--ends-with rank0)'
verdict_has 'the verdict says what became of all' 'finished: rank 0 exited 0 in' '2 ranks were stopped'
json() { python3 -c "import json, sys; d = json.load(open('logs/latest/summary.json')); print($1)"; } # EXPRESSION
is 'summary.json has it' "$(json 'd["code"], d["success"], d["failures"], d["origin"]')" '0 rank0 [] worker'
has 'the events, too' logs/latest/events.ndjson '"rank 0 has exited with 0 (--ends-with rank0)"'

hn --local 2 --label none --ends-with rank0 -x STOP_CODE=3 sh serve.sh
exits 'the code of a rank that was stopped does not count' 0
verdict_has 'one was stopped' 'rank 0 exited 0' '; 1 rank was stopped'

hn --local 2 --grace 200ms --ends-with rank0 sh -c '
    if [ $RANK = 0 ]; then until [ -e deaf ]; do sleep 0.05; done; else trap "" TERM; : >deaf; while :; do sleep 0.05; done; fi'
exits 'a rank that does not end is killed: 0' 0
verdict_has 'which is said' 'rank 0 exited 0' '1 rank was stopped; 1 rank had to be killed (SIGKILL)'

hn_exits 'rank 0 fails: its code' 7 --local 2 --ends-with rank0 -x CODE=7 sh serve.sh
verdict_has 'and its name' 'failed' 'rank 0'

hn --local 2 --ends-with rank0 sh -c '[ $RANK = 1 ] && exit 6; exec sleep 60'
exits 'another rank fails before: its code' 6

hn --local 2 --label none --ends-with rank0 --log-dir other sh -c '
    [ $RANK = 1 ] && exit 0
    until grep -q "\"rank.exited\"" other/*/events.ndjson 2>/dev/null; do sleep 0.05; done; echo went on'
exits 'another rank exits with 0: the job goes on' 0
is 'to its end' "$(cat "$OUT")" 'went on'
verdict_has 'and is a success of all' 'finished: 2 ranks exited 0 in'

hn --local 2 --label none --ends-with rank0 --on-failure continue --log-dir third sh -c '
    [ $RANK = 1 ] && exit 5
    until grep -q "\"rank.exited\"" third/*/events.ndjson 2>/dev/null; do sleep 0.05; done; echo went on'
exits '--on-failure continue: an earlier failure keeps its code' 5
has 'rank 0 came to its end' "$OUT" 'went on'

hn --local 2 --label none --ends-with rank0 --max-restarts 1 sh -c '
    if [ $RANK = 0 ]; then until [ -e try.$HN_RESTART ]; do sleep 0.05; done; [ $HN_RESTART = 1 ]; exit; fi
    : >try.$HN_RESTART; exec sleep 60'
exits 'the second attempt succeeds' 0
verdict_has 'and is not started again' 'rank 0 exited 0 in' '(attempt 2)' '1 rank was stopped'

hn_exits 'a world of one' 0 --local 1 --ends-with rank0 --log-dir logs true
verdict_has 'ends as ever' 'finished: 1 rank exited 0 in'
ok 'no rank is stopped' not grep -q stopping "$ERR"
hn --local 1 --log-dir logs true
is 'a job of all has no such field' "$(json '"success" in d')" False

hn_exits 'the key of the configuration' 0 -o run.ends_with=rank0 --local 2 sh serve.sh
verdict_has 'works' 'rank 0 exited 0'
hn_exits 'another word is refused' 64 --local 2 --ends-with any true
has 'with those that there are' "$ERR" 'must be one of all|rank0'
done_testing
