#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A script for Accelerate: on this machine, and on 4 nodes x 2 ranks.
# shellcheck disable=SC1083
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

torch_needs accelerate
LIMIT=240
torch_hn --local 2 accelerate_script.py "$TMP/local"
torch_ok 'a script on 2 ranks' 2
has 'Accelerate finds two processes' "$OUT" 'MULTI_CPU, local mains 1'

lab_up 4 2
torch_lab -H "$TMP/hosts.txt" accelerate_script.py "$TMP/lab.state"
torch_ok 'a script on 4 nodes x 2' 8
has 'each node has its main process' "$OUT" 'MULTI_CPU, local mains 4'

# It starts processes of its own, with --multi_gpu by torchrun, and with --cpu one that knows nothing of other machines.
torch_lab -H "$TMP/hosts.txt" -n 2 --per-node "$TORCH_PYTHON" -m accelerate.commands.launch --multi_gpu --mixed_precision no \
    --dynamo_backend no --num_machines {num_nodes} --num_processes 4 --machine_rank {node_rank} \
    --main_process_ip {master_addr} --main_process_port {master_port} \
    "$ROOT/tests/clients/frameworks/accelerate_script.py" "$TMP/launch.state"
torch_ok 'accelerate launch on 2 nodes' 4
lab_nothing_left 'nothing is left on the nodes'
done_testing
