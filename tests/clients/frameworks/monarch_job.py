# SPDX-License-Identifier: Apache-2.0
"""Monarch on the ranks of a launcher: one worker per node, met by the store of the job; rank 0 drives them.

usage: monarch_job.py PROCESSES PORT    actors on each node, and the port of the nodes' workers (0: one node, no network)
"""
import os
import socket
import sys

import torch.distributed as dist
from monarch.actor import Actor, current_rank, endpoint
from monarch.job.spmd import StoreJob


class Here(Actor):
    @endpoint
    def name(self):
        return current_rank().rank, socket.gethostname()


def main():
    processes, port = int(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group("gloo")
    store = dist.distributed_c10d._get_default_store()
    job = StoreJob.from_store(store, transport="tcp" if port else "ipc", monarch_port=port)
    if job is not None:
        hosts = getattr(job.state(cached_path=None), "monarch_worker")
        mesh = hosts.spawn_procs(per_host={"cpus": processes})
        names = sorted(value for _, value in mesh.spawn("here", Here).name.call().get().items())
        nodes = int(os.environ["WORLD_SIZE"]) // int(os.environ["LOCAL_WORLD_SIZE"])
        assert [rank for rank, _ in names] == list(range(nodes * processes)), names
        assert len({host for _, host in names}) == nodes, names
        print("monarch_job: ok on %d ranks, %d actors" % (dist.get_world_size(), len(names)), flush=True)
        mesh.stop().get()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
