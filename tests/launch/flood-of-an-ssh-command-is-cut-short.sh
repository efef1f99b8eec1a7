#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A program of --ssh-command that writes without end, or says nothing, costs its node only: hnlaunch comes back within
# its time limit, with little memory and a short message, and leaves no such program behind.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Memory is that of the plain build.
[[ -x $PLAIN/hnlaunch ]] || skip_all 'no plain build'
HNLAUNCH=$PLAIN/hnlaunch
printf 'import resource, subprocess, sys\ntry:\n    code = subprocess.call(sys.argv[2:], stdin=subprocess.DEVNULL, timeout=120)\nexcept subprocess.TimeoutExpired:\n    code = "hangs"\nopen(sys.argv[1], "w").write(f"{code} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}")\n' >measure

program() { # COMMAND: what stands in the place of ssh
    printf '#!/bin/bash\n%s\n' "$1" >"$TMP/remote"
    chmod +x "$TMP/remote"
}

launch() { # ARG...
    rm -f measured
    run python3 measure measured "$HNLAUNCH" --ssh-command "$TMP/remote" --connect-timeout 2s --start-timeout 4s "$@" true
    read -r CODE KIB <measured
}

cut_short() { # NAME COMMAND CODE TEXT
    program "$2"
    launch -w node1
    is "$1: the exit code" "$CODE" "$3"
    has "$1: the reason" "$ERR" "$4"
    ok "$1: less than 64 MiB ($KIB KiB)" test "$KIB" -lt 65536
    lacks "$1: no escape sequence" "$ERR" $'\e'
    ok "$1: a short message" test "$(wc -c <"$ERR")" -lt 4096
    ok "$1: the program is gone" wait_for program_is_gone
}
program_is_gone() { ! pgrep -f "$TMP/remote" >pids; }

cut_short 'a flood of stdout' 'exec -a "$0" yes' 69 'error[HN210]: the agent cannot run on node1'
cut_short 'a flood of stderr' 'exec -a "$0" yes >&2' 69 'error[HN210]: the agent cannot run on node1'
cut_short 'a flood of both' '(exec -a "$0" yes >&2) & exec -a "$0" yes' 69 'error[HN210]: the agent cannot run on node1'
cut_short 'zeros' 'exec -a "$0" cat /dev/zero' 69 'error[HN210]: the agent cannot run on node1'
cut_short 'a line without an end' 'printf "HNLAUNCH-NEED "; exec -a "$0" cat /dev/zero' 69 'sent HNLAUNCH-NEED and a line of more than 8 KiB'
cut_short 'a message without an end' 'printf "HNLAUNCH-AGENT\n"; exec -a "$0" cat /dev/zero' 68 'the agent sent invalid frame length 0'
cut_short 'escapes' 'exec -a "$0" sh -c "while :; do printf \"\\033]0;owned\\007\\033[2J\\n\"; done >&2"' 69 'error[HN210]: the agent cannot run on node1'
cut_short 'silence' 'exec -a "$0" sleep 1000' 69 'error[HN210]: the agent cannot run on node1'
done_testing
