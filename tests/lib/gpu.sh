# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# Programs for GPUs, and the GPUs of this machine: source after tap.sh.
#
#   gpu_build NAME...      compiles them into $TMP, each a test; skips all when there is no NCCL
#   gpu_needed WHAT        ends the script here, with a skip, when there is no GPU; else sets GPUS and fills
#                          $TMP/gpus ("INDEX UUID PCI-ADDRESS NAME" each)
#   gpu_shared N ARG...    hnlaunch with N ranks that may share GPUs: each is a node of its own to NCCL
#
# Names: allreduce alltoall train pipeline (examples), calls (nccl_calls.c), many (the same, an id for two ranks),
# plain, devices, setup_faults, ras_hang, comm_churn (an id for two ranks, too).

. "$ROOT/tests/lib/nccl.sh"

HNLAUNCH=$PLAIN/hnlaunch
export HNLAUNCH_BACKENDS=$PLAIN NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 OMP_NUM_THREADS=1

gpu_compile() { # NAME
    local examples=$ROOT/examples
    case $1 in
        train | pipeline)
            nccl_cc "$TMP/$1" "$examples/$1.c" "$examples/digits.c" -pthread -DUSE_NCCL \
                "-DDATA_FILE=\"$examples/data/digits.csv\""
            ;;
        calls) nccl_cc "$TMP/calls" "$ROOT/tests/clients/nccl_calls.c" ;;
        many) nccl_cc "$TMP/many" "$ROOT/tests/clients/nccl_calls.c" -DHN_NCCL_RANKS_PER_ID=2 ;;
        comm_churn) nccl_cc "$TMP/$1" "$ROOT/tests/gpu/$1.c" -DHN_NCCL_RANKS_PER_ID=2 -pthread ;;
        plain | devices | setup_faults | ras_hang) nccl_cc "$TMP/$1" "$ROOT/tests/gpu/$1.c" ;;
        *) nccl_cc "$TMP/$1" "$examples/$1.c" -DUSE_NCCL ;;
    esac
}

gpu_build() { # NAME...
    local name
    nccl_here || skip_all "$NCCL_LACKS"
    echo "# NCCL 2.$NCCL_MINOR: ${NCCL_SO[*]}"
    for name; do
        ok "$name is built" gpu_compile "$name"
    done
    ((failures == 0)) || done_testing
    # The NCCL that the programs have, for the backend `nccl` as well.
    export LD_LIBRARY_PATH=$NCCL_LIBS${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

gpu_needed() { # WHAT
    gcc -std=c17 -D_GNU_SOURCE -o "$TMP/devices" "$ROOT/tests/gpu/devices.c" -ldl
    if ! "$TMP/devices" >"$TMP/gpus" 2>"$TMP/gpus.why" || [[ ! -s $TMP/gpus ]]; then
        skip "$1" "no GPU ($(cat "$TMP/gpus.why"))"
        done_testing
    fi
    GPUS=$(wc -l <"$TMP/gpus")
    sed 's/^/# GPU /' "$TMP/gpus"
}

gpu_shared() { # N ARG...
    local n=$1
    shift
    LIMIT=${LIMIT:-120} hn --local "$n" --oversubscribe --label none -x HNLAUNCH_BACKENDS \
        sh -c 'NCCL_HOSTID=$HN_RANK exec "$@"' sh "$@"
}
