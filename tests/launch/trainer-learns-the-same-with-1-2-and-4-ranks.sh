#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The same global batch gives the same loss curve however many ranks share it.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

[[ -x $PLAIN/examples/train ]] || skip_all 'the trainer was not built (no Gloo)'

curve() { # RANKS: "epoch loss" rounded to four digits
    hn --local "$1" --label none "$PLAIN/examples/train" --epochs 6
    exits "$1 ranks: the trainer gives 0" 0
    awk '$1 == "epoch" { printf "%d %.4f\n", $2, $4 }' "$OUT" >"curve.$1"
    is "$1 ranks: six epochs" "$(wc -l <"curve.$1")" 6
    ok "$1 ranks: at least 95 %" awk '$1 == "epoch" { last = $7 } END { exit !(last >= 95) }' "$OUT"
}

curve 1
curve 2
has '2 ranks end with the same parameters' "$OUT" 'parameters of 2 ranks are identical'
curve 4
has '4 ranks end with the same parameters' "$OUT" 'parameters of 4 ranks are identical'
same '2 ranks: the curve of 1 rank' curve.2 curve.1
same '4 ranks: the curve of 1 rank' curve.4 curve.1
hn --local 1 --label none "$PLAIN/examples/train" --epoch-count 6
exits 'an option that there is not' 64
has 'those that there are' "$ERR" 'train [--data FILE]'

done_testing
