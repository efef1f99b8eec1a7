# SPDX-License-Identifier: Apache-2.0
"""The nodes of a Ray cluster, and agents on them: what hnlaunch runs for --scheduler ray and --start-with ray.

    python3 -m hnlaunch._ray nodes                                      prints the nodes as JSON
    python3 -m hnlaunch._ray start --nodes NAME,... -- AGENT --call     starts the agent on nodes, and waits for its end

RAY_ADDRESS names the cluster; without it, it is the one of this machine. Nothing of Ray is printed: what goes wrong is
one line on standard error, with exit code 69.

start runs one task per node. A task holds all GPUs of its node, on a node without GPUs all CPUs, writes the agent to a
file and waits for it. The agent connects to hnlaunch (src/agent/core/call_home.h), with the variables that hnlaunch has
given to start; they reach the task as arguments. The task, and all of them when start ends, take the agent along: it
has SIGTERM as signal of its parent's death. Functions of tasks travel by value: nodes need no module of hnlaunch.
"""

import argparse
import ipaddress
import json
import os
import signal
import socket
import sys
import threading
import time
from typing import Any, Dict, Iterator, List, NoReturn, Optional, TextIO, Tuple

EX_UNAVAILABLE = 69
ANSWER_S = 50  # for the cluster, below the limit of hnlaunch
PROBE_S = 5  # for a connection to its address
STOP_S = 4  # for Ray to let go
VARIABLES = ("HNLAUNCH_CALL", "HNLAUNCH_CALL_SECRET", "HNLAUNCH_MANAGED")


class Trouble(Exception):
    """What went wrong, as a sentence with a next step."""


class Stopped(Exception):
    """hnlaunch has sent SIGTERM, or has ended."""


# --- on a node ----------------------------------------------------------------------------------


def _write_agent(body: bytes) -> str:
    """Writes the agent to a file, where programs may be started. Returns its path."""
    import os
    import subprocess
    import tempfile

    reason: Optional[OSError] = None
    for folder in (tempfile.gettempdir(), "/var/tmp", "/dev/shm", os.path.expanduser("~")):
        path = ""
        try:
            fd, path = tempfile.mkstemp(prefix="hnlaunch-agent-", dir=folder)
            with os.fdopen(fd, "wb") as file:
                file.write(body)
            os.chmod(path, 0o700)
            subprocess.run([path, "-V"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # not with noexec
            return path
        except OSError as error:
            reason = reason or error
            if path:
                os.unlink(path)
    raise OSError("cannot write the agent: %s" % reason)


def _agent_environment() -> Dict[str, str]:
    """Returns the variables for an agent: without those that Ray has for a worker process and its tasks."""
    import os

    try:
        with open("/proc/%d/environ" % os.getppid(), "rb") as file:  # of the raylet
            before = dict(word.split("=", 1) for word in os.fsdecode(file.read()).split("\0") if "=" in word)
    except OSError:
        before = {}
    kept = ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_TMPDIR")
    result = {k: v for k, v in os.environ.items() if k in kept or not k.startswith("RAY_")}
    for name in ("OMP_NUM_THREADS", "PYTHONBREAKPOINT", "PYTHONUNBUFFERED"):
        result.pop(name, None)
        if name in before:
            result[name] = before[name]
    return result


def _run_agent(body: bytes, variables: Dict[str, str]) -> Iterator[Optional[Tuple[int, str]]]:
    """A task: yields None when the agent runs, and its exit code and last words when it has ended."""
    import ctypes
    import os
    import signal
    import subprocess
    import tempfile

    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def follow_parent() -> None:
        prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    with tempfile.TemporaryFile() as errors:
        path, agent = "", None
        try:
            path = _write_agent(body)
            environment = dict(_agent_environment(), HNLAUNCH_CALL_REMOVE=path, **variables)
            agent = subprocess.Popen([path, "--call"], env=environment, cwd="/", stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=follow_parent,
                                     start_new_session=True)  # Ray kills the group of a worker that has died
            yield None
            agent.wait()
        finally:
            if agent and agent.poll() is None:
                agent.terminate()
                try:
                    agent.wait(5)
                except subprocess.TimeoutExpired:
                    agent.kill()
            if path and os.path.exists(path):  # the agent has not called
                os.unlink(path)
        errors.seek(0)
        yield agent.returncode, errors.read()[-400:].decode(errors="replace")


# --- the cluster ----------------------------------------------------------------------------------


def _one_line(text: object) -> str:
    return " ".join(str(text).split())[:300]


def _limit(seconds: float, say: TextIO) -> threading.Timer:
    """Ends this process unless it is cancelled in time."""
    def end() -> None:
        say.write("Ray does not answer in %d s; run hnlaunch on a running node of the cluster: ray status\n" % seconds)
        say.flush()
        os._exit(EX_UNAVAILABLE)
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer


def _probe(address: str) -> None:
    """Connects to the cluster's port: Ray itself tries for minutes, and does not say why in vain."""
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise Trouble("RAY_ADDRESS is %s: it must be HOST:PORT of the cluster's head" % address)
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_S).close()
    except OSError as error:
        raise Trouble("no Ray cluster at %s: %s; start it, or change RAY_ADDRESS" % (
            address, error.strerror or error)) from None


def _connect(say: TextIO) -> Any:
    """Returns the module ray, connected to the cluster."""
    try:
        import ray  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise Trouble("cannot import ray: %s; use the cluster's Python: its python3 first in PATH" % error) from None
    address = os.environ.get("RAY_ADDRESS") or "auto"
    if address == "local":
        raise Trouble("RAY_ADDRESS is local, which starts a cluster of its own; name a running one, or unset it")
    if address != "auto":
        _probe(address)
    timer = _limit(ANSWER_S, say)
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except ConnectionError:
        raise Trouble("no Ray cluster runs on this machine; run hnlaunch on one of its nodes, or set RAY_ADDRESS") \
            from None
    except Exception as error:
        raise Trouble("cannot connect to Ray: %s" % _one_line(error)) from None
    timer.cancel()
    return ray


def _order(node: Dict[str, Any]) -> Tuple[int, bytes, str]:
    """Sorts addresses as numbers."""
    try:
        address = ipaddress.ip_address(node["address"])
    except ValueError:
        return 9, node["address"].encode(), node["id"]
    return address.version, address.packed, node["id"]


def _list_nodes(ray: Any) -> List[Dict[str, Any]]:
    """Lists the nodes that are alive. A name is that of the machine, unless several nodes have it."""
    nodes = [{"name": n.get("NodeManagerHostname") or "", "address": n["NodeManagerAddress"], "id": n["NodeID"],
              "gpus": int(n["Resources"].get("GPU", 0)), "cpus": int(n["Resources"].get("CPU", 0))}
             for n in ray.nodes() if n["Alive"]]
    for key in ("name", "address"):
        taken = [n["name"] for n in nodes]
        for node in nodes:
            if not node["name"] or taken.count(node["name"]) > 1:
                node["name"] = node["address" if key == "name" else "id"]
    return sorted(nodes, key=_order)


# --- start ----------------------------------------------------------------------------------------


def _find_node(nodes: List[Dict[str, Any]], name: str) -> Dict[str, Any]:
    for node in nodes:
        if name in (node["name"], node["address"], node["id"]):
            return node
    raise Trouble("%s is no node of the Ray cluster; it has %s" % (
        name, _one_line(", ".join(n["name"] for n in nodes))))


def _list_free() -> Dict[str, Any]:
    """Returns what is free now, by id of the node; nothing where Ray does not tell."""
    try:
        from ray._private.state import available_resources_per_node  # type: ignore[import-not-found,unused-ignore]
        return dict(available_resources_per_node())
    except Exception:
        return {}


class _Task:
    """The task of a node, which is an iterator of Ray (_run_agent())."""

    def __init__(self, name: str, node: Dict[str, Any], free: Dict[str, Any]) -> None:
        self.name, self.node, self.started = name, node, False
        self.resource, self.count = ("GPU", node["gpus"]) if node["gpus"] else ("CPU", node["cpus"])
        self.taken = self.count - int(free[node["id"]].get(self.resource, 0)) if node["id"] in free else 0
        self.items: Any = None

    def submit(self, ray: Any, body: Any, variables: Dict[str, str], say: TextIO) -> None:
        from ray.util import scheduling_strategies as strategies  # type: ignore[import-not-found,unused-ignore]

        if self.taken > 0:
            print("%s: waits in Ray's queue: %d of its %d %ss are taken by other tasks" % (
                self.name, self.taken, self.count, self.resource), file=say)
        remote = ray.remote(num_returns="streaming", max_retries=0, max_calls=1)(_run_agent)
        self.items = remote.options(
            name="hnlaunch", num_cpus=self.count if self.resource == "CPU" else 0,
            num_gpus=self.count if self.resource == "GPU" else 0,
            scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(self.node["id"], soft=False),
        ).remote(body, dict(variables, HNLAUNCH_CALL_NAME=self.name))

    def advance(self, ray: Any, say: TextIO) -> bool:
        """Takes the next item, which is there. Returns whether the task goes on; Trouble: it has failed."""
        try:
            item = ray.get(next(self.items))
        except StopIteration:
            return False
        except ray.exceptions.RayError as error:
            raise Trouble("%s: %s" % (self.name, _explain(ray, error))) from None
        if item is None:
            self.started = True
            if self.taken > 0:
                print("%s: has its %ss now" % (self.name, self.resource), file=say)
            return True
        code, words = item
        if code:
            raise Trouble("%s: the agent ended with exit code %d: %s" % (self.name, code, _one_line(words)))
        return False


def _explain(ray: Any, error: Exception) -> str:
    known = ray.exceptions
    if isinstance(error, (known.NodeDiedError, known.TaskUnschedulableError)):
        return "the node has left the Ray cluster; ray status lists the others"
    if isinstance(error, known.OutOfMemoryError):
        return "Ray ended the task, because the node's memory was short"
    if isinstance(error, known.WorkerCrashedError):
        return "the worker process of Ray was killed; its logs are in /tmp/ray/session_latest/logs of the node"
    if isinstance(error, known.TaskCancelledError):
        return "the task was cancelled"
    if isinstance(error, known.RayTaskError):
        return _one_line(getattr(error, "cause", None) or error)
    return _one_line(error)


def _follow(parent: int, stop: threading.Event) -> None:
    """Sets stop when hnlaunch has ended. Ends this process where Ray then holds it up."""
    while not stop.wait(0.5):
        if os.getppid() != parent:
            stop.set()
    time.sleep(STOP_S)
    os._exit(128 + signal.SIGTERM)


def _watch(ray: Any, tasks: List[_Task], stop: threading.Event, say: TextIO) -> int:
    """Waits for all tasks. One that fails before its agent runs ends all: hnlaunch waits for every node."""
    code, left = 0, {id(task.items): task for task in tasks}
    while left:
        ready, _ = ray.wait([task.items for task in left.values()], timeout=0.5)
        if stop.is_set():
            raise Stopped
        for items in ready:
            task = left[id(items)]
            try:
                if not task.advance(ray, say):
                    del left[id(items)]
            except Trouble as trouble:
                if not task.started:
                    raise
                print(trouble, file=say)
                code = EX_UNAVAILABLE
                del left[id(items)]
    return code


def start(names: List[str], agent: str, say: TextIO) -> int:
    variables = {name: os.environ.pop(name) for name in VARIABLES if name in os.environ}
    parent, stop = os.getppid(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # nothing runs yet
    try:
        with open(agent, "rb") as file:
            body = file.read()
    except OSError as error:
        raise Trouble("cannot read the agent %s: %s" % (agent, error.strerror)) from None
    ray = _connect(say)
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    threading.Thread(target=_follow, args=(parent, stop), daemon=True).start()
    nodes = _list_nodes(ray)
    free = _list_free()
    tasks = [_Task(name, _find_node(nodes, name), free) for name in names]
    held = ray.put(body)
    try:
        for task in tasks:
            task.submit(ray, held, variables, say)
        return _watch(ray, tasks, stop, say)
    except Stopped:
        return 128 + signal.SIGTERM
    finally:
        ray.shutdown()  # takes tasks out of the queue, and kills the workers of others


def nodes(out: TextIO, say: TextIO) -> int:
    ray = _connect(say)
    json.dump({"version": 1, "nodes": _list_nodes(ray)}, out)
    print(file=out, flush=True)
    ray.shutdown()
    return 0


# --- the program ------------------------------------------------------------------------------------


def _silence() -> Tuple[TextIO, TextIO]:
    """Returns standard output and error, which become /dev/null for all others: Ray writes there on its own."""
    files = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(2), "w", buffering=1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
    return files


def _survive_ray() -> None:
    """Goes on in a child: without Ray on this machine, Ray ends the process that connects, without an exception."""
    child = os.fork()
    if child == 0:
        return
    status = os.waitpid(child, 0)[1]
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1
    if code in (0, EX_UNAVAILABLE):
        os._exit(code)
    raise Trouble("cannot connect to Ray: this machine is no running node of the cluster; run hnlaunch on one of them")


def main() -> NoReturn:
    parser = argparse.ArgumentParser(prog="python3 -m hnlaunch._ray")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("nodes")
    starter = commands.add_parser("start")
    starter.add_argument("--nodes", required=True)
    starter.add_argument("agent")
    starter.add_argument("--call", action="store_true", required=True)
    words = parser.parse_args([word for word in sys.argv[1:] if word != "--"])
    out, say = _silence()
    os.chdir("/")  # Ray has workers search the current folder for modules
    try:
        if words.command == "nodes":
            _survive_ray()
            code = nodes(out, say)
        else:
            code = start(words.nodes.split(","), words.agent, say)
    except Trouble as trouble:
        print(trouble, file=say)
        code = EX_UNAVAILABLE
    say.flush()
    os._exit(code)  # no thread of Ray is waited for


if __name__ == "__main__":
    main()
