#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The files of an NVIDIA driver make slots, and CUDA_VISIBLE_DEVICES of each rank is what was asked for. Here
# the files are ours, in a mount namespace; tests/gpu/ranks-get-the-gpus-they-should.sh asks real CUDA.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/driver_files.sh"

in_mount_namespace "$@"

# --- three GPUs, in the order of the bus ------------------------------------------------------------

driver_of 3

shown() { # ARG...: "RANK:CUDA_VISIBLE_DEVICES" of each rank, with - for none
    hn "$@" --label none sh -c 'echo "$HN_RANK:${CUDA_VISIBLE_DEVICES--}"'
    sort "$OUT"
}

is 'a rank for each GPU; nothing needs to be said' "$(shown --local)" $'0:-\n1:-\n2:-'
is '--ppn gpu' "$(shown --local --ppn gpu)" $'0:-\n1:-\n2:-'
is 'node: those that the ranks use' "$(shown --local 2)" $'0:0,1\n1:0,1'
is 'own: one each' "$(shown --local -o run.gpu_visibility=own)" $'0:0\n1:1\n2:2'
is 'two for one rank' "$(shown --local 1 --gpus-per-rank 2 -o run.gpu_visibility=own)" '0:0,1'
is 'GPUs are not assigned' "$(shown --local 2 --gpus-per-rank 0)" $'0:-\n1:-'
is 'more ranks than GPUs share them' "$(shown --local 4 -o run.gpu_visibility=own)" $'0:0\n1:1\n2:2\n3:0'
hn_exits 'but not when a hostfile or -w counts' 69 -w localhost --ppn 4 true

# Where the environment hides GPUs, they do not count, and stay hidden.
is 'by number: one rank' "$(CUDA_VISIBLE_DEVICES=2 shown --local)" '0:2'
is 'by number, own' "$(CUDA_VISIBLE_DEVICES=2,0 shown --local -o run.gpu_visibility=own)" $'0:2\n1:0'
is 'in an order of its own' "$(CUDA_VISIBLE_DEVICES=2,0 shown --local)" $'0:2,0\n1:2,0'
is 'by UUID' "$(CUDA_VISIBLE_DEVICES=GPU-11111111-0000-0000-0000-000000000000 shown --local -o run.gpu_visibility=own)" '0:1'
is 'by the beginning of a UUID' "$(CUDA_VISIBLE_DEVICES=GPU-2222 shown --local)" '0:GPU-2222'
is 'all hidden' "$(CUDA_VISIBLE_DEVICES='' shown --local 1)" '0:'
is 'what -x says comes last' "$(CUDA_VISIBLE_DEVICES=2 shown --local 1 --gpus-per-rank 0 -x CUDA_VISIBLE_DEVICES=1)" '0:1'
is 'fewer ranks than GPUs: each sees the whole list' "$(CUDA_VISIBLE_DEVICES=2,0 shown --local 1)" '0:2,0'
is 'parts of GPUs count, own' "$(CUDA_VISIBLE_DEVICES=MIG-aaaa,MIG-bbbb shown --local -o run.gpu_visibility=own)" $'0:MIG-aaaa\n1:MIG-bbbb'
is 'a list with a GPU twice shows none' "$(CUDA_VISIBLE_DEVICES=1,1 shown -w localhost)" '0:1,1'

# --- the list of -x, --env-file and --export ---------------------------------------------------------

unit=-w\ localhost u1=GPU-11111111-0000 u2=GPU-22222222-0000
while IFS='|' read -r name list arguments want; do
    # shellcheck disable=SC2086
    is "$name" "$(shown $unit -x "CUDA_VISIBLE_DEVICES=$list" $arguments | tr '\n' ' ')" "$want "
done <<END
-x: a rank for each GPU of the list|2,0||0:2,0 1:2,0
by UUIDs|$u2,$u1||0:$u2,$u1 1:$u2,$u1
by a UUID that fits two GPUs|GPU-||0:GPU-
parts of GPUs|MIG-x,MIG-y||0:MIG-x,MIG-y 1:MIG-x,MIG-y
own|2,0|-o run.gpu_visibility=own|0:2 1:0
own, by UUIDs|$u2,$u1|-o run.gpu_visibility=own|0:2 1:1
own, parts of GPUs|MIG-x,MIG-y|-o run.gpu_visibility=own|0:MIG-x 1:MIG-y
own, two for one rank|2,1|-o run.gpu_visibility=own --gpus-per-rank 2|0:2,1
one rank sees the whole list|2,0|-n 1|0:2,0
a slot of the list|2,0|--include localhost:1|0:0
the list ends at -1|1,-1,2||0:1,-1,2
NoDevFiles|NoDevFiles||0:NoDevFiles
nothing||--ppn 1|0:
END
is '-x counts from all GPUs, not from those of the shell' \
    "$(CUDA_VISIBLE_DEVICES=0 shown --local -x CUDA_VISIBLE_DEVICES=2,1)" $'0:2,1\n1:2,1'
is '--unset shows all' "$(CUDA_VISIBLE_DEVICES=0 shown --local --unset CUDA_VISIBLE_DEVICES)" $'0:-\n1:-\n2:-'
is '--export' "$(CUDA_VISIBLE_DEVICES=2,1 shown -w localhost --export CUDA_VISIBLE_DEVICES)" $'0:2,1\n1:2,1'
echo CUDA_VISIBLE_DEVICES=1,2 >env
is '--env-file' "$(shown -w localhost --env-file env)" $'0:1,2\n1:1,2'

refused() { # NAME CODE ARG...
    local name=$1 code=$2
    shift 2
    hn_exits "$name: refused" 69 "$@" true
    has '... with its number' "$ERR" "HN$code"
    has '... and what limits the GPUs' "$ERR" CUDA_VISIBLE_DEVICES
}
refused 'more ranks than the list has GPUs' 301 -w localhost -n 3 -x CUDA_VISIBLE_DEVICES=1,2
refused 'more for the node' 302 -w localhost --ppn 3 -x CUDA_VISIBLE_DEVICES=1,2
refused 'more slots in the line' 601 -w localhost:3 -x CUDA_VISIBLE_DEVICES=1,2
refused 'a slot behind the list' 303 -w localhost --include localhost:0,2 -x CUDA_VISIBLE_DEVICES=1,2
refused '--ppn gpu without a GPU' 304 -w localhost --ppn gpu -x CUDA_VISIBLE_DEVICES=-1
echo 'localhost gpus=0,1' >hosts
refused 'a GPU of the line that the list lacks' 602 -H hosts -x CUDA_VISIBLE_DEVICES=1,2

run "$HNLAUNCH" plan --probe -w localhost -x CUDA_VISIBLE_DEVICES=2,0 --json=plan.json true
is 'plan --probe has the GPUs of the list' "$(jq -c '[.world_size, .nodes[0].gpus]' plan.json)" '[2,[2,0]]'
run "$HNLAUNCH" plan -w node001 -x CUDA_VISIBLE_DEVICES=2,0 --json=plan.json true
is '... and plan without asking the node' "$(jq -c '[.world_size, .nodes[0].gpus]' plan.json)" '[2,[2,0]]'

# Devices of other makers are not counted: a list that is too short is told.
for name in HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES ZE_AFFINITY_MASK ASCEND_RT_VISIBLE_DEVICES; do
    hn -w localhost:3 --label none -x "$name=0,1" sh -c "echo \$$name"
    is "$name reaches the ranks" "$RC $(sort -u "$OUT")" '0 0,1'
    has '... and is too short for three' "$ERR" "warning[HN159]: $name names 2 devices, but localhost has 3 ranks"
    hn -w localhost:2 -x "$name=0,1" true
    lacks '... not for two' "$ERR" HN159
done
hn -w localhost:3 -x ASCEND_VISIBLE_DEVICES=0-2 true
lacks 'a range is so many devices' "$ERR" HN159
hn --local 3 -x CUDA_VISIBLE_DEVICES=1,2 true
has 'so is a list for a number of ranks on this machine' "$ERR" HN159
nothing_left 'nothing is left'
done_testing
