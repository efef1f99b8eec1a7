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
on_terminal "--local 2 printf 'a\\033]0;title\\007b\\033[2Jc\\033[31mred\\n'"
exits 'ranks that send escape sequences end well' 0
ok 'only the colour reaches the terminal, and ends with its line' times 2 $'abc\033\\[31mred\033\\[0m$'
on_terminal "--raw --local 2 printf 'a\\033]0;title\\007b\\n'"
ok '--raw lets everything through' times 2 $'\033]0;title\007b$'
"$HNLAUNCH" --local 1 printf 'a\033]0;title\007b\n' >piped 2>"$ERR"
printf 'a\033]0;title\007b\n' >want
same 'so does a pipe' piped want
done_testing
