#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Idle connections to the TCP endpoint that take every open file they can get leave enough for ranks that start later,
# for the store, and for clients that come when others have gone. One agent and a head made of Python.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

export AGENT=$BUILD/hnlaunch-agent PYTHONPATH=$ROOT/tests/lib PYTHONDONTWRITEBYTECODE=1
finished=yes
python3 - <<'PYTHON'
import os
import resource
import socket

from fake_head import *
from store_client import *

RANKS = 16
tap = Tap()
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
limit = min(hard // 2, 20000)
agent = Agent(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit // 2, limit)))
agent.sleep()
port, why = agent.endpoint(LOOPBACK)
fds = lambda: len(os.listdir("/proc/%d/fd" % agent.hello["pid"]))


def crowd(count):
    made = []
    for _ in range(count):
        made.append(socket.create_connection(("127.0.0.1", port), scaled(20)))
    return made


def served(idle):
    """Those that the agent keeps."""
    kept = []
    for one in idle:
        one.settimeout(scaled(60))
        try:
            one.sendall(HELLO + b"\x0d1234")
            if one.recv(4) == b"1234":
                kept.append(one)
        except ConnectionError:
            pass
    return kept


# --- before the launch half of the files are left
first = crowd(limit * 3 // 4)
kept = served(first)
tap.ok("before the launch connections take half of the open files", limit // 3 < len(kept) <= limit // 2, len(kept))
tap.ok("the first that is turned away is told", agent.log("the other open files of ulimit -n are for ranks"), agent.logged)

# --- ranks start beside them, and more connections may come
agent.launch(["sh", "-c", "read line; echo there"], ranks=RANKS, stdin_rank=NOBODY - 1)
more = served(crowd(limit - len(kept)))
tap.ok("with the launch more are served", len(kept) + len(more) > limit - 64 - 8 * RANKS - 16, len(more))
tap.ok("and files are left", fds() < limit - 16, fds())
agent.stdin(NOBODY - 1, b"go\n")
agent.stdin(NOBODY - 1, b"")
result = agent.play()
tap.equal("all ranks run", [result.out(r) for r in range(RANKS)], [b"there\n"] * RANKS)
result = agent.run(["echo", "again"], ranks=RANKS)
tap.equal("and those of a restart", [result.out(r) for r in range(RANKS)], [b"again\n"] * RANKS)
tap.equal("told once", sum("for ranks" in x for x in agent.logged), 1)

for one in first + more:
    one.close()
tap.ok("files of connections that have left are free", wait_for(lambda: fds() < 64, 60), fds())
tap.equal("and new clients are served", Client(port).ping(), 7)
tap.equal("the agent leaves in order", agent.leave(), 0)
tap.end()
PYTHON
exit
