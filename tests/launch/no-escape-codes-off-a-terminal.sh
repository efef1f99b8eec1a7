#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Without a terminal there are no escape codes and no carriage returns; on one, NO_COLOR is honoured. Lines of standard
# error look different there.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
export TERM=xterm-256color

hn --local 4 sh -c 'echo hi; exit $RANK'
ok 'no escape code off a terminal' sh -c "! grep -q $'\\033' $OUT $ERR"
ok 'no carriage return off a terminal' sh -c "! grep -q $'\\r' $OUT $ERR"

hn --color always --local 4 sh -c 'exit $RANK'
ok '--color always colours' grep -q $'\033' "$ERR"

on_terminal() { # ARG...: runs hnlaunch on a pseudo-terminal, everything in $OUT
    run script -qec "$(printf '%q ' "$HNLAUNCH" "$@")" /dev/null
}
on_terminal --local 2 sh -c 'echo hi; exit 3'
exits 'the code comes through on a terminal' 3
ok 'a terminal gets colour' grep -q $'\033\\[' "$OUT"
NO_COLOR=1 on_terminal --progress none --local 2 sh -c 'echo hi; exit 3'
ok 'NO_COLOR: none' sh -c "! grep -q $'\\033\\[[0-9;]*m' $OUT"
on_terminal --color never --progress none --local 2 sh -c 'exit 3'
ok '--color never: none' sh -c "! grep -q $'\\033\\[[0-9;]*m' $OUT"

# --- labels --------------------------------------------------------------------------------------
ESC=$'\033'
on_terminal --progress none -w localhost,127.0.0.1 sh -c 'echo out; echo err >&2'
tr -d '\r' <"$OUT" >lines
has 'a host has a colour, dim' lines "$ESC[2;36mlocalhost:0 $ESC[0m| out"
has 'another host another one' lines "$ESC[2;33m127.0.0.1:1 $ESC[0m| out"
has 'the bar before lines of standard error is red' lines "$ESC[2;36mlocalhost:0 $ESC[0m$ESC[31m| ${ESC}[0merr"
NO_COLOR=1 on_terminal --progress none -w localhost,127.0.0.1 sh -c 'echo out; echo err >&2'
tr -d '\r' <"$OUT" | sort >lines
is 'without colours a mark stands in its place' "$(grep -E 'out|err' lines)" $'127.0.0.1:1 ! err\n127.0.0.1:1 | out\nlocalhost:0 ! err\nlocalhost:0 | out'
NO_COLOR=1 on_terminal --progress none --local 2 --fold sh -c 'echo same >&2'
has 'in a folded line, too' "$OUT" '0-1 ! same'
NO_COLOR=1 hn --color never --local 2 sh -c 'echo out; echo err >&2'
is 'a pipe has none' "$(grep -hE '[|!]' "$OUT" "$ERR" | sort)" $'0 | err\n0 | out\n1 | err\n1 | out'
on_terminal --progress none --local 2 --fold echo same
tr -d '\r' <"$OUT" >lines
has 'one host needs no colour, and a folded line is dim, too' lines "$ESC[2m0-1 $ESC[0m| same"
on_terminal --progress none --local 1 --label '[{rank}] ' echo text
has 'so is a template without a bar' "$OUT" "$ESC[2m[0] $ESC[0mtext"
hn --color always --local 1 --label '{rank} | ' echo text
is '--color always: in a pipe, too' "$(cat "$OUT")" "$ESC[2m0 $ESC[0m| text"

# What a login says is neither of the terminal's business nor a line of ours.
printf '%s\n' 'printf "first\n\033]0;x\007hnlaunch: second\n" >&2; exit 1' >noise.sh
hn -vv --ssh-command "sh $PWD/noise.sh" -w nowhere true
ok 'each line of a login is said as one' grep -qx 'hnlaunch: nowhere: login says: first' "$ERR"
has 'without its control characters' "$ERR" 'login says: \x1b]0;x\x07hnlaunch: second'
is 'of which none comes through' "$(LC_ALL=C grep -aP '[\x00-\x08\x0b-\x1f\x7f]' "$ERR")" ''
done_testing
