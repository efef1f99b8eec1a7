#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A hostfile of localhost lines works on a machine without any sshd.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

echo 'localhost slots=4' >hosts
hn -H hosts --label none sh -c 'echo "$RANK of $WORLD_SIZE"'
exits 'four slots on localhost' 0
is 'four ranks' "$(sort "$OUT" | tr '\n' ' ')" '0 of 4 1 of 4 2 of 4 3 of 4 '
hn -w localhost:2 --label none sh -c 'echo "$RANK"'
is '-w localhost:2' "$(sort "$OUT" | tr '\n' ' ')" '0 1 '
hn -H hosts -n 2 --label none sh -c 'echo "$WORLD_SIZE"'
is '-n 2 takes the first two slots' "$(sort -u "$OUT")" 2
hn --local 64 true
exits '--local 64 on any machine' 0
run env -i PATH="$PATH" "$HNLAUNCH" -H hosts true
exits 'an empty environment is enough' 0
nothing_left 'nothing is left'
done_testing
