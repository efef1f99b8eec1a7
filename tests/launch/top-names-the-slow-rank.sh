#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch top, and afterwards the report, name the rank for which the others wait: one that computes or sleeps longer in each step
# than they do, in a job that meets in the store of hnlaunch, and in one of PyTorch with Gloo.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/tmux.sh"

runtime_dir
cp -r "$ROOT/examples/python/hnlaunch/" .
export LD_LIBRARY_PATH=$PLAIN
cat >meet.py <<'END'
import os
import time
import hnlaunch as hn

hn.init()
while not os.path.exists("end"):
    time.sleep(0.2 if hn.rank() == 2 else 0.02)
    hn.barrier()
END
cat >reduce.py <<'END'
import os
import time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
steps = torch.zeros(1)
while not os.path.exists("end"):
    if dist.get_rank() == 1:
        time.sleep(0.2)
    dist.all_reduce(steps)
END

# The ranks' busy_percent in the newest line, and what it is known by.
busy() {
    python3 -c 'import json
t = json.loads(open("lines").read().rsplit("\n", 2)[-2])
ranks = [r for h in t["hosts"] for r in h["ranks"]]
print(*[r["busy_percent"] for r in ranks], *{r["busy_by"] for r in ranks})' 2>"$TMP/busy.err"
}
# The slow rank is busy, and each other one much less.
stands_out() { # RANK
    busy | awk -v slow="$1" '{ for (r = 1; r <= 4; r++) if (r != slow + 1 && $r > $(slow + 1) - 25) exit 1 }
        END { exit NR == 0 }'
}
looks_on() { (($(wc -l <lines) >= shown + 10)); } # the head checks each fifth line
try() { # NAME RANK COMMAND...
    local looker shown
    rm -f end
    start --label none --local 4 "${@:3}"
    ok "$1: it runs" wait_for grep -q "run .....:" "$ERR"
    "$HNLAUNCH" top --json >lines 2>"$TMP/looker.err" &
    looker=$!
    ok "$1: rank $2 hardly waits, the others do" wait_for stands_out "$2"
    if command -v tmux >/dev/null; then
        pane new-session -d -x 150 -y 12 "TERM=screen LD_LIBRARY_PATH= $HNLAUNCH top; exec sleep 1000"
        ok "$1: rank $2 is named" wait_for shown "^localhost .* rank $2 is slow( or hangs)?: others wait ~?[0-9]+ %"
        new_server
    else
        skip "$1: rank $2 is named" 'needs tmux'
    fi
    shown=$(wc -l <lines)
    ok "$1: top looks on" wait_for looks_on
    touch end
    finish
    wait "$looker"
    exits "$1: the run ends well" 0
    hn report
    ok "$1: the report names rank $2, without a trace" \
        grep -qE "^slow rank: the others wait for rank $2 on localhost for [0-9]+ % of the time$" "$OUT"
    ok "$1: and does not ask for one" grep -qx 'traces: none: kept when a run fails or hangs, or with --trace' "$OUT"
}

try 'barriers of the store' 2 python3 meet.py
python=${TORCH_PYTHON:-/usr/bin/python3}
if "$python" -c 'import torch.distributed' 2>"$ERR"; then
    export OMP_NUM_THREADS=1
    try 'Gloo' 1 "$python" reduce.py
else
    skip 'Gloo' 'no PyTorch'
fi
nothing_left 'nothing is left'
done_testing
