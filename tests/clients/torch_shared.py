# SPDX-License-Identifier: Apache-2.0
"""DataLoaders with workers that pass tensors by files in /dev/shm, and the ways in which a rank ends.

    torch_shared.py fork|spawn raise|kill|exit|save
"""
import multiprocessing.shared_memory
import os
import signal
import sys
import time

import torch
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __init__(self):
        torch.multiprocessing.set_sharing_strategy("file_system")

    def __setstate__(self, state):
        self.__init__()

    def __len__(self):
        return 100000

    def __getitem__(self, i):
        return torch.full((50000,), float(i))


def end(how):
    if os.environ["RANK"] == "1" and how == "raise":
        raise ValueError("on purpose")
    if os.environ["RANK"] == "1" and how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        return True
    return False


def main(start_method, how):
    got = []
    if how == "save":
        for signo in signal.SIGTERM, signal.SIGUSR1:
            signal.signal(signo, lambda n, frame: got.append(n))
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=1 << 16)
    print("name", block.name, flush=True)
    batches = iter(DataLoader(Numbers(), batch_size=2, num_workers=2,
                              multiprocessing_context=start_method))
    print("pids", os.getpid(), *(w.pid for w in batches._workers), flush=True)
    for n, batch in enumerate(batches):
        if n == 3:
            print("up", flush=True)
        if n > 5 and end(how):
            break
        if got and n > 20:
            for _ in range(5):
                next(batches)
            signo = got.pop(0)
            print("saved", signal.Signals(signo).name, flush=True)
            if signo == signal.SIGTERM:
                break
        time.sleep(0.02)


if __name__ == "__main__":
    main(*sys.argv[1:])
