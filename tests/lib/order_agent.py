# SPDX-License-Identifier: Apache-2.0
"""Valid messages in any order for one hnlaunch-agent: order_agent.py FIRST LAST, a sequence per number.

A number is the seed of its sequence, so `order_agent.py 17 17` repeats it. Each sequence has an agent of its own, in
a folder of its own. When it is over the head is gone, or says BYE first. Then the agent must end by itself, with an
exit code, without a report of a sanitizer, and without a process that bears its mark."""

import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from fake_head import (_bytes as text, _list as texts, BYE, CREDIT, ENDPOINT, LAUNCH, LOOPBACK, MAGIC, NETWORK, PING,
                       PROBE, SIGNAL, STDIN, STOP, STORE, COMMON, PORTS, message_numbers)
from waiting import wait_for

STATUS_REQUEST, CHILD_AGENT, PRUNE, OFFER, PACK, CHAIN, STAGE = message_numbers("STATUS_REQUEST CHILD_AGENT PRUNE OFFER PACK CHAIN STAGE")
LOOK, INSPECT, PULL, TUNNEL, WORLD, STARTED, BIND = message_numbers("LOOK INSPECT PULL TUNNEL WORLD STARTED BIND")
BINDINGS = ["", "auto", "none", "numa", "socket", "core:1", "core:9999", "exclusive", "list:0;1-3", "list:", "?"]
SIGNAL_RANKS, MEASURE, WARM = message_numbers("SIGNAL_RANKS MEASURE WARM")
REPLY, EVENT = 128, 129
MARK = "ORDER_MARK"

PROGRAMS = [["true"], ["sh", "-c", "exit 3"], ["sleep", "1000"], ["cat"], ["/nowhere/at/all"], [],
            ["sh", "-c", "yes | head -c 300000"], ["sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000"],
            ["sh", "-c", "setsid sleep 1000 & kill -9 $$"], ["/usr/bin/python3", "/nowhere.py"], ["/usr/bin/python3", "-c", "print(1)"]]
# Kind, and a list of blocks of a node, nodes and ranks on each.
MPI = 4 * [struct.pack("<BI", 1, 0)] + [struct.pack("<BIIII", 0, 1, 0, 1, n) for n in (1, 2)] + [
    struct.pack("<BI", 0, 0), struct.pack("<BI", 4, 0), struct.pack("<BIIII", 2, 1, 0, 2**32 - 1, 2**32 - 1)]
CHILDREN = [["true"], ["sleep", "1000"], ["cat"], ["/nowhere/at/all"], ["sh", "-c", "printf '%s\\n' HNLAUNCH-AGENT; cat"],
            ["sh", "-c", "echo no >&2; exit 255"], [os.environ["AGENT"]], [os.environ["AGENT"]]]


def u32(*numbers):
    return struct.pack("<%dI" % len(numbers), *numbers)


def frame(kind, body):
    return struct.pack("<IB", len(body) + 1, kind) + body


class Order:
    """The messages; each returns (type, body)."""

    def __init__(self, r, folder):
        self.r, self.folder = r, folder

    def number(self):
        return self.r.choice([0, 1, 2, 7, 100, 5000, 1 << 20, 2**31 - 1, 2**32 - 1])

    def rank(self):
        return self.r.choice([0, 0, 1, 2, 3, 2**32 - 2, 2**32 - 1])

    def common(self):
        r = self.r
        world = r.choice([(0, 0), (0, 0), (0, 0), (1, 2), (2, 4), (1, 1)])  # its number, and that of its rank 0
        return COMMON, (text("order") + u32(*world, 0) + u32(r.choice([1, 2, 4, 4, 4]), 1, 0, 0, r.choice([0, 100]), r.choice([0, 1, 65536])) +
                        bytes([r.choice([0, 1, 2, 3, 1]), r.randrange(2)]) +
                        text(r.choice(BINDINGS)) +
                        texts(["A=1", "B="]) + texts(["C*"]) + u32(self.rank()) +
                        u32(self.r.choice([2**32 - 1] * 5 + [0]), 24, 80) + text("xterm") +
                        r.choice([b"\0", b"\1" + u32(0), b"\2" + u32(1) + text("n") + u32(1)]) +
                        r.choice([text("") + u32(0), text("::1") + u32(1) + text("jax") + u32(r.choice([1, 65535]))]) +
                        r.choice(MPI) +
                        self.programs(r.choice([0, 1, 1, 1, 2])))

    def programs(self, n):
        r = self.r
        return u32(n) + b"".join(texts(r.choice(PROGRAMS)) + texts(r.choice([[], ["B=2"]])) + text(r.choice(["", "", "/", "/nowhere"])) + text(r.choice(["", "role"])) +
                                 bytes([r.randrange(2)]) + text(r.choice(["", "--local_rank"])) +
                                 texts(r.choice([[], [], ["env", "A={rank}"]])) + self.ready() for _ in range(n))

    def ready(self):
        r = self.r
        kind = r.choice([0, 0, 0, 1, 2, 3])
        return bytes([kind]) + (bytes([r.randrange(2)]) + text(r.choice(["1", "9", "web", ""])) + text(r.choice(["/", "f"])) if kind else b"")

    def launch(self):
        r = self.r
        body = u32(0) + text(r.choice(["127.0.0.1", "::1", "", "n0"])) + u32(29500, r.choice([0, 60000]))
        flags = r.choice([r.randrange(32), r.randrange(32), r.randrange(32), 32])  # 32: ports of ranks
        flags |= r.choice([0, 0, 64, 128])  # ranks of other worlds, --nic near
        body += bytes([flags]) + text("lo") + text("n{rank}") + text(r.choice(["", "/", "/nowhere"])) + bytes([r.randrange(2)]) + texts(r.choice([[], [""], ["./x"]]))
        ranks = r.choice([[], [0], [0, 1], [1], [0, 0], [3, 2, 1, 0]])
        body += u32(len(ranks)) + b"".join(u32(k, i, r.choice([0, 0, 0, 0, 1, 2**32 - 1]), 0) for i, k in enumerate(ranks))
        if flags & 32:
            body += u32(len(ranks)) + b"".join(r.choice([u32(0), u32(1) + text("http") + u32(41000)]) for _ in ranks)
        if flags & 64:
            body += u32(2, self.rank(), 0, 1, 0, self.rank(), 0, 0)
        return LAUNCH, body

    def signal(self):
        return SIGNAL, u32(self.r.choice([0, signal.SIGUSR1, signal.SIGTERM, signal.SIGSTOP, signal.SIGCONT, 64, 65, 1 << 31]))

    def signal_ranks(self):
        return SIGNAL_RANKS, u32(self.r.choice([0, 15, 19, 18, 64, 65]), self.r.choice([0, 1, 2**32 - 1]), self.number()) + bytes([self.r.randrange(2)])

    def stop(self):
        return STOP, u32(self.r.choice([0, 1, 50, 100, 2**32 - 1]))

    def credit(self):
        return CREDIT, u32(self.rank()) + bytes([self.r.randrange(1, 3)]) + u32(self.number())

    def stdin(self):
        return STDIN, u32(self.rank()) + b"x" * self.r.choice([0, 0, 1, 5, 100000])

    def ping(self):
        return PING, struct.pack("<QQ", self.r.choice([0, 1, 2**63, 2**64 - 1]), 0)

    def endpoint(self):
        return ENDPOINT, (bytes([self.r.choice([LOOPBACK, NETWORK])]) + text("t" * 32) + u32(self.r.choice([0, 10])) + bytes([0]) +
                          texts(["127.0.0.1"]))

    def ports(self):
        return PORTS, u32(self.r.choice([0, 1, 2, 65, 4097, 2**32 - 1]))

    def probe(self):
        return PROBE, (text("t" * 32) + u32(self.r.choice([1, 41731, 65535]), self.r.choice([0, 20, 10000])) +
                       texts(self.r.choice([[], ["127.0.0.1"], ["127.0.0.1", "192.0.2.1", "n0"]])))

    def status(self):
        return STATUS_REQUEST, u32(self.number())

    def bind(self):
        ranks = self.r.choice([[], [[]], [[0, 1], [2**32 - 1]]])
        return BIND, text(self.r.choice(BINDINGS)) + bytes([self.r.randrange(2)]) + u32(len(ranks)) + b"".join(
            u32(self.rank(), self.r.choice([0, 1, 9]), len(gpus), *gpus) for gpus in ranks) + self.r.choice([u32(0), u32(1, self.rank(), 0, 1, 0)])

    def inspect(self):
        ranks = self.r.choice([[], [0], [0, 1], [0, 0, 7, 2**32 - 1]])
        return INSPECT, u32(self.number()) + bytes([self.r.randrange(7)]) + u32(self.number(), len(ranks), *ranks, self.number()) + bytes([self.r.randrange(2)]) + text(self.r.choice(["", "/", "/tmp/x", "x"])) + u32(*self.r.choice([[0], [1, 0], [2, 0, 2**32 - 1]]))

    def child(self):
        return CHILD_AGENT, (u32(self.r.randrange(1, 4), self.r.choice([0, 1, 9])) + bytes([self.r.randrange(2)]) +
                             texts(self.r.choice(CHILDREN)) + text("n1") + text(self.r.choice(["", "n1 ssh-ed25519 AAAA\n"])))

    def prune(self):
        return PRUNE, u32(self.r.randrange(1, 4))

    def tunnel(self):
        kind, body = self.r.randrange(10), b""
        if kind in (2, 4, 6, 7, 8, 9):
            body = u32(self.number())
        if kind in (8, 9):
            body += struct.pack("<Q", self.r.choice([0, 1, 2**32, 2**64 - 1]))
        if kind in (0, 3, 5):
            body = self.r.choice([b"", b"bytes", struct.pack("<IB", 100, STORE)] + 4 * [frame(*self.any())])
        return TUNNEL, u32(self.r.randrange(1, 4)) + bytes([kind]) + body

    def offer(self):
        files = b"".join(bytes([2]) + u32(0o644) + text("file%d" % i) + struct.pack("<Q", size) + bytes(32)
                         for i, size in enumerate([0, 5, 300000]))
        full = self.r.randrange(4) > 0
        later = 0 if full else self.r.choice([4, 300, 24 << 20, 2**32 - 1])
        head = (text("order") + u32(0, self.r.choice([0, 60000])) + bytes([0]) + u32(later) + bytes([self.r.randrange(3)]) + bytes(8 + 32) +
                text("/from") + text(self.r.choice(["", "/bin/sh", "/nothing"])) + bytes(8 + 32))
        if not full:
            return OFFER, head + u32(0)
        return OFFER, (head + u32(5) +
                       bytes([1]) + u32(0o755) + text("dir") + files + bytes([3]) + u32(0o777) + text("link") + text("file0"))

    def pack(self):
        size = self.r.choice([0, 5, 15000])
        return PACK, (u32(self.r.randrange(1, 3), self.r.choice([0, 0, 1, 7])) + bytes([self.r.choice([0, 0, 1])]) + u32(1) +
                      u32(self.r.choice([0, 1, 2, 3, 4, 2**32 - 1])) + struct.pack("<Q", self.r.choice([0, 0, 5, 2**63])) + u32(size) + bytes(size))

    def chain(self):
        return CHAIN, (u32(self.r.randrange(9), self.r.randrange(1, 3), self.r.choice([0, 1, 9])) + bytes([self.r.randrange(8), self.r.randrange(2)]) +
                       bytes(32) + u32(self.r.choice([0, 1, 65535, 65536])) + texts(self.r.choice([[], ["127.0.0.1"], ["::1", "nowhere"]])))

    def look(self):
        return LOOK, bytes([self.r.randrange(2)])

    def stage(self):
        # The copies of the user stay: nothing is over the limits of a removal.
        if self.r.randrange(2):
            return STAGE, bytes([1]) + struct.pack("<QQ", self.r.choice([0, 2**64 - 1]), self.r.choice([0, 2**63]))
        return STAGE, bytes([0]) + struct.pack("<QQ", self.r.choice([0, 1, 2**64 - 1]), self.r.choice([0, 1]))

    def pull(self):
        return PULL, texts(self.r.choice([[self.folder], ["nothing", self.folder], ["/dev/null"], []])) + texts(self.r.choice([[], [self.folder]]))

    def store(self):
        head = u32(self.r.choice([0, 1, 2, 2**32 - 1]))
        if self.r.randrange(2):
            return STORE, (head + bytes([EVENT]) + u32(0) + bytes([self.r.randrange(1, 4)]) +
                           u32(self.r.choice([0, 2**32 - 1]), 2**32 - 1) + text("news"))
        return STORE, (head + bytes([REPLY]) + u32(self.r.randrange(5)) + bytes([self.r.randrange(7)]) +
                       struct.pack("<q", self.r.choice([0, 1, -1, 2**63 - 1])) + u32(0) +
                       self.r.choice([u32(0), u32(1, 0)]) + text("") + text(self.r.choice(["", "value"])))

    def world(self):
        return WORLD, u32(self.r.choice([0, 1, 1, 2, 4095, 4096])) + frame(*self.any())

    def measure(self):
        r = self.r
        targets = [u32(r.choice([1, 9, 65535])) + texts(r.choice([["127.0.0.1"], ["::1", "nowhere"], []])) for _ in range(r.randrange(3))]
        return MEASURE, (u32(self.number()) + text(r.choice(["t" * 32, ""])) + bytes([r.randrange(2)]) +
                         u32(r.choice([0, 50, 60001]), r.choice([0, 20]), r.choice([0, 100000, 2**32 - 1]), len(targets)) + b"".join(targets) +
                         text(r.choice(["", "", "/nowhere/libnccl.so.2"])) + texts(r.choice([[], ["NCCL_DEBUG=WARN"]])))

    def warm(self):
        r = self.r
        return WARM, (text(r.choice(["/usr/bin/python3", "/usr/bin/python3", "true", "/nowhere", ""])) + texts(r.choice([["json"], ["json"], ["nowhere"], []])) +
                      u32(r.choice([1, 2, 4, 0, 2**32 - 1])) + text(r.choice(BINDINGS)) + text(r.choice(["", "/nowhere"])) + texts(["A=1"]) + texts([]))

    def nonsense(self):
        return self.r.choice([0, 1, 5, 9, 11, 13, 14, 20, 32, 37, 64, 65, 255]), bytes(self.r.randrange(20))

    def any(self):
        names = ["common", "launch", "launch", "launch", "signal", "signal_ranks", "stop", "credit", "stdin", "ping", "endpoint", "probe", "ports", "status", "inspect",
                 "child", "prune", "tunnel", "tunnel", "offer", "pack", "chain", "look", "pull", "store", "world", "bind", "measure", "measure", "warm", "warm", "stage", "common", "launch", "nonsense"]
        return getattr(self, self.r.choice(names))()


def marked(mark):
    """The processes that bear the mark, but zombies."""
    found, want = [], ("%s=%s" % (MARK, mark)).encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if want in f.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def count(kind, said):
    """How many frames of a kind stand behind the greeting."""
    n, at = 0, len(MAGIC)
    while at + 5 <= len(said):
        length, found = struct.unpack_from("<IB", said, at)
        n, at = n + (found == kind), at + 4 + length
    return n


started = 0  # ranks of all sequences


def play(seed, folder):
    """The reasons why the sequence @seed is not well."""
    global started
    r, mark = random.Random(seed), "%d.%d" % (os.getpid(), seed)
    env = dict(os.environ, XDG_RUNTIME_DIR=folder, XDG_CACHE_HOME=os.path.join(folder, "cache"), HNLAUNCH_STAGE_DIR=os.path.join(folder, "cache"), HOME=folder,
               **{MARK: mark})
    order, reasons = Order(r, folder), []
    with open(os.path.join(folder, "stderr"), "w+b") as err:
        agent = subprocess.Popen([os.environ["AGENT"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err,
                                 env=env, bufsize=0, cwd=folder, start_new_session=True)
        said = []
        reader = threading.Thread(target=lambda: said.append(agent.stdout.read()))
        reader.start()
        messages = [order.common()] if r.randrange(4) else []
        messages += [order.any() for _ in range(r.randrange(1, 40))]
        if not r.randrange(4):
            messages.append((BYE, b""))
        try:
            for kind, body in messages:
                agent.stdin.write(frame(kind, body))
                if not r.randrange(5):
                    time.sleep(r.choice([0, 0.005, 0.03]))  # other orders of what happens meanwhile
        except BrokenPipeError:
            pass
        ended = not r.randrange(8)
        if ended:
            agent.send_signal(signal.SIGTERM)
        agent.stdin.close()
        if not wait_for(lambda: agent.poll() is not None, 30):
            reasons.append("the agent does not end")
        elif agent.returncode != 0 and not (ended and agent.returncode in (143, -signal.SIGTERM)):
            reasons.append("exit code %d" % agent.returncode)
        if not wait_for(lambda: not marked(mark), 10):
            reasons.append("processes are left: %r" % marked(mark))
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
        reader.join()
        started += count(STARTED, said[0])
        if not said[0].startswith(MAGIC) and not ended:
            reasons.append("no greeting")
        err.seek(0)
        lines = err.read().decode(errors="replace")
        if "Sanitizer" in lines or "runtime error" in lines:
            reasons.append(lines[:4000])
    return reasons


def main(first, last):
    bad = []
    numbers, lock = iter(range(first, last + 1)), threading.Lock()

    def work():
        while True:
            with lock:
                seed = next(numbers, None)
            if seed is None:
                return
            with tempfile.TemporaryDirectory(prefix="order.") as folder:
                reasons = play(seed, folder)
            if reasons:
                bad.append(seed)
                print("\n".join("# sequence %d: %s" % (seed, line) for why in reasons for line in why.splitlines()), flush=True)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    if not started:
        print("# no order was understood: no rank has started")
    return bad or not started


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]))))
