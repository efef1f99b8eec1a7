#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# user's file < job file < HNLAUNCH_* < command line; `config` tells where a value is from.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

ranks() { # ARG...: how many ranks a launch has
    hn "$@" --label none sh -c 'echo "$WORLD_SIZE"'
    sort -u "$OUT"
}

echo 'localhost slots=8' >hosts.txt
mkdir -p "$XDG_CONFIG_HOME/hnlaunch"
printf '[run]\nnp = 2\n' >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
is 'a file of the user' "$(ranks -H hosts.txt)" 2
printf '[run]\nnp = 3\n' >job
is 'a job file beats it' "$(ranks -H hosts.txt --job job)" 3
export HNLAUNCH_RUN_NP=4
is 'a variable beats both' "$(ranks -H hosts.txt --job job)" 4
is 'an option beats all' "$(ranks -H hosts.txt -n 5 --job job)" 5
is '-o is an option, too' "$(ranks -H hosts.txt -o run.np=6 --job job)" 6

hn_exits 'config succeeds' 0 config --job job
has 'config tells the value and its origin' "$OUT" HNLAUNCH_RUN_NP
has 'and what it replaces' "$OUT" 'instead of 3, job:2'
unset HNLAUNCH_RUN_NP

printf '[run]\nhostfile = hosts.txt\n' >job
hn plan --job job -w gpu7:3 true
ok 'hosts on the command line replace the file of a setting' grep -Eq ' 0 +gpu7 +0-1 +2/3 ' "$OUT"
lacks 'and choose nothing from it' "$OUT" localhost
HNLAUNCH_RUN_HOSTS=gpu8:2 hn plan --job job true
has 'so does a variable' "$OUT" gpu8
printf '[run]\nhosts = localhost:2\n' >>job
hn plan --job job true
ok 'in one place the list chooses from the file' grep -Eq ' 0 +localhost +0-1 +2/2 .*hosts.txt:1' "$OUT"

user=$XDG_CONFIG_HOME/hnlaunch/config.ini
printf '[run]\ngarce = 3s\n' >"$user"
hn_exits 'an unknown key is only a warning' 0 --local 1 true
has 'an unknown key gets a suggestion' "$ERR" grace
hn_exits 'run.strict_config makes it an error: 78' 78 -o run.strict_config=yes --local 1 true

printf 'ppn = 2\n' >"$user"
hn --local 1 true
has 'a key without its section: where it belongs' "$ERR" 'put it under [run]'

printf '[run]\ngrace = soon\nppn = 8\n[ssh]\nport = x\n' >"$user"
hn_exits 'config with errors in a file: 78' 78 config
ok 'config shows what is valid' grep -Eq '^run.ppn +8 +.*/config.ini:3$' "$OUT"
ok 'config marks what is not' grep -Eq '^run.grace +soon +.*/config.ini:2, not valid$' "$OUT"
has 'and the errors come with it' "$ERR" "$user:5:8"

printf '[run]\nppn = 8\n[env]\npass = A, B\n' >"$user"
hn_exits 'a wrong command line: 64, and no table' 64 config --map both
is 'no table' "$(wc -c <"$OUT")" 0
hn_exits 'config --json succeeds' 0 config --json -n 5 -x MY_TOKEN=hush
is 'it has values with their origins' "$(python3 -c 'import json, sys
c = json.load(sys.stdin)
assert c["v"] == 1
print(c["run.np"], c["run.ppn"]["origin"].split("/")[-1], c["run.nodes"], c["run.hosts"])
print([e["value"] for e in c["env.pass"]])' <"$OUT")" "{'value': '5', 'origin': '-n'} config.ini:2 {'value': None, 'origin': None} []
['A', 'B', 'MY_TOKEN=***']"

hn_exits 'config KEY...' 0 config run.ppn env.pass
is 'shows these keys only' "$(awk '{ print $1 }' "$OUT")" $'KEY\nrun.ppn\nenv.pass\nB'
hn config run.ppn --json
is 'in JSON, too' "$(python3 -c 'import json, sys; print(sorted(json.load(sys.stdin)))' <"$OUT")" "['run.ppn', 'v']"
hn_exits 'a word that is nearly a key: 64' 64 config run.hots
has 'is told with the key' "$ERR" 'error[HN711]: unknown key `run.hots`'
has 'which is near' "$ERR" 'help: did you mean `run.hosts`?'
hn config run.ppn true
ok 'other words are a program' test "$(wc -l <"$OUT")" -gt 50
for words in 'set run.timeout 5' 'set run.timeout=5'; do
    # shellcheck disable=SC2086
    hn config $words
    exits "config $words: 64" 64
    is 'no table' "$(cat "$OUT")" ''
    has 'config only shows' "$ERR" 'error[HN808]: `config` only shows settings: no `set`'
    has 'the line and the file' "$ERR" "help: write to $user, below [run]: timeout = 5"
    has 'and the variable' "$ERR" 'help: or for this shell: export HNLAUNCH_RUN_TIMEOUT=5'
done
printf '[run]\ntimeout = 5\n' >"$user"
hn config run.timeout
has 'that line is taken' "$OUT" 'config.ini:2'
HNLAUNCH_RUN_TIMEOUT=6 hn config run.timeout
has 'and that variable' "$OUT" '$HNLAUNCH_RUN_TIMEOUT'
hn config set env.set.Path 'a b'
has 'the case of a variable of the ranks stays, and blanks are quoted' "$ERR" "export 'HNLAUNCH_ENV_SET_Path=a b'"
hn config set
has 'without words the form is shown' "$ERR" 'below [SECTION]: KEY = VALUE'
hn_exits 'config get: 64' 64 config get run.timeout
has 'the line without it' "$ERR" 'help: hnlaunch config run.timeout'
printf '#!/bin/sh\n' >get
hn_exits 'a program of that name is one' 0 config get run.timeout
rm get
hn config -h
has 'the help has it' "$OUT" 'hnlaunch config [KEY...] shows the keys named'

printf '[run]\ngrace = soon\n' >"$user"
hn_exits 'a wrong value: 78' 78 --local 1 true
has 'a wrong value: its place' "$ERR" "$user:2:9"
done_testing
