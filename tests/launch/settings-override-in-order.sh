#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# user's file < project's file < HNLAUNCH_* < command line; `config` tells where a value is from.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

ranks() { # ARG...: how many ranks a launch has
    hn "$@" --label none sh -c 'echo "$WORLD_SIZE"'
    sort -u "$OUT"
}

echo 'localhost slots=8' >hosts.txt
mkdir -p "$XDG_CONFIG_HOME/hnlaunch"
printf '[run]\nnp = 2\n' >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
is 'a file of the user' "$(ranks -H hosts.txt)" 2
printf '[run]\nnp = 3\n' >.hnlaunch.ini
is 'a file of the project beats it' "$(ranks -H hosts.txt)" 3
export HNLAUNCH_RUN_NP=4
is 'a variable beats both' "$(ranks -H hosts.txt)" 4
is 'an option beats all' "$(ranks -H hosts.txt -n 5)" 5
is '-o is an option, too' "$(ranks -H hosts.txt -o run.np=6)" 6

hn config
exits 'config succeeds' 0
has 'config tells the value and its origin' "$OUT" HNLAUNCH_RUN_NP
unset HNLAUNCH_RUN_NP

mkdir -p sub/deeper
cd sub/deeper || exit 1
is 'the project file is found from below' "$(ranks -H ../../hosts.txt)" 3
cd ../..

printf '[run]\nhostfile = hosts.txt\n[env]\nset.NCCL_DEBUG = WARN\n' >.hnlaunch.ini
hn --label none sh -c 'echo "$NCCL_DEBUG"'
is 'a project may name its hostfile and set harmless variables' "$(sort -u "$OUT")" WARN

printf '[run]\nhostfile = hosts.txt\n' >.hnlaunch.ini
hn plan -w gpu7:3 true
ok 'hosts on the command line replace the file of a setting' grep -Eq ' 0 +gpu7 +0-1 +2/3 ' "$OUT"
lacks 'and choose nothing from it' "$OUT" localhost
HNLAUNCH_RUN_HOSTS=gpu8:2 hn plan true
has 'so does a variable' "$OUT" gpu8
printf '[run]\nhosts = localhost:2\n' >>.hnlaunch.ini
hn plan true
ok 'in one place the list chooses from the file' grep -Eq ' 0 +localhost +0-1 +2/2 .*/hosts.txt:1' "$OUT"

printf '[env]\nset.LD_PRELOAD = ./evil.so\n' >.hnlaunch.ini
hn --local 1 true
exits 'a project may not set variables that run code: 78' 78
has 'the way out is told, to be pasted' "$ERR" "directory = $PWD"
printf '[safe]\ndirectory = %s\n' "$PWD" >>"$XDG_CONFIG_HOME/hnlaunch/config.ini"
printf '[env]\nset.ANYTHING = yes\n' >.hnlaunch.ini
hn --local 1 --label none sh -c 'echo "$ANYTHING"'
is 'a project that the user trusts may' "$(sort -u "$OUT")" yes
printf '[run]\nnp = 2\n' >"$XDG_CONFIG_HOME/hnlaunch/config.ini"

printf '[run]\ngarce = 3s\n' >.hnlaunch.ini
hn --local 1 true
exits 'an unknown key is only a warning' 0
has 'an unknown key gets a suggestion' "$ERR" grace
hn --strict-config --local 1 true
exits '--strict-config makes it an error: 78' 78

printf 'ppn = 2\n' >.hnlaunch.ini
hn --local 1 true
has 'a key without its section: where it belongs' "$ERR" 'put it under [run]'

printf '[run]\ngrace = soon\nppn = 8\n[ssh]\nuser = eve\n' >.hnlaunch.ini
hn config
exits 'config with errors in a file: 78' 78
ok 'config shows what is valid' grep -Eq '^run.ppn +8 +.*/.hnlaunch.ini:3$' "$OUT"
ok 'config marks what is not' grep -Eq '^run.grace +soon +.*/.hnlaunch.ini:2, not valid$' "$OUT"
ok 'config leaves out what is refused' grep -Eq '^ssh.user +- +$' "$OUT"
has 'and the errors come with it' "$ERR" '.hnlaunch.ini:5'

printf '[run]\nppn = 8\n[env]\npass = A, B\n' >.hnlaunch.ini
hn config --map both
exits 'a wrong command line: 64, and no table' 64
is 'no table' "$(wc -c <"$OUT")" 0
hn config --json -n 5 -x MY_TOKEN=hush
exits 'config --json succeeds' 0
is 'it has values with their origins' "$(python3 -c 'import json, sys
c = json.load(sys.stdin)
assert c["v"] == 1
print(c["run.np"], c["run.ppn"]["origin"].split("/")[-1], c["run.nodes"], c["run.hosts"])
print([e["value"] for e in c["env.pass"]])' <"$OUT")" "{'value': '5', 'origin': '-n'} .hnlaunch.ini:2 {'value': None, 'origin': None} []
['A', 'B', 'MY_TOKEN=***']"

printf '[run]\ngrace = soon\n' >.hnlaunch.ini
hn --local 1 true
exits 'a wrong value: 78' 78
has 'a wrong value: its place' "$ERR" .hnlaunch.ini:2

printf '[ssh]\nhost_key = accept-new\n' >.hnlaunch.ini
hn --local 1 true
ok 'a project file may not loosen trust' grep -q host_key "$ERR"
done_testing
