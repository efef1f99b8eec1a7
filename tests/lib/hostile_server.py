# SPDX-License-Identifier: Apache-2.0
"""A server on a free port of 127.0.0.1 that breaks the rules of SSH, before or after the key exchange.

hostile_server.py MODE FILE     writes "PORT ssh-ed25519 KEY" to FILE and serves until it is killed
"""
import base64
import itertools
import os
import socket
import sys
import threading
import time

import ssh_session as ssh
from ssh_session import text, u32

mode, port_file = sys.argv[1:]
ESCAPES = b'\x1b]0;owned\x07\x1b[2J'
# What a terminal obeys, letters that turn a line around, and a row that looks like one of hnlaunch.
EVIL = ESCAPES + '\u202eeurt\u2066'.encode() + b'\r\nerror[HN999]: forged\n'
VERSION = b'SSH-2.0-hostile\r\n'
NOTHING = ssh.Cipher()


def packet(kind, body):
    return NOTHING.seal(bytes([kind]) + body)


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
    'a disconnect': lambda: [VERSION + packet(1, u32(2) + text(
        ESCAPES + b'away\noffered ED25519 SHA256:forged\n' * 500) + text(b''))],
}


def flood(session, kind, body):
    while True:
        session.connection.sendall(b''.join(session.seal(kind, body) for _ in range(64)))


def refuse_login(session, partly):
    session.begin_login()
    while True:
        session.send(ssh.AUTH_FAILURE, text(b'publickey,keyboard-interactive,' + EVIL) + partly)
        session.receive(ssh.AUTH_REQUEST)


def exchange_keys_for_ever(session):
    while True:
        session.exchange_keys()


PROMPTS = text(EVIL) + text(EVIL * 600) + text(b'') + u32(5000) + (text(b'\x1b[2J:') + b'\1') * 5000
LEAVE = u32(2) + text(EVIL * 500) + text(b'')
# A channel of a type that libssh knows; a request with an answer.
CHANNEL = text(b'x11') + u32(7) + u32(1 << 20) + u32(32768) + text(b'here') + u32(1)
ASK = text(EVIL) + b'\1'
SIGNAL = text(b'exit-signal') + b'\0' + text(EVIL * 100) + b'\0' + text(EVIL * 1000) + text(EVIL)

# After the key exchange: how far the session goes as it should, and what is done then.
SESSIONS = {
    'login: prompts': ('begin_login', lambda s: s.send(ssh.INFO_REQUEST, PROMPTS)),
    'login: prompts without end': ('begin_login', lambda s: flood(s, ssh.INFO_REQUEST, PROMPTS)),
    'login: banners without end': ('begin_login', lambda s: flood(s, ssh.AUTH_BANNER, text(EVIL * 600) + text(b''))),
    'login: packets to ignore': ('begin_login', lambda s: flood(s, ssh.IGNORE, text(EVIL * 30))),
    'login: unknown packets': ('begin_login', lambda s: flood(s, 77, b'')),
    'login: leaves': ('begin_login', lambda s: s.send(ssh.DISCONNECT, LEAVE)),
    'login: refused for ever': (None, lambda s: refuse_login(s, b'\0')),
    'login: partly good for ever': (None, lambda s: refuse_login(s, b'\1')),
    'login: keys without end': ('begin_login', exchange_keys_for_ever),
    'channel: refused': ('ask_channel', lambda s: s.send(
        ssh.OPEN_FAILURE, s.channel + u32(1) + text(EVIL * 500) + text(b''))),
    'channel: never opened': ('ask_channel', lambda s: None),
    'channel: closes at once': ('open_channel', lambda s: (
        s.receive(ssh.REQUEST), s.send(ssh.CLOSE, s.channel))),
    'channel: command refused': ('open_channel', lambda s: (
        s.receive(ssh.REQUEST), s.send(ssh.FAILURE, s.channel))),
    'channel: signal': ('execute', lambda s: (
        s.send(ssh.REQUEST, s.channel + SIGNAL), s.send(ssh.EOF, s.channel), s.send(ssh.CLOSE, s.channel))),
    'channel: leaves': ('execute', lambda s: s.send(ssh.DISCONNECT, LEAVE)),
    'flood: packets to ignore': ('execute', lambda s: flood(s, ssh.IGNORE, text(EVIL * 30))),
    'flood: channels': ('execute', lambda s: flood(s, ssh.OPEN, CHANNEL)),
    'flood: questions': ('execute', lambda s: flood(s, ssh.GLOBAL_REQUEST, ASK)),
    'flood: requests': ('execute', lambda s: flood(s, ssh.REQUEST, s.channel + ASK)),
    'flood: unknown packets': ('execute', lambda s: flood(s, 77, b'')),
    'flood: keys': ('execute', exchange_keys_for_ever),
    'flood: output': ('execute', lambda s: flood(s, ssh.DATA, s.channel + text(b'x' * 32000))),
    'flood: stderr': ('execute', lambda s: flood(s, ssh.EXTENDED_DATA, s.channel + u32(1) + text(EVIL * 600))),
}


def serve_session(connection):
    good, then = SESSIONS[mode.removesuffix(', unread')]
    session = ssh.Session(connection, KEY)
    if good:
        getattr(session, good)()
    if mode.startswith('flood') and 'keys' not in mode and not mode.endswith(', unread'):
        threading.Thread(target=drain, args=(connection,), daemon=True).start()
    then(session)


def drain(connection):
    try:
        while connection.recv(65536):
            pass
    except OSError:
        pass


def serve(connection):
    try:
        if mode not in MODES:
            serve_session(connection)
        for piece in MODES.get(mode, list)():
            connection.sendall(piece)
        if mode != 'escapes':
            drain(connection)
    except (OSError, EOFError):
        pass
    connection.close()


KEY = ssh.HostKey()
server = socket.create_server(('127.0.0.1', 0))
with open(port_file + '.new', 'w', encoding='ascii') as out:
    print(server.getsockname()[1], 'ssh-ed25519', base64.b64encode(KEY.blob).decode(), file=out)
os.rename(port_file + '.new', port_file)
while True:
    threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()
