# SPDX-License-Identifier: Apache-2.0
"""
Listens at NCCL_RAS_ADDR as NCCL's RAS does, and answers as the first line of the file MODE says, anew for each
connection.

usage: fake_ras.py MODE

Modes: silent, other (another program), old (a release without JSON), flood, slow (no end), cut (half an answer),
hostile (escape sequences, numbers out of range), behind HASH (this process has launched fewer operations than another
of the communicator).
"""

import json
import os
import socket
import sys
import threading
import time

HOSTILE = b"""{"nccl_version": "\\u001b[31m2.29", "communicators": [{"hash": "0x\\u001b]0;x", "size": -5, "ranks": [
{"rank": 99999999999, "pid": -1, "host": "\\u001b[2J", "collective_counts": {"\\u001b[31mAllReduce": 1}},
{"rank": 1, "pid": 1, "host": 7, "collective_counts": {"\\u001b[31mAllReduce": 2}}]}, 7, [], {"hash": 1}]}
"""


def answer(c, mode):
    if mode == "silent":
        time.sleep(60)
    if mode == "other":
        c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n\r\n")
        return
    lines = c.makefile("rb")
    for _ in range(3):
        line = lines.readline()
        if line.startswith(b"CLIENT PROTOCOL "):
            c.sendall(b"SERVER PROTOCOL 2\n")
        elif line.startswith(b"SET FORMAT") and mode == "old":
            c.sendall(b"ERROR: Unknown command " + line)
        else:
            c.sendall(b"OK\n")
    while not lines.readline().endswith(b"STATUS\n"):
        c.sendall(b"OK\n")
    if mode == "cut":
        c.sendall(b'{"nccl_version": "2.29.7", "communicators": [')
    elif mode == "hostile":
        c.sendall(HOSTILE)
    elif mode.startswith("behind "):
        ranks = [{"rank": r, "pid": pid, "host": "127.0.0.1", "collective_counts": {"AllReduce": 40 + r}}
                 for r, pid in enumerate((os.getpid(), 1))]
        comm = {"hash": "0x" + mode[7:], "size": 2, "ranks": ranks, "missing_ranks": []}
        c.sendall(json.dumps({"nccl_version": "2.29.7", "communicators": [comm]}).encode())
    while mode == "flood":
        c.sendall(b"{" * 65536)
    while mode == "slow":
        c.sendall(b" ")
        time.sleep(0.1)


def serve(c):
    try:
        answer(c, open(sys.argv[1]).readline().strip())
    except OSError:
        pass
    c.close()


host, port = os.environ["NCCL_RAS_ADDR"].rsplit(":", 1)
server = socket.create_server((host, int(port)))
print("listens", flush=True)
while True:
    threading.Thread(target=serve, args=[server.accept()[0]], daemon=True).start()
