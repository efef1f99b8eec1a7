# SPDX-License-Identifier: Apache-2.0
"""Many connections of a rank to its agent in the middle of large requests, and the agent's memory meanwhile."""

import os
import selectors
import socket
import time

MIB = 1 << 20


def memory():
    """The agent's memory at its peak, in kB."""
    with open("/proc/%d/status" % os.getppid()) as f:
        status = f.read()
    assert "hnlaunch-agent" in status
    return int(status.split("VmHWM:")[1].split()[0])


def send_all_at_once(requests, small):
    """Sends {socket: bytes} piece by piece. Returns the longest time that small() took meanwhile."""
    left = {s: memoryview(data) for s, data in requests.items()}
    look = selectors.DefaultSelector()
    for s in left:
        s.setblocking(False)
        look.register(s, selectors.EVENT_WRITE)
    worst = 0
    while left:
        begin = time.monotonic()
        small()
        worst = max(worst, time.monotonic() - begin)
        for key, _ in look.select(0.05):
            s = key.fileobj
            try:
                left[s] = left[s][s.send(left[s][:256 << 10]):]
            except BlockingIOError:
                continue
            if not left[s]:
                del left[s]
                look.unregister(s)
    return worst


def stall(sockets, data):
    """Sends as much of @data as is taken within a second each."""
    for s in sockets:
        s.settimeout(1)
        try:
            s.sendall(data)
        except socket.timeout:
            pass
