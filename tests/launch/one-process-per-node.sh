#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --per-node starts one process per node that may start ranks of its own: it is no rank to PyTorch, whatever the shell
# had, and has a free port to meet at.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

two='localhost:2,127.0.0.1:8'
export RANK=7 WORLD_SIZE=9 LOCAL_RANK=3 TORCHELASTIC_RUN_ID=old TORCHELASTIC_USE_AGENT_STORE=True CROSS_RANK=1 GROUP_RANK=2
unset OMP_NUM_THREADS
hn -w "$two" --per-node --label none sh -c 'env >env.$HN_RANK; echo {rank} {node_rank} {num_nodes} {local_rank}'
exits 'a job' 0
is 'one process per node, whatever the slots' "$(sort "$OUT")" '0 0 2 0
1 1 2 0'
for r in 0 1; do
    is "node $r has no variable of a rank" "$(grep -E \
        '^(RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|LOCAL_SIZE|GROUP_|ROLE_|CROSS_|TORCHELASTIC_|OMP_NUM_THREADS)' env.$r)" ''
    is "node $r knows its place" "$(grep -E '^(HN_(RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|NODE_RANK|NUM_NODES)|NODE_RANK)=' \
        env.$r | sort | xargs)" "HN_LOCAL_RANK=0 HN_LOCAL_WORLD_SIZE=1 HN_NODE_RANK=$r HN_NUM_NODES=2 HN_RANK=$r HN_WORLD_SIZE=2 NODE_RANK=$r"
done
is 'all have the same place to meet' "$(grep -hE '^(HN_)?MASTER_' env.0 | sort)" "$(grep -hE '^(HN_)?MASTER_' env.1 | sort)"
is 'which is an address of the network' "$(sed -n 's/^MASTER_ADDR=//p' env.0)" "$(sed -n 's/^HN_MASTER_ADDR=//p' env.0)"
ok 'and the interface to it' grep -q '^GLOO_SOCKET_IFNAME=.' env.0
unset "${!TORCHELASTIC_@}" RANK WORLD_SIZE LOCAL_RANK CROSS_RANK GROUP_RANK

cat >meet.py <<'END'
import os
import socket
import time

where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["NODE_RANK"] == "0":
    s = socket.create_server(where)
    s.accept()[0].sendall(b"met")
else:
    while True:
        try:
            s = socket.create_connection(where)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    print(s.recv(3).decode())
END
hn -w "$two" --per-node --label none python3 meet.py
is 'the port is free for the process of node 0' "$RC $(cat "$OUT")" '0 met'
hn -w "$two" --per-node -n 1 --label none echo '{host}'
is '-n takes the first nodes' "$(cat "$OUT")" localhost
OMP_NUM_THREADS=3 hn --local --per-node --label none sh -c 'echo $OMP_NUM_THREADS'
is 'OMP_NUM_THREADS of the user stays' "$(cat "$OUT")" 3
hn --local --per-node --label none "$WORKERS/worker_dump"
exits 'libhnlaunch knows the nodes as ranks' 0

refused() { # NUMBER CODE TEXT ARG...
    hn "${@:4}" true
    is "${*:4}: $2" "$RC" "$2"
    has "${*:4}: the reason" "$ERR" "error[$1]: $3"
}
refused HN218 64 '--per-node and --ppn exclude each other' -w "$two" --per-node --ppn 1
refused HN218 64 '--per-node and --mpi exclude each other' -w "$two" --per-node --mpi pmi1
refused HN218 64 '--per-node and --gpus-per-rank exclude each other' -w "$two" --per-node --gpus-per-rank 2
refused HN218 64 '--per-node and --store-listen exclude each other' -w "$two" --per-node --store-listen network
refused HN218 64 '--per-node and --local-rank-arg exclude each other' -w "$two" --per-node --local-rank-arg
refused HN218 64 '--local 2 with --per-node: this machine is one node' --local 2 --per-node
refused HN219 69 '-n 3 with --per-node: there are 2 nodes' -w "$two" --per-node -n 3
HNLAUNCH_RUN_PPN=2 hn -w "$two" --per-node --label none echo '{rank}'
is 'a setting gives way to the command line' "$RC $(sort "$OUT" | xargs)" '0 0 1'
HNLAUNCH_RUN_PER_NODE=yes hn -w "$two" --ppn 1 true
exits 'not the other way round' 64

hn plan -w 'a:4,b:8,c' --per-node -n 2 ray start
has 'a plan has one rank for each node' "$OUT" '2 ranks on 2 of 3 nodes'
has 'and says so' "$OUT" 'per node  one process, which gets all GPUs and starts the ranks'
hn plan -w 'a:4,b' --per-node --json ray start
ok 'also as JSON' python3 -c 'import json, sys; p = json.load(sys.stdin); assert p["per_node"] and p["world_size"] == 2' <"$OUT"
hn plan -w 'a:4,b' --per-node --ranks 1 ray start
ok 'and shows no variable of torchrun' not grep -qE '^(RANK|WORLD_SIZE|TORCHELASTIC_.*|OMP_NUM_THREADS)=' "$OUT"
done_testing
