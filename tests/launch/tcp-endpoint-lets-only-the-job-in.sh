#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One agent and a head made of Python: where the TCP endpoint listens, who comes in, and how another
# node finds out that it can be reached.
. "$(dirname "$0")/../lib/tap.sh"

python_tests <<'PYTHON'
import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import time

from fake_head import *
from store_client import Client

tap = Tap()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
soft = min(soft, hard, 777)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
agent, other = Agent(), Agent()
token = b"0123456789abcdefFEDCBA9876543210"
own = [a.decode() for _, a, _ in agent.hello["addrs"]]
listens = lambda port, addr: not socket.socket(
    socket.AF_INET6 if ":" in addr else socket.AF_INET).connect_ex((addr, port))
nobody = lambda program, *words: subprocess.run(
    ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", program,
     *map(str, words)], stdout=subprocess.PIPE).stdout

# --- where it listens
held = agent.hello["free_port"]
tap.ok("nothing listens before it is told to", not listens(held, "127.0.0.1"))
port, why = agent.endpoint(LOOPBACK, token)
tap.equal("the endpoint takes the port that was promised", (port, why), (held, b""))
tap.ok("it is open on 127.0.0.1", listens(port, "127.0.0.1"))
if os.path.exists("/proc/net/if_inet6"):
    tap.ok("and on ::1", listens(port, "::1"))
tap.equal("but nowhere else", [a for a in own if listens(port, a)], [])
client = Client(port)
tap.equal("a process of the same user comes in", client.ping(99), 99)
tap.equal("another order takes the same port", agent.endpoint(LOOPBACK, token), (port, b""))
tap.ok("but throws the old clients out", client.closed())
tap.equal("and is open again", Client(port).ping(), 7)
tap.equal("an order that makes no sense is refused", agent.endpoint(9), (0, b"malformed ENDPOINT message"))
tap.ok("and closes it", wait_for(lambda: not listens(port, "127.0.0.1")))
port, why = agent.endpoint(NETWORK, token)
tap.ok("it opens to the network", port and not why, port, why)
tap.ok("on all addresses", all(listens(port, a) for a in own + ["127.0.0.1"]))

agent.launch([sys.executable, "-c", "import resource as r; print(*r.getrlimit(r.RLIMIT_NOFILE))"],
             agent_store=True)
tap.equal("ranks have a higher limit of open files", agent.play().out(), b"%d %d\n" % (max(soft, min(hard, 1 << 20)), hard))
tap.equal("the agent has all there are",
          resource.prlimit(int(agent.hello["pid"]), resource.RLIMIT_NOFILE), (hard, hard))
tap.equal("the endpoint stays when ranks start and end", Client(port).ping(), 7)

# --- reaching it from another node
agent.sleep()
other.sleep()
addrs = ["127.0.0.1"] + own
results = []
for addr in addrs:
    other.probe(port, [addr], token)
    results += other.probed()
tap.equal("a probe that knows the token reaches every address", [r[0] for r in results],
          [0] * len(addrs))
other.probe(port, addrs, token)
together = [r[0] for r in other.probed()]
# Once one has answered the others have a tenth of a second, which this machine may be too busy for.
tap.ok("also when it asks for all at once", len(together) == len(addrs) and 0 in together and
       set(together) <= {0, errno.ETIMEDOUT}, together)
tap.equal("it names the interface of loopback", results[0][1], b"lo")
tap.ok("and takes some time", all(0 < r[2] < 20_000_000 for r in results), results)
other.probe(port, addrs[:1], token[:16] + b"x" * 16)
tap.equal("an answer with another token is none", other.probed()[0][0], errno.EPROTO)
other.probe(port, addrs[:1], b"x" * 32)
tap.equal("nobody answers another token", other.probed()[0][0], errno.ECONNRESET)
tap.ok("which is told", agent.log("another job's token"), agent.logged)

silent = socket.create_server(("127.0.0.1", 0))
quiet = silent.getsockname()[1]
began = time.monotonic()
other.probe(quiet, ["127.0.0.1"], timeout_ms=300)
tap.equal("who says nothing is given up in time", other.probed()[0][0], errno.ETIMEDOUT)
tap.ok("not before and not much later", 0.29 < time.monotonic() - began < scaled(20))


def asleep():
    """What a probe says whose answer comes in time, but to an agent that is stopped until that is over;
    None: we were too late ourselves."""
    inner, ends = int(other.hello["pid"]), time.monotonic() + 1
    other.probe(quiet, ["127.0.0.1"], token, timeout_ms=1000)
    endpoint = silent.accept()[0]
    endpoint.recv(100)
    os.kill(inner, signal.SIGSTOP)
    in_time = time.monotonic() < ends
    endpoint.sendall(token[16:])
    time.sleep(max(0, ends - time.monotonic()) + 0.2)
    os.kill(inner, signal.SIGCONT)
    error = other.probed()[0][0]
    endpoint.close()
    return error if in_time else None


silent.accept()[0].close()  # that of the probe before
while (error := asleep()) is None:
    pass
tap.equal("nor is who answered while we slept", error, 0)
refused = silent.getsockname()[1]
silent.close()
other.probe(refused, ["127.0.0.1", "no address", "::1"], timeout_ms=300)
tap.equal("a refusal, and what is no address", [r[0] for r in other.probed()[:2]],
          [errno.ECONNREFUSED, errno.EINVAL])
late = Agent()
other.probe(late.hello["free_port"], ["127.0.0.1"], token, timeout_ms=20000)
tap.ok("a refused probe asks again", other.silent(0.3))
late.endpoint(NETWORK, token)
tap.equal("until the endpoint opens", other.probed()[0][0], 0)
late.leave()
other.probe(port, [], token)
tap.equal("nothing to try is answered, too", other.probed(), [])
other.probe(refused, ["127.0.0.1"], timeout_ms=60000)
other.probe(port, ["127.0.0.1"], token)
tap.equal("a new order ends the old one, which is answered with an empty list", other.probed(), [])
tap.equal("and takes its place", [r[0] for r in other.probed()], [0])

# --- strangers
if os.geteuid() == 0 and subprocess.run(["setpriv", "--version"], stdout=-3, stderr=-3).returncode == 0:
    program = ("import socket, sys\n"
               "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
               "try:\n"
               "    s.sendall(b'\\0\\xce\\xf7\\x85\\x3c\\x0d1234')\n"
               "    print(s.recv(9))\n"
               "except ConnectionError: print(b'')\n")
    for addr in ["127.0.0.1"] + own[:1]:
        tap.equal("another user of this machine is turned away at %s" % addr,
                  nobody(program, addr, port), b"b''\n")
    tap.ok("and told with its number", agent.log("65534"), agent.logged)
    before = len(agent.logged)
    nobody(program, "127.0.0.1", port)
    tap.ok("once", not agent.log("never", 0.3) and len(agent.logged) == before, agent.logged)
    tap.equal("while we go on", Client(port).ping(), 7)
other.endpoint(NETWORK, token, peers=["192.0.2.77"])

# --- more of them than descriptors
resource.prlimit(int(agent.hello["pid"]), resource.RLIMIT_NOFILE, (60, hard))
client = Client(port)
crowd = [Client(port) for _ in range(80)]
tap.equal("with too few descriptors who is in is served", client.ping(), 7)
cpu = lambda: sum(map(int, open("/proc/%d/stat" % agent.hello["pid"]).read().rsplit(")")[1].split()[11:13]))
spent = cpu()
time.sleep(0.5)
tap.ok("nobody spins", cpu() - spent < 20, cpu() - spent)
for one in crowd:
    one.close()
tap.equal("once they have left others come in", wait_for(lambda: Client(port).ping() == 7), True)
tap.equal("the agent leaves in order", (agent.leave(), other.leave()), (0, 0))
tap.end()
PYTHON
