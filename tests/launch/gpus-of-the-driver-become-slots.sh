#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The files of an NVIDIA driver make slots, and CUDA_VISIBLE_DEVICES of each rank is what was asked for. Here
# the files are ours, in a mount namespace; tests/gpu/ranks-get-the-gpus-they-should.sh asks real CUDA.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/driver_files.sh
. "$ROOT/tests/lib/driver_files.sh"

if ! [[ $EUID == 0 ]] || ! unshare --mount true 2>/dev/null; then
    skip_all 'needs root (a mount namespace)'
fi
if [[ ${1-} != inside ]]; then
    unshare --mount bash "$ROOT/tests/launch/$(basename "$0")" inside
    code=$? finished=yes
    exit "$code"
fi

# --- three GPUs, in the order of the bus ------------------------------------------------------------

for i in 0 1 2; do
    echo "$i GPU-$i$i$i$i$i$i$i$i-0000-0000-0000-000000000000 0000:1$i:00.0"
done >"$TMP/gpus"
driver_files "$TMP/gpus" || skip_all 'the driver'\''s folder cannot be made here'

# shellcheck disable=SC2016
shown() { # ARG...: "RANK:CUDA_VISIBLE_DEVICES" of each rank, with - for none
    hn "$@" --label none sh -c 'echo "$HN_RANK:${CUDA_VISIBLE_DEVICES--}"'
    sort "$OUT"
}

is 'a rank for each GPU; nothing needs to be said' "$(shown --local)" $'0:-\n1:-\n2:-'
is '--ppn gpu' "$(shown --local --ppn gpu)" $'0:-\n1:-\n2:-'
is 'node: those that the ranks use' "$(shown --local 2)" $'0:0,1\n1:0,1'
is 'own: one each' "$(shown --local --gpu-visibility own)" $'0:0\n1:1\n2:2'
is 'two for one rank' "$(shown --local 1 --gpus-per-rank 2 --gpu-visibility own)" '0:0,1'
is 'GPUs are not assigned' "$(shown --local 2 --gpus-per-rank 0)" $'0:-\n1:-'
is 'more ranks than GPUs share them' "$(shown --local 4 --gpu-visibility own)" $'0:0\n1:1\n2:2\n3:0'
hn -w localhost --ppn 4 true
exits 'but not when a hostfile or -w counts' 69

# Where the environment hides GPUs, they do not count, and stay hidden.
is 'by number: one rank' "$(CUDA_VISIBLE_DEVICES=2 shown --local)" '0:2'
is 'by number, own' "$(CUDA_VISIBLE_DEVICES=2,0 shown --local --gpu-visibility own)" $'0:2\n1:0'
is 'in an order of its own' "$(CUDA_VISIBLE_DEVICES=2,0 shown --local)" $'0:2,0\n1:2,0'
is 'by UUID' "$(CUDA_VISIBLE_DEVICES=GPU-11111111-0000-0000-0000-000000000000 shown --local --gpu-visibility own)" '0:1'
is 'by the beginning of a UUID' "$(CUDA_VISIBLE_DEVICES=GPU-2222 shown --local)" '0:GPU-2222'
is 'all hidden' "$(CUDA_VISIBLE_DEVICES='' shown --local 1)" '0:'
is 'what -x says comes last' "$(CUDA_VISIBLE_DEVICES=2 shown --local 1 --gpus-per-rank 0 -x CUDA_VISIBLE_DEVICES=1)" '0:1'
nothing_left 'nothing is left'
done_testing
