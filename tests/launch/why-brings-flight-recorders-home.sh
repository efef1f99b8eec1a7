#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch why has ranks that live dump PyTorch's flight recorder, through their FIFOs, and brings the dumps into the
# folder of the run. PyTorch does that only with GPUs; tests/lib/flight_recorder.py does the same.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/why.sh"
runtime_dir
python3 -c 'import json' || skip_all 'needs python3'
unset "${!NCCL_@}" "${!TORCH_@}"

recorder=$ROOT/tests/lib/flight_recorder.py
ranks() { # ARG...: four of them, with recorders
    comes_up "${*: -1}: the recorders are ready" 4 start --local 4 --label none "$@"
}
notes() { field "'; '.join(n for n in a['notes'] if 'flight recorder' in n)"; }
cat >check.py <<'END'
import os, pickle, sys
folder, number, wanted = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(",")
assert sorted(os.listdir(folder)) == ["nccl_trace_rank_" + w for w in wanted], os.listdir(folder)
for w in wanted:
    r = pickle.load(open(folder + "/nccl_trace_rank_" + w, "rb"))
    assert (r["rank"], r["number"], len(r["entries"])) == (int(w), number, 100), r
END

ranks python3 "$recorder"
why
ok 'each dump is the one that was written' python3 check.py "$(field "a['dumps']")" 1 0,1,2,3
is 'it is told where they are, and how to read them' "$(notes)" "dumps of PyTorch's flight recorder of ranks 0-3: \
torchfrtrace --prefix nccl_trace_rank_ $(field "a['dumps']") names the collective that some have not entered"
has 'also in the report' "$(field "a['file']")" "note: dumps of PyTorch's flight recorder of ranks 0-3"
is 'they are the user'\''s alone' "$(stat -c %a "$(field "a['dumps']")" "$(field "a['dumps']")/nccl_trace_rank_0" | xargs)" '700 600'
why
ok 'a second look has new ones' python3 check.py "$(field "a['dumps']")" 2 0,1,2,3
finish_by INT
lacks 'they are none of a failure' "$ERR" "flight recorder"

otherwise() { # HOW NOTE
    ranks python3 "$recorder" 2 "$1"
    why
    ok "$1: the other dumps are there" python3 check.py "$(field "a['dumps']")" 1 0,1,3
    is "$1: it is told why one is missing" "$(notes | sed 's/.*; //')" "no dump of PyTorch's flight recorder of rank 2: $2"
    finish_by INT
}
otherwise gone 'no thread of the rank reads its FIFO'
otherwise late 'no dump came in time'
otherwise link 'no dump came in time'
otherwise file 'its FIFO takes no order'
otherwise long 'its dump is larger than 32 MiB'
otherwise cut 'no dump came in time'

# Unasked: only where ranks hang.
cat >hang.py <<'END'
import os, subprocess, sys, time
import hnlaunch as hn
subprocess.Popen([sys.executable, sys.argv[1]])
hn.init()
hn.barrier()
if sys.argv[2] == "hang" and hn.rank() == 1:
    time.sleep(1000)
while sys.argv[2] == "compute" and hn.rank() == 1:
    sum(range(1000))
hn.barrier()
END
cp -r "$ROOT/examples/python/hnlaunch/" .
export LD_LIBRARY_PATH=$PLAIN
hn_exits 'unasked: the ranks hang' 124 --local 3 --hang-after 2s --on-hang stop --label none python3 hang.py "$recorder" hang
has 'unasked: the dumps are told' "$ERR" "note: dumps of PyTorch's flight recorder of ranks 0-2"
start -v --local 3 --hang-after 2s --label none python3 hang.py "$recorder" compute
ok 'no hang: the ranks were looked at' wait_for grep -q 'no rank has gone on for 2.0s, but no hang is visible' "$ERR"
is 'no hang: no dump was ordered' "$(grep -c asked "$OUT")" 0
finish_by INT

# Before the ranks are stopped at the end of their time.
hn_exits '--timeout: the time is over' 124 --local 4 --label none --timeout 3s python3 "$recorder"
has '--timeout: the dumps are told' "$ERR" "note: dumps of PyTorch's flight recorder of ranks 0-3"

ranks --log-dir none python3 "$recorder"
why
is 'without records none are ordered' "$(notes)$(grep -c asked "$OUT")" 0
finish_by INT
nothing_left 'nothing is left'
done_testing
