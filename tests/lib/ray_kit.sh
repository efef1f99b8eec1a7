#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches the newest Ray from PyPI into a virtual environment (80 MB; 300 MB unpacked). What is there already is left
# alone.
#
# usage: ray_kit.sh FOLDER
#
# Prints the Python of the environment. On failure the last line of stderr says why.
set -u
to=$1
mkdir -p "$to" || exit 1
exec 9>"$to/lock"
flock 9 # test files run side by side
[[ ! -e $to/ready ]] || { echo "$to/bin/python" && exit; }
python3 -m venv "$to" >&2 &&
    "$to/bin/python" -m pip install --quiet --only-binary=:all: --retries 1 --timeout 20 --disable-pip-version-check \
        --no-cache-dir ray >&2 && : >"$to/ready" && echo "$to/bin/python"
