#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: run.sh [--short] [FOLDER]
#
# Runs all benchmarks of the build in $BUILD (build), one after the other: an hour or so, --short some
# minutes. Figures go to FOLDER (bench-DATE) as JSON and text, pictures to docs/. Those over ssh
# want root and are left out without. A benchmark that fails does not keep the others from running.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-$PWD/build}
export BUILD

short=
[ "${1-}" = --short ] && short=1 && shift
folder=${1:-bench-$(date +%Y%m%d-%H%M)}
failed=
[ -x "$BUILD/hnlaunch" ] || {
    echo "run.sh: no hnlaunch in $BUILD: meson setup build --buildtype=release && ninja -C build" >&2
    exit 1
}
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 1

either() { # SHORT FULL
    if [ -n "$short" ]; then echo "$1"; else echo "$2"; fi
}

bench() { # NAME COMMAND...
    name=$1
    shift
    echo "== $name"
    if ! "$@" >"$folder/$name.txt" 2>&1; then
        failed="$failed $name"
        echo "failed: see $folder/$name.txt"
    fi
    cat "$folder/$name.txt"
}

over_ssh() { # NAME COMMAND...
    if [ "$(id -u)" = 0 ]; then
        bench "$@"
    else
        echo "== $1: wants root, left out"
    fi
}

# Settings are words.
# shellcheck disable=SC2046
{
    bench local tests/bench/local $(either '--ranks 1,8,64 --repeats 5' '--ranks 1,2,4,8,16,32,64,128,256') \
        --json "$folder/local.json"
    bench scale tests/bench/scale $(either '--nodes 100,1000 --repeats 1' '--edges --ends --idle 10') \
        --json "$folder/scale.json"
    bench calls "$BUILD/tests/bench/calls" $(either '1000 3' '10000 5')
    bench bind tests/bench/bind $(either "--pairs 3" "") --json "$folder/bind.json"
    bench inspect tests/bench/inspect $(either '--ranks 1,8 --seconds 3 --repeats 1' '') --json "$folder/inspect.json"
    bench roles tests/bench/roles $(either '--repeats 1 --pairs 5' '') --json "$folder/roles.json"
    over_ssh why tests/bench/why $(either "--shapes 4x8 --repeats 1" "") --json "$folder/why.json"
    bench store tests/bench/store $(either '--load --ops get --clients 64 --sockets unix --repeats 3' '') \
        --json "$folder/store.json"
    over_ssh launch tests/bench/launch $(either '--nodes 1,2,4,8,16 --repeats 3' '--nodes 1,2,4,8,16,32,64,128') \
        --json "$folder/launch.json"
    over_ssh inside_slurm tests/bench/inside_slurm $(either '1 8' '')
    over_ssh staging tests/bench/staging/run.sh -b "$BUILD" -n "$(either '1 4' '1 2 4 8')" -o "$folder/staging.json"
    bench failure tests/bench/failure $(either '--repeats 2' '') $([ "$(id -u)" = 0 ] || echo '--skip lab') \
        --json "$folder/failure.json"
}
tests/bench/draw.py "$folder" || failed="$failed draw.py"
if [ -n "$failed" ]; then
    echo "failed:$failed" >&2
    exit 1
fi
