# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Terminals of tmux: source after tap.sh, and after lab.sh.
#
#   pane COMMAND...    a command of tmux for the newest terminal
#   new_server         ends that terminal; the next one has a server of its own: one that is about to end still answers
#   shown REGEX        succeeds when a line of the terminal has it, for wait_for; the lines are in the file screen
#   keys KEY...        types
#   at_width COLUMNS   from now on the terminal is the one of that width, and of the folder COLUMNS, with a state and a
#                      runtime folder in it: $there is the beginning of a command line for it
#   as_drawn NAME      tests that the file got is as in tests/launch/screens/NAME.$panes, or with DRAW=1 draws that anew

export TMUX_TMPDIR=$TMP
panes=0
pane() { tmux -L "pane$panes" -f /dev/null "$@"; }
new_server() {
    pane kill-server 2>/dev/null
    panes=$((panes + 1))
}
shown() { pane capture-pane -p >screen && grep -qaE -- "$1" screen; }
keys() { pane send-keys "$@"; }
at_width() { # COLUMNS
    panes=$1
    # shellcheck disable=SC2034
    there="env TERM=screen XDG_STATE_HOME=$PWD/$panes/state XDG_RUNTIME_DIR=$PWD/$panes/runtime"
    [[ -d $panes ]] || mkdir -m 700 "$panes" "$panes/runtime"
}
as_drawn() { # NAME [TITLE]
    local drawn=$ROOT/tests/launch/screens/$1.$panes
    [[ -z ${DRAW-} ]] || cp got "$drawn"
    is "$panes columns: ${2-$1}" "$(cat got)" "$(cat "$drawn")"
}
at_end() {
    local server
    for server in "$TMP"/tmux-*/*; do
        tmux -S "$server" kill-server 2>/dev/null
    done
}
