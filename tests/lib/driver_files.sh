# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The files by which hnlaunch counts GPUs: source after tap.sh. In a mount namespace of the script only.
#
#   in_mount_namespace "$@"    runs the script in one, with the argument `inside`; skips it without root
#   driver_files FILE    makes /dev and /proc/driver of a machine with the GPUs of FILE, a line "MINOR UUID
#                        PCI-ADDRESS" each
#   two_numa_nodes       makes sysfs of a machine with two nodes of one processor each, $a and $b, and of no PCI device;
#                        $allowed: processors of this script, $total: so many

in_mount_namespace() { # ARG...: of the script
    if ! [[ $EUID == 0 ]] || ! unshare --mount true 2>/dev/null; then
        skip_all 'needs root (a mount namespace)'
    fi
    if [[ ${1-} != inside ]]; then
        unshare --mount bash "$ROOT/tests/launch/$(basename "$0")" inside
        code=$? finished=yes
        exit "$code"
    fi
}

driver_files() { # FILE
    local minor uuid address rest dir dev=$TMP/dev
    mount -t tmpfs none /proc/driver && mkdir -p /proc/driver/nvidia/gpus "$dev" || return 1
    mount -t tmpfs none "$dev" || return 1
    cp -a /dev/null /dev/zero /dev/random /dev/urandom /dev/fd "$dev/"
    mkdir "$dev/shm"
    touch "$dev/nvidiactl"
    # shellcheck disable=SC2034
    while read -r minor uuid address rest; do
        dir=/proc/driver/nvidia/gpus/$address
        mkdir "$dir"
        printf 'Model: \t\t NVIDIA H100\nIRQ:   \t\t 31\nGPU UUID: \t %s\nDevice Minor: \t %d\n' \
            "$uuid" "$minor" >"$dir/information"
        touch "$dev/nvidia$minor"
    done <"$1"
    mount --move "$dev" /dev
}

# shellcheck disable=SC2034
two_numa_nodes() {
    local nodes=$TMP/node
    allowed=$(python3 -c 'import os; print(",".join(map(str, sorted(os.sched_getaffinity(0)))))')
    total=$(tr ',' '\n' <<<"$allowed" | wc -l)
    IFS=, read -r a b _ <<<"$allowed"
    [[ $b ]] || skip_all 'needs two processors'
    mkdir -p "$nodes"/node{0,1} && echo 0-1 | tee "$nodes"/{has_cpu,online} >"$nodes/has_memory"
    echo "$a" >"$nodes/node0/cpulist"
    echo "$b" >"$nodes/node1/cpulist"
    mount --bind "$nodes" /sys/devices/system/node && mount -t tmpfs none /sys/bus/pci || skip_all 'sysfs cannot be covered here'
}
