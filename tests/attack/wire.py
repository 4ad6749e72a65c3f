"""HTTP/2 by hand: frames, headers and one connection whose windows open only
when its user says so. No client library would send what the attacks need."""

import collections
import select
import socket
import struct
import time

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
NO_ERROR, CANCEL = 0, 8
MAX_WINDOW = 2**31 - 1
FRAME_BYTES = 16384


class Closed(ConnectionError):
    """The peer ended the connection."""


def frame(kind, flags, stream, payload=b""):
    return (struct.pack(">I", len(payload))[1:] +
            struct.pack(">BBI", kind, flags, stream) + payload)


def settings(**values):
    return frame(SETTINGS, 0, 0, b"".join(
        struct.pack(">HI", int(key), value) for key, value in values.items()))


def window_update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", increment))


def reset(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def string_size(size):
    """What stands before a string of so many bytes."""
    if size < 127:
        return bytes([size])
    return b"\x7f" + varint(size - 127)


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


def _string(value):
    value = value if isinstance(value, bytes) else value.encode()
    return string_size(len(value)) + value


def header_block(pairs):
    """Every header as a literal that no table keeps."""
    return b"".join(b"\0" + _string(name) + _string(value)
                    for name, value in pairs)


def request_headers(path, metadata=(), timeout=None):
    pairs = [(":method", "POST"), (":scheme", "http"), (":path", path),
             (":authority", "txl"), ("te", "trailers"),
             ("content-type", "application/grpc")]
    if timeout is not None:
        pairs.append(("grpc-timeout", f"{max(int(timeout * 1e6), 1)}u"))
    return header_block([*pairs, *metadata])


def prefixed(message, compressed=0):
    """A message as gRPC sends it."""
    return struct.pack(">BI", compressed, len(message)) + message


class Stream:
    """One request and what has come back of it."""

    def __init__(self, number, window):
        self.number = number
        self.headers = {}
        self.trailers = {}
        self.reset = None  # error code of RST_STREAM
        self.ended = False
        self.messages = collections.deque()
        self.reads = True  # its window opens as data come
        self.send_window = window
        self.outgoing = bytearray()
        self.ends_after = False
        self.first_time = None  # when the first message was there
        self._partial = bytearray()

    def take(self, data):
        self._partial += data
        while len(self._partial) >= 5:
            size = struct.unpack(">I", self._partial[1:5])[0]
            if len(self._partial) < 5 + size:
                return
            self.messages.append(bytes(self._partial[5:5 + size]))
            del self._partial[:5 + size]
            self.first_time = self.first_time or time.monotonic()

    def take_headers(self, pairs, ends):
        target = self.trailers if self.headers or ends else self.headers
        target.update(pairs)


class Connection:
    """A connection, driven by its user: nothing is read but in `pump`."""

    def __init__(self, channel, window=MAX_WINDOW):
        """`channel`: a connected socket. `window`: what each stream may send
        before it is read."""
        self.socket = channel
        self.streams = {}
        self.goaway = None
        self._next = 1
        self._window = window
        self._buffer = bytearray()
        self._headers = (None, 0, bytearray())
        self._decoder = hpack.Decoder()
        self._decoder.max_header_list_size = 1 << 20
        self._peer_window = 65535
        self._send_window = 65535
        self.send(PREFACE + settings(**{str(INITIAL_WINDOW_SIZE): window}) +
                  window_update(0, MAX_WINDOW - 65535))

    def fileno(self):
        return self.socket.fileno()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Closed(f"while sending: {error}") from error

    def open(self, path, message=None, metadata=(), timeout=None, ends=True):
        """Starts a request; `message`: bytes to send with gRPC's prefix."""
        number, self._next = self._next, self._next + 2
        stream = self.streams[number] = Stream(number, self._peer_window)
        self.send(frame(HEADERS, END_HEADERS, number,
                        request_headers(path, metadata, timeout)))
        if message is not None:
            self.write(stream, prefixed(message), ends)
        return stream

    def write(self, stream, data, ends=False):
        """Sends what the peer's windows allow, the rest in `pump`."""
        stream.outgoing += data
        stream.ends_after = stream.ends_after or ends
        self._flush(stream)

    def _flush(self, stream):
        while stream.outgoing or stream.ends_after:
            size = min(len(stream.outgoing), FRAME_BYTES, stream.send_window,
                       self._send_window)
            if size <= 0 < len(stream.outgoing):
                return
            piece = bytes(stream.outgoing[:size])
            del stream.outgoing[:size]
            ends = stream.ends_after and not stream.outgoing
            stream.send_window -= size
            self._send_window -= size
            self.send(frame(DATA, END_STREAM if ends else 0, stream.number,
                            piece))
            if ends:
                stream.ends_after = False
                return

    def allow(self, stream, size):
        """Lets the peer send `size` bytes more on the stream."""
        self.send(window_update(stream.number, size))

    def cancel(self, stream, code=CANCEL):
        self.send(reset(stream.number, code))
        self.forget(stream)

    def forget(self, stream):
        self.streams.pop(stream.number, None)

    def pump(self, timeout=0.0):
        """Handles what has arrived; waits at most `timeout` for something.
        False when nothing came."""
        pending = getattr(self.socket, "pending", lambda: 0)()
        if not pending and not select.select([self.socket], [], [],
                                             timeout)[0]:
            return False
        try:
            data = self.socket.recv(1 << 18)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            raise Closed(f"while receiving: {error}") from error
        if not data:
            raise Closed(f"by the peer{self._farewell()}")
        self._buffer += data
        self._handle_frames()
        return True

    def _farewell(self):
        return "" if self.goaway is None else f" after GOAWAY {self.goaway}"

    def wait(self, done, timeout):
        """Pumps until `done()`; its last value."""
        deadline = time.monotonic() + timeout
        while not (result := done()):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self.pump(left)
        return result

    def _handle_frames(self):
        at = 0
        replies = bytearray()
        while len(self._buffer) - at >= 9:
            size = int.from_bytes(self._buffer[at:at + 3], "big")
            if len(self._buffer) - at < 9 + size:
                break
            kind, flags, number = struct.unpack(
                ">BBI", self._buffer[at + 3:at + 9])
            payload = bytes(self._buffer[at + 9:at + 9 + size])
            at += 9 + size
            replies += self._handle(kind, flags, number & MAX_WINDOW, payload)
        del self._buffer[:at]
        if replies:
            self.send(bytes(replies))

    def _handle(self, kind, flags, number, payload):
        """What is to be sent for a frame."""
        stream = self.streams.get(number)
        if kind == SETTINGS and not flags & ACK:
            return self._take_settings(payload)
        if kind == PING and not flags & ACK:
            return frame(PING, ACK, 0, payload)
        if kind == GOAWAY:
            self.goaway = (struct.unpack(">I", payload[4:8])[0], payload[8:])
        elif kind == WINDOW_UPDATE:
            self._open_window(stream, number, payload)
        elif kind in (HEADERS, CONTINUATION):
            self._take_headers(kind, flags, number, payload)
        elif kind == RST_STREAM and stream:
            stream.reset = struct.unpack(">I", payload)[0]
            stream.ended = True
        elif kind == DATA:
            return self._take_data(stream, number, flags, payload)
        return b""

    def _take_settings(self, payload):
        for at in range(0, len(payload), 6):
            key, value = struct.unpack(">HI", payload[at:at + 6])
            if key == INITIAL_WINDOW_SIZE:
                for stream in self.streams.values():
                    stream.send_window += value - self._peer_window
                self._peer_window = value
        # First: the peer counts by the new window from here on.
        self.send(frame(SETTINGS, ACK, 0))
        for stream in list(self.streams.values()):
            self._flush(stream)
        return b""

    def _open_window(self, stream, number, payload):
        increment = struct.unpack(">I", payload)[0]
        if number == 0:
            self._send_window += increment
            for each in list(self.streams.values()):
                self._flush(each)
        elif stream:
            stream.send_window += increment
            self._flush(stream)

    def _take_headers(self, kind, flags, number, payload):
        if kind == HEADERS:
            self._headers = (number, flags, bytearray())
        self._headers[2].extend(payload)
        if not flags & END_HEADERS:
            return
        pairs = self._decoder.decode(bytes(self._headers[2]), raw=True)
        stream = self.streams.get(number)
        if stream:
            ends = bool(self._headers[1] & END_STREAM)
            stream.take_headers([(n.decode(), v.decode(errors="replace"))
                                 for n, v in pairs], ends)
            stream.ended = stream.ended or ends

    def _take_data(self, stream, number, flags, payload):
        if stream:
            stream.take(payload)
            stream.ended = stream.ended or bool(flags & END_STREAM)
        if not payload:
            return b""
        opened = window_update(0, len(payload))
        # A window of all that HTTP/2 knows is never opened further.
        if stream and stream.reads and self._window < MAX_WINDOW // 2:
            opened += window_update(number, len(payload))
        return opened


def pump_all(connections, timeout):
    """Pumps those with something to read; waits at most `timeout`."""
    ready = select.select(connections, [], [], timeout)[0]
    for connection in ready:
        connection.pump()
    return ready


def connect_tcp(host, port, timeout=20):
    channel = socket.create_connection((host, port), timeout)
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return channel


def connect_unix(path, timeout=20):
    channel = socket.socket(socket.AF_UNIX)
    channel.settimeout(timeout)
    channel.connect(path)
    return channel
