#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Dumps of PyTorch's flight recorder come from all nodes to the log folder, directly and through a tree, also when
# another node's rank has failed.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

unset "${!NCCL_@}" "${!TORCH_@}"
lab_up 3 2
# Rank 5 fails when all have written; the others are stopped.
write='head -c 400000 /dev/zero | tr "\0" "$RANK" >"$TORCH_FR_DUMP_TEMP_FILE$RANK"; echo written; sleep 600 & wait'
fail='head -c 400000 /dev/zero | tr "\0" 5 >"${TORCH_FR_DUMP_TEMP_FILE}5"; until [ "$(cat said/* | grep -c written)" -ge 5 ]; do sleep 0.1; done; exit 3'
for tree in '' '--tree 1'; do
    rm -rf logs said
    mkdir said
    # shellcheck disable=SC2086,SC2016
    lab_hn -H "$TMP/hosts.txt" --ppn 2 $tree --log-dir logs --label none \
        bash -c "if [ \$RANK = 5 ]; then $fail; else exec 1>said/\$RANK; $write; fi"
    exits "${tree:-directly}: the exit code of the rank" 3
    for rank in 0 1 2 3 4 5; do
        ok "${tree:-directly}: the dump of rank $rank is whole" test "$(tr -d "$rank" <logs/latest/flight-recorder/nccl_trace_rank_$rank | wc -c) $(
            wc -c <logs/latest/flight-recorder/nccl_trace_rank_$rank)" = '0 400000'
    done
    has "${tree:-directly}: it is told" "$ERR" 'flight-recorder: ranks 0-5'
done
nothing_left 'nothing is left'
done_testing
