# SPDX-License-Identifier: Apache-2.0
"""Makes a process group of NCCL, and tells the release of PyTorch."""
import os
import sys

sys.setdlopenflags(os.RTLD_LAZY | os.RTLD_GLOBAL)
import torch  # noqa: E402
import torch.distributed  # noqa: E402

torch.distributed.init_process_group("nccl")
print("made by", torch.__version__, flush=True)
os._exit(0)  # there is no CUDA to be shut down
