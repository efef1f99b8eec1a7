#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What PyTorch brings beside its collectives: the parts that a training may use, the debug server, torchrun and its restarts.
# shellcheck disable=SC1083
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

torch_needs torch.distributed.debug
LIMIT=240
torch_hn --local 4 torch_parts.py "$TMP/parts"
torch_ok 'parts of torch.distributed on 4 ranks' 4
lacks 'PyTorch warns of no variable that hnlaunch sets' "$ERR" 'is deprecated; use'
torch_hn --local 2 torch_debug_server.py
torch_ok 'the debug server shows keys and stacks' 2

# Without the variable, workers of torchrun 2.15 that start again find the addresses of dead ones in torchrun's own
# store, and fail.
torchrun_lab() { # FILE
    torch_lab -H "$TMP/hosts.txt" -n 2 --per-node -x TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 \
        "$TORCH_PYTHON" -m torch.distributed.run --nnodes {num_nodes} --nproc-per-node 2 --rdzv-id job \
        --rdzv-backend c10d --rdzv-endpoint {master_addr}:{master_port} --max-restarts 1 \
        "$ROOT/tests/clients/frameworks/elastic_worker.py" "$1"
}

lab_up 4 2
torch_lab -H "$TMP/hosts.txt" torch_parts.py "$TMP/parts.lab"
torch_ok 'parts of torch.distributed on 4 nodes x 2' 8
torch_lab -H "$TMP/hosts.txt" torch_debug_server.py
torch_ok 'the debug server on 4 nodes x 2' 8
torchrun_lab "$TMP/died"
torch_ok 'torchrun on 2 nodes starts its workers again after a death' 4
ok 'one of them has died' test -e "$TMP/died"
torchrun_lab "$TMP/died"
torch_ok 'torchrun on 2 nodes' 4
lab_nothing_left 'nothing is left on the nodes'
done_testing
