#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Releases of PyTorch for CUDA, from PyPI, make process groups of NCCL on simulated GPUs: they warn of no variable that
# hnlaunch sets, handle errors of NCCL, have the recorder on, and dump when a collective takes too long.
# By command, because each release is 900 MB to fetch; it is removed before the next.
. "$(dirname "$0")/../../lib/tap.sh" || exit 1

RELEASES=${RELEASES:-2.2.2 2.4.1 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0} # newer ones want CUDA 13
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests
timeout 200 bash "$ROOT/tests/lib/fakegpu_kit.sh" "$cache/nccl" 2.29 >"$TMP/kit.log" 2>&1 ||
    skip_all "no simulated GPUs: $(tail -n 1 "$TMP/kit.log" | cut -c1-160)"
fake=$cache/nccl/fake/cuda/lib64
pip() {
    /usr/bin/python3 -m pip install --quiet --no-deps --no-compile --only-binary=:all: --disable-pip-version-check \
        --no-cache-dir --root-user-action=ignore "$@" >>"$TMP/pip.log" 2>&1
}
pip --target modules typing_extensions sympy mpmath networkx jinja2 markupsafe filelock fsspec numpy==1.26.4 ||
    skip_all "no packages: $(tail -n 1 "$TMP/pip.log" | cut -c1-160)"
HNLAUNCH=$PLAIN/hnlaunch
export TORCH_CPP_LOG_LEVEL=INFO LIMIT=120

group() { # [NAME=VALUE...]
    LD_LIBRARY_PATH=$fake:$PWD/none PYTHONPATH=$PWD/torch:$PWD/modules hn --local 1 --label none \
        env "LD_PRELOAD=$PWD/none/libmissing.so" "$@" /usr/bin/python3 "$ROOT/tests/clients/releases/group.py"
}
setting() { grep -ohE "$1: [0-9]+" "$ERR" | sort -u | grep -oE '[0-9]+$'; } # NAME: as the process group tells it

for release in $RELEASES; do
    rm -rf torch none
    mkdir none
    if ! pip --target torch "torch==$release"; then
        skip "$release" 'it cannot be fetched'
        continue
    fi
    ok "$release: libraries that do nothing" python3 "$ROOT/tests/clients/releases/no_cuda.py" torch/torch/lib "$fake/libcudart.so.12" none
    group
    has "$release makes a process group" "$OUT" "made by $release"
    lacks "$release warns of no variable" "$ERR" 'is deprecated; use'
    is "$release handles errors" "$(setting TORCH_NCCL_ASYNC_ERROR_HANDLING)" 3
    is "$release dumps what takes too long" "$(setting TORCH_NCCL_DUMP_ON_TIMEOUT)" 1
    is "$release has its recorder on" "$(setting TORCH_NCCL_TRACE_BUFFER_SIZE)" 2000
    group NCCL_ASYNC_ERROR_HANDLING=1
    has "$release would warn of an older name" "$ERR" 'NCCL_ASYNC_ERROR_HANDLING is deprecated; use'
done
done_testing
