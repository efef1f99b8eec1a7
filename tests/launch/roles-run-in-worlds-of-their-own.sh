#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Each role of a job is a world of its own: ranks, address, port and store; PyTorch and libhnlaunch meet in it. The verdict names the role.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hosts=(-w localhost:4,127.0.0.1:2,127.0.0.2:2 --gpus-per-rank 0)
say='echo "$HN_ROLE.$HN_ROLE_INDEX $RANK/$WORLD_SIZE node $NODE_RANK/$HN_NUM_NODES local $LOCAL_RANK/$LOCAL_WORLD_SIZE job $HN_JOB_RANK"'

hn "${hosts[@]}" --role a --nodes 1 -n 2 sh -c "$say" : --role b --nodes 2 -n 4 -x A=b sh -c "$say" : --role c --on a sh -c "$say"
exits 'three roles run as one job' 0
is 'each rank has its numbers in its world' "$(sort "$OUT")" 'a:0 | a.0 0/2 node 0/1 local 0/2 job 0
a:1 | a.0 1/2 node 0/1 local 1/2 job 1
b:0 | b.0 0/4 node 0/2 local 0/2 job 2
b:1 | b.0 1/4 node 0/2 local 1/2 job 3
b:2 | b.0 2/4 node 1/2 local 0/2 job 4
b:3 | b.0 3/4 node 1/2 local 1/2 job 5
c:0 | c.0 0/1 node 0/1 local 0/1 job 6'

hn "${hosts[@]}" --label none --role a --nodes 1 --replicas 2 -n 2 sh -c 'echo "$HN_ROLE_INDEX $RANK/$WORLD_SIZE" $MASTER_PORT' : --role b --nodes 1 true
exits 'replicas are equal worlds' 0
is 'with numbers of their own' "$(cut -d' ' -f1,2 "$OUT" | sort)" '0 0/2
0 1/2
1 0/2
1 1/2'
is 'and ports of their own' "$(cut -d' ' -f3 "$OUT" | sort -u | wc -l)" 2

hn "${hosts[@]}" --role a --nodes 1 -n 2 sleep 60 : --role b --nodes 2 -n 2 sh -c '[ $RANK = 0 ] || exit 3; sleep 60'
exits 'a rank of the second role fails' 3
verdict_has 'role and rank are named' 'failed after' 'role b, rank 1 on 127.0.0.1 exited with code 3'
has 'and its number in the job' "$ERR" 'role b, rank 1 (rank 3 of the job)'

# A program that starts ranks of its own listens on MASTER_PORT; the store of another role stays.
bind='import os, socket; socket.create_server(("127.0.0.1", int(os.environ["MASTER_PORT"]))); print("bound", os.environ["NODE_RANK"], "RANK" in os.environ)'
hn "${hosts[@]}" --role a --nodes 1 -n 2 sh -c 'echo $WORLD_SIZE' : --role t --nodes 1 --per-node /usr/bin/python3 -c "$bind"
exits 'a role with one process on each node' 0
is 'has the port for itself' "$(sort "$OUT")" 'a:0 | 2
a:1 | 2
t:0 | bound 0 False'

hn -w localhost:1,no-such-host.invalid:1 --role a --nodes 1 true : --role b --nodes 1 true
exits 'a host that does not exist' 68
has 'is named' "$ERR" 'error[HN201]: no-such-host.invalid cannot be reached'
has 'another host could take the place' "$ERR" '= help: --spares N keeps N hosts to replace nodes that fail'

# A rank that has ended leaves its node to ranks of other roles.
hn "${hosts[@]}" --label none --role a -n 1 true : --role b --on a sh -c 'sleep 0.5; echo late'
exits 'a role that ends at once' 0
is 'does not end another one on its node' "$(cat "$OUT")" late

hn --log-dir "$TMP/records" "${hosts[@]}" --role a --nodes 1 -x SECRET=word true : --role=b -x OTHER=word true
is 'records have the whole line of the roles' "$(python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["argv"])' "$TMP/records/latest/run.json")" \
    '--role a --nodes 1 -x SECRET true : --role=b -x OTHER true'
lacks 'without values of -x' "$TMP/records/latest/run.json" word

if /usr/bin/python3 -c 'import torch.distributed' 2>/dev/null; then
    meet='import torch.distributed as d
d.init_process_group("gloo"); d.barrier(); print(d.get_rank(), d.get_world_size()); d.destroy_process_group()'
    hn "${hosts[@]}" --role a --nodes 1 -n 2 /usr/bin/python3 -c "$meet" : --role b --nodes 2 -n 3 /usr/bin/python3 -c "$meet"
    exits 'PyTorch meets in two worlds at once' 0
    is 'of two and three ranks' "$(sort "$OUT")" 'a:0 | 0 2
a:1 | 1 2
b:0 | 0 3
b:1 | 1 3
b:2 | 2 3'
else
    skip 'PyTorch in two worlds' 'no torch of /usr/bin/python3'
fi
done_testing
