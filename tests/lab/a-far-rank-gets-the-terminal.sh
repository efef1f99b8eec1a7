#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --pty over ssh, directly and behind another node (--tree): keys, Ctrl-C and sizes reach a rank on its node; a node that is lost
# gives the terminal back.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
command -v tmux >/dev/null || skip_all 'needs tmux'

lab_up 2
. "$ROOT/tests/lib/tmux.sh"
begin() { # OPTIONS
    new_server
    pane new-session -d -x 100 -y 30 "env TERM=screen $LAB run $LAB_HNLAUNCH $1 -w node001,node002 --pty=1 sh -i; printf '%s\n' \"code \$?\"; stty -a | grep -o -- '-*icanon'; exec sleep 1000"
    ok "${1:-directly}: a shell has a prompt" wait_for shown '^[#$]'
}
for tree in '' '--tree 1'; do
    begin "$tree"
    keys 'echo "on $(hostname), $(stty size)"' Enter
    ok "${tree:-directly}: on its node, with the size" wait_for shown '^on node002, 30 100'
    keys 'echo asleep; sleep 1000' Enter
    ok "${tree:-directly}: a program" wait_for shown '^asleep'
    keys C-c
    ok "${tree:-directly}: is interrupted" wait_for shown '\^C'
    keys 'echo "after $?"' Enter
    ok "${tree:-directly}: by Ctrl-C" wait_for shown '^after 130'
    pane resize-window -x 80 -y 20
    resized() { keys 'stty size' Enter && sleep 0.2 && shown '^20 80'; }
    ok "${tree:-directly}: another size" wait_for resized
    [[ -n $tree ]] || { keys 'exit 3' Enter && ok 'directly: its code' wait_for shown '^code 3$'; }
done
lab crash node002
ok 'a lost node ends the job' wait_for shown '^code 125$'
ok 'and gives the terminal back' wait_for shown '^icanon$'
pane kill-server
lab_nothing_left 'no process is left anywhere'
done_testing
