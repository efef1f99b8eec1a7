#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A rank dies, or hangs, in the first, middle or last call of each function of CUDA that NCCL needs to set a
# communicator up: the others hear who died, or have an answer when their time is over. tests/lib/setup_faults.py has
# how a launch is judged.
#
#   HN_FAULTS=all      every try, and a table; HN_FAULTS=REGEX: those whose name matches, such as 'cudaMalloc/.* die'
#   HN_FAULTS=N        another number of tries (default 12)
#   SEED=N             another sample; the same SEED takes the same tries
faults=${HN_FAULTS:-12} # the next line unsets it
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"

gpu_build setup_faults
gpu_needed 'faults in the calls of the setup'
if ! grep -q ' fakegpu$' "$TMP/gpus"; then
    skip 'faults in the calls of the setup' 'for simulated GPUs: sh tests/gpu/run.sh --fake'
    done_testing
fi

mkdir "$TMP/tries"
# Most of the time they wait.
export HNLAUNCH WORK=$TMP/tries JOBS=${JOBS:-$(($(nproc) * 2))} SEED=${SEED:-1}
tell_results python3 "$ROOT/tests/lib/setup_faults.py" "$TMP/setup_faults" "$faults"
nothing_left 'nothing is left'
done_testing
