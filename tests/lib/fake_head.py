# SPDX-License-Identifier: Apache-2.0
"""The head's side of the wire, for tests that talk to one hnlaunch-agent over pipes."""

import os
import pathlib
import re
import selectors
import struct
import subprocess

from waiting import scaled, wait_for

MAGIC = b"HNLAUNCH-AGENT\n"
NOBODY = 0xFFFFFFFF
_LIST = (pathlib.Path(__file__).resolve().parents[2] / "src/wire/msg_type.h").read_text(encoding="utf-8")
NUMBERS = {name: int(number) for name, number in re.findall(r"\bX\((\w+), (\d+), ", _LIST)}
NAMES = {number: name for name, number in NUMBERS.items()}


def message_numbers(names):
    """The numbers of messages by their names, with blanks between."""
    return [NUMBERS[name] for name in names.split()]


LAUNCH, SIGNAL, STOP, CREDIT, STDIN, PING, BYE = message_numbers("LAUNCH SIGNAL STOP CREDIT STDIN PING BYE")
ENDPOINT, PROBE, COMMON, PORTS, PORTS_HELD = message_numbers("ENDPOINT PROBE COMMON PORTS PORTS_HELD")
HELLO, STARTED, REFUSED, OUTPUT, EXITED, GONE = message_numbers("HELLO STARTED REFUSED OUTPUT EXITED GONE")
PING_REQUEST, PONG, LOG, STORE = message_numbers("PING_REQUEST PONG LOG STORE")
ENDPOINT_OPENED, PROBED, WARM, WARMED = message_numbers("ENDPOINT_OPENED PROBED WARM WARMED")
LOOPBACK, NETWORK = 1, 2
WINDOW = 512 << 10
EXEC, CWD, FORK, ORDER = 1, 2, 3, 4
HERE = struct.pack("<QQ", 0x6B6E6F636B, 0)  # the PING that answers a PING_REQUEST


class Lost(Exception):
    """The agent closed its end, or said nothing in time."""


def _bytes(value):
    value = os.fsencode(value)
    return struct.pack("<I", len(value)) + value


def _list(values):
    return struct.pack("<I", len(values)) + b"".join(_bytes(v) for v in values)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        form = "<" + form
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values if len(values) > 1 else values[0]

    def text(self):
        length = self.take("I")
        self.at += length
        return self.data[self.at - length:self.at]

    def rest(self):
        return self.data[self.at:]


class Agent:
    """An agent process. Frames come from next(), which answers PING_REQUESTs itself unless it is told not to;
    run() plays a whole attempt."""

    def __init__(self, program=None, env=None, answers=True, **popen):
        program = program or os.environ["AGENT"]
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=env, bufsize=0, **popen)
        self.pid = self.process.pid
        self.to, self.source = self.process.stdin, self.process.stdout.fileno()
        os.set_blocking(self.source, False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.source, selectors.EVENT_READ)
        self.waiting, self.logged, self.answers = b"", [], answers
        while len(self.waiting) < len(MAGIC):
            self._more(60)
        assert self.waiting.startswith(MAGIC), self.waiting[:80]
        self.waiting = self.waiting[len(MAGIC):]
        self.hello = self._hello(*self.next())

    def _more(self, timeout):
        limit = scaled(timeout)
        if not self.selector.select(limit):
            raise Lost("nothing came for %s s" % limit)
        data = os.read(self.source, 1 << 20)
        if not data:
            raise Lost("the agent closed its end")
        self.waiting += data

    @staticmethod
    def _hello(kind, r):
        assert kind == HELLO, kind
        names = ("version", "pid", "uid", "cores")
        hello = dict(zip(names, r.take("IIII")))
        for name in ("arch", "host", "machine"):
            hello[name] = r.text()
        hello.update(zip(("memory", "nofile", "mono_ns"), r.take("QQQ")))
        hello["free_port"] = r.take("I")
        hello["ssh_addr"] = r.text()
        hello.update(zip(("memlock", "infiniband"), r.take("QI")))
        hello["gpus"] = [(r.take("I"), r.text(), r.text()) for _ in range(r.take("I"))]
        hello["gpus_chosen"] = r.take("B")
        hello["hidden"] = [(r.take("I"), r.text(), r.text()) for _ in range(r.take("I"))]
        hello["addrs"] = [(r.text(), r.text(), r.take("I")) for _ in range(r.take("I"))]
        assert not r.rest()
        return hello

    # --- frames -------------------------------------------------------------------------------

    def next(self, timeout=60):
        """(type, Reader) of the next frame."""
        while True:
            kind, body = self._frame(timeout)
            if kind == PING_REQUEST and self.answers:
                self.send(PING, HERE)
            elif kind != PONG or body[:8] != HERE[:8]:
                return kind, Reader(body)

    def _frame(self, timeout):
        while len(self.waiting) < 5 or len(self.waiting) < 4 + self._length():
            self._more(timeout)
        end = 4 + self._length()
        kind, body = self.waiting[4], self.waiting[5:end]
        self.waiting = self.waiting[end:]
        return kind, body

    def _length(self):
        return struct.unpack_from("<I", self.waiting)[0]

    def silent(self, seconds):
        """True when nothing comes for so long."""
        return not self.waiting and not self.selector.select(seconds)

    def send(self, kind, body=b""):
        self.to.write(struct.pack("<IB", len(body) + 1, kind) + body)

    # --- orders -------------------------------------------------------------------------------

    def launch(self, argv, ranks=1, env=(), unset=(), cwd="", stdin_rank=NOBODY, window=0,
               run_id="test", gpus=None, own=False, visible=False, agent_store=False, iface="",
               contain=0, program="", first_node="", ports=(), subst=False, local_rank="", host="", bind="", announces=False, **more):
        get = {"world": ranks, "nodes": 1, "node_rank": 0, "restart": 0, "max_restarts": 0,
               "master": "127.0.0.1", "port": 29500, "grace": 1000, "silence": 0}
        get.update(more)
        body = _bytes(run_id) + struct.pack("<3I", 0, 0, 0)  # world 0
        body += struct.pack("<6IBB", get["world"], get["nodes"], get["restart"],
                            get["max_restarts"], get["grace"], window, contain, own)
        body += _bytes(bind) + _list(env) + _list(unset) + struct.pack("<I", stdin_rank)
        body += struct.pack("<III", NOBODY, 0, 0) + _bytes("")  # no --pty
        body += b"\0"  # --compat none
        body += _bytes(first_node) + struct.pack("<I", len(ports))
        body += b"".join(_bytes(name) + struct.pack("<I", number) for name, number in ports)
        body += struct.pack("<BI", 1, 0)  # no MPI
        body += struct.pack("<I", 1) + _list(argv) + _list([]) + _bytes("") + _bytes("")  # one program
        body += struct.pack("<B", subst) + _bytes(local_rank) + _list([]) + b"\0"  # no --wrap, no --ready
        self.send(COMMON, body)
        body = struct.pack("<I", get["node_rank"]) + _bytes(get["master"])
        body += struct.pack("<IIB", get["port"], get["silence"], visible | agent_store << 1 | announces << 4)
        body += _bytes(iface) + _bytes(host) + _bytes(cwd) + b"\0" + _list([program]) + struct.pack("<I", ranks)
        for rank in range(ranks):
            mine = gpus[rank] if gpus else []
            body += struct.pack("<IIII", rank, rank, 0, len(mine))
            body += struct.pack("<%dI" % len(mine), *mine)
        self.send(LAUNCH, body)

    def begin_warm(self, word, modules, slots=1, env=(), unset=(), cwd="", bind=""):
        self.send(WARM, _bytes(word) + _list(modules) + struct.pack("<I", slots) + _bytes(bind) + _bytes(cwd) + _list(env) + _list(unset))

    def warm(self, word, modules, slots=1, env=(), unset=(), cwd="", bind=""):
        """(slots that are ready, why none is)"""
        self.begin_warm(word, modules, slots, env, unset, cwd, bind)
        r = self.answer(WARMED)
        slots, _, _ = r.take("III")
        return slots, r.text().decode()

    def stop(self, grace_ms):
        self.send(STOP, struct.pack("<I", grace_ms))

    def signal(self, number):
        self.send(SIGNAL, struct.pack("<I", number))

    def credit(self, rank, stream, count):
        self.send(CREDIT, struct.pack("<IBI", rank, stream, count))

    def stdin(self, rank, data):
        self.send(STDIN, struct.pack("<I", rank) + data)

    def endpoint(self, mode, token=b"t" * 32, peers=(), value_max=0):
        """(port, why not) of ENDPOINT_OPENED; log lines that come first are kept in self.logged."""
        self.send(ENDPOINT, struct.pack("<B", mode) + _bytes(token) + struct.pack("<IB", value_max, 0) +
                  _list(peers))
        r = self.answer(ENDPOINT_OPENED)
        return r.take("I"), r.text()

    def ports(self, count):
        """(numbers, why not) of PORTS_HELD"""
        self.send(PORTS, struct.pack("<I", count))
        r = self.answer(PORTS_HELD)
        return [r.take("I") for _ in range(r.take("I"))], r.text()

    def sleep(self):
        """Tells it that its head sleeps: without an order it would leave after a minute of silence."""
        self.send(PING, struct.pack("<QQ", 0, 0))
        self.answer(PONG)

    def probe(self, port, addrs, token=b"t" * 32, timeout_ms=20000):
        self.send(PROBE, _bytes(token) + struct.pack("<II", port, timeout_ms) + _list(addrs))

    def probed(self):
        """[(errno, interface, microseconds)]"""
        r = self.answer(PROBED)
        return [(r.take("I"), r.text(), r.take("I")) for _ in range(r.take("I"))]

    def answer(self, want, timeout=60):
        """The Reader of the next frame of that type, without the log lines before it."""
        while True:
            kind, r = self.next(timeout)
            if kind == want:
                return r
            assert kind == LOG, kind
            r.take("BI")
            self.logged.append(r.text().decode())

    def log(self, text, timeout=60):
        """Whether a line with @text has been logged, or is within that time."""
        while not any(text in line for line in self.logged):
            try:
                kind, r = self.next(timeout)
            except Lost:
                return False
            if kind == LOG:
                r.take("BI")
                self.logged.append(r.text().decode())
        return True

    # --- attempts -----------------------------------------------------------------------------

    def play(self, until=GONE, timeout=60, credit=True):
        """Takes frames up to the first of type @until; what they said is a Result."""
        result = Result()
        while True:
            kind, r = self.next(timeout)
            result.order.append(NAMES.get(kind, str(kind)))
            if kind == STARTED:
                rank, pid = r.take("II")
                result.pids[rank] = pid
            elif kind == REFUSED:
                result.refused.append(r.take("III") + (r.text(),))
            elif kind == OUTPUT:
                rank, stream = r.take("IB")
                data = r.rest()
                result.add(rank, stream, data)
                if credit and data:
                    self.credit(rank, stream, len(data))
            elif kind == EXITED:
                rank, pid, status, when, stopped, killed = r.take("IIIQBB")
                result.status[rank] = status
                result.how[rank] = (stopped, killed)
            elif kind == CREDIT:
                rank, stream, count = r.take("IBI")
                result.fed += count
            elif kind == LOG:
                r.take("BI")
                result.log.append(r.text())
            if kind == until:
                return result

    def run(self, argv, **launch):
        self.launch(argv, **launch)
        return self.play()

    def leave(self):
        """BYE, and takes all that is still said; the agent's exit code."""
        self.send(BYE)
        while self.selector.select(scaled(60)) and os.read(self.source, 1 << 20):
            pass
        return self.process.wait(scaled(60))


class Result:
    def __init__(self):
        self.pids, self.status, self.how, self.refused = {}, {}, {}, []
        self.streams, self.ended, self.order, self.log, self.fed = {}, set(), [], [], 0

    def add(self, rank, stream, data):
        assert (rank, stream) not in self.ended, "output after its end"
        if data:
            self.streams[rank, stream] = self.streams.get((rank, stream), b"") + data
        else:
            self.ended.add((rank, stream))

    def out(self, rank=0):
        return self.streams.get((rank, 1), b"")

    def err(self, rank=0):
        return self.streams.get((rank, 2), b"")


def alive(pid):
    """Whether a process runs; a zombie does not."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            return f.read().rsplit(b")", 1)[1].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


class Tap:
    """ok() per truth, end() last."""

    def __init__(self):
        self.tests = self.failures = 0

    def ok(self, name, good, *details):
        self.tests += 1
        self.failures += not good
        print("%sok %d - %s" % ("" if good else "not ", self.tests, name), flush=True)
        if not good:
            for detail in details:
                print("# %.2000r" % (detail,), flush=True)

    def equal(self, name, got, want):
        self.ok(name, got == want, ("got", got), ("want", want))

    def end(self):
        print("1..%d" % self.tests)
        raise SystemExit(bool(self.failures))
