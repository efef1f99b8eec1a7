#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch why asks NCCL's RAS which ranks have launched fewer collectives than others. That is evidence where another
# source says of the same rank that it does not go on, and a note otherwise.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/why.sh"
. "$ROOT/tests/lib/gpu.sh"

gpu_build ras_hang
gpu_needed "RAS in hnlaunch why"
if ((NCCL_MINOR < 24)); then
    skip 'RAS in hnlaunch why' "NCCL 2.$NCCL_MINOR has none"
    done_testing
fi
runtime_dir
unset "${!NCCL_RAS_@}"

# A rank that is about to sleep may still have the processor.
names_rank() { why && [[ $(field "a['kind'], a['outliers']") == "('hang', [2])" ]]; }
# With fewer GPUs each rank is a host of its own to NCCL. Not so on simulated ones: the threads of its network would
# spin for ever after a collective.
own_host='NCCL_HOSTID=$HN_RANK exec "$@"'
((GPUS < 4)) || own_host='exec "$@"'
hangs() { # HOW: four ranks, of which rank 2 is the odd one
    comes_up "$1: all ranks have met" 4 start --local 4 --oversubscribe --label none sh -c "$own_host" sh "$TMP/ras_hang" "$1" 2
    why
}
stop_run() {
    kill -INT "$PID"
    sleep 0.1 # within 50 ms both would be one
    finish_by INT
}
says() { # NAME WHERE TEXT
    if [[ $(field "a['$2']") == *"$3"* ]]; then pass "$1"; else fail "$1" "$(field "a['text'], a['notes']")"; fi
}
behind='ranks): rank 2 has launched 4 AllReduce, the other 3 ranks 5'

# No rank waits for another as far as the store and the stacks tell: GPUs wait, and processes for them.
hangs sleep
ok 'a rank that sleeps before a collective is named' wait_for names_rank
says 'by RAS' text "NCCL's RAS, communicator "
says 'which counts the collectives' text "$behind"
says 'and what it does' text ') sleeps in load_batch'
is 'RAS is among the sources' "$(field "'ras' in a['sources']")" True
has 'its answers are in the report' "$(field "a['file']")" '"collective_counts": {'
stop_run

hangs barrier
ok 'barrier: the rank is named' wait_for names_rank
says 'barrier: by the other sources' text 'ranks 0-1,3 wait in hn_barrier'
says 'barrier: with which RAS agrees' text "NCCL's RAS agrees, communicator "
stop_run

hangs compute
is 'a rank that computes is no hang' "$(field "a['kind'], a['outliers']")" "('no hang', [])"
says 'but RAS is told' notes "NCCL's RAS alone says, communicator "
says 'with its counts' notes "$behind"
is 'and is no source then' "$(field "'ras' in a['sources']")" False
stop_run

hangs even
says 'ranks without a difference' notes ' sees no difference between ranks'
stop_run
hangs run
says 'ranks that launch on and on have none that lasts' notes ' sees no difference between ranks'
stop_run

# Unasked.
hn --local 4 --oversubscribe --label none --hang-after 2s --on-hang stop sh -c "$own_host" sh "$TMP/ras_hang" sleep 2
exits 'a hang that RAS has shown is told unasked' 124
has 'with what RAS says' "$ERR" "warning[HN811]: the ranks hang: NCCL's RAS, communicator "
start -v --local 4 --oversubscribe --label none --hang-after 2s --on-hang stop sh -c "$own_host" sh "$TMP/ras_hang" compute 2
ok 'a rank that computes is looked at' wait_for grep -q 'no rank has gone on for 2.0s, but no hang is visible' "$ERR"
lacks 'and not told' "$ERR" HN811
stop_run

# --- RAS that does not answer well ----------------------------------------------------------------

# A stopped process serves no RAS, but another of its node does.
hangs even
kill -STOP "$(field "a['ranks'][2]['pid']")"
ok 'stopped: the rank is named' wait_for names_rank
says 'stopped: RAS agrees' text ' ranks): rank 2 does not answer'
kill -CONT "$(field "a['ranks'][2]['pid']")"
stop_run
nothing_left 'nothing is left'
done_testing
