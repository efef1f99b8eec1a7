#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch never guesses: what is wrong or missing on the command line is said with what to do.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hn true
exits 'no hosts: 64' 64
has 'no hosts: --local is offered' "$ERR" --local
has 'no hosts: -H is offered' "$ERR" -H
has 'no hosts: -w is offered' "$ERR" -w

hn
exits 'nothing at all: 64' 64

hn --local 2
exits 'no program: 64' 64

hn --local 2 --no-such-option true
exits 'an unknown option: 64' 64
has 'the unknown option is named' "$ERR" no-such-option

hn --local 2 --graec 5s true
exits 'a misspelt option: 64' 64
has 'a misspelt option is recognised' "$ERR" --grace

hn --local 2 --grace soon true
exits 'a duration that is none: 64' 64
has 'it is quoted' "$ERR" soon

hn --local x true
ok 'a word after --local is the program or an error, never a number' test "$RC" = 127 -o "$RC" = 64

hn --local -n 0 true
exits '-n 0: 64' 64

hn -H 'gpu[001-004]:8' true
ok 'a host list after -H is refused' test "$RC" = 64 -o "$RC" = 66
has 'a host list after -H: -w is offered' "$ERR" -w

hn -H no-such-file true
exits 'a hostfile that is not there: 66' 66
has 'it is named' "$ERR" no-such-file

echo 'localhost slots=2' >hosts
hn --hostfile hosts -n 3 true
exits 'more ranks than slots: 69' 69
has 'more ranks than slots: the numbers are told' "$ERR" HN301
hn --hostfile hosts -n 3 --oversubscribe true
exits '--oversubscribe allows them' 0

hn -w 'a[1-' true
ok 'a broken host list is an error' test "$RC" = 64 -o "$RC" = 65

hn -w a --tree-auth forward true
exits '--tree-auth alone: 64' 64
has '--tree-auth alone: --tree is offered' "$ERR" 'add --tree K'
env -u SSH_AUTH_SOCK "$HNLAUNCH" -w a,b --tree 1 --tree-auth forward true 2>"$ERR"
is 'an ssh-agent that is not there: 77' $? 77
has 'and how to start one' "$ERR" 'eval $(ssh-agent)'
mkdir -p hnlaunch
printf '[ssh]\ntree_auth = forward\n' >hnlaunch/config.ini
XDG_CONFIG_HOME=$PWD hn --local 1 true
exits 'as a setting it waits for a tree' 0

# --- commands -----------------------------------------------------------------------------------
echo 'localhost slots=1' >one
mkdir -p set
printf '[run]\nhostfile = %s\n' "$PWD/one" >.hnlaunch.ini
hn plna --ppn 1
exits 'a misspelt command: 64' 64
has 'it is named, and what was meant' "$ERR" 'error[HN706]: unknown command `plna`; did you mean `plan`?'
lacks 'nothing was contacted' "$ERR" 'hnlaunch: run '
printf '#!/bin/sh\necho mine\n' >plna
chmod +x plna
hn plna
is 'a program of that name in this folder is started' "$(cat "$OUT")" mine
(cd set && PATH=$PWD/..:$PATH hn -w localhost plna && cp "$OUT" ../out)
is 'and one in PATH' "$(cat out)" mine
mv plna plan
hn plan
has 'a first word that is a command is that command' "$OUT" 'nodes not contacted'
hn run plan
is 'behind run it is the program' "$(cat "$OUT")" mine
hn --quiet plan
is 'behind options it is the program, when there is one' "$(cat "$OUT")" mine
rm plan
hn run ps
exits 'run ps starts ps' 0
hn -w nowhere.invalid plan
exits 'without one commands come first: 64' 64
has 'and that is said before a node is contacted' "$ERR" 'error[HN706]: `plan` is a command, and commands come first'
hn run plna
exits 'run and a word is a program that is not there: 127' 127
hn check
exits 'commands of other launchers are programs: 127' 127
rm .hnlaunch.ini

for page in -h --help --version -V; do
    hn "$page"
    exits "$page succeeds" 0
    ok "$page speaks on stdout" test -s "$OUT"
done
hn -h
ok '-h fits on one screen' test "$(wc -l <"$OUT")" -le 24
done_testing
