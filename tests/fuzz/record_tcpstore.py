#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what real PyTorch clients say to a TCPStore.

usage: PYTHON record_tcpstore.py FOLDER

Run with the Python whose PyTorch is to be recorded. PyTorch's own store server stands behind a
proxy; two ranks go through init_process_group with gloo, and one process calls every function of
TCPStore that this release has. FOLDER gets one file per connection: a byte with the size of the
first piece less one, then all bytes that the client sent.
"""
import os
import selectors
import socket
import subprocess
import sys
import threading
from datetime import timedelta


def init(port):
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method="env://", timeout=timedelta(seconds=30))
    pair = dist.new_group([0, 1])
    t = torch.ones(2)
    dist.all_reduce(t)
    dist.all_reduce(t, group=pair)
    dist.barrier()
    assert t[0] == 4
    dist.destroy_process_group()


def attempt(call, *arguments):
    """A release without that function does not say anything."""
    try:
        call(*arguments)
    except Exception as e:  # noqa: BLE001 - each function has exceptions of its own
        print(getattr(call, "__name__", call), str(e).split("\n")[0], file=sys.stderr)


def api(port):
    from torch.distributed import TCPStore

    s = TCPStore("127.0.0.1", port, None, False, timedelta(seconds=20), wait_for_workers=False)
    s.set("key", "value")
    s.get("key")
    s.add("number", 5)
    s.add("number", -2)
    s.compare_set("key", "value", "other")
    s.compare_set("absent", "", "first")
    s.wait(["key", "number"])
    s.wait(["key"], timedelta(seconds=1))
    attempt(s.wait, ["never"], timedelta(milliseconds=200))
    s.num_keys()
    for name, arguments in (
        ("check", (["key", "absent"],)),
        ("append", ("key", "more")),
        ("append", ("text", "x" * 300)),
        ("multi_set", (["a", "b"], ["1", "22"])),
        ("multi_get", (["a", "b", "key"],)),
        ("queue_push", ("queue", "item")),
        ("queue_len", ("queue",)),
        ("queue_pop", ("queue",)),
        ("list_keys", ()),
        ("barrier", ("gate", 1)),
    ):
        if hasattr(s, name):
            attempt(getattr(s, name), *arguments)
        else:
            print("no", name, file=sys.stderr)
    s.delete_key("key")
    s.delete_key("never")
    s.num_keys()


class Recorder(threading.Thread):
    """Carries one connection, and keeps what the client says."""

    def __init__(self, client, server_port):
        super().__init__(daemon=True)
        self.client = client
        self.server = socket.create_connection(("127.0.0.1", server_port))
        self.first, self.said = 0, b""

    def run(self):
        other = {self.client: self.server, self.server: self.client}
        chooser = selectors.DefaultSelector()
        for s in other:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            chooser.register(s, selectors.EVENT_READ)
        while True:
            for key, _ in chooser.select():
                try:
                    data = key.fileobj.recv(65536)
                except ConnectionResetError:
                    data = b""
                if not data:
                    self.client.close()
                    self.server.close()
                    return
                if key.fileobj is self.client:
                    self.first = self.first or len(data)
                    self.said += data
                other[key.fileobj].sendall(data)


def accept(listener, server_port, connections):
    while True:
        recorder = Recorder(listener.accept()[0], server_port)
        connections.append(recorder)
        recorder.start()


def play(what, ranks, server_port, folder):
    listener = socket.create_server(("127.0.0.1", 0))
    port, connections = listener.getsockname()[1], []
    threading.Thread(target=accept, args=(listener, server_port, connections), daemon=True).start()
    children = [
        subprocess.Popen(
            [sys.executable, __file__, "--" + what, str(port)],
            env=dict(os.environ, RANK=str(r), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1",
                     MASTER_PORT=str(port), TORCHELASTIC_USE_AGENT_STORE="True",
                     TORCHELASTIC_RESTART_COUNT="0", GLOO_SOCKET_IFNAME="lo"),
        )
        for r in range(ranks)
    ]
    codes = [c.wait() for c in children]
    assert codes == [0] * ranks, codes
    for i, c in enumerate(c for c in connections if c.first):
        c.join(5)
        with open(f"{folder}/{what}-{i}", "wb") as f:
            f.write(bytes([min(c.first, 256) - 1]) + c.said)
        print(f"{what}-{i}: {len(c.said)} bytes, first {c.first}")


def main():
    if sys.argv[1].startswith("--"):
        globals()[sys.argv[1][2:]](int(sys.argv[2]))
        return
    from torch.distributed import TCPStore

    os.makedirs(sys.argv[1], exist_ok=True)
    for what, ranks in (("init", 2), ("api", 1)):
        store = TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60), wait_for_workers=False)
        play(what, ranks, store.port, sys.argv[1])


main()
