#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# On a terminal an unfinished line is shown after a moment; lines of other ranks wait for its end or
# begin on a line of their own.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

on_terminal() { # COMMAND LINE
    script -qefc "$HNLAUNCH $1" /dev/null >"$OUT" 2>&1
    RC=$?
    tr -d '\r' <"$OUT" >tty
}

times() { # N PATTERN
    [[ $(grep -o "$2" tty | wc -l) == "$1" ]]
}

on_terminal "--local 4 sh -c 'printf partial; sleep 0.5; echo \" line \$RANK\"'"
exits 'ranks that pause within a line end well' 0
ok 'all four first halves are there once' times 4 partial
for r in 0 1 2 3; do
    ok "so is the second half of rank $r's line" times 1 "line $r"
done

on_terminal "--local 2 sh -c 'if [ \$RANK = 0 ]; then printf ask; sleep 1; echo ed; else sleep 0.4; echo one; echo two; fi'"
exits "whole lines that end while another rank's line is open end well" 0
ok 'they stand on lines of their own' times 1 '^1 | two$'
done_testing
