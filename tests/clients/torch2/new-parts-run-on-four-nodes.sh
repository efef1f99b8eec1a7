#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Meshes, FSDP and checkpoints of all ranks on 4 nodes x 2 ranks.
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

"$TORCH_PYTHON" -c 'from torch.distributed.fsdp import fully_shard' 2>/dev/null ||
    skip_all "PyTorch $TORCH_VERSION is too old"
export LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=$TMP/cache"
lab_up 4 2

for endpoint in network loopback none; do
    torch_lab -H "$TMP/hosts.txt" --store-listen "$endpoint" torch_new.py "$TMP/checkpoint-$endpoint"
    torch_ok "$endpoint: meshes, FSDP and checkpoints" 8
done
torch_lab -H "$TMP/hosts.txt" -x TORCH_GLOO_LAZY_INIT=1 torch_collectives.py
torch_ok 'the collectives with connections made when needed' 8
lab_nothing_left 'nothing is left on the nodes'
done_testing
