#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A role without GPUs sees none beside roles that have some, in a world of its own or in theirs, unless its -x says otherwise. Where no rank of
# the node has GPUs all stays as the node has it.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/driver_files.sh"

in_mount_namespace "$@"
driver_of 4
nvml_library lib
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
hn_exits 'in one world' 0 "${hosts[@]}" --role t -n 2 --world all "${show[@]}" : --role r --on t --world all "${show[@]}"
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
