#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The first lines of a run, the bars of twelve ranks and their ends on terminals of 40, 80, 120 and 200 columns are what tests/launch/screens/ has, but for
# times and names of runs: at most eight rows of bars at the bottom, and output above these.
# DRAW=1 draws those files anew.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
command -v tmux >/dev/null || skip_all 'needs tmux'

export TMUX_TMPDIR=$TMP NO_COLOR=1
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

pane() { tmux -L "bars$1" -f /dev/null "${@:2}"; } # COLUMNS COMMAND...
at_end() { for columns in 40 80 120 200; do pane "$columns" kill-server 2>/dev/null; done; }
shown() { pane "$1" capture-pane -p >screen && grep -qaE -- "$2" screen; } # COLUMNS REGEX
all_drawn() { # COLUMNS
    shown "$1" ' 85/100' && grep -q '6 more bars, 55-80 %' screen && [[ $(grep -cE ' (30|35|40|45|50)/100' screen) == 5 ]]
}
compare() { # NAME COLUMNS
    sed -E 's/\brun [a-z0-9]{5}\b/run RUN/g; s/[0-9][0-9.]*(ms|s)\b/TIME/g; s/ +/ /g; s/ $//; /^$/d; /^TIME 12 ranks/d' screen >got
    [[ -z ${DRAW-} ]] || cp got "$ROOT/tests/launch/screens/$1.$2"
    is "$2 columns: $1" "$(cat got)" "$(cat "$ROOT/tests/launch/screens/$1.$2")"
    is "$2 columns: no line is wider" "$(grep -E ".{$(($2 + 1))}" screen)" ''
}

for columns in 40 80 120 200; do
    mkdir -p "$columns"
    mkdir -m 700 "$columns/runtime"
    ln -s ../bars.py "$columns"
    pane "$columns" new-session -d -x "$columns" -y 40 -c "$PWD/$columns" \
        "env TERM=screen LD_LIBRARY_PATH= XDG_STATE_HOME=$PWD/$columns/state XDG_RUNTIME_DIR=$PWD/$columns/runtime $PLAIN/hnlaunch --local 12 python3 bars.py; exec sleep 1000"
done
for columns in 40 80 120 200; do
    ok "$columns columns: a rank speaks" wait_for shown "$columns" 'the data is read'
    compare start "$columns"
    touch "$columns/draw"
    ok "$columns columns: bars of all ranks" wait_for all_drawn "$columns"
    compare bars "$columns"
    touch "$columns/end"
    ok "$columns columns: the end" wait_for shown "$columns" 'finished: 12 ranks'
    compare ends "$columns"
done
nothing_left 'nothing is left'
done_testing
