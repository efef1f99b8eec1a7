#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A kernel that waits for a dead rank never ends by itself: the launcher's news end it, within a second on a quiet machine.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"

gpu_build calls
gpu_needed 'a killed rank'

# The survivors say how long after its death; TERM is ignored, so it is news that they act upon.
for n in 2 3; do
    gpu_shared "$n" sh -c 'trap "" TERM; exec "$0" lose 1' "$TMP/calls"
    exits "hnlaunch/nccl.h, $n ranks: the job has the code of the killed rank" 137
    is "hnlaunch/nccl.h, $n ranks: the others hear of it" "$(grep -c '^lost after [0-9]* ms: HN_ERR_PEER: .*rank 1 ' "$OUT")" $((n - 1))
    ok 'within a second' awk -v limit="$(scaled 1)000" '/^lost/ && $3 > limit { late = 1 } END { exit late || !NR }' "$OUT"
    sed 's/^/# /' "$OUT"
done
gpu_shared 3 sh -c 'trap "" TERM; exec "$0" 1 nccl' "$PLAIN/tests/clients/collectives"
exits 'hnlaunch/comm.h: the job has the code of the killed rank' 137
for rank in 0 2; do
    ok "hnlaunch/comm.h: rank $rank hears who it was" grep -q "^rank $rank: HN_ERR_PEER: rank 1 " "$ERR"
done
gpu_shared 2 "$TMP/calls" hang 1
exits 'a rank that does not call: the wait has an end' 1
ok 'which says so' grep -q 'HN_ERR_TIMEOUT: the stream is still busy' "$ERR"
nothing_left 'nothing is left'
done_testing
