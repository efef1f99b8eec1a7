# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The files by which hnlaunch counts GPUs: source after tap.sh. In a mount namespace of the script only.
#
#   in_mount_namespace "$@"    runs the script in one, with the argument `inside`; skips it without root
#   driver_files FILE    makes /dev and /proc/driver of a machine with the GPUs of FILE, a line "MINOR UUID
#                        PCI-ADDRESS" each
#   driver_of N          the same for GPUs 0 to N - 1, GPU I at 0000:1I:00.0
#   nvml_library FOLDER [OPTION...]   makes the driver's library (fake_nvml.c) in a new folder
#   two_numa_nodes       makes sysfs of a machine with two nodes of one processor each, $a and $b, two GPUs and no other PCI
#                        device; $allowed: processors of this script, $total: so many
#   gpus_at NODE NODE    tells in sysfs where the two GPUs are

in_mount_namespace() { # ARG...: of the script
    if ! [[ $EUID == 0 ]] || ! unshare --mount true 2>/dev/null; then
        skip_all 'needs root (a mount namespace)'
    fi
    if [[ ${1-} != inside ]]; then
        unshare --mount bash "$ROOT"/tests/*/"${0##*/}" inside
        code=$? finished=yes
        exit "$code"
    fi
}

make_driver_files() { # FILE
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

driver_files() { # FILE
    make_driver_files "$1" || skip_all 'the files of a driver cannot be made here'
}

driver_of() { # N
    local i
    for ((i = 0; i < $1; i++)); do
        echo "$i GPU-$i$i$i$i$i$i$i$i-0000-0000-0000-000000000000 0000:1$i:00.0"
    done >"$TMP/gpus"
    driver_files "$TMP/gpus"
}

nvml_library() { # FOLDER [OPTION...]
    type -P cc >/dev/null || skip_all 'no compiler here'
    mkdir "$1"
    cc -shared -fPIC -o "$1/libnvidia-ml.so.1" "${@:2}" "$ROOT/tests/lib/fake_nvml.c" || skip_all 'the compiler makes no libraries'
}

# shellcheck disable=SC2034
two_numa_nodes() {
    local nodes=$TMP/node
    unset OMP_NUM_THREADS
    printf '%s\n' '0 GPU-0 0000:1b:00.0' '1 GPU-1 0000:2b:00.0' >"$TMP/gpus"
    driver_files "$TMP/gpus"
    allowed=$(python3 -c 'import os; print(",".join(map(str, sorted(os.sched_getaffinity(0)))))')
    total=$(tr ',' '\n' <<<"$allowed" | wc -l)
    IFS=, read -r a b _ <<<"$allowed"
    [[ $b ]] || skip_all 'needs two processors'
    mkdir -p "$nodes"/node{0,1} && echo 0-1 | tee "$nodes"/{has_cpu,online} >"$nodes/has_memory"
    echo "$a" >"$nodes/node0/cpulist"
    echo "$b" >"$nodes/node1/cpulist"
    mount --bind "$nodes" /sys/devices/system/node && mount -t tmpfs none /sys/bus/pci || skip_all 'sysfs cannot be covered here'
}

gpus_at() { # NODE NODE
    mkdir -p /sys/bus/pci/devices/0000:{1,2}b:00.0
    echo "$1" >/sys/bus/pci/devices/0000:1b:00.0/numa_node
    echo "$2" >/sys/bus/pci/devices/0000:2b:00.0/numa_node
}
