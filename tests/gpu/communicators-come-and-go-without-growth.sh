#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Communicators, splits of splits and several at once, made and torn down: neither rank nor agent nor head keeps
# descriptors, threads, memory or keys of them.
#
#   HN_CHURN=N     N rounds with four ranks, and 5/3 N with one, of twenty communicators each (default 6); a round of
#                  one rank takes five seconds
rounds=${HN_CHURN:-6} # the next line unsets it
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"

gpu_build comm_churn
gpu_needed 'many communicators'
export MALLOC_ARENA_MAX=1 # see lib/census.h
# However many rounds: NCCL's RAS remembers something, and holes in the heap grow in steps of some MiB.
declare -A ALLOWED=([heap-KiB]=256 [KiB]=8192)

# A job's output goes to $TMP/NAME.out, its exit code to $TMP/NAME.code.
churn() { # NAME N ROUNDS
    RC=0
    timeout -k 5 "$(scaled $((60 + 8 * $3)))" sh -c 'echo $$ >"$0"; exec "$@"' "$TMP/$1.pid" \
        "$HNLAUNCH" --local "$2" --oversubscribe --label none -x HNLAUNCH_BACKENDS \
        sh -c '[ "$HN_WORLD_SIZE" -le "$0" ] || export NCCL_HOSTID="$HN_RANK"; exec "$@"' "$GPUS" \
        "$TMP/comm_churn" "$3" "$TMP/$1.pid" >"$TMP/$1.out" 2>"$TMP/$1.err" || RC=$?
    echo "$RC" >"$TMP/$1.code"
}

did_not_grow() { # NAME ROUNDS
    local who what first last most
    OUT=$TMP/$1.out ERR=$TMP/$1.err
    is "$1: $2 rounds" "$(<"$TMP/$1.code")" 0
    is "$1: all is counted" "$(wc -l <"$OUT")" 14
    while read -r who what first last; do
        most=$((first + ${ALLOWED[$what]-0}))
        if ((last <= most)); then
            pass "$1: no growth: $who $what $first, $last at the end"
        else
            fail "$1: no growth: $who $what $first, $last at the end"
        fi
    done <"$OUT"
}

# They mostly wait.
single_rounds=$((rounds * 5 / 3))
churn 'one rank' 1 "$single_rounds" &
churn 'four ranks' 4 "$rounds" &
wait
did_not_grow 'one rank' "$single_rounds"
did_not_grow 'four ranks' "$rounds"
nothing_left 'nothing is left'
done_testing
