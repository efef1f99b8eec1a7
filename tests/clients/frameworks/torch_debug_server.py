# SPDX-License-Identifier: Apache-2.0
"""PyTorch's debug server shows the keys of the store, and the stacks of all ranks.

usage: torch_debug_server.py
"""
import socket
import time
import urllib.error
import urllib.request

import torch.distributed as dist
from torch.distributed.debug import start_debug_server, stop_debug_server


def page(port, name):
    """The server is a process of its own, which takes a while to come."""
    end = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen("http://localhost:%d/%s" % (port, name), timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.URLError as e:
            if time.monotonic() > end or not isinstance(e.reason, ConnectionRefusedError):
                raise
            time.sleep(0.1)


def main():
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    dist.distributed_c10d._get_default_store().set("made by rank %d" % rank, "yes")
    port = [0]
    if rank == 0:
        with socket.create_server(("", 0)) as free:
            port = [free.getsockname()[1]]
    dist.broadcast_object_list(port)
    start_debug_server(port=port[0], start_method="spawn")
    dist.barrier()
    if rank == 0:
        keys = page(port[0], "tcpstore")
        missing = [r for r in range(ranks) if "made by rank %d" % r not in keys]
        assert not missing, (missing, keys)
        stacks = page(port[0], "stacks")
        assert stacks.count("start_debug_server") + stacks.count("torch_debug_server.py") >= ranks, stacks
        print("torch_debug_server: ok on %d ranks" % ranks, flush=True)
        stop_debug_server()  # on other ranks it raises AssertionError (2.15)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
