#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# NCCL gives what a sum made by hand gives, and Gloo's calls give: several ranks on each GPU, in the world and in
# groups of it.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"

gpu_build allreduce alltoall calls many
gpu_needed 'collectives on GPUs'

for n in 1 2 4; do
    for bench in allreduce alltoall; do
        gpu_shared "$n" "$TMP/$bench" -b 1K -e 4M -f 8 -n 3 -w 1
        exits "$bench, $n ranks: gives 0" 0
        is "$bench, $n ranks: all is right" "$(tail -n 1 "$OUT")" '# all results are right'
        sed 's/^/# /' "$OUT"
    done
done
for op in prod min max; do
    gpu_shared 2 "$TMP/allreduce" -b 1K -e 1M -f 32 -n 1 -w 0 -o "$op"
    is "$op is right" "$(tail -n 1 "$OUT")" '# all results are right'
done
for n in 2 4; do
    gpu_shared "$n" "$TMP/calls"
    is "hnlaunch/nccl.h on $n ranks: every call, in the world and in its halves" "$(cat "$OUT")" ok
done
if ((NCCL_MINOR >= 23)); then
    gpu_shared 5 "$TMP/many"
    is 'one communicator from three ids' "$(cat "$OUT")" ok
else
    skip 'one communicator from several ids' "NCCL 2.$NCCL_MINOR knows one"
fi
for n in 1 2 3; do
    LIMIT=300 gpu_shared "$n" "$PLAIN/tests/clients/collectives_random" 0 nccl
    exits "hnlaunch/comm.h with nccl, $n ranks: types, operations and groups" 0
    ok 'much was compared' test "$(cat "$OUT")" -gt 1000
    echo "# arrays compared by rank 0: $(cat "$OUT")"
done
if ((NCCL_MINOR >= 30)); then
    NCCL_MULTI_RANK_GPU_ENABLE=1 hn --local 2 --oversubscribe --label none "$TMP/allreduce" -e 64K
    exits 'with the switch that NCCL has for it' 0
else
    skip 'NCCL_MULTI_RANK_GPU_ENABLE' "NCCL 2.$NCCL_MINOR has no such switch"
fi

# Not told to share, NCCL would refuse them, or hang: we are first, with names.
hn --local $((GPUS + 1)) --oversubscribe --label none sh -c 'trap "" TERM; exec "$0" join' "$TMP/calls"
exits 'two ranks on one GPU by mistake' 3
ok 'both are named, and their GPU' grep -qE \
    "^nothing HN_ERR_MISMATCH: ranks 0 and 1 \(localhost\) both use GPU 0 \([0-9A-Fa-f:.]+\): call cudaSetDevice" "$OUT"
is 'all ranks hear it' "$(grep -c HN_ERR_MISMATCH "$OUT")" $((GPUS + 1))
nothing_left 'nothing is left'
done_testing
