#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `plan` and --dry-run tell who would get which rank, start nothing and contact nobody.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

cat >hosts.txt <<'END'
gpu001 slots=8
gpu002 slots=8
gpu003 slots=8
gpu004 slots=8
END
hn_exits 'plan succeeds although no such host exists' 0 plan -H hosts.txt -n 20 touch started
ok 'gpu001 has the first eight' grep -Eq 'gpu001 .*0-7' "$OUT"
ok 'gpu002 has the next eight' grep -Eq 'gpu002 .*8-15' "$OUT"
ok 'gpu003 has the rest' grep -Eq 'gpu003 .*16-19' "$OUT"
ok 'gpu004 is unused' grep -Eq 'gpu004 .*unused' "$OUT"
has 'it says where a node comes from' "$OUT" hosts.txt:3
ok 'nothing was started' test ! -e started

cp "$OUT" plan.txt
hn --dry-run -H hosts.txt -n 20 touch started
same '--dry-run is the same' "$OUT" plan.txt

hn_exits 'plan --json succeeds' 0 plan --json -H hosts.txt -n 20 true
ok 'plan --json is JSON' python3 -m json.tool "$OUT"
has 'plan --json names the hosts' "$OUT" gpu002

hn_exits 'plan --ranks succeeds' 0 plan -H hosts.txt --map node -n 8 --ranks 5 true
has 'round robin: rank 5 is the second on gpu002' "$OUT" 'HN_LOCAL_RANK=1'
has 'round robin: rank 5 is on node 1' "$OUT" 'HN_NODE_RANK=1'
has 'plan --ranks tells the whole environment' "$OUT" 'WORLD_SIZE=8'

hn plan -H hosts.txt --ppn 2 true
ok '--ppn 2' grep -Eq 'gpu004 .*6-7' "$OUT"

hn plan -H hosts.txt --exclude gpu002 true
ok '--exclude' grep -Eq 'gpu003 .*8-15' "$OUT"
hn plan -H hosts.txt --include 'gpu[003-004]' true
ok '--include' grep -Eq 'gpu004 .*8-15' "$OUT"
hn plan -H hosts.txt --nodes 1 true
lacks '--nodes 1' "$OUT" 8-15
hn plan -w 'gpu[001-003]:2' true
ok '-w with ranges and slots' grep -Eq 'gpu003 .*4-5' "$OUT"
hn plan -H hosts.txt --gpus-per-rank 2 true
ok '--gpus-per-rank 2 halves the ranks' grep -Eq 'gpu002 .*4-7' "$OUT"

# As in Open MPI: beside a hostfile -w, --hosts and --host choose among its hosts.
hn_exits '-w beside -H succeeds' 0 plan -H hosts.txt --host gpu003 -n 1 true
ok '-w beside -H: the rank runs on the host that it names' grep -Eq ' 0 +gpu003 +0 +1/8' "$OUT"
lacks 'the others are left out' "$OUT" gpu001
has 'the host keeps its line' "$OUT" hosts.txt:3
hn plan -w gpu004:2 -H hosts.txt --hosts gpu002 true
ok 'the order is that of the file' grep -Eq ' 0 +gpu002 +0-7 ' "$OUT"
ok 'slots of -w are taken of those of the file' grep -Eq ' 1 +gpu004 +8-9 +2/2 ' "$OUT"
hn plan -H hosts.txt -w gpu003 --include gpu003:4-5 true
ok '--include goes on from there' grep -Eq ' 0 +gpu003 +0-1 +2/2 +4-5 ' "$OUT"
hn_exits 'a host that the file lacks: 64' 64 plan -H hosts.txt -w 'gpu001,gpu0017' true
has 'it is shown' "$ERR" '       ^^^^^^^ did you mean `gpu001`?'
has 'a second -H is offered' "$ERR" 'a second -H adds hosts: -H hosts.txt -H FILE'
hn_exits 'more slots than the file gives: 64' 64 plan -H hosts.txt -w gpu001:9 true
has 'the numbers are told' "$ERR" 'error[HN145]: -w takes 9 slots of gpu001, which has 8'
echo 'gpu017 slots=8' >more.txt
hn plan -H hosts.txt -H more.txt -w gpu017 true
ok 'a second -H adds' grep -Eq ' 0 +gpu017 +0-7 ' "$OUT"

lacks 'without --tree nobody is carried' plan.txt VIA
hn plan -H hosts.txt --tree 1 true
has '--tree: a column names the parent of each node' "$OUT" 'VIA'
ok 'the first is the head'\''s own' grep -Eq '0  gpu001  +0-7 ' "$OUT"
ok 'the second hangs on the first' grep -Eq '1  gpu002  gpu001 +8-15 ' "$OUT"
ok 'the third on the second' grep -Eq '2  gpu003  gpu002 +16-23 ' "$OUT"
hn plan --json -w 'gpu[001-004],localhost' --tree 2 true
is '--json says so, too' "$(python3 -c 'import json, sys
print([n["via"] for n in json.load(sys.stdin)["nodes"]])' <"$OUT")" "[None, 'gpu001', None, 'gpu003', None]"

hn_exits 'ranks that are not there: 64' 64 plan -H hosts.txt --ranks 2,32 true
has 'they are told, and which there are' "$ERR" '--ranks 2,32: not ranks of 0 to 31'
is 'and nothing is shown' "$(wc -c <"$OUT")" 0

lacks 'GPUs have no column when nobody spoke of them' plan.txt GPUS
hn plan -H hosts.txt --gpus-per-rank 2 true
has 'with --gpus-per-rank they have' "$OUT" GPUS
hn plan -w 'gpu[001-002]:2' --ppn gpu true
has 'and with --ppn gpu' "$OUT" GPUS
echo 'gpu001 gpus=3,5' >some.txt
hn plan -H some.txt true
ok 'and when the hostfile names them' grep -Eq 'gpu001 .* 3,5 ' "$OUT"

lacks 'nodes that were not asked have no cores' plan.txt CORES
hn plan -w localhost --probe true
ok '--probe tells cores, memory and machine' grep -Eq "localhost .* $(nproc --all) +[0-9.]+ GB +$(uname -m) " "$OUT"
hn plan --json -w localhost --probe true
is 'in JSON, too' "$(python3 -c 'import json, sys
n = json.load(sys.stdin)["nodes"][0]
print(n["cores"] > 0, n["memory"] > 1 << 20, n["arch"])' <"$OUT")" "True True $(uname -m)"

lacks 'exported variables are counted' plan.txt TEST_MARK
hn plan -v -H hosts.txt true
has 'and named with -v' "$OUT" TEST_MARK
lacks 'without their values' "$OUT" "$TEST_MARK"

# --- many nodes
row() { grep -Eqx " *$1" "$OUT"; }
hn plan -w 'gpu[001-064]:8' -n 100 true
is 'nodes that are alike share a row' "$(grep -c gpu "$OUT")" 4 # the last is rank 0's address
ok 'with all their ranks' row '0-11 +gpu\[001-012\] +0-95 +8/8 each +-w'
ok 'one with fewer has its own' row '12 +gpu013 +96-99 +4/8 +-w'
ok 'so have unused ones' row '- +gpu\[014-064\] +unused +0/8 each +-w'
hn plan -v -w 'gpu[001-064]:8' true
is '-v: each has a row' "$(grep -Ec '^ *[0-9]+ +gpu' "$OUT")" 64
hn plan -w 'gpu[001-008]:8' true
is 'so has each of eight' "$(grep -Ec '^ *[0-9]+ +gpu' "$OUT")" 8
hn plan -w 'gpu[001-009]:8' --map node true
is 'and each whose ranks do not follow' "$(grep -Ec '^ *[0-9]+ +gpu' "$OUT")" 9
for i in {1..12}; do echo "n$i slots=$((i < 7 ? 2 : 4))"; done >many.txt
hn plan -H many.txt true
ok 'nodes of a file: with their lines' row '6-11 +n\[7-12\] +12-35 +4/4 each +many.txt:7-12'
tac many.txt >back.txt
hn plan -H back.txt true
is 'a row keeps the order of the ranks' "$(grep -Ec '^ *[0-9]+ +n' "$OUT")" 12
has 'the example is rank 0' "$OUT" 'rank 0    HN_RANK=0 '

# --- spare hosts
spares() { python3 -c 'import json, sys; print(*json.load(sys.stdin)["spares"])' <"$OUT"; }
sed '4s/$/ spare/' hosts.txt >spare.txt
hn plan -H spare.txt -n 8 true
ok 'a spare host is no unused one' row '- +gpu004 +spare +0/8 +spare.txt:4'
ok 'beside one' row '- +gpu003 +unused +0/8 +spare.txt:3'
lacks 'both are connected' "$OUT" 'connected only'
hn plan --json -H spare.txt --spares 1 true
is '--json names those of the file and of --spares' "$(spares)" 'gpu003 gpu004'
hn plan -w 'gpu[001-064]:8' --spares 12 true
ok 'spare hosts share a row' row '- +gpu\[053-064\] +spare +0/8 each +-w'
hn plan -H hosts.txt --nodes 2 --spares auto true
ok '--spares auto: no rows for those that are not connected' not grep -qE '^ .*gpu003' "$OUT"
ok 'but their names' grep -qx 'spares    gpu\[003-004\]  (hosts.txt:3-4), connected only in place of a node that fails' "$OUT"
hn plan --json -H hosts.txt --nodes 2 --spares auto true
is 'also with --json' "$(spares)" 'gpu003 gpu004'
hn plan --json -H hosts.txt true
is 'none: an empty list' "$(spares)" ''

hn_exits 'more ranks than slots: 69' 69 plan -H hosts.txt -n 33 true
done_testing
