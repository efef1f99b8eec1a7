#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The first lines of a run, the bars of twelve ranks and their ends on terminals of 40, 80, 120 and 200 columns are what tests/launch/screens/ has, but for
# times and names of runs: at most eight rows of bars at the bottom, and output above these.
# DRAW=1 draws those files anew.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/tmux.sh"
command -v tmux >/dev/null || skip_all 'needs tmux'

export NO_COLOR=1
cat >bars.py <<'END'
import os
import sys
import time

rank = int(os.environ["RANK"])
if rank == 3:
    print("the data is read", flush=True)
while not os.path.exists("end"):
    if os.path.exists("draw"):
        done = 30 + 5 * rank
        sys.stderr.write("\r%3d%%|%-20s| %d/100" % (done, "#" * (done // 5), done))
        sys.stderr.flush()
    time.sleep(0.1)
sys.stderr.write("\r100%%|%s| 100/100\n" % ("#" * 20))
END

all_drawn() {
    shown ' 85/100' && grep -q '6 more bars, 55-80 %' screen && [[ $(grep -cE ' (30|35|40|45|50)/100' screen) == 5 ]]
}
compare() { # NAME
    sed -E 's/\brun [a-z0-9]{5}\b/run RUN/g; s/[0-9][0-9.]*(ms|s)\b/TIME/g; s/ +/ /g; s/ $//; /^$/d; /^TIME 12 ranks/d' screen >got
    as_drawn "$1"
    is "$panes columns: no line is wider" "$(grep -E ".{$((panes + 1))}" screen)" ''
}

for columns in 40 80 120 200; do
    at_width "$columns"
    ln -s ../bars.py "$columns"
    pane new-session -d -x "$columns" -y 40 -c "$PWD/$columns" \
        "$there LD_LIBRARY_PATH= $PLAIN/hnlaunch --local 12 python3 bars.py; exec sleep 1000"
done
for columns in 40 80 120 200; do
    at_width "$columns"
    ok "$columns columns: a rank speaks" wait_for shown 'the data is read'
    compare start
    touch "$columns/draw"
    ok "$columns columns: bars of all ranks" wait_for all_drawn
    compare bars
    touch "$columns/end"
    ok "$columns columns: the end" wait_for shown 'finished: 12 ranks'
    compare ends
done
nothing_left 'nothing is left'
done_testing
