# SPDX-License-Identifier: Apache-2.0
"""A server on a free port of 127.0.0.1 that breaks the rules of SSH before the key exchange.

hostile_server.py MODE FILE     writes the port to FILE and serves until it is killed
"""
import itertools
import os
import socket
import sys
import threading
import time

mode, port_file = sys.argv[1:]
ESCAPES = b'\x1b]0;owned\x07\x1b[2J'
VERSION = b'SSH-2.0-hostile\r\n'


def packet(kind, body):
    payload = bytes([kind]) + body
    padding = 16 - (len(payload) + 5) % 8
    return (len(payload) + padding + 1).to_bytes(4, 'big') + bytes([padding]) + payload + bytes(padding)


def text(data):
    return len(data).to_bytes(4, 'big') + data


def slowly(data):
    for _ in itertools.count():
        yield data
        time.sleep(0.1)


# What is sent, piece by piece; behind the last piece the server is silent, or closes (escapes).
MODES = {
    'silence': lambda: [],
    'lines': lambda: itertools.repeat(b'junk\r\n' * 10000),
    'a line': lambda: itertools.repeat(b'x' * 65536),
    'a version': lambda: itertools.chain([b'SSH-2.0-'], itertools.repeat(b'x' * 65536)),
    'lines, slowly': lambda: slowly(b'junk\r\n'),
    'a version, slowly': lambda: itertools.chain([b'SSH-2.0-'], slowly(b'x')),
    'escapes': lambda: [ESCAPES + b'hello\r\n'],
    'version 1': lambda: [b'SSH-1.5-' + ESCAPES + b'\r\n'],
    'only a version': lambda: [VERSION],
    'a huge packet': lambda: [VERSION + b'\x7f\xff\xff\xff' + bytes(100)],
    'noise': lambda: itertools.chain([VERSION], (os.urandom(65536) for _ in itertools.count())),
    'ignored packets': lambda: itertools.chain([VERSION], itertools.repeat(packet(2, text(b'a' * 1000)) * 60)),
    'debug packets': lambda: itertools.chain(
        [VERSION], itertools.repeat(packet(4, b'\1' + text(ESCAPES * 20) + text(b'')) * 60)),
    'a disconnect': lambda: [VERSION + packet(1, (2).to_bytes(4, 'big') + text(
        ESCAPES + b'away\noffered ED25519 SHA256:forged\n' * 500) + text(b''))],
}


def serve(connection):
    try:
        for piece in MODES[mode]():
            connection.sendall(piece)
        while mode != 'escapes' and connection.recv(65536):
            pass
    except OSError:
        pass
    connection.close()


server = socket.create_server(('127.0.0.1', 0))
with open(port_file + '.new', 'w', encoding='ascii') as out:
    out.write(str(server.getsockname()[1]))
os.rename(port_file + '.new', port_file)
while True:
    threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()
