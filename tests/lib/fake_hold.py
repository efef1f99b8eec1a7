#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A hold that answers as told.

usage: fake_hold.py SOCKET ANSWER

`info` and `release` are answered with a description of the hold fake1, `take` with ANSWER, a JSON object.
"""
import json
import os
import socket
import sys

path, take = sys.argv[1], json.loads(sys.argv[2])
about = {"hold": "fake1", "pid": os.getpid(), "hosts": ["other.invalid"], "nodes_ready": 1, "memory": 1, "us": 61000000,
         "used_by": ["k3f9q"], "idle_left_ms": -1, "released": False}
os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
while True:
    peer = listener.accept()[0]
    line = b""
    while not line.endswith(b"\n"):
        more = peer.recv(65536)
        if not more:
            break
        line += more
    if line:
        answer = take if json.loads(line)["do"] == "take" else about
        peer.sendall((json.dumps(answer) + "\n").encode())
    peer.close()
