#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --job FILE: settings and a program from a file that the user names; plan, config, rerun and records with it; files that
# are none.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

json() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($1)" "${2-$OUT}"; } # EXPRESSION [FILE]

args() { # prints the arguments of the program of $1, one a line in brackets
    printf '[run]\nlocal = 1\nprogram = %s\n' "$1" >job
    hn --label none --job job
    cat "$OUT"
}

# --- the program
is 'words are split as by a shell' "$(args "printf [%s] a  'b  c' \"d 'e'\" f\\ g '' \"\\d\\\"\"")" "[a][b  c][d 'e'][f g][][\\d\"]"
is 'comments of the file do not end it' "$(args 'printf [%s] a ; b # c ;d')" '[a][;][b][#][c][;d]'
is 'nothing is expanded' "$(HN_X=1 args 'printf [%s] $HN_X ~ *.x `id` $(id) a|b >c')" '[$HN_X][~][*.x][`id`][$(id)][a|b][>c]'
long=$(printf 'x%.0s' {1..1000})

words=$(for i in {1..150}; do printf ' %s%s' "$long" "$i"; done)
is 'it may be long' "$(args "printf %s,$words" | tr ',' '\n' | md5sum)" "$(tr -s ' ' '\n' <<<"$words" | sed 1d | md5sum)"
is 'and have many words' "$(args "sh -c 'echo \$#' x $(seq -s ' ' 70000)")" 70000
printf '\357\273\277# job\r\n[run]\r\nlocal = 1\r\n  program : echo  "a b" \r\n' >job
hn --label none --job job
is 'BOM, CRLF and a colon are fine' "$(cat "$OUT")" 'a b'
printf '[run]\nlocal = 2\nprogram = echo file\n' >job
hn --label none --job job echo line
is 'a program on the command line replaces it, the settings stay' "$(xargs <"$OUT")" 'line line'
printf '[run]\nlocal = 1\nsubst = yes\nprogram = echo {rank} of {num_nodes}\n' >job
hn --label none --job job
is 'place-holders are those of any program' "$(cat "$OUT")" '0 of 1'
printf '[run]\nlocal = 1\nprogram = plan\n' >job
printf '#!/bin/sh\necho mine\n' >plan
chmod +x plan
PATH=$PWD:$PATH hn --label none --job job
is 'it may have the name of a command' "$(cat "$OUT")" mine

# --- paths
mkdir -p jobs/sub here
printf 'localhost slots=2\n' >jobs/hosts
printf 'VALUE=filed\n' >jobs/vars
echo text >jobs/in
cat >jobs/job <<'END'
[run]
hostfile = hosts
stdin = in
program = sh -c 'read -r line; echo "$VALUE $line ${PWD##*/}"'
[env]
file = vars
[log]
dir = logs
END
(cd here && hn --label none --job ../jobs/job)
is "paths start at the file, ranks in the shell's folder" "$(sort "$OUT")" "$(printf 'filed  here\nfiled text here')"
ok 'records too' test -d jobs/logs/latest
printf '[run]\nlocal = 1\nchdir = sub\nprogram = pwd\n' >jobs/job
hn --label none --job jobs/job
is 'chdir too' "$(cat "$OUT")" "$PWD/jobs/sub"
ln -s jobs/job linked
hn --job linked
has 'the folder of a link is its own' "$ERR" "$PWD/sub"

# --- plan and config
printf '[run]\nlocal = 2\nnp = 1\nprogram = echo "a b"\n' >job
hn_exits 'plan' 0 plan --job job
has 'plan has the program' "$OUT" "echo 'a b'"
hn_exits 'config' 0 config --job job
ok 'config tells where values are from' grep -Eq '^run.np +1 +job:3$' "$OUT"
ok 'and the program' grep -Eq '^run.program +echo "a b" +job:4$' "$OUT"
hn config --job job ./other x
ok 'one on the command line counts' grep -Eq '^run.program +./other x +command line$' "$OUT"
has 'before that of the file' "$OUT" 'instead of echo "a b", job:4'
hn config --json --job job
is 'as JSON' "$(json 'd["run.program"]["value"] + " " + d["run.program"]["origin"]')" 'echo "a b" job:4'
printf '[run]\nnp = 1\n' >$'odd\033job'
hn config --job $'odd\033job'
is 'the name of a file is escaped' "$RC $(grep -c $'\033' "$OUT")" '0 0'
hn config
lacks 'without a job file there is no such key' "$OUT" run.program

# --- once more
printf '[run]\nprogram = sh -c "echo $RANK of $WORLD_SIZE in ${PWD##*/}"\n' >jobs/job
(cd here && hn --local 3 -x TOKEN=secret -x OTHER=hidden --job ../jobs/job)
cp "$(find "$XDG_STATE_HOME" -name run.json -newer jobs/job)" run.json
is 'the records have the words of the line' "$(json '" ".join(d["line"])' run.json)" '--local 3 -x TOKEN -x OTHER --job ../jobs/job'
is 'and the program' "$(json 'd["argv"][0]' run.json)" sh
id=$(json 'd["run"]' run.json)
hn_exits 'rerun' 0 rerun "$id"
is 'runs it again, in its folder' "$(sed 's/.*| //' "$OUT" | sort)" "$(printf '%s of 3 in here\n' 0 1 2)"
hn rerun --ranks 1 "$id"
is 'rerun --ranks' "$RC $(sed 's/.*| //' "$OUT")" '0 1 of 3 in here'
has 'behind all other options' "$ERR" '--job ../jobs/job --ranks 1'

# --- mistakes
printf '[run]\nlocal = 1\n' >job
hn_exits 'no program: 64' 64 --job job
has 'where it belongs is told' "$ERR" 'name it in [run] of the job file: program = ./a.out'
hn true --job job
has 'behind the program it is not an option' "$ERR" '`--job` after `true` was passed to true'
hn --local 1
has 'a job file is an answer to a missing program' "$ERR" 'hnlaunch --job FILE, with program = ./a.out ARGS... in [run]'
printf '[run]\nlocal = 1\nprogram = echo "a\n' >job
hn_exits 'an open quote: 78' 78 --job job
has 'the place' "$ERR" 'job:3:11'
has 'the line' "$ERR" '3 | program = echo "a'
has 'the mark' "$ERR" '  ^^^^^^^'
printf '[run]\nlocal = 1\nprogram = touch started\n[trainer]\nnp = 4\n[env]\n' >job
hn_exits 'an unknown section: 78' 78 --job job
has 'its place' "$ERR" 'job:4:2'
ok 'nothing was started' test ! -e started
hn_exits 'no file: 66' 66 --job nowhere/job true
has 'is told' "$ERR" 'error[HN720]: cannot read the job file nowhere/job: No such file or directory'
hn --job jobs true
is 'a folder' "$RC $(grep -c 'error\[HN720\].* Is a directory' "$ERR")" '66 1'
mkfifo pipe
hn --job pipe true
is 'a FIFO without a writer' "$RC $(grep -c 'error\[HN720\].* is not a regular file' "$ERR")" '66 1'
hn --job <(echo '[run]') true
is 'a pipe' "$RC $(grep -c 'help: write it to a file' "$ERR")" '66 1'
hn --job - true <job
is 'standard input' "$RC $(grep -c 'error\[HN721\]: --job cannot read standard input' "$ERR")" '64 1'
hn --job '' true
is 'no name' "$RC $(grep -c 'error\[HN721\]: --job needs a file' "$ERR")" '64 1'
hn --job job --job=job true
is 'twice' "$RC $(grep -c 'error\[HN721\]: two job files' "$ERR")" '64 1'
hn --job
is 'no word' "$RC $(grep -c 'error.*needs a file' "$ERR")" '64 1'
for words in ps 'stop x' 'logs x' 'rerun x' 'why x'; do
    # shellcheck disable=SC2086
    hn ${words%% *} --job job ${words#"${words%% *}"}
    is "$words --job" "$RC $(grep -c 'error\[HN721\]: --job is an option of run, plan, check and config' "$ERR")" '64 1'
done
printf '[run]\nlo\0cal = 1\nx\0\n' >job
hn --job job true
is 'NUL bytes' "$RC $(grep -c 'error\[HN713\]: a NUL byte' "$ERR")" '78 1'
printf '[run]\nlocal = 1\n[env\nset.A = 1\n' >job
hn --job job
is 'a section without its end, and no key of it as one of another' "$RC $(grep -c '^error' "$ERR"):$(grep -c 'HN713' "$ERR")" '78 1:1'
printf '[run]\nlocal = 1\nprogram = true\n' | iconv -f UTF-8 -t UTF-16 >job
hn --job job
is 'UTF-16' "$RC $(grep -c 'error\[HN713\]: job is written in UTF-16' "$ERR")" '78 1'
mkdir -p "$XDG_CONFIG_HOME/hnlaunch"
printf '[run]\nprogram = touch started\n' >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
hn --local 1 true
is "the user's file names no program" "$RC $(grep -c 'error\[HN722\]: only a job file may name the program' "$ERR")" '78 1'
rm "$XDG_CONFIG_HOME/hnlaunch/config.ini"
HNLAUNCH_RUN_PROGRAM=x hn --local 1 true
is 'nor does a variable' "$RC $(grep -c 'warning\[HN711\]: unknown variable HNLAUNCH_RUN_PROGRAM' "$ERR")" '0 1'
done_testing
