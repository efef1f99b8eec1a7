#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --bind where sysfs does not know the NUMA node of a GPU: NVIDIA's driver is asked. And the GPUs of AMD, which only
# their driver's nodes in sysfs show. Files of drivers and sysfs are ours, in a mount namespace.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/driver_files.sh"

in_mount_namespace "$@"
two_numa_nodes
masks() { # ARG...: "CPUS" of each rank in one line
    hn "$@" --label none "$WORKERS/worker_masks"
    sort -n "$OUT" | cut -d: -f2 | paste -sd' '
}

nvml_library lib
export LD_LIBRARY_PATH=$PWD/lib FAKE_NVML_GPUS=2 FAKE_NVML=$PWD/nvml
echo fine >nvml

gpus_at -1 -1
echo 2 1 >nvml.near # bits: nodes 1 and 0
is 'the node near the memory of the GPU' "$(masks --local)" "$b $a"
lacks 'nothing needs to be said' "$ERR" HN318
ok 'the driver was asked' test -e nvml.asked
rm nvml.asked
gpus_at 0 1
is 'what sysfs knows counts' "$(masks --local)" "$a $b"
ok '... and the driver is not asked' test ! -e nvml.asked
gpus_at 0 -1
is '... for each GPU' "$(masks --local)" "$a $a"
gpus_at -1 -1
is '--bind none asks nobody' "$(rm nvml.asked; masks --local --bind none; ls nvml.asked 2>/dev/null)" "$allowed $allowed"
echo 3 3 >nvml.near
echo 0 1 >nvml.node
is 'two nodes are no place' "$(masks --local)" "$allowed $allowed"
rm nvml.near
is 'the GPU is a node' "$(masks --local)" "$a $b"
hn plan --probe --local true
has 'plan --probe asks, too' "$OUT" "rank 1: processors $b, memory of node 1"
rm nvml.node
is 'an old driver knows nothing' "$(masks --local)" "$allowed $allowed"
echo crash >nvml
is 'a driver in trouble' "$(masks --local)" "$allowed $allowed"
hn --local --bind numa true
has '... is no reason to be silent' "$ERR" 'warning[HN318]: localhost: ranks 0,1 are not bound: the NUMA node of a GPU is not known'

# AMD: two processors and two GPUs, the second of which comes first for HIP.
umount /proc/driver && rm /dev/nvidia*
mount -t tmpfs none /sys/class || skip_all 'sysfs cannot be covered here'
kfd=/sys/class/kfd/kfd/topology/nodes
mkdir -p "$kfd"/{0,1,2,10} /dev/dri
touch /dev/dri/renderD{128,129}
printf 'cpu_cores_count 1\nsimd_count 0\nlocation_id 0\n' | tee "$kfd/0/properties" >"$kfd/1/properties"
amd_gpu() { # NODE BUS MINOR
    printf 'cpu_cores_count 0\nsimd_count 1216\nvendor_id 4098\nlocation_id %d\ndomain 0\ndrm_render_minor %d\ngfx_target_version 90402\nunique_id %d\n' \
        "$(($2 << 8))" "$3" "$((0x1234 + $1))" >"$kfd/$1/properties"
}
amd_gpu 2 0x2b 129
amd_gpu 10 0x1b 128
gpus_at 0 1
is 'AMD: a rank for each GPU, in the order of HIP, at its node' "$(masks --local)" "$b $a"
rm /dev/dri/renderD128
is 'a GPU without its device does not count' "$(masks --local)" "$b"
touch /dev/dri/renderD128
is 'HIP_VISIBLE_DEVICES of the user: nobody knows which GPU' "$(masks --local 2 -x HIP_VISIBLE_DEVICES=1,0)" "$allowed $allowed"
hn plan --probe --local 2 -x HIP_VISIBLE_DEVICES=1,0 true
lacks '... as plan --probe knows' "$OUT" 'memory of node'
is '... a list of one is one slot' "$(masks --local -x HIP_VISIBLE_DEVICES=1)" "$allowed"
hn plan --probe --local -x ROCR_VISIBLE_DEVICES=0 true
has '... in a plan, too' "$OUT" '1 rank'
hn plan --probe --local true
has '... without a list each GPU has its place' "$OUT" 'memory of node'
is '... also as the node has it' "$(ROCR_VISIBLE_DEVICES=1 masks --local 2)" "$allowed $allowed"
is 'CUDA_VISIBLE_DEVICES, which HIP obeys, chooses' "$(CUDA_VISIBLE_DEVICES=1 masks --local)" "$a"
nothing_left 'nothing is left'
done_testing
