#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Debian packages hnlaunch, libhnlaunch0 and libhnlaunch-dev from this tree.
#
# usage: sh packaging/deb.sh [FOLDER]      where the packages go (default build-deb/)
#
# Needs dpkg-dev, debhelper and the Build-Depends of packaging/debian/control; no network and no root.
# With AARCH64_LIBS=FOLDER of packaging/aarch64-libs.sh (absolute) hnlaunch has the agent for aarch64, too.
# DEB_BUILD_OPTIONS=nocheck leaves the unit tests out. The same sources give the same bytes.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:-build-deb}"
to=$(cd "${1:-build-deb}" && pwd -P)
work=$(mktemp -d "${TMPDIR:-/tmp}/hnlaunch-deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# What belongs to the sources: neither builds nor what git ignores. Outside of git: all but builds.
tree=$work/hnlaunch
mkdir "$tree"
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard
else
    find . -path './build*' -prune -o -type f -print0
fi | tar -c --null --files-from=- | tar -x -C "$tree"
cp -r packaging/debian "$tree/debian"
cd "$tree"
dpkg-buildpackage -us -uc -b
mv "$work"/*.deb "$work"/*.buildinfo "$work"/*.changes "$to"
ls -l "$to"
