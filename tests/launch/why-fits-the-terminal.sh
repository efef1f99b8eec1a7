#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What hnlaunch why and Ctrl-\ twice show on terminals of 40, 80, 120 and 200 columns is what tests/launch/screens/ has, but for
# times, numbers of processes and names in the kernel: columns are left out, and places are cut, before a row is wider.
# DRAW=1 draws those files anew.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/tmux.sh"
command -v tmux >/dev/null || skip_all 'needs tmux'

export NO_COLOR=1
# Stacks differ from machine to machine.
mkdir bin
ln -s /usr/bin/* /bin/sh bin 2>/dev/null
rm -f bin/{gdb,eu-stack,py-spy}

shown() { pane capture-pane -pJ >screen && grep -qaE -- "$1" screen; } # REGEX: sentences are one line again
plain() {
    sed -E 's/\brun [a-z0-9]{5}\b/run RUN/; s/: \/.*hanging/: hanging/; s/[0-9][0-9.]*(ms|s)\b/TIME/g; s/\bpid [0-9]+/pid N/g
        s/ in the( kernel.s)?( [^ ;]+)?…?$/ KERNEL/; s/ [0-9-]+ %/ N %/; s/(stacks are in ).*/\1FILE/; s/ +/ /g; s/ $//' | sed '/^$/d; /so far, without stacks/d'
}
# Two keys at once would be one signal.
asked_twice() {
    keys 'C-\'
    wait_for shown '^ +\| RANK '
    keys 'C-\'
    WAIT=8 wait_for shown '= help:'
}
rows() { grep -E '^ +\|' screen; }

for columns in 40 80 120 200; do
    at_width "$columns"
    env="$there PATH=$PWD/bin LD_LIBRARY_PATH="
    pane new-session -d -x "$columns" -y 50 "exec $env $PLAIN/hnlaunch --hang-after 0 --local 4 $PLAIN/tests/clients/hanging sleep 2"
    ok "$columns columns: the ranks are up" wait_for shown '^3 \| '
    pane new-window -n why "$env $PLAIN/hnlaunch why; exec sleep 1000"
    ok "$columns columns: why answers" wait_for shown '= help:'
    is "$columns columns: no row is wider" "$(rows | grep -E ".{$((columns + 1))}")" ''
    rows >rows.why
    plain <screen >got
    as_drawn why 'as drawn'
    pane kill-window -t why
    ok "$columns columns: Ctrl-\\ twice answers" wait_for asked_twice
    is "$columns columns: with the same rows" "$(rows | tail -n "$(wc -l <rows.why)")" "$(cat rows.why)"
    keys C-c
done

nothing_left 'nothing is left'
done_testing
