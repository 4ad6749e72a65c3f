"""A client that speaks HTTP/2 frame by frame, for what no library would send."""

import collections
import select
import socket
import ssl
import struct

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW, MORE = (
    0, 1, 2, 3, 4, 6, 7, 8, 9)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

Frame = collections.namedtuple("Frame", "kind flags stream payload")


def frame(kind, flags=0, stream=0, payload=b""):
    return (len(payload).to_bytes(3, "big") +
            struct.pack(">BBL", kind, flags, stream) + payload)


def integer(value, bits=7):
    """HPACK's integer with a prefix of so many bits."""
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([value])
    encoded, value = [limit], value - limit
    while value >= 128:
        encoded.append(value % 128 + 128)
        value //= 128
    return bytes([*encoded, value])


def header(name, value):
    """A line of a header that no table keeps."""
    name, value = name.encode(), value.encode()
    return b"\0" + integer(len(name)) + name + integer(len(value)) + value


def request_header(method, lines=()):
    return b"".join(header(*line) for line in (
        (":method", "POST"), (":scheme", "https"), (":path", method),
        (":authority", "txl"), ("content-type", "application/grpc"),
        ("te", "trailers"), *lines))


def message(body):
    """As gRPC frames it."""
    return b"\0" + struct.pack(">L", len(body)) + body


def field(number, value):
    """Of a protobuf message: text, or an integer."""
    if isinstance(value, int):
        return integer_field(number << 3) + integer_field(value)
    value = value.encode() if isinstance(value, str) else value
    return integer_field(number << 3 | 2) + integer_field(len(value)) + value


def integer_field(value):
    encoded = []
    while value >= 128:
        encoded.append(value % 128 + 128)
        value //= 128
    return bytes([*encoded, value])


class Connection:
    def __init__(self, address, authority, *, name="", source="",
                 window=65_535, patience=20):
        """name: that the certificate has, if not the address; source: own
        address; window: what a stream may send before this client asks for
        more; patience: seconds until a peer that does nothing is an error."""
        context = ssl.create_default_context(cafile=authority)
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(address, 20,
                                         (source, 0) if source else None)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname=name or address[0])
        self.socket.setblocking(False)
        self.patience = patience
        self.ended = False
        self.next_stream = 1
        self.received = bytearray()
        self.send(PREFACE + frame(SETTINGS, payload=struct.pack(
            ">HL", INITIAL_WINDOW_SIZE, window)) +
            frame(WINDOW, payload=struct.pack(">L", 2**31 - 1 - 65_535)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, octets):
        """What comes meanwhile is taken: else both sides could wait."""
        octets = memoryview(octets)
        while octets:
            try:
                octets = octets[self.socket.send(octets):]
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                self.wait(write=True)
            self.take()

    def take(self):
        """Takes what has come."""
        try:
            while octets := self.socket.recv(65_536):
                self.received += octets
            self.ended = True
        except ssl.SSLWantReadError:
            pass

    def wait(self, write=False):
        ready = select.select([self.socket], [self.socket] * write, [],
                              self.patience)
        if not any(ready):
            raise TimeoutError("the peer neither takes nor sends anything")

    def new_stream(self):
        self.next_stream += 2
        return self.next_stream - 2

    def call(self, method, body=b"", lines=()):
        """Begins a call and returns its stream."""
        stream = self.new_stream()
        self.send(frame(HEADERS, END_HEADERS, stream,
                        request_header(method, lines)) +
                  frame(DATA, END_STREAM, stream, message(body)))
        return stream

    def allow(self, stream, octets):
        self.send(frame(WINDOW, stream=stream,
                        payload=struct.pack(">L", octets)))

    def read(self, count):
        self.take()
        while len(self.received) < count:
            if self.ended:
                raise ConnectionError("the connection has ended")
            self.wait()
            self.take()
        octets = bytes(self.received[:count])
        del self.received[:count]
        return octets

    def receive(self):
        """The next frame; SETTINGS and PING are answered."""
        head = self.read(9)
        kind, flags, stream = struct.unpack(">BBL", head[3:])
        payload = self.read(int.from_bytes(head[:3], "big"))
        if kind in (SETTINGS, PING) and not flags & ACK:
            self.send(frame(kind, ACK, payload=(
                payload if kind == PING else b"")))
        return Frame(kind, flags, stream, payload)
