# SPDX-License-Identifier: Apache-2.0
"""usage: compat_readers.py lightning|accelerate|deepspeed [--local_rank=N]

Prints what a framework makes of the variables of another launcher, where those of PyTorch are missing, or of its
arguments.
"""

import os
import sys

me = "%s/%s %s/%s" % tuple(os.environ[n] for n in ("HN_RANK", "HN_WORLD_SIZE", "HN_LOCAL_RANK", "HN_LOCAL_WORLD_SIZE"))
for name in list(os.environ):
    if name.startswith(("TORCHELASTIC_", "HN_")) or name in (
            "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "MASTER_ADDR"):
        del os.environ[name]

if sys.argv[1] == "lightning":
    from lightning.fabric.plugins.environments import SLURMEnvironment

    assert SLURMEnvironment.detect()
    found = SLURMEnvironment()
    tasks = int(os.environ["SLURM_NTASKS_PER_NODE"])
    found.validate_settings(num_devices=tasks, num_nodes=int(os.environ["SLURM_NNODES"]))
    assert found.job_id() > 0
    seen = "%d/%d %d/%d" % (found.global_rank(), found.world_size(), found.local_rank(), tasks)
    print("node %d, first %s" % (found.node_rank(), found.main_address), end=", ")
elif sys.argv[1] == "deepspeed":
    import argparse

    import deepspeed

    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    found = deepspeed.add_config_arguments(parser).parse_args(sys.argv[2:])
    seen = "%s %d/%s" % (me.split()[0], found.local_rank, me.split("/")[2])
else:
    from accelerate.utils.environment import get_cpu_distributed_information

    found = get_cpu_distributed_information()
    seen = "%d/%d %d/%d" % (found.rank, found.world_size, found.local_rank, found.local_world_size)
print("right" if seen == me else "%s is not %s" % (seen, me), flush=True)
