#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A network cut in two stages on two devices of each rank gives what it gives in one piece.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

[[ -x $BUILD/hn_backend_gloo.so ]] || skip_all 'built without Gloo'

sum() { # RANKS PROGRAM: what it prints at the end
    hn_exits "$2 on $1 ranks gives 0" 0 --local "$1" --gpus-per-rank 0 --label none "$BUILD/examples/$2" --epochs 4 --accuracy 90
    SUM=$(tail -n 1 "$OUT")
}

for ranks in 1 2; do
    sum "$ranks" train
    whole=$SUM
    sum "$ranks" pipeline
    is "$ranks ranks: the same parameters, to the last bit" "$SUM" "$whole"
    ok 'and there are some' grep -qE 'are identical: [0-9a-f]{16}$' <<<"$SUM"
done
# More ranks share 128 images in micro-batches that are not full; sums come in another order.
sum 5 pipeline
ok '5 ranks: identical parameters' grep -qE '^parameters of 5 ranks are identical' <<<"$SUM"
hn_exits 'too bad a network is an error' 1 --local 2 "$BUILD/examples/pipeline" --accuracy 101
ok 'and it is told by who finds it first' grep -qE 'pipeline: rank [01]: accuracy: ' "$ERR"
start --local 3 --label none sh -c 'trap "" TERM; exec "$0" --epochs 100000' "$BUILD/examples/pipeline"
ok 'it trains' wait_for grep -q 'epoch  2' "$OUT"
kill -KILL "$(processes | while read -r p; do grep -qz '^HN_RANK=1$' "/proc/$p/environ" && echo "$p"; done | tail -n 1)"
exits 'a rank is killed: the job ends' 137 finish
ok 'the other ranks stop by themselves' grep -qE '^pipeline: rank [02]: training stopped: ' "$ERR"
nothing_left 'nothing is left'
done_testing
