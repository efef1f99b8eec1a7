#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The whole head with simulated nodes (tests/bench/scale.h): every rank joins, meets all others in a
# barrier and exits 0, whatever the number of nodes; around powers of two, where tables grow. The end
# of a failed job costs each node the same, however many they are.

. "$(dirname "$0")/../lib/tap.sh"

for n in 1 63 64 65 127 128 129 1023 1024 1025; do
    run "$BUILD/tests/bench/scale" "$n" 8
    exits "$n nodes: the job ends well" 0
    has "$n nodes: $((n * 8)) ranks have exited 0 after all had joined" "$OUT" \
        "\"ranks\": $((n * 8)), \"exit\": 0, \"joined\": $((n * 8)),"
done

run "$BUILD/tests/bench/scale" 1025 8
has 'the last node is counted as ready' "$ERR" 'agent 1025/1025'
has 'all ranks have been started' "$ERR" 'start 8200/8200'

bytes_per_node() { # sent by the head, of the last run
    sed -n "s/.*\"bytes_down\": \([0-9]*\).*/\1/p" "$OUT" | awk -v n="$1" '{ print int($1 / n) }'
}

run "$BUILD/tests/bench/scale" 65 8 fail
exits '65 nodes: rank 0 fails, all others are stopped' 0
has 'its code is the exit code' "$OUT" '"exit": 3,'
has 'and it is named' "$ERR" '--> rank 0 '
few=$(bytes_per_node 65)
run "$BUILD/tests/bench/scale" 1025 8 fail
exits '1025 nodes: the same' 0
has 'all others were stopped' "$ERR" '8199 ranks were stopped by hnlaunch'
many=$(bytes_per_node 1025)
ok "a node is told as much of $((1025 * 8)) ranks that end ($many bytes) as of $((65 * 8)) ($few)" \
    test "$many" -lt $((few * 2))

run "$BUILD/tests/bench/scale" 129 8 lose
exits '129 nodes, 65 of which are lost at once: 125' 0
has 'the job is over' "$OUT" '"exit": 125,'
has 'one of them is named' "$ERR" '--> node00'
has 'the ranks of the others were stopped' "$ERR" '512 ranks were stopped by hnlaunch'

done_testing
