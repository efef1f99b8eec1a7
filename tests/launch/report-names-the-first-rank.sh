#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: report-names-the-first-rank.sh [RUNS [SEED]]
#
# Real runs of several sizes fail in seeded ways: hnlaunch report names the rank that began it, and no later than the
# failure. Without arguments 12 runs; more by hand.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

runtime_dir
python3 -c 'import json' || skip_all 'needs python3'
runs=${1-12} seed=${2-20261125}
RANDOM=$seed
ways=(crash error exit sleep stop)
right=0

for ((i = 0; i < runs; i++)); do
    way=${ways[RANDOM % 5]} ranks=$((2 + RANDOM % 7)) step=$((2 + RANDOM % 60)) ms=$((1 + RANDOM % 8))
    rank=$((RANDOM % ranks))
    hn --label none --local "$ranks" "$BUILD/tests/clients/failing" "$way" "$rank" "$step" "$ms"
    found=$("$HNLAUNCH" report --json | python3 -c "import json, sys
r = json.load(sys.stdin)
d = r['divergence']
print(d and d['rank'], bool(d) and 0 < d['us'] <= r['failed_us'], d and d['text'])")
    if [[ $found == "$rank True "* ]]; then
        right=$((right + 1))
    else
        printf '# seed %s, run %d: %s %d of %d ranks at step %d of %d ms: %s\n' "$seed" "$i" "$way" "$rank" "$ranks" "$step" "$ms" "$found"
    fi
done
is "the rank that began it is named in all $runs runs (seed $seed)" "$right" "$runs"
done_testing
