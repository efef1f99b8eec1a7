# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The files by which hnlaunch counts GPUs: source after tap.sh. In a mount namespace of the script only.
#
#   in_mount_namespace "$@"    runs the script in one, with the argument `inside`; skips it without root
#   driver_files FILE    makes /dev and /proc/driver of a machine with the GPUs of FILE, a line "MINOR UUID
#                        PCI-ADDRESS" each

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
