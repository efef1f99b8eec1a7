#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch's own NCCL backend under hnlaunch; and its NCCL, once loaded, is what hnlaunch/comm.h takes.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/gpu.sh"

gpu_needed 'PyTorch on GPUs'
for python in "${TORCH_PYTHON-}" python3 "${TORCH2_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/torch2}/bin/python"; do
    [[ -n $python ]] && "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null && break
    python=
done
[[ -n $python ]] || skip_all 'no Python with a PyTorch for CUDA: set TORCH_PYTHON'
echo "# PyTorch $("$python" -c 'import torch; print(torch.__version__, "NCCL", torch.cuda.nccl.version())')"

# One rank for each GPU, as users have it.
hn --local "$GPUS" --label none "$python" "$ROOT/examples/torch_ddp.py" --epochs 3
exits 'DistributedDataParallel, a rank for each GPU' 0
ok 'it learns' awk '/accuracy/ { ok = $4 > 80 } END { exit !ok }' "$OUT"
sed 's/^/# /' "$OUT"
gpu_shared 2 "$python" "$ROOT/tests/gpu/torch_shared.py"
exits 'two ranks share GPUs' 0
is 'their sums are right' "$(cat "$OUT")" 'torch and hnlaunch: ok'
nothing_left 'nothing is left'
done_testing
