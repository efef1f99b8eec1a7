#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# NCCL where it cannot work: an answer with a sentence, in every rank, and soon. With the real libraries, the
# oldest and the newest from PyPI.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/nccl.sh"

HNLAUNCH=$PLAIN/hnlaunch
export NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=NONE HNLAUNCH_BACKENDS=$PLAIN
source=$ROOT/tests/clients/nccl_calls.c
many=$TMP/many

# --- hnlaunch/nccl.h ------------------------------------------------------------------------------

without_gpu() { # CALLS
    local begin=$SECONDS
    hn --local 2 --label none --grace 60s sh -c 'trap "" TERM; exec "$0" join' "$1"
    exits 'without a GPU there is no communicator' 3
    is 'every rank says so' "$(grep -c '^nothing HN_ERR_' "$OUT")" 2
    ok 'and why' grep -qE '^nothing HN_ERR_BACKEND: (ncclGetUniqueId|ncclCommInitRank|NCCL): ' "$OUT"
    ok 'within half a minute' test $((SECONDS - begin)) -lt "$(scaled 30)"
    sed 's/^/# /' "$OUT"
}

exchange() { # CALLS
    hn --local 2 --label none "$1" ids
    is 'one id goes by broadcast' "$(cat "$OUT")" '1 ids, 0 of them in the store'
    hn --local 5 --label none "$many" ids
    is 'several ids go by the store, and leave it' "$(cat "$OUT")" '3 ids, 3 of them in the store'
}

# TERM is ignored: what the ranks say, they say because of what they heard.
a_rank_dies() { # CALLS
    local begin
    now_ms
    begin=$MS
    hn --local 3 --label none --grace 60s sh -c 'trap "" TERM; exec "$0" join 1' "$1"
    now_ms
    is 'a rank dies before it comes: the others stop waiting' "$(grep -c '^nothing HN_ERR_PEER: .*rank 1 ' "$OUT")" 2
    # It comes after a second; left alone they would wait for a minute, and say so.
    ok 'soon after that' test $((MS - begin)) -lt 30000
    exits 'and the job ends with its code' 137
}

now_ms() { MS=$((${EPOCHREALTIME/./} / 1000)); }

built=()
for which in OLDEST NEWEST; do
    if ! nccl_kit "$which"; then
        skip "the real NCCL, $which" "$NCCL_LACKS"
        continue
    fi
    echo "# NCCL 2.$NCCL_MINOR"
    calls=$TMP/$which
    ok "a program is built with it" nccl_cc "$calls" "$source"
    ok 'and one that shares more ids' nccl_cc "$many" "$source" -DHN_NCCL_RANKS_PER_ID=2
    built+=("$calls")
    kit=$NCCL_LIBS
    [[ -e /dev/nvidiactl ]] || without_gpu "$calls"
    exchange "$calls"
    a_rank_dies "$calls"
done
if [[ ${#built[@]} == 2 ]]; then
    hn --local 2 --label none --grace 60s sh -c 'trap "" TERM; [ "$HN_RANK" = 0 ] && exec "$0" join; exec "$1" join' "${built[@]}"
    exits 'two NCCLs in one world: there is no communicator' 3
    is 'each rank names both' "$(grep -cE '^nothing HN_ERR_MISMATCH: rank 0 \(localhost\) has NCCL 2\.14\.[0-9]+, rank 1 \(localhost\) has NCCL 2\.[0-9]+\.[0-9]+: all ranks need the same ' "$OUT")" 2
fi

# --- the backend `nccl` ---------------------------------------------------------------------------

opens() { # NAME WANT [-x ...]: what hn_comm_create() says in both ranks
    local name=$1 want=$2
    shift 2
    hn --local 2 --label none -x HNLAUNCH_BACKENDS "$@" "$PLAIN/tests/clients/collectives_random" 1 nccl open
    exits "$name: no communicator" 3
    is "$name: each rank says why" "$(grep -cE "$want" "$OUT")" 2
    sed 's/^/# /' "$OUT"
}

if [[ -e /dev/nvidiactl ]]; then
    skip 'the backend nccl without a driver' 'this machine has a GPU'
else
    # What lies first in the path is no NCCL at all, then one without what we need.
    mkdir broken empty
    : >broken/libnccl.so.2
    opens 'no NCCL' '^HN_ERR_UNSUPPORTED: there is no NCCL here \(.*\): install it, or name its folder: hnlaunch -x LD_LIBRARY_PATH=' \
        -x "LD_LIBRARY_PATH=$PWD/broken"
    gcc -shared -o empty/libnccl.so.2 -x c /dev/null
    opens 'an old NCCL' '^HN_ERR_UNSUPPORTED: the NCCL here has no ncclGetVersion: it must be 2.14 or newer$' \
        -x "LD_LIBRARY_PATH=$PWD/empty"
    if [[ -n ${kit-} ]]; then
        opens 'no driver' '^HN_ERR_UNSUPPORTED: there is no NVIDIA driver here \(.*libcuda.so.1.*\): .*`gloo`$' \
            -x "LD_LIBRARY_PATH=$kit"
        # As PyTorch's, which no search path leads to.
        opens 'an NCCL that the program has loaded' 'there is no NVIDIA driver here' \
            -x "LD_LIBRARY_PATH=$PWD/broken" -x "LD_PRELOAD=${kit%%:*}/libnccl.so.2"
    fi
fi
nothing_left 'nothing is left'
done_testing
