#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches JAX for processors and the modules that it needs from PyPI (106 MB to fetch, 440 MB unpacked). What is there
# already is left alone.
#
# usage: jax_kit.sh FOLDER
#
# FOLDER/VERSION is for PYTHONPATH; the last line of stdout is this path. On failure the last line of stderr says why.
set -u
version=0.10.2
kit=$1 to=$1/$version
mkdir -p "$kit" || exit 1
exec 9>"$kit/lock"
flock 9 # test files run side by side

if [[ ! -e $to/ready ]]; then
    rm -rf "$to"
    # Without SciPy, which only jax.scipy needs.
    python3 -m pip install --quiet --no-deps --only-binary=:all: --retries 1 --timeout 20 --disable-pip-version-check \
        --no-cache-dir --root-user-action=ignore --target "$to" \
        jax==$version jaxlib==$version numpy ml_dtypes opt_einsum || exit
    PYTHONPATH=$to python3 -c 'import jax' || exit
    : >"$to/ready"
fi
echo "$to"
