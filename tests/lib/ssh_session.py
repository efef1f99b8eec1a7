# SPDX-License-Identifier: Apache-2.0
"""The server's half of an ssh session, packet by packet, for servers that break the rules.

One suite of algorithms: curve25519-sha256, ssh-ed25519 and chacha20-poly1305@openssh.com, all from libsodium.
"""
import ctypes
import ctypes.util
import hashlib
import os
import struct

sodium = ctypes.CDLL(ctypes.util.find_library('sodium') or 'libsodium.so.23')
sodium.sodium_init()

VERSION = b'SSH-2.0-hostile'
(DISCONNECT, IGNORE, UNIMPLEMENTED, DEBUG, SERVICE_REQUEST, SERVICE_ACCEPT) = range(1, 7)
(KEXINIT, NEWKEYS, ECDH_INIT, ECDH_REPLY) = (20, 21, 30, 31)
(AUTH_REQUEST, AUTH_FAILURE, AUTH_SUCCESS, AUTH_BANNER, INFO_REQUEST) = (50, 51, 52, 53, 60)
GLOBAL_REQUEST = 80
(OPEN, OPEN_CONFIRMATION, OPEN_FAILURE, WINDOW_ADJUST, DATA, EXTENDED_DATA, EOF, CLOSE, REQUEST, SUCCESS,
 FAILURE) = range(90, 101)


def u32(number):
    return struct.pack('>I', number)


def text(data):
    return u32(len(data)) + data


def mpint(data):
    data = data.lstrip(b'\0')
    return text(b'\0' * (data[:1] >= b'\x80') + data)


class HostKey:
    """A new ed25519 key."""

    def __init__(self):
        self.public, self.secret = ctypes.create_string_buffer(32), ctypes.create_string_buffer(64)
        sodium.crypto_sign_keypair(self.public, self.secret)
        self.blob = text(b'ssh-ed25519') + text(self.public.raw)

    def sign(self, data):
        signature = ctypes.create_string_buffer(64)
        sodium.crypto_sign_detached(signature, None, data, ctypes.c_ulonglong(len(data)), self.secret)
        return text(b'ssh-ed25519') + text(signature.raw)


class Cipher:
    """chacha20-poly1305@openssh.com in one direction; without a key the packets are in clear."""

    def __init__(self):
        self.key, self.number = None, 0

    def stream(self, data, key, block):
        out = ctypes.create_string_buffer(len(data))
        sodium.crypto_stream_chacha20_xor_ic(out, data, ctypes.c_ulonglong(len(data)), struct.pack('>Q', self.number),
                                             ctypes.c_ulonglong(block), key)
        return out.raw

    def tag(self, data):
        out = ctypes.create_string_buffer(16)
        sodium.crypto_onetimeauth(out, data, ctypes.c_ulonglong(len(data)), self.stream(bytes(32), self.key[:32], 0))
        return out.raw

    def seal(self, payload):
        clear = 0 if self.key else 4
        padding = 15 - (len(payload) + clear + 8) % 8
        body = bytes([padding]) + payload + bytes(padding)
        packet = u32(len(body)) + body
        if self.key:
            packet = self.stream(packet[:4], self.key[32:], 0) + self.stream(body, self.key[:32], 1)
            packet += self.tag(packet)
        self.number = (self.number + 1) & 0xffffffff
        return packet

    def open(self, read):
        head = read(4)
        size = struct.unpack('>I', self.stream(head, self.key[32:], 0) if self.key else head)[0]
        body = read(size)
        if self.key:
            if read(16) != self.tag(head + body):
                raise ValueError('the tag of a packet is wrong')
            body = self.stream(body, self.key[:32], 1)
        self.number = (self.number + 1) & 0xffffffff
        return body[1:len(body) - body[0]]


class Session:
    """A session on a connected socket; the constructor returns after the first key exchange."""

    def __init__(self, connection, host_key):
        self.connection, self.host_key = connection, host_key
        self.file = connection.makefile('rb')
        self.sent, self.got = Cipher(), Cipher()
        self.id = self.channel = None
        connection.sendall(VERSION + b'\r\n')
        self.peer = self.file.readline().rstrip(b'\r\n')
        self.exchange_keys()

    def read(self, size):
        data = self.file.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def seal(self, kind, body=b''):
        return self.sent.seal(bytes([kind]) + body)

    def send(self, kind, body=b''):
        self.connection.sendall(self.seal(kind, body))

    def receive(self, *kinds):
        """The next packet, or the next of one of these kinds."""
        while True:
            packet = self.got.open(self.read)
            if not kinds or packet[0] in kinds:
                return packet

    def exchange_keys(self):
        suite = [b'curve25519-sha256', b'ssh-ed25519', b'chacha20-poly1305@openssh.com',
                 b'chacha20-poly1305@openssh.com', b'hmac-sha2-256', b'hmac-sha2-256', b'none', b'none', b'', b'']
        ours = bytes([KEXINIT]) + os.urandom(16) + b''.join(map(text, suite)) + bytes(5)
        self.connection.sendall(self.sent.seal(ours))
        theirs = self.receive(KEXINIT)
        point = self.receive(ECDH_INIT)[5:]
        secret, public, shared = os.urandom(32), ctypes.create_string_buffer(32), ctypes.create_string_buffer(32)
        sodium.crypto_scalarmult_base(public, secret)
        sodium.crypto_scalarmult(shared, secret, point)
        key = mpint(shared.raw)
        digest = hashlib.sha256(b''.join(map(text, (self.peer, VERSION, theirs, ours, self.host_key.blob, point,
                                                    public.raw))) + key).digest()
        self.id = self.id or digest
        self.send(ECDH_REPLY, text(self.host_key.blob) + text(public.raw) + text(self.host_key.sign(digest)))
        self.send(NEWKEYS)
        self.sent.key = self.derive(key, digest, b'D')
        self.receive(NEWKEYS)
        self.got.key = self.derive(key, digest, b'C')

    def derive(self, key, digest, letter):
        first = hashlib.sha256(key + digest + letter + self.id).digest()
        return first + hashlib.sha256(key + digest + first).digest()

    # --- a server as it should be, as far as a mode wants one ---------------------------------------------

    def begin_login(self):
        self.receive(SERVICE_REQUEST)
        self.send(SERVICE_ACCEPT, text(b'ssh-userauth'))
        self.receive(AUTH_REQUEST)

    def log_in(self):
        self.begin_login()
        self.send(AUTH_SUCCESS)

    def ask_channel(self):
        """Logs in and notes the client's number of the channel that it asks for."""
        self.log_in()
        packet = self.receive(OPEN)
        at = 5 + struct.unpack('>I', packet[1:5])[0]
        self.channel = packet[at:at + 4]

    def open_channel(self):
        self.ask_channel()
        self.send(OPEN_CONFIRMATION, self.channel + u32(0) + u32(1 << 20) + u32(32768))

    def execute(self):
        self.open_channel()
        self.receive(REQUEST)
        self.send(SUCCESS, self.channel)
