#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One agent and a head made of Python: what is ordered arrives byte for byte, what cannot be started
# is refused with the reason, output keeps to its window.
. "$(dirname "$0")/../lib/tap.sh"

printf '#!/bin/sh\nexit 0\n' >plain
printf 'no program' >nonsense
chmod +x nonsense
python_tests <<'PYTHON'
import signal
import socket
import struct
import sys
import time

from fake_head import *
from gpu_samples import agent_below

tap = Tap()
agent = Agent()
every = bytes(range(1, 256))

# --- byte for byte
dump = [sys.executable, "-c", "import os, sys; sys.stdout.buffer.write(b'\\0'.join("
        "[os.fsencode(a) for a in sys.argv[1:]] + [os.environb[b'MINE'], os.environb[b'EMPTY'], "
        "os.getcwdb()]))"]
folder = os.path.join(os.fsencode(os.getcwd()), b"a b\n\xff'\"$x")
os.mkdir(folder)
words = [every, b"", b"  ", b"*", b"$HOME `id` \\", b"x" * 100000, b""]
result = agent.run(dump + words, env=[b"MINE=" + every * 390, b"EMPTY="], cwd=folder)
tap.equal("arguments, variables and the folder arrive byte for byte", result.out().split(b"\0"),
          words + [every * 390, b"", folder])
tap.equal("the rank's exit code comes back", (result.status, result.how),
          ({0: 0}, {0: (0, 0)}))
tap.equal("the end is told last", result.order[-1], "GONE")
tap.equal("both outputs have an end", result.ended, {(0, 1), (0, 2)})

# --- ports
def is_taken(port):
    with socket.socket(socket.AF_INET6) as s:
        try:
            s.bind(("::", port))
        except OSError:
            return True
    return False


ports, why = agent.ports(3)
tap.ok("as many ports as ordered", len(set(ports)) == 3 and why == b"", (ports, why))
tap.ok("they are held", all(is_taken(port) for port in ports), ports)
again, why = agent.ports(1)
tap.ok("another order lets them go", is_taken(again[0]) and not any(is_taken(port) for port in set(ports) - set(again)), again)
result = agent.run([sys.executable, "-c", "import os, socket; s = socket.socket(socket.AF_INET6); "
                    "s.bind(('::', int(os.environ['HN_PORT_A_1']))); s.listen(); print(os.environ['HN_MASTER_ADDR'])"],
                   ports=[("a_1", again[0])], first_node="192.0.2.1")
tap.equal("a rank listens at a port that was held", (result.status, result.out()), ({0: 0}, b"192.0.2.1\n"))
tap.equal("more ports than a job may have", agent.ports(4097), ([], b"Invalid argument"))

# --- ranks
result = agent.run(["sh", "-c", "echo $RANK $LOCAL_RANK $WORLD_SIZE; echo $HN_RUN_ID >&2; exit $RANK"],
                   ranks=5, run_id="five")
tap.equal("every rank knows itself", [result.out(r) for r in range(5)],
          [b"%d %d 5\n" % (r, r) for r in range(5)])
tap.equal("stderr is a stream of its own", result.err(3), b"five\n")
tap.equal("every exit code is told", result.status, {r: r << 8 for r in range(5)})
result = agent.run(["sh", "-c", "kill -SEGV $$"])
tap.equal("so is a signal", result.status[0] & 0x7f, signal.SIGSEGV)
result = agent.run(["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"], ranks=2, gpus=[[1], [4]], visible=True)
tap.equal("a rank sees the node's devices", result.out(1), b"1,4\n")
result = agent.run(["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"], ranks=2, gpus=[[1], [4]], own=True)
tap.equal("or its own", result.out(1), b"4\n")
result = agent.run(["sh", "-c", "ps -o pgid=,sid= -p $$ | tr -s ' '; echo $$; ls -l /proc/$$/fd/0"])
lines = result.out().split(b"\n")
tap.ok("a rank leads a session of its own", lines[0].split() == [lines[1]] * 2, lines)
tap.ok("and reads nothing", lines[2].endswith(b"/dev/null"), lines)

# --- refusals
for name, argv, more, want in (
        ("a missing program", ["nothing-here"], {"env": ["PATH=/usr/bin:/bin"]},
         (EXEC, 2, b"nothing-here")),
        ("a missing path", ["./nothing-here"], {"cwd": os.getcwd()}, (EXEC, 2, b"./nothing-here")),
        ("a file that is not executable", ["./plain"], {"cwd": os.getcwd()}, (EXEC, 13, b"./plain")),
        ("a file that is no program", ["./nonsense"], {"cwd": os.getcwd()}, (EXEC, 8, b"./nonsense")),
        ("a program outside of the worker's PATH", ["plain"], {"env": ["PATH=/nowhere"]},
         (EXEC, 2, b"plain")),
        ("a missing folder", ["true"], {"cwd": "/proc/nowhere"}, (CWD, 2, b"/proc/nowhere")),
        ("a folder that is none", ["true"], {"cwd": "/etc/passwd"}, (CWD, 20, b"/etc/passwd"))):
    result = agent.run(argv, ranks=3, **more)
    tap.equal(name + " is refused", [r[1:3] for r in result.refused], [want[:2]])
    tap.ok(name + " is named", want[2] in result.refused[0][3], result.refused)
    tap.equal(name + " leaves nothing", (result.order[-1], result.pids), ("GONE", {}))
# GONE follows, which play() waits for: the head counts on it.
agent.launch([], ranks=1)
tap.equal("an order without a program is refused", agent.play().refused[0][:2], (NOBODY, ORDER))
agent.send(LAUNCH, b"\1\2\3")
tap.equal("half an order is refused", agent.play().refused[0][:2], (NOBODY, ORDER))
agent.send(COMMON, b"\1\2\3")
agent.send(LAUNCH, b"\1\2\3")
tap.equal("a broken order is refused", agent.play().refused[0][:2], (NOBODY, ORDER))
agent.launch(["sleep", "60"])
agent.play(STARTED)
agent.launch(["true"])
result = agent.play(REFUSED)
tap.equal("a second order is refused while one runs", result.refused[0][1], ORDER)
agent.stop(0)
result = agent.play()
tap.equal("whose end is told as ever", result.order[-2:], ["EXITED", "GONE"])
tap.ok("and only once", agent.silent(0.3))

# Orders for two worlds come together: the second may be under way when the first is refused.
for name, later in ("an order", lambda: agent.launch(["true"])), ("STOP", lambda: agent.stop(0)):
    agent.launch(["./nothing-here"], cwd=os.getcwd(), announces=True)
    result = agent.play(REFUSED)
    tap.equal("the first of two orders is refused, " + name + " follows", result.refused[0][:2], (0, EXEC))
    time.sleep(0.3)
    later()
    result = agent.play()
    tap.equal(name + " comes before the end", (result.pids, [r[:2] for r in result.refused]),
              ({}, [(NOBODY, ORDER)] if name == "an order" else []))
    tap.ok("which is told once after " + name, agent.silent(0.3))

# --- flow control
agent.launch(["sh", "-c", "head -c 3000000 /dev/zero; echo done >&2"])
result = agent.play(STARTED)
got = 0
while got < WINDOW:
    kind, r = agent.next()
    got += len(r.data) - 5
tap.equal("output stops at the window", got, WINDOW)
tap.ok("and stays there", agent.silent(0.5))
agent.credit(0, 1, 1000)
more = 0
while more < 1000: # in pieces, when head(1) was slow to fill the pipe
    kind, r = agent.next()
    more += len(r.data) - 5 if kind == OUTPUT else 0
tap.equal("a credit lets as much follow", more, 1000)
tap.ok("and no more", agent.silent(0.3))
agent.credit(0, 1, WINDOW)
result = agent.play()
tap.equal("nothing is lost", len(result.out()) + got + 1000, 3000000)
tap.equal("the other stream is not held up", result.err(), b"done\n")
agent.launch(["sh", "-c", "head -c 300000 /dev/zero"], window=70000)
got = 0
while got < 70000:
    kind, r = agent.next()
    got += len(r.data) - 5 if kind == OUTPUT else 0
tap.ok("the order chooses the window", got == 70000 and agent.silent(0.3), got)
agent.credit(0, 1, 70000)
agent.play()

# --- standard input
data = os.urandom(1500000)
agent.launch(["sha256sum"], stdin_rank=0)
for at in range(0, len(data), 50000):
    agent.stdin(0, data[at:at + 50000])
agent.stdin(0, b"")
result = agent.play()
import hashlib
tap.equal("standard input arrives whole", result.out().split()[0].decode(),
          hashlib.sha256(data).hexdigest())
tap.equal("and is credited", result.fed, len(data))
agent.launch(["sh", "-c", "exec <&-; sleep 0.3"], stdin_rank=0)
for at in range(20):
    agent.stdin(0, bytes(50000))
result = agent.play()
tap.ok("a rank that does not read harms nobody", result.status[0] == 0, vars(result))

# --- small orders
before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
agent.send(PING, struct.pack("<QQ", 77, 0))
kind, r = agent.next()
echo, clock = r.take("QQ")
now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
tap.ok("a ping is answered with the agent's clock", kind == PONG and echo == 77 and
       before <= clock <= now, (kind, echo, before, clock, now))
agent.launch(["sh", "-c", "trap 'echo got it; exit 7' USR1; echo up; while :; do sleep 0.1; done"])
while agent.play(OUTPUT).out() != b"up\n":
    pass
agent.signal(signal.SIGUSR1)
result = agent.play()
tap.equal("a signal is passed on", (result.out(), result.status[0] >> 8), (b"got it\n", 7))
for number, stays in (signal.SIGUSR1, False), (0, True):
    other, go = Agent(), "go.%d" % number
    other.launch(["sh", "-c", "trap : USR1; echo up; until [ -e %s ]; do sleep 0.05; done" % go])
    other.play(OUTPUT)
    os.kill(agent_below(other.pid), signal.SIGTERM)
    other.play(SIGNAL)
    other.signal(number)
    other.send(PING, struct.pack("<QQ", 77, 0))
    other.play(PONG)
    open(go, "w").close()
    other.play()
    if stays:
        other.send(PING, struct.pack("<QQ", 78, 0))
        tap.ok("the answer 0 to its signal keeps an agent", other.play(PONG))
        other.leave()
    else:
        tap.equal("a signal for its ranks does not", other.process.wait(60), 0)
agent.send(99, b"?")
tap.equal("an unknown message is only told", agent.play(LOG).log[0][:18], b"a message of unkno")
tap.ok("the port of the greeting is still held", agent.hello["free_port"] > 0)
tap.equal("after BYE it leaves in peace", agent.leave(), 0)
tap.end()
PYTHON
