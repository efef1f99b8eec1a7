#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# When one rank fails the others get TERM, then KILL after the grace time, and all is over.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

begin=$SECONDS
hn --local 4 sh -c 'if [ $RANK = 2 ]; then sleep 0.3; exit 7; fi; exec sleep 600'
exits 'sleeping ranks are stopped when rank 2 fails' 7
ok 'at once, not at the end of their sleep' test $((SECONDS - begin)) -lt "$(scaled 5)"
has 'by TERM' "$ERR" '3 ranks were stopped by hnlaunch (SIGTERM)'
verdict_has 'the culprit is rank 2' 'rank 2'
nothing_left 'nothing is left'

hn --local 2 --grace 20s --label none sh -c '
    if [ $RANK = 1 ]; then while [ ! -e ready ]; do sleep 0.05; done; exit 3; fi
    trap "echo got TERM; exit 0" TERM
    : >ready
    while :; do sleep 0.05; done'
exits 'a rank may clean up after TERM' 3
has 'TERM comes first' "$OUT" 'got TERM'

begin=$SECONDS
rm -f ready
hn --local 2 --grace 500ms sh -c '
    if [ $RANK = 1 ]; then while [ ! -e ready ]; do sleep 0.05; done; exit 3; fi
    trap "" TERM
    : >ready
    while :; do sleep 0.05; done'
exits 'a rank that ignores TERM does not change the code' 3
ok 'it is killed after --grace' test $((SECONDS - begin)) -lt "$(scaled 5)"
lacks 'by the agent, whom nobody had to give up' "$ERR" 'within the grace time'
nothing_left 'it is gone'

# The others fail when the agent has reaped rank 3.
hn --local 4 sh -c '
    if [ $RANK = 3 ]; then echo $$ >new && mv new pid; exit 11; fi
    trap "" TERM
    until [ -e pid ]; do sleep 0.05; done
    while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.05; done
    exit 12'
exits 'the first failure decides, not the lowest rank' 11

# Rank 0 is slow to end: it gives much memory back, and shares a processor with a busy loop. Rank 1 fails meanwhile.
cat >slow_end.py <<'END'
import os, signal
if os.environ["RANK"] == "0":
    memory = bytearray(os.urandom(1 << 20)) * 400
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if os.fork() == 0:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        while True:
            pass
    with open("new", "w") as f:
        f.write(str(os.getpid()))
    os.rename("new", "ending")
    os.kill(os.getpid(), signal.SIGSEGV)
while not os.path.exists("ending"):
    pass
stat = "/proc/" + open("ending").read() + "/stat"
while os.path.exists(stat) and not int(open(stat).read().split(")")[1].split()[6]) & 4:
    pass
os._exit(14)
END
hn --local 2 python3 slow_end.py
exits 'a rank that was ending when others failed is the first failure' 139
verdict_has 'and named' 'rank 0'
nothing_left 'its children are gone'

hn --local 3 sh -c 'if [ $RANK = 1 ]; then echo "the reason" >&2; exit 5; fi; exec sleep 60'
has 'what the culprit said on stderr is shown' "$ERR" 'the reason'
has 'an error block tells about rank 1' "$ERR" 'error[HN'
done_testing
