#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks that compute, write, read and meet, at random, while the others wait for them: looks for hangs find none.
#
#   clean-runs-raise-no-alarm.sh [RUNS [SEED]]    15 runs; another number, from another seed on
. "$(dirname "$0")/../lib/tap.sh" || exit 1

python3 -c 'import json' || skip_all 'needs python3'
runs=${1:-15} seed=${2:-1}
cp -r "$ROOT/examples/python/hnlaunch/" .
cat >clean.py <<'END'
import os
import random
import sys
import time
import hnlaunch as hn

def compute(until):
    while time.monotonic() < until:
        sum(range(1000))

def write(until):
    with open(f"file.{sys.argv[1]}.{hn.rank()}", "wb", buffering=0) as f:
        while time.monotonic() < until:
            f.seek(0)
            f.write(bytes(200000))
            time.sleep(0.05)

def read(until):
    while time.monotonic() < until:
        with open(sys.executable, "rb", buffering=0) as f:
            f.read(200000)
        time.sleep(0.05)

hn.init()
plan = random.Random(int(sys.argv[1]))
for step in range(3):
    who, does, seconds = plan.randrange(hn.world_size()), plan.choice((compute, write, read)), plan.uniform(0, 1.6)
    if who in (hn.rank(), hn.world_size() - 1):
        does(time.monotonic() + seconds)
    hn.barrier()
hn.finalize()
END
LD_LIBRARY_PATH=$PLAIN
export LD_LIBRARY_PATH
one() { # SEED: prints a line on an alarm
    "$PLAIN/hnlaunch" -v --local 3 --hang-after 200ms --on-hang stop --log-dir none --label none python3 clean.py "$1" \
        >"run.$1" 2>&1 || { echo "seed $1: exit $?"; cat "run.$1"; }
    rm -f file."$1".*
}
export -f one
export PLAIN
seq "$seed" $((seed + runs - 1)) | xargs -P 3 -I{} bash -c 'one {}' >alarms
is "$runs runs from seed $seed: none has an alarm" "$(head -c 4000 alarms)" ''
looks=$(cat run.* | grep -c 'no rank has gone on for 200ms, but no hang is visible')
echo "# $looks looks"
ok 'ranks were looked at' test "$looks" -ge $((runs / 10))
nothing_left 'nothing is left'
done_testing
