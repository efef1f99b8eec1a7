#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a person sees of a run, of hnlaunch top, of the run's failure and of hnlaunch report on terminals of 40, 80, 120 and 200 columns is
# what tests/launch/screens/ has, but for times, sizes, shares, names of runs and the widths of gaps.
# DRAW=1 draws those files anew.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/tmux.sh"
command -v tmux >/dev/null || skip_all 'needs tmux'

export NO_COLOR=1
cp -r "$ROOT/examples/python/hnlaunch/" .
cat >work.py <<'END'
import os
import sys
import time
import hnlaunch as hn

hn.init()
step = 0
while hn.rank() != 5 or step < 40 or not os.path.exists("end"):
    time.sleep(0.12 if hn.rank() == 5 else 0.02)
    try:
        hn.barrier()
    except hn.Error:  # rank 5 has left
        time.sleep(1000)
    step += 1
    hn.progress(step, 10000)
    if step == 3 and hn.rank() == 0:
        print("three steps are done", flush=True)
sys.stderr.write("loader: shard 12 is empty\n")
sys.exit(7)
END

# What changes from run to run has a word in its place, or is left out.
plain() {
    sed -E 's/\brun [a-z0-9]{5}\b/run RUN/g; s/^(command: .*, in ).*/\1FOLDER/; s/(report|logs|rerun) [a-z0-9]{5}\b/\1 RUN/g; s/[0-9][0-9.]*(ms|s|m[0-9]+s|h[0-9]+m)\b/TIME/g
        s/\bstep [0-9]+(-[0-9]+)?/step N/g; s/\b(pid|step|others wait) ~?[0-9]+/\1 N/g; s/for [0-9]+ % of/for N % of/; s/\([0-9]+ steps\)/(N steps)/; s/^steps [0-9]+ to [0-9]+/steps N to N/
        s/, [0-9]+-[0-9]+-.*/, DATE/; s/[0-9.]+\/s/RATE/; s/(RATE TIME) l[eft]*$/\1 left/; s/(RATE) [▁▂▃▄▅▆▇█]+ /\1 /; /^first divergence/d
        s/^rank [0-4] (.*[a-zE]) +[·░▒▓█][·░▒▓█ ]*$/rank R \1 MAP/; s/ +[·░▒▓█][·░▒▓█ ]*$/ MAP/; s/ [CASJ.]{5,}$/ PHASES/; s/^(critical path.* start )rank .*/\1/
        s/^(localhost ) .* (rank 5 is slow)/\1 \2/; s/^  rank [0-9]+ .*/  rank R/; s/ +/ /g; s/ $//; s/^(run RUN) (TIME )?(6 ranks on 1 node )?step/\1 step/' screen |
        sed '/^$/d'
}
unwrap() { # lines that the terminal has wrapped become one, so that the lengths of times do not matter
    pane capture-pane -pJ >screen
}
has_summary() { compgen -G "$1/state/hnlaunch/runs/*/summary.json" >/dev/null; }
widest() { python3 -c 'import sys; print(max((len(l.rstrip()) for l in sys.stdin), default=0))'; }
compare() { # NAME
    plain >got
    as_drawn "$1"
}

for columns in 40 80 120 200; do
    at_width "$columns"
    ln -s ../hnlaunch ../work.py "$columns"
    pane new-session -d -x "$columns" -y 50 -c "$PWD/$columns" \
        "$there LD_LIBRARY_PATH=$PLAIN $PLAIN/hnlaunch --local 6 python3 work.py; exec sleep 1000"
done
for columns in 40 80 120 200; do
    at_width "$columns"
    ok "$columns columns: the live line is whole" wait_for shown '^[0-9.ms]+ +step .*/s( |$)'
    ok "$columns columns: it names the slow rank" wait_for shown '^rank 5 on localhost is slow'
    compare live
    ok "$columns columns: no line is wider" test "$(widest <screen)" -le "$columns"
    pane new-window -n top "$there LD_LIBRARY_PATH= $PLAIN/hnlaunch top; exec sleep 1000"
done
for columns in 40 80 120 200; do
    at_width "$columns"
    ok "$columns columns: top names the slow rank" wait_for shown '^localhost .* rank 5 is slow'
    [[ $columns = 40 ]] || ok "$columns columns: it has the pace" wait_for shown '^run .*/s .* left  running'
    compare top
    ok "$columns columns: nor is one of top" test "$(widest <screen)" -le "$columns"
    pane kill-window -t top
    touch "$columns/end"
    ok "$columns columns: the run has failed" wait_for shown '^next: '
    unwrap
    compare failed
    ok "$columns columns: its records are whole" wait_for has_summary "$columns"
    pane new-window "$there LD_LIBRARY_PATH= $PLAIN/hnlaunch report; exec sleep 1000"
    ok "$columns columns: a report" wait_for shown '^traces: from the node'
    unwrap
    compare report
    ok "$columns columns: the map of the steps fits" test "$(grep -E '^rank .*[·█]' screen | widest)" -le "$columns"
done
nothing_left 'nothing is left'
done_testing
