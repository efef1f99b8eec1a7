# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# The PyTorch programs of tests/clients: source after tap.sh (and lab.sh).
#
#   TORCH_PYTHON   a Python that has PyTorch (default: Debian's, with python3-torch)
#
#   torch_hn ARG... SCRIPT [ARG...]     hnlaunch with PyTorch's Python and SCRIPT of tests/clients or its frameworks/
#   torch_lab ARG... SCRIPT [ARG...]    the same in the lab's head
#   torch_ok NAME N                     it ended with 0, and all N ranks were content
#   torch_needs MODULE...               leaves the test out where one of them cannot be imported

TORCH_PYTHON=${TORCH_PYTHON:-/usr/bin/python3}
# One thread per rank, as with torchrun; and no __pycache__ in the sources.
export OMP_NUM_THREADS=1

TORCH_VERSION=$("$TORCH_PYTHON" -c 'import torch, torch.distributed; print(torch.__version__)' 2>/dev/null) ||
    skip_all "$TORCH_PYTHON has no PyTorch: apt-get install python3-torch, or set TORCH_PYTHON"

# Sets "words": the arguments, with the name of the script replaced by Python and its path.
torch_words() {
    local word folder
    words=()
    for word; do
        for folder in "$ROOT/tests/clients" "$ROOT/tests/clients/frameworks"; do
            [[ $word == *.py && -e $folder/$word ]] || continue
            words+=("$TORCH_PYTHON")
            word=$folder/$word
        done
        words+=("$word")
    done
}

torch_hn() {
    local words
    torch_words "$@"
    hn --label none "${words[@]}"
}

# PyTorch on many nodes of the lab keeps the few processors of this machine busy for seconds: heartbeats may be late.
torch_lab() {
    local words
    torch_words "$@"
    lab_hn --node-timeout 60s --label none "${words[@]}"
}

torch_ok() {
    if [[ $RC == 0 ]] && grep -q "ok on $2 ranks" "$OUT"; then
        pass "$1"
    else
        fail "$1"
    fi
}

torch_needs() {
    local module
    for module; do
        "$TORCH_PYTHON" -c "import $module" 2>/dev/null ||
            skip_all "$TORCH_PYTHON has no $module: sh tests/clients/run.sh --frameworks"
    done
}

# What torch_ddp.py said of its loss.
torch_loss() { grep -o 'loss [0-9.]*' "$OUT"; }
