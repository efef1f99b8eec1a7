#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs of a line with --role are roles: hnlaunch plan gives each its nodes, GPUs and worlds, and refuses what does not fit.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

printf 'gpu[001-006] slots=8\n' >hosts.txt
job='-H hosts.txt -x ALL=1 --role trainer --nodes 3 -x OWN=1 sh train.sh :
    --role infer --nodes rest --gpus-per-rank 4 --replicas 3 serve :
    --role router --on trainer:0 --per-node router :
    --role orch --on infer:last orch.py'

# shellcheck disable=SC2086
plan() { # ARG...
    hn plan $job
}

exits 'roles are planned' 0 plan
for row in 'trainer *24 *3 *gpu\[001-003\] *0-23 *0-7' \
    'infer/0 *2 *1 *gpu004 *24-25 *0-7' 'infer/2 *2 *1 *gpu006 *28-29 *0-7' \
    'router *1 *1 *gpu001 *30' 'orch *1 *1 *gpu006 *31'; do
    ok "the row ${row%% *}" grep -qE "^$row *\$" "$OUT"
done
ok 'a row of the hosts has all its ranks' grep -qE '^ *0 +gpu001 +0-7,30 ' "$OUT"
ok 'a program has its role' grep -qE '^program   sh train.sh  in  .*  \(role trainer\)$' "$OUT"

job="--json $job" plan
is 'JSON has the roles' "$(python3 -c 'import json, sys
for r in json.load(open(sys.argv[1]))["roles"]:
    print(r["name"], " ".join(r["argv"]), r["on"], len(r["nodes"]), len(r["ranks"]), [w["size"] for w in r["worlds"]])' "$OUT")" \
    'trainer sh train.sh None 3 24 [24]
infer serve None 3 6 [2, 2, 2]
router router trainer:0 1 1 [1]
orch orch.py infer:last 1 1 [1]'
is 'and of a rank its role' "$(python3 -c 'import json, sys
for r in json.load(open(sys.argv[1]))["nodes"][5]["ranks"]:
    print(r["rank"], r["role"], r["world_rank"], r["local_rank"], r["gpus"])' "$OUT")" \
    '28 infer 0 0 [0, 1, 2, 3]
29 infer 1 1 [4, 5, 6, 7]
31 orch 0 0 []'

job="--ranks 27,9 $job" plan
ok 'a rank counts in its world' awk '/^# rank 27 on gpu005, role infer, rank 1 of its world$/ { on = 1 } /^# rank 9/ { on = 0 }
    on { n += /^(RANK=1|WORLD_SIZE=2|LOCAL_RANK=1|NODE_RANK=0|MASTER_ADDR=127.0.0.1|ALL=1|HN_ROLE=infer|HN_JOB_RANK=27)$/
    n += 10 * /^OWN=/ } END { exit n != 8 }' "$OUT"
ok 'and so does another' awk '/^# rank 9 on gpu002, role trainer, rank 9 of its world$/ { on = 1 }
    on { n += /^(RANK=9|WORLD_SIZE=24|NODE_RANK=1|MASTER_ADDR=.address of gpu001.|ALL=1|OWN=1)$/ } END { exit n != 6 }' "$OUT"

hn plan -w 'n[1-4]:2' --ppn 1 --role a --nodes 2 true : --role b --ppn 2 true
ok 'what stands in front of the first role holds for all' grep -qE '^a +2 +2 ' "$OUT"
ok 'but for what a role says' grep -qE '^b +4 +2 ' "$OUT"
hn plan -w 'n[1-4]:2' --role a --nodes 2 --world w true : --role b --world w true
is 'roles of one world are numbered together' "$(grep -E '^[ab] ' "$OUT" | xargs)" 'a 8 2 n[1-2] 0-3 b 8 2 n[3-4] 4-7'

hn_exits 'too few nodes' 69 plan -w n[1-2] --role a --nodes 3 true : --role b --nodes 2 true
has 'the sum is told' "$ERR" 'error[HN315]: the roles ask for 5 nodes, there are 2'
has 'role by role' "$ERR" 'b            --nodes 2'
hn_exits 'a GPU asked for twice' 69 plan -w n1:4 --role a true : --role b --on a --gpus-per-rank 1 true
has 'both roles are named' "$ERR" 'error[HN316]: role `b` asks for GPUs of n1 that role `a` has'
hn_exits 'unless it is shared' 0 plan -w n1:4 --role a true : --role b --on a --share-gpus true
done_testing
