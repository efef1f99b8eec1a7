#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `hnlaunch check` tells ECC errors and processes of GPUs, a missing GPU, and a driver that does not answer. Library and driver's files are made here.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/driver_files.sh
. "$ROOT/tests/lib/driver_files.sh"

type -P cc >/dev/null || skip_all 'no compiler here'
in_mount_namespace "$@"
for i in 0 1 2; do
    echo "$i GPU-$i$i$i$i$i$i$i$i-0000-0000-0000-000000000000 0000:1$i:00.0"
done >"$TMP/gpus"
driver_files "$TMP/gpus" || skip_all 'the driver'\''s folder cannot be made here'
printf 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n' >/proc/driver/nvidia/version
mkdir lib
cc -shared -fPIC -o lib/libnvidia-ml.so.1 "$ROOT/tests/lib/fake_nvml.c" || skip_all 'the compiler makes no libraries'
export XDG_RUNTIME_DIR=$TMP/runtime FAKE_NVML_GPUS=3 FAKE_NVML=$PWD/word LD_LIBRARY_PATH=$PWD/lib
mkdir -m 700 "$XDG_RUNTIME_DIR"
echo fine >word
: >word.processes
echo 0 >word.ecc
row() { ok "$1" grep -qE "^$2\$" "$OUT"; } # NAME REGEX

FAKE_NVML_GPUS=1 hn check --local 3 # of several the library counts errors
row 'the GPUs are counted' 'gpu.count +pass +1 +3'
row '... with their model' 'gpu.model +pass +1 +NVIDIA H100'
row '... and the driver' 'gpu.driver +pass +1 +570.86.15'
row 'no ECC errors' 'gpu.ecc +pass +1 +0'
row 'no processes' 'gpu.processes +pass +1 +0'

echo 2 >word.ecc
hn check --local 3
exits 'ECC errors fail' 69
row '... and are told' 'gpu.ecc +fail +1 +localhost: [0-9]+ \([0-9]+ of GPU [0-9]\), expected 0'
echo 0 >word.ecc

sleep 1000 &
holder=$!
echo "1 $holder 71680" >word.processes
hn check --local 3 --json
ok 'a process on a GPU is told' grep -qE "1 \(pid $holder( sleep)?: [0-9]+ MiB of GPU 1\)" "$OUT"
kill "$holder"
: >word.processes

hn check -w localhost:4
exits 'fewer GPUs than slots fail' 69
row '... and are told' 'gpu.count +fail +1 +localhost: 3, expected 4'

export LD_LIBRARY_PATH=$PWD/none
hn check --local 3
if ! ldconfig -p | grep -q libnvidia-ml.so.1; then
    has 'without the library nothing passes' "$OUT" 'not run: gpu.ecc, gpu.processes: the driver does not answer'
fi
nothing_left 'nothing is left'
done_testing
