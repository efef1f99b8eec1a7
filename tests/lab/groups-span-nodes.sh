#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Groups across nodes: the ranks of each node, the leaders, halves, pairs around the ring.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 3 2
lab_hn -H "$TMP/hosts.txt" --label none "$PLAIN/tests/clients/groups"
exits 'six ranks on three nodes' 0
is 'all groups are right' "$(cat "$OUT")" ok
lab_hn -H "$TMP/hosts.txt" --map node --label none "$PLAIN/tests/clients/groups"
exits 'ranks dealt to the nodes one by one' 0
is 'these groups are right, too' "$(cat "$OUT")" ok
if [[ -e $PLAIN/hn_backend_gloo.so ]]; then
    lab_hn -H "$TMP/hosts.txt" --label none "$PLAIN/tests/clients/collectives_random"
    exits 'collectives over the network that the launcher has proved' 0
    ok 'much was compared' test "$(cat "$OUT")" -gt 1000
    lab_hn -H "$TMP/hosts.txt" --label none "$PLAIN/examples/groups" 60
    has 'a grid of groups multiplies across nodes' "$OUT" 'grid of 2 x 3 ranks, 60 x 60 elements, 6 panels: right'
else
    skip 'collectives across nodes' 'built without Gloo'
fi
lab_nothing_left 'nothing is left'
done_testing
