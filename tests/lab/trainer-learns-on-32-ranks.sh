#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The real trainer on 8 nodes x 4 ranks learns the digits, and every rank ends with the same weights.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

[[ -x $PLAIN/examples/train ]] || skip_all 'the trainer was not built (no Gloo)'
export LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=$TMP/cache"
lab_up 8 4
cd "$ROOT" || exit 1

lab_hn -H "$TMP/hosts.txt" --label none "$PLAIN/examples/train" --epochs 3
exits 'the trainer gives 0' 0
accuracy=$(grep -Eo '[0-9]+(\.[0-9]+)? ?%' "$OUT" | tail -n 1 | tr -d ' %')
ok "it reaches 93 % (${accuracy:-nothing} %)" awk -v a="${accuracy:-0}" 'BEGIN { exit !(a >= 93) }'
has 'all 32 ranks end with the same weights' "$OUT" 'parameters of 32 ranks are identical'
weights=$(grep -Eo 'identical: [0-9a-f]+' "$OUT")
hn --local 32 --label none "$PLAIN/examples/train" --epochs 3
has 'the same weights as 32 ranks on one machine' "$OUT" "${weights:-no weights}"
lab_nothing_left 'nothing is left'
done_testing
