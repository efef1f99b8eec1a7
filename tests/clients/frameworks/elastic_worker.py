# SPDX-License-Identifier: Apache-2.0
"""A worker of torchrun. Its last rank dies once: the file tells whether it did.

usage: elastic_worker.py FILE
"""
import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
mine = torch.tensor([rank + 1.0])
dist.all_reduce(mine)
assert mine.item() == ranks * (ranks + 1) / 2, mine
if rank == ranks - 1 and not os.path.exists(sys.argv[1]):
    with open(sys.argv[1], "w"):
        os._exit(7)
dist.barrier()
if rank == 0:
    print("elastic_worker: ok on %d ranks" % ranks, flush=True)
dist.destroy_process_group()
