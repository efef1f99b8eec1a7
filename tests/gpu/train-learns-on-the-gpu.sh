#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The trainers learn with NCCL what they learn with Gloo: one source, the same losses.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"

gpu_build train pipeline
gpu_needed 'training on GPUs'

curve() { # FILE: "epoch loss" rounded to four digits
    awk '$1 == "epoch" { printf "%d %.4f\n", $2, $4 }' "$OUT" >"$1"
}

hn --local 1 --gpus-per-rank 0 --label none "$PLAIN/examples/train" --epochs 6
exits 'with Gloo' 0
curve gloo
for program in train pipeline; do
    for n in 1 2 4; do
        gpu_shared "$n" "$TMP/$program" --epochs 6 --accuracy 95
        exits "$program with NCCL on $n ranks" 0
        curve nccl
        same "$program with NCCL on $n ranks: the losses of Gloo" nccl gloo
        ok 'and all ranks have the same parameters' grep -q 'are identical' "$OUT"
    done
done
if ((GPUS >= 2)); then
    hn --local $((GPUS / 2)) --gpus-per-rank 2 --label none "$TMP/pipeline" --epochs 6
    exits 'two GPUs to each rank' 0
    curve nccl
    same 'two GPUs to each rank: the losses of Gloo' nccl gloo
else
    skip 'two GPUs to each rank' 'this machine has one'
fi
nothing_left 'nothing is left'
done_testing
