#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two real NCCLs in one world, on simulated GPUs: all ranks hear which rank has which, before NCCL sets anything up.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"

[[ $NCCL_KIT != none ]] || skip_all 'no NCCL could be fetched'
timeout 100 bash "$ROOT/tests/lib/fakegpu_kit.sh" "$NCCL_KIT" 2.22 2.29 2>"$TMP/kit.log" ||
    skip_all "no two NCCLs on simulated GPUs: $(tail -n 1 "$TMP/kit.log" | cut -c1-160)"
export CUDA_HOME=$NCCL_KIT/fake/cuda NCCL_MAX_NCHANNELS=2
for version in 2.22 2.29; do
    export NCCL_HOME=$NCCL_KIT/fake/nccl-$version LD_LIBRARY_PATH=
    gpu_build setup_faults
    mv "$TMP/setup_faults" "$TMP/setup_faults-$version"
done

# The last rank has the newer one. What one of the older ranks calls is written down.
mixed='[ "$HN_RANK" != 0 ] || export FAKEGPU_LOG="$1"; version=2.22; [ "$HN_RANK" != 2 ] || version=2.29; trap "" TERM'
names='^.*HN_ERR_MISMATCH.*: rank 0 \(localhost\) has NCCL 2\.22\.[0-9]+, rank 2 \(localhost\) has NCCL 2\.29\.[0-9]+: all ranks need the same libnccl\.so\.2$'

skewed() { # NAME COMMAND
    hn --local 3 --label none --grace 60s -x HNLAUNCH_BACKENDS sh -c "$mixed; $2" sh "$TMP/calls" "$TMP" "$PLAIN" "$NCCL_KIT/fake"
    exits "$1: no communicator" 3
    is "$1: each rank names both" "$(grep -cE "$names" "$OUT")" 3
    ok "$1: the GPU was asked who it is" grep -q DeviceGetPCIBusId "$TMP/calls"
    ok "$1: NCCL has set nothing up" not grep -qE 'cuda(FuncGetAttributes|HostAlloc|EventCreate)' "$TMP/calls"
    rm -f "$TMP/calls"
}

skewed 'hnlaunch/nccl.h' 'exec "$2/setup_faults-$version" join 60000'
skewed 'the backend nccl' 'LD_LIBRARY_PATH=$4/nccl-$version/lib:$4/cuda/lib64 exec "$3/tests/clients/collectives_random" 1 nccl open'
nothing_left 'nothing is left'
done_testing
