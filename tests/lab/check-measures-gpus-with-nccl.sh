#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `hnlaunch check --pairs` measures nodes with GPUs with the NCCL of the program, and tells where NCCL fails: simulated
# GPUs, the code of NCCL itself.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"

[[ $NCCL_KIT != none ]] || skip_all 'no NCCL could be fetched'
bash "$ROOT/tests/lib/fakegpu_kit.sh" "$NCCL_KIT" 2.29 2>"$TMP/kit.log" || skip_all "$(tail -n 1 "$TMP/kit.log" | cut -c1-160)"
export CUDA_HOME=$NCCL_KIT/fake/cuda NCCL_HOME=$NCCL_KIT/fake/nccl-2.29 LD_LIBRARY_PATH=
gpu_build allreduce
unset NCCL_SOCKET_IFNAME
export LAB_PRIVATE='/dev/shm /run /mnt'
lab_up 4 1
mkdir -m 777 "$TMP/fabric" # data of simulated GPUs goes from node to node through it

# A node with a GPU and a driver of its own.
for i in 1 2 3 4; do
    lab exec "node00$i" env TMP=/mnt bash -c '
        . "$0/tests/lib/driver_files.sh"
        echo "0 GPU-00000000-0000-0000-0000-000000000000 0000:10:00.0" >/mnt/gpus
        driver_files /mnt/gpus
        mkdir /mnt/lib && cp -a "$1"/lib64/{libcuda.so.1,libnvidia-ml.so.1} "$2"/lib/libnccl.so.2 /mnt/lib/' "$ROOT" "$CUDA_HOME" "$NCCL_HOME"
done
check() { # HOSTS ARG...
    local hosts=$1
    shift
    lab_hn check -H "$hosts" --pairs -x "LD_LIBRARY_PATH=/mnt/lib" -x "FAKENCCL_DIR=$TMP/fabric" \
        -x FAKENCCL_SLOW=/mnt/slow -x NCCL_IB_DISABLE=1 "$@" "$TMP/allreduce"
}
RATE='[0-9.]+ [MG]bit/s'

check "$TMP/hosts.txt" --save good.json
exits 'nodes with GPUs are fit' 0
# Beside others' work a link may be told as slow: the row of the others then goes without the name.
has_row 'the GPUs are measured with NCCL' "(net.bandwidth| ) +pass +[1-4] +$RATE( to $RATE)? over NCCL"
has_row '... in both respects' '(net.latency| ) +pass +[1-4] +[0-9.]+ [mu]s( to [0-9.]+ [mu]s)? over NCCL'
is 'the file of --save tells what was measured' "$(python3 -c '
import json
j = json.load(open("good.json"))
print(j["over"], all(p["bandwidth_mbit"] > 0 and p["latency_us"] > 0 for p in j["pairs"]))')" 'nccl True'
ok 'no helper is left' wait_for eval '! pgrep -x hnlaunch-nccl'

lab exec node003 touch /mnt/slow
check "$TMP/hosts.txt"
exits 'a GPU that is slow is a warning' 0
has_row '... and is named alone' "net.bandwidth +warn +1 +node003: $RATE with (each of [0-9]|[0-9] of [0-9]) peers, 3 others have $RATE"
lab exec node003 rm /mnt/slow

lab exec node002 mv /mnt/lib/libcuda.so.1 /mnt/lib/away
check "$TMP/hosts.txt" --baseline good.json
exits 'NCCL that fails at a node is a failure' 69
has_row '... which is named alone, with the reason' \
    "net.bandwidth +fail +1 +node002: NCCL fails with (each of [0-9]|[0-9] of [0-9]) peers: libcuda.so.1: cannot open shared object file: No such file or directory"
has_row '... others pass' " +pass +3 +$RATE( to $RATE)? over NCCL"
has '... with a next step' "$OUT" 'help: net.bandwidth: run two ranks on the two nodes with NCCL_DEBUG=INFO'
lab exec node002 mv /mnt/lib/away /mnt/lib/libcuda.so.1

head -n 2 "$TMP/hosts.txt" >two
check two -x FAKEGPU_DIE=cuInit
exits 'a test program that dies is a failure' 69
has_row '... and told' 'net.bandwidth +fail +2 +node\[001-002\]: NCCL fails with its only peer: (NCCL has ended the test program|the test program of the peer has ended)'
check two -x FAKEGPU_HANG=cudaStreamCreateWithFlags -x "FAKEGPU_LOG=$TMP/calls"
exits 'NCCL that hangs is a failure' 69
has_row '... and told' 'net.bandwidth +fail +2 +node\[001-002\]: NCCL fails with its only peer: NCCL has not connected the GPUs in time'
is 'a pair takes two helpers' "$(grep -c cuDevicePrimaryCtxRetain "$TMP/calls")" 2
ok 'no helper is left, either' wait_for eval '! pgrep -x hnlaunch-nccl'

lab_hn check -H "$TMP/hosts.txt" --pairs --baseline good.json true
has_row 'TCP is measured where a node has no NCCL' "net.bandwidth +pass +4 +$RATE( over| to $RATE over) TCP: node001 has no NCCL"
has '... and not compared with NCCL' "$OUT" 'not run: baseline: bandwidth was measured over NCCL then, over TCP now'
lab_nothing_left 'nothing is left'
done_testing
