# SPDX-License-Identifier: Apache-2.0
"""
Asks NCCL's RAS as ncclras does, and prints the answer.

usage: ras_ask.py ADDRESS:PORT

The protocol is that of NVIDIA/nccl, src/ras/client.cc: lines, "CLIENT PROTOCOL 2", "TIMEOUT seconds" and
"STATUS", to each of which a line or, for the status, text up to the end of the connection comes back.
"""

import socket
import sys

from waiting import scaled


def ask(address):
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=scaled(20)) as s:
        lines = s.makefile("rw", encoding="utf-8", newline="\n")

        def exchange(line):
            lines.write(line + "\n")
            lines.flush()
            return lines.readline().rstrip("\n")

        server = exchange("CLIENT PROTOCOL 2")
        if not server.startswith("SERVER PROTOCOL "):
            sys.exit("this is no RAS: %r" % server)
        print(server)
        if exchange("TIMEOUT 10") != "OK":
            sys.exit("RAS takes no time limit")
        lines.write("STATUS\n")
        lines.flush()
        sys.stdout.write(lines.read())


ask(sys.argv[1])
