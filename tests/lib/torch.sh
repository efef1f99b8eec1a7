# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# The PyTorch programs of tests/clients: source after tap.sh (and lab.sh).
#
#   TORCH_PYTHON   a Python that has PyTorch (default: Debian's, with python3-torch)
#
#   torch_hn ARG... SCRIPT [ARG...]     hnlaunch with PyTorch's Python and tests/clients/SCRIPT
#   torch_lab ARG... SCRIPT [ARG...]    the same in the lab's head
#   torch_ok NAME N                     it ended with 0, and all N ranks were content

TORCH_PYTHON=${TORCH_PYTHON:-/usr/bin/python3}
# One thread per rank, as with torchrun; and no __pycache__ in the sources.
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

TORCH_VERSION=$("$TORCH_PYTHON" -c 'import torch, torch.distributed; print(torch.__version__)' 2>/dev/null) ||
    skip_all "$TORCH_PYTHON has no PyTorch: apt-get install python3-torch, or set TORCH_PYTHON"

# Sets "words": the arguments, with the name of the script replaced by Python and its path.
torch_words() {
    local word
    words=()
    for word; do
        if [[ $word == torch_*.py ]]; then
            words+=("$TORCH_PYTHON" "$ROOT/tests/clients/$word")
        else
            words+=("$word")
        fi
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

# What torch_ddp.py said of its loss.
torch_loss() { grep -o 'loss [0-9.]*' "$OUT"; }
