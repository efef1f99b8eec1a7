#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The first lines of a run on four nodes over ssh, on terminals of 40, 80, 120 and 200 columns, are what tests/launch/screens/ has, but
# for times, names of runs and nodes, the note which node was the slowest, and the live line, which may count the ranks of a moment before:
# the phases of the start are one line, which a narrow terminal has without notes, above the output.
# DRAW=1 draws those files anew.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
command -v tmux >/dev/null || skip_all 'needs tmux'

export NO_COLOR=1
lab_up 4 2
cp "$TMP/hosts.txt" hosts
. "$ROOT/tests/lib/tmux.sh"

lab_hn -H hosts true
exits 'the nodes have the agent' 0

work='until [ -e "$0.speak" ]; do sleep 0.1; done; [ "$RANK" != 3 ] || echo "the data is read"; until [ -e "$0.end" ]; do sleep 0.1; done'
for columns in 40 80 120 200; do
    new_server
    pane new-session -d -x "$columns" -y 20 -c "$PWD" \
        "env TERM=screen $LAB run $LAB_HNLAUNCH -H hosts sh -c '$work' $PWD/$columns; exec sleep 1000"
    ok "$columns columns: the ranks have started" wait_for shown ' start 8 '
    touch "$columns.speak"
    ok "$columns columns: a rank speaks" wait_for shown ':3 \| the data is read'
    sed -E 's/\brun [a-z0-9]{5}\b/run RUN/g; s/ \(slowest node00[1-4]\)//; s/node00[1-4]\b/NODE/g; s/[0-9][0-9.]*(ms|s)\b/TIME/g; s/ $//; /^$/d; /^TIME +[1-8] ranks?/d' screen >got
    [[ -z ${DRAW-} ]] || cp got "$ROOT/tests/launch/screens/ssh-start.$columns"
    is "$columns columns: the start" "$(cat got)" "$(cat "$ROOT/tests/launch/screens/ssh-start.$columns")"
    touch "$columns.end"
    ok "$columns columns: the end" wait_for shown 'finished: 8 ranks'
done
lab_nothing_left 'nothing is left'
done_testing
