#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches the newest Dask with its scheduler and workers from PyPI (5 MB; 22 MB unpacked). What is there already is left alone.
#
# usage: dask_kit.sh FOLDER
#
# Prints the folder of the modules, which are for Debian's Python. On failure the last line of stderr says why.
set -u
to=$1
mkdir -p "$to" || exit 1
exec 9>"$to/lock"
flock 9 # test files run side by side
[[ ! -e $to/ready ]] || { echo "$to/modules" && exit; }
rm -rf "$to/modules"
python3 -m pip install --quiet --no-compile --only-binary=:all: --retries 1 --timeout 20 --disable-pip-version-check \
    --no-cache-dir --root-user-action=ignore --target "$to/modules" distributed >&2 &&
    : >"$to/ready" && echo "$to/modules"
