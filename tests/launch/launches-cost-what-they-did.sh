#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The instructions and system calls of six launches are at most 5 % above the table tests/bench/counts.txt. Counts are the
# same on a loaded machine. To raise one: tests/bench/counts --write, and a line in CHANGELOG.md.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

run env BUILD="$PLAIN" "$ROOT/tests/bench/counts"
[[ $RC != 77 ]] || skip_all "$(sed 's/^counts: //' "$ERR" | tail -1)"
is 'each launch could be counted' "$RC $(grep -v 'too many$' "$ERR")" "$RC "
while read -r launch what; do
    case $what in
    *'too many') fail "$launch: $what" 'the third column is the table, of which 5 % more are allowed' ;;
    *) pass "$launch: ${what%% [0-9]*}" ;;
    esac
done < <(tr -s ' ' <"$OUT")
ok 'all six were counted' test "$(cut -d' ' -f1 "$OUT" | sort -u | wc -l)" = 6
done_testing
