#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs that use libhnlaunch meet, share keys and count together under hnlaunch.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

clients=$BUILD/tests/clients
for name in store_ops large_values all_gather threads; do
    hn --local 4 --label none "$clients/$name"
    exits "$name on four ranks gives 0" 0
    is "$name is content" "$(cat "$OUT")" ok
done

hn --local 3 --label none "$clients/barrier_timeout"
exits 'a late rank does not break a barrier' 0

hn --local 2 --label none "$clients/singleton"
is 'a program started with hnlaunch has its rank' "$(sort "$OUT" | tr '\n' ' ')" 'rank 0 of 2 rank 1 of 2 '
run "$clients/singleton"
is 'the same program started by hand is a world of one' "$(cat "$OUT")" 'rank 0 of 1'
nothing_left 'nothing is left'
done_testing
