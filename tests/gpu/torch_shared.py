# SPDX-License-Identifier: Apache-2.0
"""An all-reduce by torch.distributed, and one by libhnlaunch on the same tensor with the same NCCL."""
import ctypes
import os

import torch
import torch.distributed as dist

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
torch.cuda.set_device(device)
dist.init_process_group("nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
wanted = ranks * (ranks - 1) / 2

data = torch.full((1000,), float(rank), device=device)
dist.all_reduce(data)
assert bool((data == wanted).all())
torch.cuda.synchronize()

hn = ctypes.CDLL(os.environ["HNLAUNCH_BACKENDS"] + "/libhnlaunch.so")
hn.hn_last_error.restype = ctypes.c_char_p
comm = ctypes.c_void_p()


def need(status):
    assert status == 0, hn.hn_last_error().decode()


need(hn.hn_init(None))
need(hn.hn_comm_create(None, b"nccl", ctypes.c_int64(60000), ctypes.byref(comm)))
data = torch.full((1000,), float(rank), device=device)
at = ctypes.c_void_p(data.data_ptr())
need(hn.hn_all_reduce(comm, at, at, ctypes.c_size_t(1000), 0, 0))
assert bool((data == wanted).all())
host = (ctypes.c_float * 4)()
assert hn.hn_all_reduce(comm, host, host, ctypes.c_size_t(4), 0, 0) == -1
assert b"host memory" in hn.hn_last_error()
# One NCCL in the process, whatever else is installed.
paths = {line.split()[-1] for line in open("/proc/self/maps") if "libnccl.so" in line}
assert len(paths) == 1, paths
hn.hn_comm_free(comm)
dist.barrier()
if rank == 0:
    print("torch and hnlaunch: ok", flush=True)
dist.destroy_process_group()
need(hn.hn_finalize())
