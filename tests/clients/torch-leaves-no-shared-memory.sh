#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# However a job with DataLoaders ends: PyTorch's managers of shared memory and Python's resource trackers remove what
# they keep in /dev/shm and the temporary folder; and a checkpoint can be written on SIGTERM and SIGUSR1.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/torch.sh"

# torch_shm_manager makes its folder there.
export TMPDIR=$TMP/tmp
mkdir "$TMPDIR"

# Files in /dev/shm have the number of the process that made them in their name, or a name that the rank tells.
left() {
    local pid name
    for pid in $(sed -n 's/^pids //p' "$OUT"); do
        find /dev/shm -name "torch_${pid}_*"
    done
    for name in $(sed -n 's/^name //p' "$OUT"); do
        find /dev/shm -name "$name"
    done
    find "$TMPDIR" -name 'torch-shm-dir-*'
}

clean() { # NAME
    is "$1: the ranks had shared memory" "$(($(grep -c '^pids' "$OUT") > 0))" 1
    is "$1: nothing of it is left" "$(left)" ''
    lacks "$1: no rank had to be killed" "$ERR" 'to be killed'
}

for start_method in fork spawn; do
    for end in raise kill exit; do
        [[ $start_method$end != spawn[ek]* ]] || continue # the same for managers
        torch_hn --local 2 --grace 60s torch_shared.py "$start_method" "$end"
        clean "$start_method, $end"
    done
    torch_words torch_shared.py "$start_method" save
    start --local 2 --label none --grace 60s "${words[@]}"
    wait_for count_is '^up' 2
    kill -USR1 "$PID"
    ok "$start_method: SIGUSR1 saves" wait_for count_is '^saved SIGUSR1' 2
    kill -TERM "$PID"
    finish
    is "$start_method: SIGTERM saves" "$RC $(grep -c '^saved SIGTERM' "$OUT")" '143 2'
    clean "$start_method, SIGTERM"
done
done_testing
