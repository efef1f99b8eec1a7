# SPDX-License-Identifier: Apache-2.0
"""JAX under hnlaunch: `import hnlaunch.jax_cluster`, and jax.distributed.initialize() needs no arguments.

JAX asks the subclasses of its ClusterEnv, in the order of their definition, whether they know their surroundings. It
has no entry points for them, so that a program, or a module that it imports, imports this one before initialize().
Programs that cannot be changed are started with `hnlaunch --compat ompi`.

Rank 0 runs JAX's coordinator, at the address of its node that all nodes have reached (HN_MASTER_ADDR) and a port of
its own choice, which goes to the other ranks through the job's store. JAX_COORDINATOR_ADDRESS and
JAX_COORDINATOR_PORT take precedence, as with every cluster of JAX.
"""

import os
import socket
from typing import Any, Optional

from jax._src.clusters import ClusterEnv  # type: ignore[import-not-found,unused-ignore]

import hnlaunch._job as job
from hnlaunch._store import store

__all__ = ["HnlaunchCluster"]


def _number(name: str) -> int:
    return int(os.environ[name])


def _free_port() -> int:
    """Returns a port that is free now, for all addresses of this machine as JAX's coordinator binds it."""
    family, address = (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "")
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.bind((address, 0))
        return int(s.getsockname()[1])


def _agree_on_port(attempt: int) -> str:
    """Publishes a port, in rank 0, or waits for it. attempt: initialize() may be called again after shutdown()."""
    if not job.is_initialized():
        job.init()
    key = "hnlaunch.jax_cluster/%d" % attempt
    if _number("HN_RANK") == 0:
        store.set(key, str(_free_port()))
    return store.get(key).decode()


class HnlaunchCluster(ClusterEnv):  # type: ignore[misc,unused-ignore]
    """A rank of hnlaunch; jax.distributed.initialize(cluster_detection_method="hnlaunch") asks for it by name."""

    name: str = "hnlaunch"
    _calls = 0

    @classmethod
    def is_env_present(cls) -> bool:
        return "HN_RANK" in os.environ and "HN_STORE" in os.environ

    @classmethod
    def get_coordinator_address(
        cls, timeout_secs: Optional[int] = None, override_coordinator_port: Optional[str] = None
    ) -> str:
        """Returns address:port, equal in all ranks. JAX before 0.8.1 does not pass the port of the user."""
        address = os.environ.get("HN_MASTER_ADDR") or os.environ["MASTER_ADDR"]
        port = override_coordinator_port or os.environ.get("JAX_COORDINATOR_PORT")
        if not port:
            cls._calls += 1
            port = _agree_on_port(cls._calls)
        return "[%s]:%s" % (address, port) if ":" in address else "%s:%s" % (address, port)

    @classmethod
    def get_process_count(cls) -> int:
        return _number("HN_WORLD_SIZE")

    @classmethod
    def get_process_id(cls) -> int:
        return _number("HN_RANK")

    @classmethod
    def get_local_process_id(cls) -> Optional[int]:
        """Returns the position of this rank's device among those that it sees; None: it uses all of them.

        It is alone on the node, or sees its own only (hnlaunch -o run.gpu_visibility=own). Several devices for each of
        several ranks are too much for this interface of JAX: JAX_LOCAL_DEVICE_IDS, which --compat ompi sets, has them.
        """
        ranks, visible = _number("HN_LOCAL_WORLD_SIZE"), os.environ.get("CUDA_VISIBLE_DEVICES")
        if ranks == 1 or (visible and visible.count(",") + 1 < ranks):
            return None
        return _number("HN_LOCAL_RANK")


def _ask_first(clusters: Any) -> None:
    """Puts the class before those of JAX: a pod or a job of Slurm may be around hnlaunch, which is nearer."""
    clusters.remove(HnlaunchCluster)
    clusters.insert(0, HnlaunchCluster)


_ask_first(ClusterEnv._cluster_types)
