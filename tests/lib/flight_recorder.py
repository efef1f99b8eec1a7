# SPDX-License-Identifier: Apache-2.0
"""
Does what the monitor thread of PyTorch's ProcessGroupNCCL does with its flight recorder, for machines without GPUs:
makes the FIFO TORCH_NCCL_DEBUG_INFO_PIPE_FILE + rank + ".pipe", and when there is a byte writes a pickle to
TORCH_FR_DUMP_TEMP_FILE + rank, in pieces.

usage: flight_recorder.py [RANK HOW]

Rank RANK does it otherwise: gone (no thread reads its FIFO), late (no dump), link (in place of the dump), file (in
place of the FIFO), long (more than 32 MiB), cut (a dump without an end).
"""

import os
import pickle
import sys
import time

rank = int(os.environ["RANK"])
how = sys.argv[2] if len(sys.argv) > 2 and int(sys.argv[1]) == rank else ""
pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + "%d.pipe" % rank
dump = os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(rank)


def write_dump(number):
    record = {"version": "2.10", "rank": rank, "number": number, "entries": [list(range(1000))] * 100}
    if how == "long":
        record["entries"] = b"x" * (33 << 20)
    data = pickle.dumps(record)
    with open(dump, "wb") as f:
        f.write(data[: len(data) // 2])
        f.flush()
        time.sleep(0.25)
        f.write(data[len(data) // 2 : -1 if how == "cut" else None])


def is_asked():
    """A byte has come; between the writer's open() and write() there is none, and no end either."""
    try:
        return os.read(fd, 128)
    except BlockingIOError:
        return b""


if how == "file":
    open(pipe, "w").close()
else:
    os.mkfifo(pipe, 0o666)
    fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    if how == "gone":
        os.close(fd)
print("ready", flush=True)
for number in range(1, 1 << 30):
    while how in ("gone", "file") or not is_asked():
        time.sleep(0.1)
    print("asked", number, flush=True)
    if how == "link":
        os.symlink("/etc/passwd", dump)
    elif how != "late":
        write_dump(number)
