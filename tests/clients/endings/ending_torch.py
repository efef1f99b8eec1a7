# SPDX-License-Identifier: Apache-2.0
"""One rank fails between two collectives of Gloo and ends slowly; usage: ending_torch.py VICTIM HOW

HOW  finally   destroy_process_group() and two seconds of work before the traceback is printed
     record    under @record, with two seconds of work at the exit and no process group any more
     limit     keeps its connections, and a thread that never ends; the others wait for two seconds
"""
import atexit
import datetime
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

VICTIM, HOW = int(sys.argv[1]), sys.argv[2]


def train():
    dist.all_reduce(torch.ones(1))
    if dist.get_rank() == VICTIM:
        raise ValueError("sample 17 has no label")
    dist.all_reduce(torch.ones(1))


dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2 if HOW == "limit" else 60))
if HOW == "record":
    if dist.get_rank() == VICTIM:
        atexit.register(time.sleep, 2)
        atexit.register(dist.destroy_process_group)
    record(train)()
elif HOW == "limit":
    if dist.get_rank() == VICTIM:
        threading.Thread(target=time.sleep, args=(600,)).start()
    train()
else:
    try:
        train()
    finally:
        if dist.get_rank() == VICTIM:
            dist.destroy_process_group()
            time.sleep(2)
