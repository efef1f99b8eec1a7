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
mkdir -p "$folder" || exit 1

bench() { # NAME SHORT-SETTINGS FULL-SETTINGS
    if ! [ -x "tests/bench/$1" ]; then
        echo "== $1: not here, left out"
        return
    fi
    echo "== $1"
    settings=$3
    [ -n "$short" ] && settings=$2
    # They are words.
    # shellcheck disable=SC2086
    if ! "tests/bench/$1" $settings --json "$folder/$1.json" >"$folder/$1.txt" 2>&1; then
        failed="$failed $1"
        echo "failed: see $folder/$1.txt"
    fi
    cat "$folder/$1.txt"
}

as_root() {
    [ "$(id -u)" = 0 ] && return
    echo "== $1: over ssh, wants root, left out"
    false
}

bench local '--ranks 1,8,64 --repeats 5' '--repeats 21'
bench scale '--nodes 100,1000 --repeats 1' '--edges --ends --idle 10'
bench store '--load --ops get --clients 64 --sockets unix --repeats 3' ''
as_root launch && bench launch '--nodes 1,2,4,8,16 --repeats 3' '--nodes 1,2,4,8,16,32,64,128'
as_root staging && bench staging '--short' ''
if [ "$(id -u)" = 0 ]; then
    bench failure '--repeats 2' ''
else
    bench failure '--repeats 2 --skip lab' '--skip lab'
fi
tests/bench/draw.py "$folder" || failed="$failed draw.py"
if [ -n "$failed" ]; then
    echo "failed:$failed" >&2
    exit 1
fi
