#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch never guesses: what is wrong or missing on the command line is said with what to do.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hn_exits 'no hosts: 64' 64 true
has 'no hosts: --local is offered' "$ERR" --local
has 'no hosts: -H is offered' "$ERR" -H
has 'no hosts: -w is offered' "$ERR" -w
lacks 'no hosts: the error stands once' "$ERR" 'nothing was started'

hn_exits 'the first line of torchrun: 64' 64 --standalone --nproc_per_node=2 true
has 'its number is in the help' "$ERR" 'help: say where to run: --local 2 on this machine'

hn_exits 'nothing at all: 64' 64

hn_exits 'no program: 64' 64 --local 2

hn_exits 'an unknown option: 64' 64 --local 2 --no-such-option true
is 'the unknown option is named, once' "$(cat "$ERR")" \
    $'error[HN701]: unknown option `--no-such-option`\n    = help: hnlaunch --help lists all options'

hn_exits 'a key without a value: 64' 64 -o run.ppn --local 2 true
is 'which is all that is told' "$(cat "$ERR")" 'error[HN717]: -o wants SECTION.KEY=VALUE, not `run.ppn`'

hn_exits 'a misspelt option: 64' 64 --local 2 --graec 5s true
has 'a misspelt option is recognised' "$ERR" --grace

hn_exits 'a duration that is none: 64' 64 --local 2 --grace soon true
has 'it is quoted' "$ERR" soon

hn --local x true
ok 'a word after --local is the program or an error, never a number' test "$RC" = 127 -o "$RC" = 64

hn_exits '-n 0: 64' 64 --local -n 0 true

hn -H 'gpu[001-004]:8' true
ok 'a host list after -H is refused' test "$RC" = 64 -o "$RC" = 66
has 'a host list after -H: -w is offered' "$ERR" -w

hn_exits 'a hostfile that is not there: 66' 66 -H no-such-file true
told_once 'it is named, once' no-such-file
verdict_has 'the last line has the exit code' 'hnlaunch: nothing was started  (exit 66)'

echo 'localhost slots=2' >hosts
hn_exits 'more ranks than slots: 69' 69 --hostfile hosts -n 3 true
has 'more ranks than slots: the numbers are told' "$ERR" HN301
hn_exits '--oversubscribe allows them' 0 --hostfile hosts -n 3 --oversubscribe true

hn_exits 'more ranks than --local N: 69' 69 --local 2 -n 3 true
has 'the next steps are named' "$ERR" 'help: -n 2, --local 3, or --oversubscribe'
hn_exits 'more ranks per node than --local N: 69' 69 --local 2 --ppn 3 true
has 'with a next step' "$ERR" 'help: --ppn 2, or --oversubscribe'
hn_exits 'with --oversubscribe all start' 0 --local 2 -n 3 --oversubscribe true
hn_exits '--local alone starts as many as -n says' 0 --local -n 300 --label none echo up
is 'all of them' "$(grep -c up "$OUT")" 300

hn_exits 'a number that is none: 64' 64 --local=abc true
has 'help on the option is named' "$ERR" 'help: hnlaunch help local tells what it takes'
hn_exits 'a partition: 64' 64 -p gpu --local 2 true
has '-p: what it means, and where a partition is chosen' "$ERR" 'help: -p is the port of ssh; a partition of Slurm is chosen by salloc -p'
hn_exits 'a host that does not exist: 68' 68 -w nosuchhost.invalid true
has 'a next step is named' "$ERR" 'help: check the name with `getent hosts nosuchhost.invalid`'
: >own.config
hn --ssh-config own.config -w nosuchhost.invalid true
has 'in the configuration of this run' "$ERR" 'or give it a HostName in own.config'

hn -w 'localhost,nosuch[1-2].invalid' true
has 'brackets are quoted for a shell' "$ERR" "start without them: --exclude 'nosuch[1-2].invalid'"
has 'ways to start with fewer or other nodes are named' "$ERR" 'help: --nodes 1:3 starts without nodes that fail, --spares N keeps N hosts to replace them'
hn -w 'localhost,nosuch[1-2].invalid' -n 3 true
has '-n goes with one of them' "$ERR" 'help: --spares N keeps N hosts to replace nodes that fail'
hn -w 'localhost,nosuch[1-2].invalid' --nodes 2:3 true
lacks 'a line that has one gets none' "$ERR" 'starts without nodes that fail'
hn -w 'nosuch[1-2].invalid' true
lacks 'nor do nodes that all fail' "$ERR" '--spares'
hn -w 127.0.0.2,127.0.0.3 -p 1 true
has 'a port that no node has: the option for it' "$ERR" 'help: nothing listens on port 1 there: -p PORT (--ssh-port) is that of the ssh servers'
hn -w localhost,127.0.0.2,127.0.0.3 -p 1 true
has 'some nodes refuse' "$ERR" 'connection refused on port 1'
lacks 'and others have it: the port is right' "$ERR" 'nothing listens'
hn_exits 'with --nodes MIN:MAX it starts' 0 -w 'localhost,nosuch.invalid' --nodes 1:2 true

hn_exits 'help on an option with underscores' 0 help nproc_per_node
has 'is that of the option' "$OUT" '--ppn N|gpu|cpu'

hn -w 'a[1-' true
ok 'a broken host list is an error' test "$RC" = 64 -o "$RC" = 65

hn_exits 'ssh.tree_auth alone: 64' 64 -w a -o ssh.tree_auth=forward true
has 'ssh.tree_auth alone: --tree is offered' "$ERR" 'add --tree K'
env -u SSH_AUTH_SOCK "$HNLAUNCH" -w a,b --tree 1 -o ssh.tree_auth=forward true 2>"$ERR"
is 'an ssh-agent that is not there: 77' $? 77
has 'and how to start one' "$ERR" 'eval $(ssh-agent)'
mkdir -p hnlaunch
printf '[ssh]\ntree_auth = forward\n' >hnlaunch/config.ini
XDG_CONFIG_HOME=$PWD hn --local 1 true
exits 'as a setting it waits for a tree' 0

# --- values that are something else ---------------------------------------------------------------
hn_exits 'a hostfile behind -w: 64' 64 -w hosts true
has 'it is recognised' "$ERR" 'error[HN126]: -w takes host names, but hosts is a file'
has '-H is offered' "$ERR" '-H hosts reads the hosts from it'
hn -w ./hosts true
has 'a path behind -w: so is -H' "$ERR" '-H ./hosts reads'
echo 'some log, no hosts' >localhost
hn_exits 'any other file of that name does not matter' 0 -w localhost true
rm localhost

hn_exits 'a number alone behind a blank: 64' 64 -w 'node 001' true
has 'is shown' "$ERR" 'error[HN112]: blanks separate hosts, and a number alone is not a host'
hn_exits 'names with blanks between them are hosts' 0 plan -w "$(printf 'node1\nnode2')" true

hn_exits 'a hostfile that is given twice: 64' 64 -H hosts -H ./hosts true
has 'is told as such' "$ERR" 'error[HN709]: the hostfile ./hosts is given twice'

hn_exits 'an empty name of a program: 64' 64 --local 1 ''
has 'it is told' "$ERR" 'the name of the program is empty'

hn_exits '--stdin with a folder: 66' 66 --local 1 --stdin "$TMP" cat
has 'it is told' "$ERR" "cannot read --stdin $TMP: Is a directory"
for option in --stdin --env-file --push; do
    hn_exits "$option with a file that is not there: 66" 66 --local 1 "$option" nowhere cat
    ok 'the option and the file are named' grep -Eq -- "^error.*$option.*nowhere: No such file" "$ERR"
done

hn --local 1 --label none -x RANK=7 -x MINE=7 sh -c 'echo $RANK $MINE'
is '-x of a variable of each rank changes nothing' "$(cat "$OUT")" '0 7'
has 'and that is said' "$ERR" 'warning[HN127]: -x RANK=7 has no effect: hnlaunch sets RANK for every rank'
lacks 'of others not' "$ERR" MINE
hn --local 1 -x OMP_NUM_THREADS=3 -x NCCL_SOCKET_IFNAME=lo -x CUDA_VISIBLE_DEVICES=0 true
lacks 'nor of those that are set only when they are missing' "$ERR" warning
lacks 'no hosts: the error stands once' "$ERR" 'nothing was started'

hn_exits 'nothing at all: 64' 64
is 'the screen of -h is on standard error' "$(cat "$ERR")" "$("$HNLAUNCH" -h)"
is 'and nothing on standard output' "$(cat "$OUT")" ''
for words in 'logs -h' 'logs --help' 'help logs'; do
    # shellcheck disable=SC2086
    hn_exits "$words: 0" 0 $words
    has 'the help of that command' "$OUT" 'usage: hnlaunch logs [OPTION...] [RUN]'
done
hn help help
lacks 'the help of help has no options of a run' "$OUT" '--'
hn --local 1 --hang-after foo true
has 'the message names never' "$ERR" 'or never, got `foo`'
hn help hang-after
has 'and so does the help' "$OUT" 'look whether they hang; or never'
hn rerun -h
is 'one default of --pty is told' "$(grep -A 1 -e --pty "$OUT" | grep -o '(default' | xargs)" '(default'
hn doctor
has 'a first word that is no program' "$ERR" 'note: `doctor` is taken as the program; hnlaunch has no such command (hnlaunch -h lists them)'
for words in true ./doctor '-n 1 doctor' 'run doctor'; do
    # shellcheck disable=SC2086
    hn $words
    has "$words: no hosts" "$ERR" 'error[HN708]'
    lacks 'a program, a path, and words behind options or run are none' "$ERR" 'taken as the program'
done
for word in kill cancel status list tail rm man docs nodes info; do
    hn_exits "$word, a command of other tools: 64" 64 $word k3f9q
    has 'it leads to that of hnlaunch' "$ERR" "unknown command \`$word\`; it is \`hnlaunch "
done

for topic in 'help foo' '--help=foo' '--help foo'; do
    # shellcheck disable=SC2086
    hn_exits "$topic: 64" 64 $topic
    has 'it tells where the topics are' "$ERR" 'hnlaunch -h shows commands and topics'
done

hn_exits '--spares auto with all hosts in use: a warning' 0 plan -w a,b --spares auto
has 'it tells what the option takes' "$ERR" 'warning[HN704]: --spares auto takes the hosts behind --nodes N or -n N, and neither is given'
has 'and what to write' "$ERR" 'help: --spares N takes the last N hosts'
printf 'a slots=1\nb slots=1 spare\n' >spare
for words in '-w a,b --nodes 1 --spares auto' '-w a:1,b:1 -n 1 --spares auto' '-H spare --spares auto' '-w a,b -o run.spares=1'; do
    # shellcheck disable=SC2086
    hn_exits "plan $words" 0 plan $words
    lacks 'hosts stand by' "$ERR" 'spares auto'
done
HNLAUNCH_RUN_SPARES=auto hn plan -w a,b
lacks 'a setting for all runs does not warn' "$ERR" 'spares auto'

# --- commands -----------------------------------------------------------------------------------
echo 'localhost slots=1' >one
mkdir -p set
mkdir -p "$XDG_CONFIG_HOME/hnlaunch"
printf '[run]\nhostfile = %s\n' "$PWD/one" >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
hn_exits 'a misspelt command: 64' 64 plna --ppn 1
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
hn_exits 'run ps starts ps' 0 run ps
hn_exits 'without one commands come first: 64' 64 -w nowhere.invalid plan
has 'and that is said before a node is contacted' "$ERR" 'error[HN706]: `plan` is a command, and commands come first'
hn_exits 'run and a word is a program that is not there: 127' 127 run plna
hn_exits 'commands of other launchers are programs: 127' 127 submit
rm "$XDG_CONFIG_HOME/hnlaunch/config.ini"

for page in -h --help --version -V; do
    hn_exits "$page succeeds" 0 "$page"
    ok "$page speaks on stdout" test -s "$OUT"
done
hn -h
ok '-h fits on one screen' test "$(wc -l <"$OUT")" -le 24

# --- help ---------------------------------------------------------------------------------------
help_at() { # COLUMNS [WORD...]
    script -qefc "stty cols $1; '$HNLAUNCH' ${*:2}" /dev/null </dev/null | tr -d '\r'
}
help_at 80 --help >help80
is '--help is folded to the terminal' "$(awk 'length > 80' help80)" ''
hn --help
ok 'and is whole elsewhere' test "$(awk 'length > 80' "$OUT" | wc -l)" -gt 9
is 'both have the same words' "$(xargs -d '\n' <help80 | tr -s ' ')" "$(xargs -d '\n' <"$OUT" | tr -s ' ')"
for page in -h 'help hostfile' 'help env' 'help exit' 'help config' 'help logs' 'help run' 'help --ppn' explain --help; do
    # shellcheck disable=SC2086 # the page has words
    help_at 40 $page >help40
    is "no line of $page is wider than 40 columns" "$(awk 'length > 40' help40)" ''
    is '... or ends with a blank' "$(grep ' $' help40)" ''
    # shellcheck disable=SC2086
    hn $page
    is '... and it has the same letters' "$(tr -d ' \n' <help40)" "$(tr -d ' \n' <"$OUT")"
done
done_testing
