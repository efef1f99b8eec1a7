# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Terminals of tmux: source after tap.sh, and after lab.sh.
#
#   pane COMMAND...    a command of tmux for the newest terminal
#   new_server         ends that terminal; the next one has a server of its own: one that is about to end still answers
#   shown REGEX        succeeds when a line of the terminal has it, for wait_for; the lines are in the file screen
#   keys KEY...        types

export TMUX_TMPDIR=$TMP
panes=0
pane() { tmux -L "pane$panes" -f /dev/null "$@"; }
new_server() {
    pane kill-server 2>/dev/null
    panes=$((panes + 1))
}
shown() { pane capture-pane -p >screen && grep -qaE -- "$1" screen; }
keys() { pane send-keys "$@"; }
at_end() { pane kill-server 2>/dev/null; }
