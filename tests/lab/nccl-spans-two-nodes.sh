#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# NCCL's own code between two nodes: simulated GPUs, real sockets over the network that the launcher has proved.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"

[[ $NCCL_KIT != none ]] || skip_all 'no NCCL could be fetched'
unset NCCL_SOCKET_IFNAME # the launcher tells it
lab_up 2 2
mkdir "$TMP/fabric" # nodes have a /dev/shm each

# The namespaces of a lab are on one machine: NCCL_HOSTID makes hosts of them.
on_nodes() { # ARG...
    lab_hn -H "$TMP/hosts.txt" --label none --grace 60s -x "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" \
        -x "FAKENCCL_DIR=$TMP/fabric" -x NCCL_MAX_NCHANNELS=2 -x NCCL_IB_DISABLE=1 -x NCCL_DEBUG=INFO \
        -x NCCL_DEBUG_FILE=/dev/stderr sh -c 'trap "" TERM; NCCL_HOSTID=$HN_NODE_RANK exec "$@"' sh "$@"
}

for version in 2.22 2.29; do
    if ! timeout 100 bash "$ROOT/tests/lib/fakegpu_kit.sh" "$NCCL_KIT" "$version" 2>"$TMP/kit.log"; then
        skip "NCCL $version between nodes" "$(tail -n 1 "$TMP/kit.log" | cut -c1-160)"
        continue
    fi
    export CUDA_HOME=$NCCL_KIT/fake/cuda NCCL_HOME=$NCCL_KIT/fake/nccl-$version LD_LIBRARY_PATH=
    gpu_build allreduce calls train setup_faults
    on_nodes "$TMP/allreduce" -e 1M -f 32 -n 1 -w 0
    is "NCCL $version, four ranks on two nodes: all is right" "$(tail -n 1 "$OUT")" '# all results are right'
    ok 'NCCL knows of two nodes' grep -qE 'nNodes 2\b' "$ERR"
    ok 'and connects them by sockets' grep -qE 'via NET/Socket' "$ERR"
    on_nodes "$TMP/calls"
    is 'every call of hnlaunch/nccl.h, in the world and in halves that span the nodes' "$(cat "$OUT")" ok
    on_nodes "$TMP/train" --epochs 3
    ok 'the trainer has the losses of Gloo' grep -qE '^epoch +3 +loss 0\.29376 ' "$OUT"
    on_nodes "$TMP/setup_faults" join 60000 3 die:cudaHostRegister
    is 'a rank of the other node dies during setup: the others hear who' \
        "$(grep -cE 'HN_ERR_PEER, nothing.*: rank 3 ' "$OUT")" 3
done

# RAS answers with addresses of nodes and numbers of processes, which two nodes may have alike.
if [[ $NCCL_HOME == *2.29 && -e $NCCL_HOME/lib/libnccl.so.2 ]]; then
    gpu_build ras_hang
    export XDG_RUNTIME_DIR=$TMP/runtime
    mkdir -m 700 "$XDG_RUNTIME_DIR"
    for tree in '' '--tree 1'; do
        # shellcheck disable=SC2016,SC2086
        lab_start -H "$TMP/hosts.txt" $tree --label none -x "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" -x NCCL_MAX_NCHANNELS=2 \
            -x NCCL_IB_DISABLE=1 sh -c 'NCCL_HOSTID=$HN_NODE_RANK exec "$@"' sh "$TMP/ras_hang" barrier 2
        ok "${tree:-directly}: ranks of two nodes have met" wait_for lines_are "$OUT" 4
        "$HNLAUNCH" why >why.out
        has "${tree:-directly}: why knows which rank of the other node is behind" why.out ' (4 ranks): rank 2 has launched 4 AllReduce, the other 3 ranks 5'
        kill -INT "$PID"
        sleep 0.1 # within 50 ms both would be one
        kill -INT "$PID"
        finish
    done
fi
lab_nothing_left 'nothing is left'
done_testing
