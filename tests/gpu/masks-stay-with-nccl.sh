#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# NCCL keeps to the processors of --bind: all threads of a rank with a communicator run there. NCCL binds its threads
# to processors near the GPU, but only to some that the rank had before.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"
. "$ROOT/tests/lib/wait.sh"

mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
((${#cpus[@]} > 1)) || skip_all 'needs two processors'
gpu_build setup_faults
gpu_needed 'masks of ranks with NCCL'

hold() { # ARG...: two ranks with a communicator, until there is $TMP/stop
    rm -f "$TMP"/{stop,pid-0,pid-1,joined}
    timeout -k 5 "$(scaled 60)" "$HNLAUNCH" --local 2 --oversubscribe --label none "$@" sh -c \
        'echo $$ >"$1/pid-$HN_RANK"; NCCL_HOSTID=$HN_RANK exec "$1/setup_faults" hold 60000 "$1/stop"' sh "$TMP" >"$TMP/joined" 2>"$TMP/err" &
    wait_for test -s "$TMP/joined"
}
masks() { # RANK: of its threads, each once
    awk '$1 == "Cpus_allowed_list:" { print $2 }' "/proc/$(<"$TMP/pid-$1")"/task/*/status | sort -u | paste -sd' '
}
threads() { # RANK
    find "/proc/$(<"$TMP/pid-$1")/task" -mindepth 1 -maxdepth 1 | wc -l
}

ok 'two bound ranks have a communicator' hold --bind "list:${cpus[0]};${cpus[1]}"
ok '... and threads of NCCL' test "$(threads 0)" -gt 1
is 'all threads of rank 0 are where it is bound' "$(masks 0)" "${cpus[0]}"
is '... and of rank 1' "$(masks 1)" "${cpus[1]}"
touch "$TMP/stop"
ok 'they end well' wait "$!"
ok 'two unbound ranks have one, too' hold --bind none
is 'their first threads have all processors' "$(awk '$1 == "Cpus_allowed_list:" { print $2 }' "/proc/$(<"$TMP/pid-0")/status")" \
    "$(awk '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status)"
touch "$TMP/stop"
ok 'they end, too' wait "$!"
nothing_left 'nothing is left'
done_testing
