#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# All mistakes of a hostfile are told in one go, with file:line:col, and nothing is started.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

cat >hosts.txt <<'END'
localhost slots=2
gpu002 slot=8
gpu003 slots=eight
gpu[7-3]
END
hn_exits 'a wrong hostfile: 65' 65 -H hosts.txt touch started
has 'unknown key: place' "$ERR" 'hosts.txt:2:8'
has 'unknown key: the right one is offered' "$ERR" slots
has 'wrong number: place' "$ERR" 'hosts.txt:3:14'
has 'wrong range: place' "$ERR" 'hosts.txt:4:'
verdict_has 'the verdict says that nothing was started and counts the errors' \
    'nothing was started' '3 errors in hosts.txt' '(exit 65)'
ok 'nothing was started' test ! -e started

seq -f 'gpu%.0f slot=8' 2000 >big.txt
hn -H big.txt true
verdict_has 'errors that are not shown are counted' '2000 errors in big.txt, the first 100 are shown' '(exit 65)'

printf 'gpu002 slots=8\ngpu002 slots=4\n' >twice.txt
hn_exits 'a host with two slot counts: 65' 65 -H twice.txt true
has 'both places are shown' "$ERR" 'twice.txt:2:1'

printf '\357\273\277localhost slots=2 # here\r\n\r\n# comment\r\n' >crlf.txt
hn_exits 'BOM, CRLF and comments are fine' 0 -H crlf.txt true

printf 'localhost\nlocalhost\n' >pbs.txt
hn -H pbs.txt --label none sh -c 'echo $WORLD_SIZE'
is 'a repeated plain host adds slots' "$(sort -u "$OUT")" 2

: >empty.txt
hn -H empty.txt true
ok 'a hostfile without hosts is an error' test "$RC" = 65 -o "$RC" = 64

echo 'localhost slots=3' | run "$HNLAUNCH" -H - --label none sh -c 'echo $WORLD_SIZE'
is '-H - reads standard input' "$(sort -u "$OUT")" 3

hn_exits 'hostfile.example works as it is' 0 -H "$ROOT/hostfile.example" --label none sh -c 'echo $WORLD_SIZE'
is 'hostfile.example has four slots here' "$(sort -u "$OUT")" 4
done_testing
