#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `hnlaunch check` compares nodes with each other and with limits, and tells which are not fit. Each node is an agent of this
# machine, whose login sets a fault before the agent starts.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

cat >login <<'END'
#!/bin/bash
host=${*: -2:1}
[[ ! -e fault.$host ]] || . "./fault.$host"
exec sh -c "${*: -1}"
END
chmod +x login
export XDG_RUNTIME_DIR=$TMP/runtime XDG_CACHE_HOME=$TMP/cache
mkdir -m 700 "$XDG_RUNTIME_DIR"
check() { hn check --ssh-command "$PWD/login" "$@"; }
result() { # HOST CHECK: its result, value and cause in $OUT
    python3 -c '
import json, sys
for node in json.load(open(sys.argv[1]))["nodes"]:
    for c in node["checks"]:
        if [node["host"], c["name"]] == sys.argv[2:]:
            print(c["result"], c["value"], c["cause"], sep="|")' "$OUT" "$@"
}
# Checks of this machine that are no concern of the test may warn: only those of the faults are compared.
files=$(ulimit -Hn)

# --- limits that differ
echo 'ulimit -n 1000' >fault.n2
exits 'a warning is no failure' 0 check -w n1,n2,n3 --json
is 'a node with few open files is named' "$(result n2 limit.files)" 'warn|1000|n2 allows a process 1000 open files'
is 'the others pass' "$(result n1 limit.files)" "pass|$files|"
exits '--strict makes it one' 69 check -w n1,n2,n3 --json --strict
is '... of that node' "$(result n2 limit.files)" 'fail|1000|n2 allows a process 1000 open files'
echo "ulimit -n $((files - 1))" >fault.n2
check -w n1,n2,n3
ok 'a value of its own is told beside that of the others' \
    grep -qE "^limit.files +warn +1 +n2: $((files - 1)), 2 others have $files\$" "$OUT"
ok '... and the others have a row' grep -qE "^ +pass +2 +$files\$" "$OUT"
has '... with a next step' "$OUT" 'help: limit.files: raise nofile'
rm fault.n2

# --- the program
cat >a.out <<'END'
#!/bin/sh
exit 0
END
chmod +x a.out
check -w n1,n2 --json ./a.out
is 'a program that all nodes have' "$(result n1 program | sed 's/, [0-9a-f]*//')" 'pass|17 bytes|'
is 'the working directory' "$(result n2 workdir)" 'pass|there|'
is 'without a script' "$(result n1 script)" 'not run||the program is no interpreter with a script'
exits 'a missing program fails' 69 check -w n1,n2 --json ./gone
is '... on each node' "$(result n2 program)" 'fail|missing|n2 has no usable program: it is missing'
verdict_has 'the last line counts' '1 check failed on 2 of 2 nodes' '(exit 69)'
check -w n1,n2 --json --chdir /nowhere ./a.out
is 'a missing working directory fails' "$(result n1 workdir)" 'fail|missing|n1 has no usable working directory: it is missing'
mkdir bin1 bin2
printf '#!/bin/sh\n' >bin1/tool
printf '#!/bin/sh\n# another\n' >bin2/tool
chmod +x bin1/tool bin2/tool
echo "PATH=$PWD/bin2:\$PATH" >fault.n3
echo "PATH=$PWD/bin1:\$PATH" >fault.n1
cp fault.n1 fault.n2
check -w n1,n2,n3 --json --export NONE tool
ok 'a program with other contents fails' grep -q '^fail|20 bytes, .*|n3 has this program: 20 bytes' <<<"$(result n3 program)"
is '... on that node only' "$(result n1 program | cut -d'|' -f1)" pass
rm fault.*
echo 'print(1)' >train.py
check -w n1 --json python3 -u train.py --config gone.yaml
is 'the script of an interpreter is looked at' "$(result n1 script | sed 's/, [0-9a-f]*//')" 'pass|9 bytes|'
check -w n1 --json python3 gone.py
is '... a missing one fails' "$(result n1 script)" 'fail|missing|n1 has no usable script: it is missing'
for words in 'bash -lc true' 'bash -s one' 'python3 -uc pass' 'python3 -um json.tool' 'perl -e 1'; do
    # shellcheck disable=SC2086
    check -w n1 --json $words
    is "$words has no script" "$(result n1 script | cut -d'|' -f1)" 'not run'
done
for words in 'bash --rcfile other gone.sh' 'bash -o pipefail gone.sh' 'python3 -W ignore gone.py' 'perl -I other gone.pl'; do
    # shellcheck disable=SC2086
    check -w n1 --json $words
    is "$words: the script is the last word" "$(result n1 script | cut -d'|' -f1,2)" 'fail|missing'
done
check -w n1 --json --push a.out ./a.out
is 'pushed files are not looked for' "$(result n1 program)" 'not run||--push brings the files with the job'

# --- leftovers
: >killed
HN_STORE=$XDG_RUNTIME_DIR/hnlaunch-abcdef/store sleep 1000 &
left=$!
check -w n1 --json
ok 'a process whose agent is gone is told' grep -q "^warn|.*process.* (pid $left sleep)" <<<"$(result n1 leftovers)"
kill "$left"
comes_up 'a run goes on' 1 start --local 1 --label none sh -c 'echo up; exec sleep 1000'
"$HNLAUNCH" check --local 1 --json >checked 2>/dev/null
not_left() { ! grep -A2 '"leftovers"' checked | grep -q process; }
ok '... and is no leftover' not_left
finish_by INT

# --- nodes without a link
printf 'echo "no route to host" >&2\nexit 255\n' >fault.n2
exits 'a node that cannot be reached fails' 69 check -w n1,n2 --json=out.json --connect-timeout 3s
cp out.json "$OUT"
is '... and is named' "$(result n2 reach | cut -d'|' -f1)" fail
is '... its other checks are not run' "$(result n2 kernel)" 'not run||the node was not reached'
is '... the other node is checked' "$(result n1 kernel)" "pass|$(uname -r)|"
has '... and told as by a run' "$ERR" 'error[HN2'
has '... with the way without it' "$ERR" "--exclude 'n2'"
rm fault.n2

# --- a baseline
exits 'the results are saved' 0 check -w n1,n2 --save good.json
check -w n1,n2 --json --baseline good.json
is '... and the same later' "$(result n2 baseline)" 'pass|as before|'
check -w n1,n2 --pairs --baseline good.json
ok 'two nodes are measured' grep -qE '^not run: net.bandwidth: a single pair has nothing to compare with; it has [0-9.]+ [MG]bit/s$' "$OUT"
exits 'a baseline that is not there is an error' 66 check -w n1,n2 --json --baseline gone.json
has '... with its name' "$ERR" 'error[HN844]: cannot read the baseline gone.json: No such file or directory'
echo '{"v": 7}' >other.json
exits 'a file of another kind is an error' 65 check -w n1,n2 --baseline other.json
has '... too' "$ERR" 'error[HN844]: cannot read the baseline other.json: not written by hnlaunch check --save'
exits 'a file that cannot be written is an error' 73 check -w n1,n2 --save /nowhere/at/all.json
has '... as well' "$ERR" 'error[HN844]: cannot write the baseline to /nowhere/at/all.json: No such file or directory'

# --- what is not there is not claimed
check -w n1
has 'a node alone has one line about the network' "$OUT" \
    'not run: net.peers, net.bandwidth, net.latency: there is no other node to reach'
check -w n1,n2
if [[ ! -e /sys/class/infiniband ]]; then
    ok 'without InfiniBand nothing of it passes' grep -q '^not run: .*ib.ports.*: no InfiniBand or RoCE device$' "$OUT"
fi
lacks 'without a program none passes' "$OUT" 'program  '
has '... but is not run' "$OUT" 'not run: workdir, program, script, python, torch, cuda, nccl, nccl.plugin: no program was named'
hn_exits 'without hosts it is an error' 64 check
hn_exits '--dial-in has no nodes to check' 64 check --local 1 --dial-in 127.0.0.1:1
has '... which is told' "$ERR" '--dial-in has no nodes to check'
nothing_left 'nothing is left'
done_testing
