#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A role without GPUs sees none beside roles that have some, in a world of its own or in theirs, unless its -x says otherwise. Where no rank of
# the node has GPUs all stays as the node has it.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/driver_files.sh
. "$ROOT/tests/lib/driver_files.sh"

type -P cc >/dev/null || skip_all 'no compiler here'
in_mount_namespace "$@"
for i in 0 1 2 3; do
    echo "$i GPU-00000000-0000-0000-0000-00000000000$i 0000:1$i:00.0"
done >"$TMP/gpus"
driver_files "$TMP/gpus" || skip_all 'the driver'\''s folder cannot be made here'
mkdir lib
cc -shared -fPIC -o lib/libnvidia-ml.so.1 "$ROOT/tests/lib/fake_nvml.c" || skip_all 'the compiler makes no libraries'
export LD_LIBRARY_PATH=$PWD/lib FAKE_NVML_GPUS=4

hosts=(-w localhost:4 --label none)
show=(sh -c 'echo "$HN_ROLE $RANK ${CUDA_VISIBLE_DEVICES-as it is}"')

hn "${hosts[@]}" --role t -n 2 --gpus-per-rank 2 "${show[@]}" : --role r --on t "${show[@]}" : --role w --on t -x CUDA_VISIBLE_DEVICES=3 "${show[@]}" : \
    --role s --on t --share-gpus "${show[@]}"
exits 'helpers run beside ranks with GPUs' 0
is 'a helper sees none, but for what -x says' "$(sort "$OUT")" 'r 0 
s 0 0
t 0 0,1,2,3
t 1 0,1,2,3
w 0 3'
hn "${hosts[@]}" --role t -n 2 --world all "${show[@]}" : --role r --on t --world all "${show[@]}"
exits 'in one world' 0
is 'it is so, too' "$(sort "$OUT")" 'r 2 
t 0 0,1
t 1 0,1'
hn "${hosts[@]}" --gpu-visibility own --role t -n 2 "${show[@]}" : --role r --on t "${show[@]}"
is 'and where each rank sees its own' "$(sort "$OUT")" 'r 0 
t 0 0
t 1 1'
hn "${hosts[@]}" --gpus-per-rank 0 --role t -n 2 "${show[@]}" : --role r --on t "${show[@]}"
is 'without GPUs of any rank nothing is set' "$(sort "$OUT")" 'r 0 as it is
t 0 as it is
t 1 as it is'
done_testing
