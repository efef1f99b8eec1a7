#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fetches libuv for aarch64 from Debian, for the agent that is cross-built: writes FOLDER/libuv_a.a.
#
# usage: sh packaging/libuv-aarch64.sh FOLDER
#        meson setup build -Daarch64=enabled -Daarch64_libuv=FOLDER      # an absolute path
#
# Where arm64 is a foreign architecture of dpkg, `apt-get install libuv1-dev:arm64` does the same for
# good. Here apt keeps its lists in a folder of its own, and the system stays as it is. No root needed.
set -eu
[ $# = 1 ] || {
    sed -n '4,6s/^# *//p' "$0" >&2
    exit 64
}
mkdir -p "$1"
to=$(cd "$1" && pwd -P)
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$state/lists/partial" "$state/archives/partial"
: >"$state/status"
apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$state" \
        -o Dir::State::status="$state/status" -o Dir::Cache="$state" -o APT::Sandbox::User= "$@"
}
cd "$state"
apt update
apt download libuv1-dev
dpkg-deb -x libuv1-dev_*_arm64.deb tree
cp tree/usr/lib/aarch64-linux-gnu/libuv_a.a "$to/libuv_a.a"
