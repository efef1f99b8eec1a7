#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fetches the libraries of the agent that is cross-built for aarch64 from Debian: writes libuv_a.a, libsodium.a
# and libz.a into FOLDER.
#
# usage: sh packaging/aarch64-libs.sh FOLDER
#        meson setup build -Daarch64=enabled -Daarch64_libs=FOLDER      # an absolute path
#
# Where arm64 is a foreign architecture of dpkg, `apt-get install libuv1-dev:arm64 libsodium-dev:arm64
# zlib1g-dev:arm64` does the same for good. Here apt keeps its lists in a folder of its own, and the system stays as it
# is. No root needed.
set -eu
[ $# = 1 ] || {
    sed -n '4,7s/^# *//p' "$0" >&2
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
apt download libuv1-dev libsodium-dev zlib1g-dev
for package in *_arm64.deb; do
    dpkg-deb -x "$package" tree
done
for library in libuv_a.a libsodium.a libz.a; do
    cp "tree/usr/lib/aarch64-linux-gnu/$library" "$to"
done
