#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches the newest Accelerate and Lightning Fabric that run with Debian's PyTorch 1.13, and what they import, from PyPI
# (4 MB; 15 MB unpacked). What is there already is left alone.
#
# usage: small_frameworks_kit.sh FOLDER PYTHON
#
# Prints the folder of the modules. On failure the last line of stderr says why.
set -u
to=$1 python=$2
mkdir -p "$to" || exit 1
exec 9>"$to/lock"
flock 9 # test files run side by side
[[ ! -e $to/ready ]] || { echo "$to/modules" && exit; }
rm -rf "$to/modules"
# Without their dependencies: PyTorch would be among them.
"$python" -m pip install --quiet --no-deps --no-compile --only-binary=:all: --retries 1 --timeout 20 \
    --disable-pip-version-check --no-cache-dir --root-user-action=ignore --target "$to/modules" \
    accelerate==0.29.3 lightning-fabric==2.2.5 lightning-utilities==0.11.9 huggingface-hub==0.26.5 safetensors==0.4.5 \
    psutil pyyaml packaging tqdm fsspec filelock requests urllib3 certifi idna charset-normalizer >&2 &&
    : >"$to/ready" && echo "$to/modules"
