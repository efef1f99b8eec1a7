#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# On a terminal an unfinished line is shown after a moment; lines of other ranks wait for its end or
# begin on a line of their own.
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

# --- keys that the terminal echoes

export TERM=xterm
mkfifo keys
types() { # KEYS PATTERN COMMAND LINE: once the terminal has shown PATTERN
    env --default-signal script -qefc "$HNLAUNCH --color never --local 2 sh -c '$3'" /dev/null <keys >"$OUT" 2>&1 &
    PID=$!
    exec 3>keys
    ok "a terminal has: $2" wait_for grep -qa "$2" "$OUT"
    printf '%b' "$1" >&3
    finish
    exec 3>&-
    python3 "$ROOT/tests/lib/screen.py" 80 <"$OUT" >screen
}
types 'bob\n' '0 | name' 'if [ $RANK = 0 ]; then printf "name? "; read x; echo "hi $x"; fi'
exits 'a rank gets the answer to its question' 0
ok 'the answer stands behind the question' grep -qx '0 | name? bob' screen
ok 'what follows has a label' grep -qx '0 | hi bob' screen
types '\003' '1 | up' 'echo up; exec sleep 1000'
exits 'Ctrl-C' 130
ok 'own lines take the place of its echo' grep -q '^hnlaunch: stopping all ranks: SIGINT' screen
lacks 'which is gone' screen '^C'
types '\003' 'name? ' 'printf "name? "; exec sleep 1000'
ok 'behind the unfinished line of a rank it stays' grep -qE '^[01] \| name\? \^C$' screen
ok 'and own lines follow' grep -q '^hnlaunch: stopping all ranks: SIGINT' screen
done_testing
