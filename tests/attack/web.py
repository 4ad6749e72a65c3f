"""HTTP as an attacker and as an honest client speak it, byte by byte."""

import json
import selectors
import socket
import time

from server import Fell, expect

JSON = "application/json"


def serve(site, *flags, **options):
    """A server with HTTP on; its address is `server.http`."""
    server = site.server("--http-listen", "127.0.0.1:0", *flags, **options)
    line = server.process.stdout.readline().strip()
    expect(line.startswith("http on http://"), f"no HTTP: {line}")
    host, _, port = line.removeprefix("http on http://").rpartition(":")
    server.http = (host, int(port))
    return server


def source(i, per_address=60):
    """The address of the i-th client where so many share one."""
    return f"127.0.1.{1 + i // per_address}"


def connect(server, address="127.0.0.1", buffer=0, timeout=10):
    """`buffer`: bytes that the kernel receives for it; 0: its own choice."""
    channel = socket.socket()
    channel.settimeout(timeout)
    if buffer:
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    channel.bind((address, 0))
    channel.connect(server.http)
    return channel


def post(path, body, length=None):
    """The bytes of a request."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: {JSON}\r\nContent-Length: "
            f"{len(data) if length is None else length}\r\n\r\n").encode() + data


def stream(tokens, **fields):
    """The bytes of a request for a stream of so many tokens."""
    return post("/v1/completions", {"prompt": [1], "max_tokens": tokens,
                                    "ignore_eos": True, "stream": True,
                                    **fields})


def receive(channel, until=None, timeout=10):
    """What comes before the end, or up to `until`."""
    got = b""
    end = time.monotonic() + timeout
    while until is None or until not in got:
        left = end - time.monotonic()
        if left <= 0:
            break
        channel.settimeout(left)
        try:
            data = channel.recv(1 << 16)
        except TimeoutError:
            break
        except OSError:
            data = b""
        if not data:
            break
        got += data
    return got


def statuses(got):
    """Status codes of the answers in it."""
    return [int(part[:3]) for part in got.split(b"HTTP/1.1 ")[1:]]


def first_token_seconds(server, address="127.0.0.1", timeout=10):
    """How long an honest client waits for the first event of its stream."""
    begin = time.monotonic()
    with connect(server, address, timeout=timeout) as channel:
        channel.sendall(stream(3))
        got = receive(channel, b"data: [DONE]", timeout)
    seconds = time.monotonic() - begin
    if b"data: [DONE]" not in got or b'"error"' in got:
        raise Fell(f"an honest client got {got[:200]!r}")
    return seconds


class Crowd:
    """Many channels whose events are looked at together."""

    def __init__(self):
        self._selector = selectors.DefaultSelector()
        self.channels = {}  # of each what came; None: it has ended

    def add(self, channel):
        channel.setblocking(False)
        self._selector.register(channel, selectors.EVENT_READ)
        self.channels[channel] = b""

    def send(self, data):
        """To all that live; how many still do."""
        for channel in self.living():
            try:
                channel.send(data)
            except BlockingIOError:
                pass
            except OSError:
                self.end(channel)
        return len(self.living())

    def living(self):
        return [c for c in self.channels if c.fileno() >= 0]

    def end(self, channel):
        self._selector.unregister(channel)
        channel.close()

    def read(self, seconds, keep=256):
        """Reads for so long, or until all have ended; keeps the last bytes."""
        end = time.monotonic() + seconds
        while self.living() and time.monotonic() < end:
            for key, _ in self._selector.select(0.1):
                channel = key.fileobj
                try:
                    data = channel.recv(1 << 16)
                except BlockingIOError:
                    continue
                except OSError:
                    data = b""
                if not data:
                    self.end(channel)
                    continue
                self.channels[channel] = (self.channels[channel] + data)[-keep:]

    def close(self):
        for channel in self.living():
            self.end(channel)
