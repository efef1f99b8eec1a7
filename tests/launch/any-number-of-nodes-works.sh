#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The whole head with simulated nodes (tests/bench/scale.h): every rank joins, meets all others in a
# barrier and exits 0, whatever the number of nodes; around powers of two, where tables grow.

. "$(dirname "$0")/../lib/tap.sh"

for n in 1 63 64 65 127 128 129 1023 1024 1025; do
    run "$BUILD/tests/bench/scale" "$n" 8
    exits "$n nodes: the job ends well" 0
    has "$n nodes: $((n * 8)) ranks have exited 0 after all had joined" "$OUT" \
        "\"ranks\": $((n * 8)), \"exit\": 0, \"joined\": $((n * 8)),"
done

run "$BUILD/tests/bench/scale" 1025 8
has 'the last node is counted as ready' "$ERR" 'agents 1025/1025'
has 'all ranks have been started' "$ERR" 'spawn 8200/8200'

done_testing
