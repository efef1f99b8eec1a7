#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two jobs on one node: NCCL's RAS answers on the address that hnlaunch gave each of them, for that job alone.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"

gpu_build setup_faults
gpu_needed 'RAS of two jobs'
if ((NCCL_MINOR < 24)); then
    skip 'RAS of two jobs' "NCCL 2.$NCCL_MINOR has none"
    done_testing
fi
unset "${!NCCL_RAS_@}"

job() { # NAME RANKS: each of them a host of its own to NCCL, which may share GPUs
    timeout -k 5 "$(scaled 60)" "$HNLAUNCH" --local "$2" --oversubscribe --label none \
        sh -c 'NCCL_HOSTID=$HN_RANK exec "$@"' sh "$TMP/setup_faults" hold 60000 "$TMP/stop" >"$TMP/$1" 2>"$TMP/$1.err"
    echo "$?" >"$TMP/$1.code"
}

# The row of the table of communicators: number, communicators, nodes, ranks per node, per communicator and in all,
# status, errors.
communicators() { awk '/^Group/ { table = 1 } table && $1 == "0" { print $2, $5, $6, $7, $8; exit }' "$OUT"; }

job two 2 &
job three 3 &
for name in two three; do
    ok "the job of $name ranks has a communicator" wait_for test -s "$TMP/$name"
done
ok 'the addresses differ' not cmp -s "$TMP/two" "$TMP/three"
for count in 'two 2' 'three 3' 'two 2'; do
    read -r name ranks <<<"$count"
    run python3 "$ROOT/tests/lib/ras_ask.py" "$(<"$TMP/$name")"
    exits "RAS answers for the job of $name ranks" 0
    is 'it has one communicator of those ranks, running' "$(communicators)" "1 $ranks $ranks RUNNING OK"
done
: >"$TMP/stop"
wait
is 'both jobs end well' "$(cat "$TMP/two.code" "$TMP/three.code" | tr '\n' ' ')" '0 0 '
nothing_left 'nothing is left'
done_testing
