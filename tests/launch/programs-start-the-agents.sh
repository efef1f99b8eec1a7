#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --start-with TEMPLATE: any program that joins its stdin and stdout to a command on a node starts the agents. The nodes are
# chroots without a network here, and what goes wrong is told in the program's own words.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# A way to "nodes": folders that are the homes of what runs there. As rsh does, it gives the words to a shell.
mkdir 'node a' node-b
cat >enter <<'END'
#!/bin/sh
[ -d "$1" ] || { echo "enter: no such node: $1" >&2; exit 3; }
cd "$1" || exit
export HOME="$PWD" XDG_CACHE_HOME="$PWD/cache" NODE="$1"
shift
exec sh -c "$*"
END
chmod +x enter

hn --start-with './enter "node {host}"' -w a:2 --ssh-config nope --label none sh -c 'echo "$RANK $HOME"'
exits 'the options of ssh do not count' 66
hn --start-with './enter "node {host}"' -w a:2 --label none sh -c 'echo "$RANK ${HOME##*/}"'
exits 'a program with a name of two words: 0' 0
is 'ranks run where the program starts them' "$(sort "$OUT" | paste -sd,)" '0 node a,1 node a'
ok 'the agent was sent' test -n "$(ls 'node a/cache/hnlaunch')"
hn --start-with './enter {host}' -w node-b --label none sh -c 'head -c 3000000 /dev/urandom | tee sent; exit 7'
exits "a rank's exit code arrives" 7
same 'three megabytes of all bytes arrive' "$OUT" sent
printf '\0\1\n\xff end' >given
hn --start-with './enter {host}' -w node-b --label none --stdin given cat
same 'and standard input' "$OUT" given
hn plan --start-with './enter {host}' -w node-b -n 1 true
has 'the plan shows it' "$OUT" 'agents    --start-with ./enter {host}'
hn plan --json=plan --start-with './enter {host}' -w node-b -n 1 true
is 'also as JSON' "$(python3 -c 'import json; print(json.load(open("plan"))["via"])')" './enter {host}'

hn_exits 'a program that ends at once: 69' 69 --start-with './enter {host}' -w node-b,node-c true
has 'its code is told' "$ERR" 'enter ended with exit code 3'
has 'and its words' "$ERR" 'enter: no such node: node-c'
hn_exits 'a program that starts no shell: 69' 69 --start-with 'cat {host}' -w given true
has 'its bytes are shown' "$ERR" 'end'
hn_exits 'no {host}: 64' 64 --start-with './enter node-b' -w node-b true
has 'that is told' "$ERR" 'error[HN340]: cannot use --start-with: ./enter node-b has no {host} for the name of the node'
hn_exits 'an open quote: 64' 64 --start-with './enter "{host}' -w node-b true
has 'it is told' "$ERR" 'error[HN340]: cannot use --start-with: a " is not closed'
hn_exits 'a missing program: 127' 127 --start-with 'no-such-program {host}' -w node-b true
has 'it is named' "$ERR" 'error[HN342]: cannot start `no-such-program`, which starts the agents: not found in PATH'
hn_exits 'one that cannot be executed: 126' 126 --start-with './given {host}' -w node-b true
hn_exits 'beside --tree: 64' 64 --start-with './enter {host}' --tree 2 -w node-b true
has 'the reason is told' "$ERR" 'error[HN341]: --tree and --start-with ./enter {host} exclude each other'
hn_exits 'srun outside a job of Slurm: 69' 69 --start-with srun -w node-b true
has 'it is told' "$ERR" 'error[HN343]: cannot use --start-with srun: this is no job of Slurm (SLURM_JOB_ID is not set)'
hn_exits 'a login that is not used' 0 --start-with './enter {host}' -w me@node-b true
has 'is a warning' "$ERR" 'warning[HN344]: the user of node-b is not used: --start-with ./enter {host} does not log in by ssh'
hn --start-with ssh --ssh-command ./no-ssh -w node-b true
has '--start-with ssh is ssh' "$ERR" HN213

# A program that hangs is ended with the launch.
hn --start-with "sh -c 'echo \$\$ >hangs; exec sleep 600' {host}" -w node-b --start-timeout 1s true
exits 'a program that hangs: 69' 69
ended() { ! kill -0 "$(cat hangs)"; }
ok 'it does not outlive the launch' wait_for ended

mkdir "$XDG_CONFIG_HOME/hnlaunch"
printf '[run]\nvia = %s/enter {host}\n' "$PWD" >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
hn -w node-b --label none sh -c 'echo "$NODE"'
is 'the configuration may name it' "$(cat "$OUT")" node-b
hn --start-with ssh --ssh-command ./no-ssh -w node-b true
has 'the command line wins' "$ERR" HN213
nothing_left 'nothing is left'
done_testing
