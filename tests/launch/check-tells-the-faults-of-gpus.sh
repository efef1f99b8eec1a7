#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `hnlaunch check` tells ECC errors, broken memory, the fabric and processes of GPUs, Xids, a missing GPU, and a driver that does not answer. Library and driver's files are made here.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/driver_files.sh"

in_mount_namespace "$@"
driver_of 3
printf 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n' >/proc/driver/nvidia/version
nvml_library lib
runtime_dir
export FAKE_NVML_GPUS=3 FAKE_NVML=$PWD/word LD_LIBRARY_PATH=$PWD/lib
echo fine >word
: >word.processes
echo 0 >word.ecc

FAKE_NVML_GPUS=1 hn check --local 3 # of several the library counts errors
has_row 'the GPUs are counted' 'gpu.count +pass +1 +3'
has_row '... with their model' 'gpu.model +pass +1 +NVIDIA H100'
has_row '... and the driver' 'gpu.driver +pass +1 +570.86.15'
has_row 'no ECC errors' 'gpu.ecc +pass +1 +0'
has_row 'no processes' 'gpu.processes +pass +1 +0'
has_row 'no memory is replaced' 'gpu.remap +pass +1 +none'
has 'GPUs without a fabric are told' "$OUT" 'not run: gpu.fabric: the driver does not tell the state of the fabric'
has '... and need no IMEX' "$OUT" 'not run: gpu.imex, gpu.imex.daemon: the GPUs are of no NVLink domain of several nodes'

echo 2 >word.ecc
hn_exits 'ECC errors fail' 69 check --local 3
has_row '... and are told' 'gpu.ecc +fail +1 +localhost: [0-9]+ \([0-9]+ of GPU [0-9]\), expected 0'
rm word.ecc

echo 0 1 >word.remap
hn_exits 'memory that cannot be replaced fails' 69 check --local 3
has_row '... with the GPU' 'gpu.remap +fail +1 +localhost: failed \(GPU 1\), expected none'
echo 1 0 >word.remap
hn_exits 'memory to be replaced warns' 0 check --local 3
has_row '... with the GPU, too' 'gpu.remap +warn +1 +localhost: pending \(GPU 1\), expected none'
echo 0 0 >word.remap

alone=$(printf %032d 0)
echo "$alone 0 3 0 0xaa" >word.fabric # each field of two bits says no
hn check --local 3
has_row 'a fabric within the node is ready' 'gpu.fabric +pass +1 +ready'
has '... and needs no IMEX' "$OUT" 'gpu.imex, gpu.imex.daemon: the GPUs are of no NVLink domain'
fabric() { # STATE WORDS
    echo "$alone 0 $1" >word.fabric
    hn_exits "fabric $1 fails" 69 check --local 3
    has_row "... as $2" "gpu.fabric +fail +1 +localhost: $2 \(GPU 0\), expected ready"
}
fabric '1 0 0' 'not started'
fabric '2 0 0' 'in progress'
fabric '3 7 0' error
fabric '3 0 0xa9' 'less bandwidth'
fabric '3 0 0x9a' 'unhealthy route'
fabric '3 0 0x4aa' 'wrong configuration'
echo "${alone%0}9 0 3 0 0x1aa" >word.fabric
hn check --local 3
has_row 'a domain of several nodes is ready' 'gpu.fabric +pass +1 +ready'
has_row '... and wants an IMEX channel' 'gpu.imex +warn +1 +localhost: none, expected a channel'
if [[ $(readlink /proc/self/ns/pid) = 'pid:[4026531836]' ]]; then
    has_row '... and its daemon' 'gpu.imex.daemon +warn +1 +localhost: none, expected running'
    cp "$(command -v sleep)" nvidia-imex
    ./nvidia-imex 1000 &
    daemon=$!
    hn check --local 3
    has_row '... which is found by its name' 'gpu.imex.daemon +pass +1 +running'
    kill "$daemon"
else
    has '... and cannot see its daemon' "$OUT" 'not run: gpu.imex.daemon: processes of root are not seen from here'
fi
rm word.fabric

# The kernel log is /dev/kmsg, or a file of a syslog daemon.
now=$(cut -d' ' -f1 /proc/uptime)
if [[ -e /dev/kmsg ]]; then
    log=$PWD/kmsg
    note() { echo "6,$1,${now%.*}000000,-;$2" >>"$log"; }
    : >kmsg
    mount --bind kmsg /dev/kmsg
else
    log=/var/log/kern.log
    note() { echo "Nov  1 12:00:00 n1 kernel: [ ${now%.*}.000000] $2" >>"$log"; }
    mount -t tmpfs none /var/log
    hn check --local 3
    has 'a log that cannot be read passes nothing' "$OUT" "not run: gpu.xid: this user may not read the kernel's log"
fi
note 1 'usb 1-1: new device'
note 2 'NVRM: Xid (PCI:0000:11:00): 13, pid=7, Graphics Exception'
hn check --local 3
has_row 'an error of a program breaks no GPU' 'gpu.xid +pass +1 +none'
note 3 'NVRM: Xid (PCI:0000:11:00): 79, pid=7, GPU has fallen off the bus.'
hn_exits 'an Xid of broken hardware fails' 69 check --local 3
has_row '... with the GPU' 'gpu.xid +fail +1 +localhost: 79 \(fallen off the bus\) of GPU 0000:11:00, expected none'
: >"$log"

sleep 1000 &
holder=$!
echo "1 $holder 71680" >word.processes
hn check --local 3 --json
ok 'a process on a GPU is told' grep -qE "1 \(pid $holder( sleep)?: [0-9]+ MiB of GPU 1\)" "$OUT"
kill "$holder"
: >word.processes

hn_exits 'fewer GPUs than slots fail' 69 check -w localhost:4
has_row '... and are told' 'gpu.count +fail +1 +localhost: 3, expected 4'

export LD_LIBRARY_PATH=$PWD/none
hn check --local 3
if ! ldconfig -p | grep -q libnvidia-ml.so.1; then
    has 'without the library nothing passes' "$OUT" 'not run: gpu.ecc, gpu.remap, gpu.fabric, gpu.imex, gpu.imex.daemon, gpu.processes: the driver does not answer'
fi
nothing_left 'nothing is left'
done_testing
