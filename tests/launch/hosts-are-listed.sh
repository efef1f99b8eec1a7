#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch hosts: lists of hosts folded, expanded and compared, and a hostfile of what hosts have.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

printf 'gpu007 slots=8\nn1\ngpu003 slots=8\ngpu003x\n' >file
lists() { # EXPECTED ARG...
    hn_exits "hosts ${*:2}" 0 hosts "${@:2}"
    is 'prints the hosts' "$(<"$OUT")" "$1"
    is 'and nothing else' "$(<"$ERR")" ''
}

lists 'gpu[001-003,007]' gpu007 'gpu[001-002]:8,alice@gpu003'
lists 'gpu[003,007],n1,gpu003x' @file
lists 'gpu[003,007],n1,gpu003x' -H file
lists $'gpu007\nn1\ngpu003\ngpu003x' --expand @file
lists 'gpu[001-003,007],n1,gpu003x' 'gpu[001-002]' @file
lists 'gpu[001-002]' 'gpu[001-002]' --union GPU001
lists 'gpu[001-002,004]' 'gpu[001-004,007]' --minus @file
lists 'gpu[001-002]' --minus 'gpu[001-004]' gpu004 gpu003
lists 'gpu[003,007]' 'gpu[001-007]' --common @file
lists 'gpu003' -w 'gpu[001-004]' -w gpu003 --common
lists '' gpu1 --minus gpu1
export HNLAUNCH_RUN_HOSTS=m1
lists 'n[8-9]' 'n[8-9]'
lists 'm1'
unset HNLAUNCH_RUN_HOSTS
SLURM_JOB_ID=1 SLURM_JOB_NODELIST='c[1-2]' SLURM_TASKS_PER_NODE='4(x2)' hn hosts --scheduler slurm
exits 'without a list: those of the allocation' 0
is 'are printed' "$(<"$OUT")" 'c[1-2]'
hn_exits 'a name must be one: 64' 64 hosts - <<<'gpu[1-2]'
hn hosts @- <<<$'gpu1\ngpu2'
is 'a hostfile may come on standard input' "$(<"$OUT")" 'gpu[1-2]'
hn hosts --json gpu2 gpu1
ok 'as JSON' python3 -c '
import json, sys
j = json.load(open(sys.argv[1], encoding="utf-8"))
assert j["folded"] == "gpu[1-2]" and [h["host"] for h in j["hosts"]] == ["gpu2", "gpu1"], j' "$OUT"

hn_exits 'neither a list nor an allocation: 64' 64 hosts
hn_exits 'a file that is not there: 66' 66 hosts @none
has 'is told' "$ERR" 'error[HN106]'
is 'and nothing is printed' "$(<"$OUT")" ''
hn_exits 'a list that is wrong: 64' 64 hosts 'gpu[1-'
hn_exits 'two ways at once: 64' 64 hosts a --minus b --common c
has 'exclude each other' "$ERR" 'error[HN704]: --union, --minus and --common exclude each other'
hn_exits 'so do --probe and --expand' 64 hosts --probe --expand a
hn_exits 'a run has no --minus: 64' 64 --minus true

# The hostfile that --probe writes is one for a launch.
probe=(hosts --probe --start-with 'env NODE={host}')
hn_exits '--probe' 0 "${probe[@]}" 'a,b:3,c'
cp "$OUT" probed
cores=$(nproc)
is 'a line for each host' "$(cut -d' ' -f1 probed | xargs)" 'a b c'
is 'with its slots' "$(cut -d' ' -f2 probed | sort -u)" "slots=$cores"
ok 'and what it has' grep -qE '^a slots=[0-9]+ .*# 0 GPUs, [0-9]+ cores?, [0-9.]+ [MG]B$' probed
hn --start-with 'env NODE={host}' -H probed --oversubscribe --ppn 1 --label none sh -c 'echo "$NODE"'
exits 'a launch takes the file' 0
is 'with all hosts' "$(sort "$OUT" | xargs)" 'a b c'
hn "${probe[@]}" a --json
ok '--probe --json' python3 -c '
import json, sys
(h,) = json.load(open(sys.argv[1], encoding="utf-8"))["hosts"]
assert h["host"] == "a" and h["slots"] == h["cores"] and h["gpus"] == 0 and h["memory"] > 0 and "addr" in h and "iface" in h, h' "$OUT"
hn_exits 'no address on the network: 69' 69 "${probe[@]}" a --iface nonet0
has 'is told' "$ERR" 'error[HN320]: 1 host has no address on the network of the ranks'
printf '[ $1 != b ] || exit 3\nshift\nexec "$@"\n' >via.sh
hn hosts --probe --start-with "sh $PWD/via.sh {host}" a b
has 'a host that does not answer is told' "$ERR" 'error[HN210]: the agent cannot run on b'
has 'with the next step' "$ERR" "help: try the program of --start-with by hand: sh $PWD/via.sh {host}"
lacks 'and no option that this command refuses' "$ERR" '--exclude'
is 'and has no line' "$(cut -d' ' -f1 "$OUT")" a
exits 'the exit code is that of its error' 69
done_testing
