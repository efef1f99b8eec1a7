#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gloo's collectives give what a sum made by hand gives: all types, operations, and groups.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

[[ -e $BUILD/hn_backend_gloo.so ]] || skip_all 'built without Gloo'
for n in 1 2 3 4; do
    hn --local "$n" --label none "$BUILD/tests/clients/collectives_random"
    exits "$n ranks, in the world, in halves, without one, and alone" 0
    ok 'much was compared' test "$(cat "$OUT")" -gt 1000
    echo "# arrays compared by rank 0: $(cat "$OUT")"
done
hn --local 3 --label none "$BUILD/tests/clients/collectives"
is 'the other program about collectives' "$(cat "$OUT")" ok
# Without TERM the others live long enough to say what they saw. Who writes to the dead one must
# not die of it (SIGPIPE); that takes some tries to meet.
for try in 1 2 3 4 5; do
    hn --local 3 --label none --grace 60s sh -c 'trap "" TERM; exec "$0" 1' "$BUILD/tests/clients/collectives"
    cat "$ERR" >>"$TMP/heard"
    exits "a rank that dies in the middle, $try" 137
    for rank in 0 2; do
        ok "rank $rank sees it" grep -qE "^rank $rank: HN_ERR_(PEER|BACKEND): " "$ERR"
    done
done
# Whoever's connection breaks waits half a second for that news.
ok 'and hears who it was' grep -qE '^rank [02]: HN_ERR_PEER: rank 1 ' "$TMP/heard"

misuse=$BUILD/tests/clients/misused_collectives
hn --local 3 --label none "$misuse" null
is 'what is not there is told, and nothing is begun' "$(cat "$OUT")" ok
hn --local 3 --label none -x HN_CHECK=1 "$misuse" differ
is 'with HN_CHECK=1 all ranks hear who called what' "$(cat "$OUT")" ok
hn --local 3 --label none "$misuse" leave
is 'a rank that ended well in the middle is named' "$(cat "$OUT")" ok
nothing_left 'nothing is left'
done_testing
