#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Meshes, FSDP, checkpoints of all ranks, and the ways of meeting that only new PyTorch versions have.
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

"$TORCH_PYTHON" -c 'from torch.distributed.fsdp import fully_shard' 2>/dev/null ||
    skip_all "PyTorch $TORCH_VERSION is too old"

for n in 1 2 4; do
    torch_hn --local "$n" torch_new.py "$TMP/checkpoint-$n"
    torch_ok "meshes, FSDP and checkpoints on $n ranks" "$n"
done
for setting in TORCH_DIST_INIT_BARRIER=1 TORCH_GLOO_LAZY_INIT=1 GLOO_ENABLE_STORE_V2_API=1 \
    GLOO_ENABLE_STORE_V2_API=0 USE_LIBUV=0; do
    torch_hn --local 4 -x "$setting" torch_collectives.py
    torch_ok "the collectives with $setting" 4
done
nothing_left 'nothing is left'
done_testing
