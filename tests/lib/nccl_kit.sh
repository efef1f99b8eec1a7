#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches the oldest NCCL that hnlaunch works with, the newest, and what of CUDA their headers want, from
# NVIDIA's wheels on PyPI (some 600 MB). What is there already is left alone.
#
# usage: nccl_kit.sh FOLDER [cuda]          cuda: CUDA's headers and runtime only
#
# FOLDER/OLDEST, FOLDER/NEWEST and FOLDER/cuda have wheels' folders nvidia/*/include and lib. On failure the
# last line of stderr says why.
set -u
kit=$1 only=${2-}
mkdir -p "$kit" || exit 1
exec 9>"$kit/lock"
flock 9 # test files run side by side

# What we need of wheels: headers and libraries.
unpack() { # FOLDER WHEEL...
    python3 - "$@" <<'END'
import sys, zipfile
for wheel in sys.argv[2:]:
    with zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            if "/include/" in name or name.endswith((".so.2", ".so.12")):
                z.extract(name, sys.argv[1])
END
}

fetch() { # NAME WHEEL==VERSION...
    local to=$kit/$1
    shift
    [[ ! -e $to/ready ]] || return 0
    rm -rf "$to" "$to.wheels"
    python3 -m pip download --quiet --no-deps --only-binary=:all: --retries 1 --timeout 20 --disable-pip-version-check \
        --no-cache-dir --dest "$to.wheels" "$@" && unpack "$to" "$to.wheels"/*.whl && : >"$to/ready"
    local code=$?
    rm -rf "$to.wheels"
    return "$code"
}

fetch cuda nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-nvcc-cu12==12.9.86 || exit
[[ $only != cuda ]] || exit 0
fetch OLDEST nvidia-nccl-cu11==2.14.3 &&
    fetch NEWEST nvidia-nccl-cu12==2.32.3
