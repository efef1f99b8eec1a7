#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Groups: the members alone meet, splits order them, and a member with another list is named.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

groups=$BUILD/tests/clients/groups
for n in 1 2 3 4 7; do
    hn --local "$n" --label none "$groups"
    exits "groups of $n ranks" 0
    is "$n ranks are content" "$(cat "$OUT")" ok
done
run "$groups"
is 'a world of one has groups, too' "$(cat "$OUT")" ok

hn --local 4 --label none "$groups" mismatch
exits 'different lists are an answer' 0
is 'both ranks hear it' "$(wc -l <"$OUT")" 2
is 'and the same' "$(sort -u "$OUT" | wc -l)" 1
ok 'the rank that differs is named, with both lists' grep -qE \
    '^barrier `team`: (rank 1 \(localhost\) lists members 0,1 where rank 0 lists 0,1,2|rank 0 \(localhost\) lists members 0,1,2 where rank 1 lists 0,1)$' "$OUT"
nothing_left 'nothing is left'
done_testing
