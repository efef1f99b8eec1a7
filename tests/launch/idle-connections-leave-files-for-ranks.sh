#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Idle connections to the TCP endpoint that take every open file they can get leave enough for ranks that start later,
# for the store, and for clients that come when others have gone. One agent and a head made of Python.
. "$(dirname "$0")/../lib/tap.sh"

python_tests <<'PYTHON'
import multiprocessing
import os
import resource
import socket
import sys

from fake_head import *
from store_client import *

RANKS = 16
tap = Tap()
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
limit = min(hard, 20000)
agent = Agent(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit // 2, limit)))
agent.sleep()
port, why = agent.endpoint(LOOPBACK)
fds = lambda: len(os.listdir("/proc/%d/fd" % agent.hello["pid"]))
print("# the agent may open", limit, "files")


def hold(number, count, pipe):
    """Makes connections, from an address that has enough ports; tells how many the agent keeps, and keeps those."""
    made = [socket.create_connection(("127.0.0.1", port), scaled(20), ("127.0.0.%d" % (2 + number), 0))
            for _ in range(count)]
    kept = []
    for one in made:
        one.settimeout(scaled(60))
        try:
            one.sendall(HELLO + b"\x0d1234")
            if one.recv(4) == b"1234":
                kept.append(one)
        except ConnectionError:
            pass
    made = None
    pipe.send(len(kept))
    pipe.recv()


class Crowd:
    """Connections in several processes, since each may open as few files as the agent."""

    def __init__(self, count, processes=4):
        sys.stdout.flush()
        self.pipes = []
        for number in range(processes):
            ours, theirs = multiprocessing.Pipe()
            self.pipes.append(ours)
            multiprocessing.Process(target=hold, args=(number, count // processes, theirs), daemon=True).start()
        self.kept = sum(pipe.recv() for pipe in self.pipes)

    def leave(self):
        for pipe in self.pipes:
            pipe.send(None)


# --- before the launch half of the files are left
first = Crowd(limit * 3 // 4)
tap.ok("before the launch connections take half of the open files", limit // 3 < first.kept <= limit // 2, first.kept)
tap.ok("the first that is turned away is told", agent.log("the other open files of ulimit -n are for ranks"), agent.logged)

# --- ranks start beside them, and more connections may come
agent.launch(["sh", "-c", "read line; echo there"], ranks=RANKS, stdin_rank=NOBODY - 1)
more = Crowd(limit - first.kept)
tap.ok("with the launch more are served", first.kept + more.kept > limit - 64 - 8 * RANKS - 16, more.kept)
tap.ok("and files are left", fds() < limit - 16, fds())
agent.stdin(NOBODY - 1, b"go\n")
agent.stdin(NOBODY - 1, b"")
result = agent.play()
tap.equal("all ranks run", [result.out(r) for r in range(RANKS)], [b"there\n"] * RANKS)
result = agent.run(["echo", "again"], ranks=RANKS)
tap.equal("and those of a restart", [result.out(r) for r in range(RANKS)], [b"again\n"] * RANKS)
tap.equal("told once", sum("for ranks" in x for x in agent.logged), 1)

first.leave()
more.leave()
tap.ok("files of connections that have left are free", wait_for(lambda: fds() < 64, 60), fds())
tap.equal("and new clients are served", Client(port).ping(), 7)
tap.equal("the agent leaves in order", agent.leave(), 0)
tap.end()
PYTHON
