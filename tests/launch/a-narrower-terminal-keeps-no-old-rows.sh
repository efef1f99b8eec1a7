#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A terminal that becomes narrower under the live line and the bars above it wraps their rows: all of these go
# with the next state, and nothing else does.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
command -v tmux >/dev/null || skip_all 'needs tmux'
. "$ROOT/tests/lib/tmux.sh"
export NO_COLOR=1

cat >bar.py <<'END2'
import os, sys, time
rank = os.environ["RANK"]
print("above: rank", rank, flush=True)
state = 0
while not os.path.exists("end"):
    sys.stderr.write("\r" + f"state {state} of rank {rank} ".ljust(100, "#"))
    sys.stderr.flush()
    if os.path.exists("next"):
        state = 1
    time.sleep(0.1)
sys.stderr.write("\r" + " " * 40 + "\r")
END2
rows() { grep -cE "$1" screen; }
at_width() { [[ $(stty size <"$(readlink "/proc/$(cat pid)/fd/2")") = "40 $1" ]]; }
# tmux wraps rows a moment before it tells the size: hnlaunch draws nothing meanwhile.
narrow_to() { # COLUMNS
    kill -STOP "$(cat pid)"
    pane resize-window -x "$1" -y 40
    wait_for at_width "$1"
    kill -CONT "$(cat pid)"
}
runs() { # OPTION... COMMAND
    rm -f end next
    new_server
    pane new-session -d -x 120 -y 40 "seq 10; sh -c 'echo \$\$ >pid; exec env TERM=screen $PLAIN/hnlaunch $*'; exec sleep 1000"
}

# Eight bars, each in a row of 104 columns, stand while the width changes; then their next state comes.
for columns in 60 40; do
    runs --local 8 /usr/bin/python3 bar.py
    ok "$columns columns: eight bars stand in 120" wait_for shown '^7 ! state 0 of rank 7 #{50}'
    ok '... it has become narrower' narrow_to "$columns"
    touch next
    all_next() { shown '^7 ' && [[ $(rows '^[0-7] ! state 1 of rank [0-7] #') = 8 ]]; }
    ok '... all bars are drawn anew' wait_for all_next
    is '... no old row is left' "$(rows '^[0-7] ! state 0|^#')" 0
    is '... each bar has one row' "$(rows '^[0-7] ! state 1 of rank [0-7] #')" 8
    pane capture-pane -p -S -200 >screen # tmux keeps the row of the cursor: upper rows scroll away
    is '... what ranks wrote above is there' "$(rows '^[0-7] \| above: rank [0-7]$')" 8
    touch end
    ok '... the run ends' wait_for shown '^hnlaunch: finished'
    is '... no bar is left' "$(rows '#')" 0
done

# The line of a launch that waits for a node.
printf '#!/bin/sh\nexec sleep 600\n' >slow-ssh
chmod +x slow-ssh
runs -w ip-10-0-0-1.a-very-long-name.compute.example.invalid --ssh-command ./slow-ssh --connect-timeout 600s --start-timeout 600s true
ok 'the wait for a node is told' wait_for shown '^ +0/1 nodes ready, waiting for ip-10-0-0-1\..*invalid \('
ok 'it becomes narrower' narrow_to 30
ok 'the wait is told there, too' wait_for shown '^ +0/1 ready, '
is 'nothing is left of the wider one' "$(rows 'waiting|compute')" 0
done_testing
