#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Groups across nodes: the ranks of each node, the leaders, halves, pairs around the ring.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/lab.sh
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 3 2
lab_hn -H "$TMP/hosts.txt" --label none "$PLAIN/tests/clients/groups"
exits 'six ranks on three nodes' 0
is 'all groups are right' "$(cat "$OUT")" ok
lab_hn -H "$TMP/hosts.txt" --map node --label none "$PLAIN/tests/clients/groups"
exits 'ranks dealt to the nodes one by one' 0
is 'these groups are right, too' "$(cat "$OUT")" ok
lab_nothing_left 'nothing is left'
done_testing
