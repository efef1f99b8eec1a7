# SPDX-License-Identifier: Apache-2.0
"""usage: jax_gather.py [MODULE...]

A JAX program without arguments for its cluster: gathers and sums over all processes with Gloo. Each MODULE is
imported first. The environment may say DIE_FIRST: rank 1 dies in the first attempt, after the processes have met.
"""

import importlib
import os
import sys

for name in sys.argv[1:]:
    importlib.import_module(name)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import multihost_utils  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

jax.distributed.initialize()
me, n = jax.process_index(), jax.process_count()

gathered = multihost_utils.process_allgather(np.array([me + 1.0], dtype=np.float32)).ravel().tolist()
assert gathered == [k + 1.0 for k in range(n)], gathered
if "DIE_FIRST" in os.environ and os.environ["HN_RESTART"] == "0":
    if me == 1:
        os._exit(3)
    multihost_utils.process_allgather(np.zeros(1))  # the others do not come
    sys.exit("the gather has ended without rank 1")

# One array over the devices of all processes, and a sum that XLA makes a collective of.
mesh = Mesh(np.array(jax.devices()), ("x",))
devices = jax.device_count()
spread = jax.make_array_from_callback(
    (devices,), NamedSharding(mesh, PartitionSpec("x")), lambda at: np.arange(1, devices + 1, dtype=np.float32)[at])
total = float(jax.jit(jnp.sum, out_shardings=NamedSharding(mesh, PartitionSpec()))(spread))
assert total == devices * (devices + 1) / 2, total

print("rank %s: process %d of %d, %d of %d devices, sum %g" % (
    os.environ["RANK"], me, n, jax.local_device_count(), devices, total), flush=True)
jax.distributed.shutdown()
