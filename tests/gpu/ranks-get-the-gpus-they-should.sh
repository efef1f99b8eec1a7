#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The GPUs that the driver has are found, and CUDA shows each rank those that hnlaunch meant for it.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"
. "$ROOT/tests/lib/driver_files.sh"

gpu_needed 'GPUs of ranks'
# Simulated ones have no files, so hnlaunch does not count them: here they get some, in a mount namespace.
if [[ ${1-} == inside ]] || grep -q ' fakegpu$' "$TMP/gpus"; then
    in_mount_namespace "$@"
    driver_files "$TMP/gpus"
fi
# As hnlaunch counts them, whichever CUDA calls the first.
CUDA_DEVICE_ORDER=PCI_BUS_ID "$TMP/devices" >"$TMP/gpus"
mapfile -t uuids < <(awk '{ print $2 }' "$TMP/gpus")

shown() { # ARG...: the UUIDs that each rank is shown, "RANK:UUID,UUID"
    hn "$@" --label none -x CUDA_DEVICE_ORDER=PCI_BUS_ID \
        sh -c 'printf "%s:%s\n" "$HN_RANK" "$("$0" | cut -d" " -f2 | paste -sd,)"' "$TMP/devices"
    sort "$OUT"
}

all=$(IFS=, && echo "${uuids[*]}")
node='' own=''
for ((i = 0; i < GPUS; i++)); do
    node+=$i:$all$'\n'
    own+=$i:${uuids[i]}$'\n'
done
is 'without a number, as many ranks as GPUs' "$(shown --local)" "${node%$'\n'}"
is '--ppn gpu, too' "$(shown --local --ppn gpu)" "${node%$'\n'}"
is 'own: each rank sees its own' "$(shown --local -o run.gpu_visibility=own)" "${own%$'\n'}"
is '0 GPUs per rank: nothing is hidden' "$(shown --local 2 --gpus-per-rank 0 | head -n 1)" "0:$all"
is 'a rank with all of them' "$(shown --local 1 --gpus-per-rank "$GPUS" -o run.gpu_visibility=own)" "0:$all"
hn_exits 'more ranks than GPUs is an error' 69 -w localhost --ppn $((GPUS + 1)) true
is '--oversubscribe: they share' "$(shown --local $((GPUS + 1)) --oversubscribe -o run.gpu_visibility=own | sed -n "$((GPUS + 1))p")" \
    "$GPUS:${uuids[0]}"
last=$((GPUS - 1))
is 'the shell hides all but one, by number' \
    "$(CUDA_VISIBLE_DEVICES=$last shown --local -o run.gpu_visibility=own)" "0:${uuids[last]}"
if grep -qs "${uuids[0]}" /proc/driver/nvidia/gpus/*/information; then
    is 'by UUID' \
        "$(CUDA_VISIBLE_DEVICES=${uuids[last]} shown --local -o run.gpu_visibility=own)" "0:${uuids[last]}"
    is 'by the beginning of a UUID' \
        "$(CUDA_VISIBLE_DEVICES=${uuids[0]:0:12} shown --local -o run.gpu_visibility=own)" "0:${uuids[0]}"
else
    skip 'by UUID' "the driver's files in /proc do not tell it here"
fi
is 'the shell hides all: a rank sees none' "$(CUDA_VISIBLE_DEVICES='' shown --local 1)" '0:'
nothing_left 'nothing is left'
done_testing
