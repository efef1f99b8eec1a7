#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An agent up to the launch, for tests of what the head does with its answers: hnlaunch --agent FILE.

ENDPOINT_OPENED   what it answers to ENDPOINT: "PORT TEXT", "unasked", or "dead"; silent without
PROBED   what it answers to PROBE: "ERROR:IFACE:US ..." or "dead"; with several answers, separated by
         "|", the agents take one each, in the order in which they are asked; silent without
CLAIMS   a folder of this run, in which they agree on that
ADDRS    its addresses: "IFACE=ADDR/PREFIX ..."
MACHINE  what it says of the machine that it is on
PING_REQUESTS   a file: one agent asks with PING_REQUEST, and writes there the number of the message that comes first;
         the others say HELLO when it has, or after 20 s
EARLY    what it says when it is asked for ENDPOINT, before it has an order: names of messages, of rank 0 where
         they are of one; EXITED with code 3, END is an OUTPUT without bytes
ORDERED  what it says when it has one; FLOOD:N = N bytes of output of rank 0 and then the file $FLOODED,
         CREDIT:N = rank 0 has read N bytes of standard input, GET:N = it asks the store N times for a value of 8 MiB
         and never reads again, till hnlaunch has ended
PULLED   what it answers to PULL
PONGS    set: it answers each PING
TEXT     what it says in each field that holds a text; STATUS requests are answered with it, too

It has no trace, and leaves when it may.
"""

import os
import struct
import sys
import time

from fake_head import (BYE, CREDIT, ENDPOINT, ENDPOINT_OPENED, EXITED, GONE, HELLO, LAUNCH, LOG, MAGIC, OUTPUT, PING, PING_REQUEST,
                       PONG, PORTS_HELD, PROBE, PROBED, REFUSED, STARTED, STORE, Reader, _bytes as text, message_numbers)
from waiting import wait_for

VERSION = int(os.environ["VERSION"])
STATUS_REQUEST, STATUS, LEAVING, REPORT, DUMP, NCCL, RANK_READY = message_numbers("STATUS_REQUEST STATUS LEAVING REPORT DUMP NCCL RANK_READY")
RECORD, RECORDED, INSPECTED, RAS, FACTS, CHECKED, PULL, PULLED = message_numbers("RECORD RECORDED INSPECTED RAS FACTS CHECKED PULL PULLED")
WANT, TAKEN, PUSHED, TUNNEL = message_numbers("WANT TAKEN PUSHED TUNNEL")
OWNERS_REQUEST, OWNERS = message_numbers("OWNERS_REQUEST OWNERS")
TEXT = os.environb.get(b"TEXT")
PARENT = os.getppid()
ADDRS = "eth0=192.0.2.7/24 ib0=10.8.0.7/16"


def say(kind, body):
    sys.stdout.buffer.write(struct.pack("<IB", len(body) + 1, kind) + body)
    sys.stdout.buffer.flush()


def hello():
    addrs = [a.replace("=", "/").split("/") for a in os.environ.get("ADDRS", ADDRS).split()]
    say(HELLO, struct.pack("<IIII", VERSION, os.getpid(), os.getuid(), 4) +
        b"".join(text(t) for t in (TEXT[:15] if TEXT else os.environ.get("ARCH", "x86_64"), TEXT or "fake", os.environ.get("MACHINE", ""))) +
        struct.pack("<QQQI", 1 << 30, 1024, 0, 41731) + text("") +
        struct.pack("<QI", int(os.environ.get("MEMLOCK", (1 << 64) - 1)), int(os.environ.get("INFINIBAND", 0))) +
        struct.pack("<IBI", 0, 0, 0) +
        struct.pack("<I", len(addrs)) +
        b"".join(text(i) + text(a) + struct.pack("<I", int(p)) for i, a, p in addrs))


def frames():
    while True:
        head = sys.stdin.buffer.read(4)
        if len(head) < 4:
            return
        frame = sys.stdin.buffer.read(struct.unpack("<I", head)[0])
        yield frame[0], Reader(frame[1:])


def one_of(answers):
    """Each agent takes another one; the last is for all that come later."""
    for i, answer in enumerate(answers[:-1]):
        try:
            os.mkdir(os.path.join(os.environ["CLAIMS"], str(i)))
            return answer
        except FileExistsError:
            pass
    return answers[-1]


def answer_endpoint(port, *why):
    say(ENDPOINT_OPENED, struct.pack("<I", int(port)) + text(" ".join(why)))


def probed(results):
    rows = [r.split(":") for r in results]
    say(PROBED, struct.pack("<I", len(rows)) + b"".join(
        struct.pack("<I", int(error)) + text(iface) + struct.pack("<I", int(us))
        for error, iface, us in rows))


def answer(kind, name, how):
    words = one_of(os.environ.get(name, "").split("|")).split()
    if kind == PROBE and os.environ.get("ENDPOINT_OPENED") == "unasked":
        answer_endpoint(1)
    if words == ["dead"]:
        sys.exit(1)
    if words and words != ["unasked"]:
        how(words)


def flood(left):
    while left:
        n = min(left, 60000)
        say(OUTPUT, struct.pack("<IB", 0, 1) + b"x" * n)
        left -= n
    open(os.environ["FLOODED"], "w").close()


def get_and_never_read(n):
    head, key = struct.pack("<IBI", 0, 2, 1), text("key")
    say(STORE, head + key + text(bytes(8 << 20)))
    for tag in range(2, n + 2):
        say(STORE, struct.pack("<IBI", 0, 11, tag) + key)
    wait_for(lambda: os.getppid() != PARENT, 120)
    sys.exit(0)


def u32(*numbers):
    return struct.pack("<%dI" % len(numbers), *numbers)


def exited(status, where=b"", kills=0):
    return EXITED, u32(0, 4711, status) + struct.pack("<QBB", 0, 0, 0) + text(where) + struct.pack("<QQB", 0, kills, 0)


MESSAGES = {
    "STARTED": (STARTED, u32(0, 4711)),
    "REFUSED": (REFUSED, u32(0, 1, 2) + text((TEXT or b"it cannot be executed")[:500])),
    "OUTPUT": (OUTPUT, u32(0) + b"\1out of turn\n"),
    "END": (OUTPUT, u32(0) + b"\1"),
    "EXITED": exited(3 << 8),
    "STOPPED": exited(0x137f),
    "KILLED": exited(9, (TEXT or b"")[:150], 1),
    "LOG": (LOG, b"\x01" + u32(0) + text(TEXT or b"")),
    "LEAVING": (LEAVING, text((TEXT or b"")[:120])),
    "GONE": (GONE, b""),
    "PONG": (PONG, struct.pack("<QQ", 1 << 63, 0)),
    "CREDIT": (CREDIT, u32(0) + b"\0" + u32(1 << 20)),
    "ENDPOINT_OPENED": (ENDPOINT_OPENED, u32(1) + text("")),
    "PROBED": (PROBED, u32(0)),
    "PORTS_HELD": (PORTS_HELD, u32(1, 40001) + text("")),
    "STATUS": (STATUS, u32(1, 0, 0, 0, 0, 0, 0, 0)),
    "INSPECTED": (INSPECTED, u32(1, 0, 0, 4711) + b"S" + u32(0, 0) + 6 * text("")),
    "RAS": (RAS, u32(1) + b"\0" + 2 * text("")),
    "CHECKED": (CHECKED, u32(1) + b"\0" + u32(0)),
    "FACTS": (FACTS, u32(1) + struct.pack("<QQ", 0xef53, 7) + text("") + text("")),
    "REPORT": (REPORT, u32(0) + b'{"message": "it failed"}'),
    "DUMP": (DUMP, u32(0, 0, 0) + text("") + struct.pack("<QQ", 4, 0) + b"dump"),
    "DUMP-ASKED": (DUMP, u32(1, 0, 0) + text("") + struct.pack("<QQ", 4, 0) + b"dump"),
    "DUMP-TOLD": (DUMP, u32(0, 0, 0) + text("") + struct.pack("<QQ", 4, 0)),
    "DUMP-LARGE": (DUMP, u32(0, 0, 0) + text("") + struct.pack("<QQ", 33 << 20, 0)),
    "DUMP-BEHIND": (DUMP, u32(0, 0, 0) + text("") + struct.pack("<QQ", 8, 4) + b"dump"),
    "DUMP-SHORT": (DUMP, u32(0, 0, 0) + text("") + struct.pack("<QQ", 8, 0) + b"dump"),
    "DUMP-BEYOND": (DUMP, u32(0, 0, 0) + text("") + struct.pack("<QQ", 2, 0) + b"dump"),
    "NCCL": (NCCL, u32(int(os.environ.get("NCCL_CODE", 22809))) + text("/lib/libnccl.so.2")),
    "RANK_READY": (RANK_READY, u32(0)),
    "PULLED": (PULLED, b"\1" + u32(0, 0o755, 0) + text("")),
    "PULLED-FILE": (PULLED, b"\2" + u32(0, 0o644, 0) + text("f")),
    "PULLED-BYTES": (PULLED, b"\3" + u32(0, 0, 0) + text("") + b"bytes"),
    "PULLED-FILE-END": (PULLED, b"\4" + u32(0, 0, 0) + text("")),
    "PULLED-SHORT": (PULLED, b"\4" + u32(0, 0, 116) + text("")),
    "PULLED-BAD": (PULLED, b"\4" + u32(0, 0, 5) + text("")),
    "PULLED-LINK": (PULLED, b"\5" + u32(0, 0o777, 0) + text("way") + b"f"),
    "PULLED-LINK-OUT": (PULLED, b"\5" + u32(0, 0o777, 0) + text("d/out") + b"../../f"),
    "PULLED-BEHIND-LINK": (PULLED, b"\2" + u32(0, 0o644, 0) + text("way/f")),
    "PULLED-OUT": (PULLED, b"\2" + u32(0, 0o644, 0) + text("../../outside")),
    "PULLED-NAME": (PULLED, b"\6" + u32(0, 0, 13) + text(TEXT[:90] if TEXT else "n")),
    "PULLED-ITEM": (PULLED, b"\1" + u32(9, 0o755, 0) + text("")),
    "PULLED-END": (PULLED, b"\7" + u32(0, 0, 0) + text("")),
    "WANT": (WANT, u32(0xFFFFFFFF, 1, 0)),
    "TAKEN": (TAKEN, u32(1000)),
    "PUSHED": (PUSHED, u32(0) + bytes(8) + text("/tmp") + text("")),
    "TUNNEL": (TUNNEL, u32(1) + b"\0bytes"),
    "BARRIER": (STORE, u32(0) + b"\15" + u32(1) + text("b") + u32(0, 1, 9)),
    "OWNERS": (OWNERS, u32(1) + text("") + struct.pack("<IBI", 1, 1, 0)),
    "OWNERS_REQUEST": (OWNERS_REQUEST, u32(1) + bytes(32) + u32(1, 1, 1)),
    "LAUNCH": (LAUNCH, b""),
}


def say_of_rank(words):
    for word in words:
        word, _, number = word.partition(":")
        if word == "HELLO":
            hello()
        elif word == "GET":
            get_and_never_read(int(number))
        elif word == "FLOOD":
            flood(int(number))
        elif number:
            say(CREDIT, struct.pack("<IBI", 0, 0, int(number)))
        else:
            say(*MESSAGES[word])


def answer_status(number):
    waits = text(TEXT[:15]) + text(TEXT[:90]) + struct.pack("<II", 1, 70000)
    say(STATUS, struct.pack("<III", number, 0, 1) + struct.pack("<IIIBIIII", 0, 0, 4711, ord("S"), 9, 9, 9, 0) +
        text(TEXT[:30]) + waits + u32(0, 0) + u32(0, 0, 0, 0))


asked_file = os.environ.get("PING_REQUESTS")
asks = asked_file and one_of([True, False])
if asked_file and not asks:
    wait_for(lambda: os.path.exists(asked_file), 20)
sys.stdout.buffer.write(MAGIC)
hello()
if asks:
    say(PING_REQUEST, b"")
for kind, body in frames():
    if asks and not os.path.exists(asked_file):
        with open(asked_file, "w", encoding="ascii") as f:
            f.write(str(kind))
    if kind == LAUNCH:
        say_of_rank(os.environ.get("ORDERED", "").split())
    if kind == ENDPOINT:
        say_of_rank(os.environ.get("EARLY", "").split())
        answer(kind, "ENDPOINT_OPENED", lambda words: answer_endpoint(*words))
    elif kind == PULL:
        say_of_rank(os.environ.get("PULLED", "").split())
    elif kind == PING and "PONGS" in os.environ:
        say(PONG, struct.pack("<QQ", body.take("Q"), time.monotonic_ns()))
    elif kind == STATUS_REQUEST and TEXT:
        answer_status(body.take("I"))
    elif kind == PROBE:
        answer(kind, "PROBED", probed)
    elif kind == RECORD:
        say(RECORDED, b"\1")
    elif kind == BYE:
        break
