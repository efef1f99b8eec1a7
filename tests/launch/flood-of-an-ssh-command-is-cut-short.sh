#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A program of --ssh-command that writes without end, or says nothing, costs its node only: hnlaunch comes back within
# its time limit, with little memory and a short message, and leaves no such program behind.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/measure.sh"


program() { # COMMAND: what stands in the place of ssh
    printf '#!/bin/bash\n%s\n' "$1" >"$TMP/remote"
    chmod +x "$TMP/remote"
}

launch() { # ARG...
    measure "$PLAIN/hnlaunch" --ssh-command "$TMP/remote" --connect-timeout 2s --start-timeout 4s "$@" true
}

flood() { # NAME COMMAND CODE TEXT
    program "$2"
    launch -w node1
    cut_short "$1" "$3" "$4"
    ok "$1: the program is gone" wait_for program_is_gone
}
program_is_gone() { ! pgrep -f "$TMP/remote" >pids; }

flood 'a flood of stdout' 'exec -a "$0" yes' 69 'error[HN210]: the agent cannot run on node1'
flood 'a flood of stderr' 'exec -a "$0" yes >&2' 69 'error[HN210]: the agent cannot run on node1'
flood 'a flood of both' '(exec -a "$0" yes >&2) & exec -a "$0" yes' 69 'error[HN210]: the agent cannot run on node1'
flood 'zeros' 'exec -a "$0" cat /dev/zero' 69 'error[HN210]: the agent cannot run on node1'
flood 'a line without an end' 'printf "HNLAUNCH-NEED "; exec -a "$0" cat /dev/zero' 69 'sent HNLAUNCH-NEED and a line of more than 8 KiB'
flood 'a message without an end' 'printf "HNLAUNCH-AGENT\n"; exec -a "$0" cat /dev/zero' 68 'the agent sent invalid frame length 0'
flood 'escapes' 'exec -a "$0" sh -c "while :; do printf \"\\033]0;owned\\007\\033[2J\\n\"; done >&2"' 69 'error[HN210]: the agent cannot run on node1'
flood 'silence' 'exec -a "$0" sleep 1000' 69 'error[HN210]: the agent cannot run on node1'
done_testing
