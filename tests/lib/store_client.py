# SPDX-License-Identifier: Apache-2.0
"""A client of PyTorch's TCPStore made of raw bytes: says what it is told, in any dialect."""

import socket
import struct

from waiting import scaled

HELLO = b"\0\xce\xf7\x85\x3c"  # VALIDATE and its magic
NAMES = ("VALIDATE SET COMPARE_SET GET ADD CHECK WAIT NUM_KEYS DELETE APPEND MULTI_GET MULTI_SET "
         "CANCEL_WAIT PING QUEUE_PUSH QUEUE_POP QUEUE_LEN LIST_KEYS BARRIER").split()


def text(value):
    return struct.pack("<Q", len(value)) + value


def texts(values):
    return struct.pack("<Q", len(values)) + b"".join(text(v) for v in values)


def number(value):
    return struct.pack("<q", value)


class Client:
    """dialect "D" greets; "A" and "B" do not, and their numbers are other ones."""

    def __init__(self, port, addr="127.0.0.1", dialect="D", timeout=20):
        self.dialect = dialect
        self.socket = socket.create_connection((addr, port), scaled(timeout))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if dialect == "D":
            self.say(HELLO)

    def say(self, data):
        self.socket.sendall(data)

    def hear(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError("closed after %d of %d bytes" % (len(data), count))
            data += more
        return data

    def closed(self, seconds=20):
        """Whether the other end closes, within that time and without another word."""
        self.socket.settimeout(scaled(seconds))
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except socket.timeout:
            return False

    def silent(self, seconds=0.2):
        """Whether nothing comes for so long, not even the end."""
        before = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
            return False
        except socket.timeout:
            return True
        finally:
            self.socket.settimeout(before)

    def close(self):
        self.socket.close()

    # --- commands: op() is the bytes, the others say them and take the answer -------------------

    def op(self, name, *fields):
        code = NAMES.index(name)
        if self.dialect != "D":
            code -= 1
            if self.dialect == "A" and name == "DELETE":
                code = 8
        return bytes([code]) + b"".join(fields)

    def vector(self):
        return self.hear(struct.unpack("<Q", self.hear(8))[0])

    def integer(self):
        return struct.unpack("<q", self.hear(8))[0]

    def set(self, key, value):
        self.say(self.op("SET", text(key), text(value)))

    def get(self, key):
        self.say(self.op("GET", text(key)))
        return self.vector()

    def add(self, key, value):
        self.say(self.op("ADD", text(key), number(value)))
        return self.integer()

    def check(self, *keys):
        self.say(self.op("CHECK", texts(keys)))
        return self.hear(1)

    def start_wait(self, *keys):
        self.say(self.op("WAIT", texts(keys)))

    def wait(self, *keys):
        self.start_wait(*keys)
        return self.hear(1)

    def cancel(self):
        self.say(self.op("CANCEL_WAIT"))

    def num_keys(self):
        self.say(self.op("NUM_KEYS"))
        return self.integer()

    def delete(self, key):
        self.say(self.op("DELETE", text(key)))
        return self.integer()

    def append(self, key, value):
        self.say(self.op("APPEND", text(key), text(value)))

    def compare_set(self, key, expect, value):
        self.say(self.op("COMPARE_SET", text(key), text(expect), text(value)))
        return self.vector()

    def multi_set(self, pairs):
        self.say(self.op("MULTI_SET", struct.pack("<Q", len(pairs)),
                         *(text(k) + text(v) for k, v in pairs)))

    def multi_get(self, *keys):
        self.say(self.op("MULTI_GET", texts(keys)))
        return [self.vector() for _ in keys]

    def ping(self, nonce=7):
        self.say(self.op("PING", struct.pack("<I", nonce)))
        return struct.unpack("<I", self.hear(4))[0]

    def push(self, key, value):
        self.say(self.op("QUEUE_PUSH", text(key), text(value)))

    def pop(self, key):
        self.say(self.op("QUEUE_POP", text(key)))
        before = self.integer()
        return (before, self.vector()) if before else (0, None)

    def queue_len(self, key):
        self.say(self.op("QUEUE_LEN", text(key)))
        return self.integer()

    def list_keys(self):
        self.say(self.op("LIST_KEYS"))
        return [self.vector() for _ in range(self.integer())]

    def barrier(self, key, count):
        self.say(self.op("BARRIER", text(key), number(count)))
        return self.hear(1)
