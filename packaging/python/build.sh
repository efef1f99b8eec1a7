#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the tree if need be, and the wheel for Python of it: module, programs, agents, libraries.
#
# usage: sh packaging/python/build.sh [FOLDER [BUILD]]     where the wheel goes (default build-wheel/) and the built tree
#                                                          (default build/)
#
# Needs patchelf and Python 3.11. A tree that was configured with -Daarch64=enabled gives a wheel with that agent, too.
set -eu
cd "$(dirname "$0")/../.."
build=${2:-build}
[ -f "$build/build.ninja" ] || meson setup "$build" --buildtype=release
ninja -C "$build"
exec python3 packaging/python/backend.py "$build" "${1:-build-wheel}"
