# SPDX-License-Identifier: Apache-2.0
"""Three times in one program: find each other, and part. Prints the coordinator's ports, which differ."""

import hnlaunch.jax_cluster  # noqa: F401
import jax

ports = []
for _ in range(3):
    jax.distributed.initialize()
    from jax._src.distributed import global_state

    ports.append(global_state.coordinator_address.rsplit(":", 1)[1])
    jax.distributed.shutdown()
print(*ports, flush=True)
