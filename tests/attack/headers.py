"""Headers without an end, too many of them, and such as are none."""

import time

import api
import observe
import wire
from case import Attack
from server import Fell, MIB, expect

_SECONDS = 5  # of processor, for one header
_BASE = wire.request_headers(api.HEALTH)


def endless_header(site, size):
    """One header in CONTINUATION frames; its end never comes."""
    server = site.warm_server(4, "--log-level", "error")
    begin = server.processor_seconds()
    load = observe.attack(_send_endless, server, size.bytes)
    longest = 0.0
    with server.client() as client:
        while (load.process.is_alive() and
               server.processor_seconds() - begin <= _SECONDS):
            longest = max(longest, _health(client))
            time.sleep(0.02)
        server.settle(_SECONDS)
        longest = max(longest, _health(client))
    spent = server.processor_seconds() - begin
    if spent > _SECONDS:
        load.kill()
        raise Fell(f"a header of up to {size.bytes / MIB:.0f} MiB takes more "
                   f"than {spent:.1f} s of processor; health "
                   f"{longest * 1e3:.0f} ms at most")
    sent = load.result(60)
    server.expect_well()
    return (f"{sent / MIB:.1f} of {size.bytes / MIB:.0f} MiB were taken, "
            f"{spent:.2f} s of processor, health {longest * 1e3:.0f} ms at "
            "most")


def _health(client):
    try:
        return client.health_seconds(timeout=5)
    except (OSError, TimeoutError, api.Failed) as error:
        raise Fell(f"health beside it: {error}") from error


def _send_endless(server, limit):
    """Bytes that were taken before the connection was closed."""
    connection = server.connect()
    sent = 0
    # A literal whose value is longer than will ever come.
    start = _BASE + b"\0\1a" + wire.string_size(128 * MIB)
    try:
        connection.socket.settimeout(30)
        connection.pump(1)  # the server's SETTINGS, and what answers them
        connection.send(wire.frame(wire.HEADERS, 1, 1, start))
        while sent < limit:
            connection.send(16 * wire.frame(wire.CONTINUATION, 0, 1,
                                            b"b" * wire.FRAME_BYTES))
            sent += 16 * wire.FRAME_BYTES
            connection.pump()
    except wire.Closed:
        pass
    connection.close()
    return sent


def odd_headers(site, _):
    """Each is answered or refused; nobody else is touched."""
    server = site.server("--slots", "4", "--log-level", "error")
    server.warm()
    bad = {
        "200 headers": [(f"a{i}", "b") for i in range(200)],
        "5,000 headers": [(f"a{i}", "b") for i in range(5000)],
        "a header of 15 kB": [("a", "b" * 15_000)],
        "a header of 1 MB": [("a", "b" * 1_000_000)],
        "bad base64": [("a-bin", "!!!!"), ("b-bin", "===")],
        "base64 cut": [("a-bin", "QQ")] * 3, "empty -bin": [("a-bin", "")],
        "not ASCII": [("a", "\u00e4\ufeff")], "controls": [("a", "\0\1\x7f")],
        "upper case": [("A", "b")], "duplicate": [("authorization", "a")] * 2,
        "bad timeout": [("grpc-timeout", "-1S")],
        "huge timeout": [("grpc-timeout", "99999999H")],
        "wrong encoding": [("grpc-encoding", "nonsense")],
        "second path": [(":path", "/")], "connection": [("connection", "x")],
        "long session": [("x-txl-session", "a" * 70)],
        "odd session": [("x-txl-session", "\u00e4")],
        "trace of 8 kB": [("grpc-trace-bin", "A" * 8000)],
    }
    server.mark()
    spent = server.processor_seconds()
    answers = {}
    with server.client() as bystander:
        for name, metadata in bad.items():
            answers[name] = _send_headers(server, metadata)
            bystander.health_seconds()
        for path in ("", "//", "/", "*", "/txl.v1.ModelService",
                     "/txl.v1.ModelService/GetModel/",
                     "txl.v1.ModelService/GetModel", "/" + "a" * 10_000):
            answers[path[:40]] = _send_headers(server, (), path)
            bystander.health_seconds()
    spent = server.processor_seconds() - spent
    none = [n for n, a in answers.items() if a is None]
    expect(not none, f"neither answered nor refused: {none}")
    server.expect_well()
    return f"{len(answers)} of them answered or refused, {spent:.2f} s of " \
           "processor"


def _send_headers(server, metadata, path=api.HEALTH):
    """How a health check with these headers ends; None: it does not."""
    block = wire.request_headers(path, metadata)
    try:
        with server.connect() as connection:
            stream = connection.streams[1] = wire.Stream(1, 65535)
            frames = [block[i:i + wire.FRAME_BYTES]
                      for i in range(0, len(block), wire.FRAME_BYTES)]
            for i, piece in enumerate(frames):
                connection.send(wire.frame(
                    wire.CONTINUATION if i else wire.HEADERS,
                    wire.END_HEADERS if i == len(frames) - 1 else 0, 1, piece))
            connection.send(wire.frame(wire.DATA, wire.END_STREAM, 1,
                                       wire.prefixed(b"")))
            connection.wait(lambda: stream.ended, 5)
            return str(api.Status(stream)) if stream.ended else None
    except wire.Closed:
        return "closed"


ATTACKS = [
    Attack("endless-header", "T33", "5 s of processor, health within 5 s",
           endless_header, {"bytes": 4 * MIB}, {"bytes": 8 * MIB}),
    # What gRPC 1.51 spends on such a header grows with the square of its
    # length, and no setting of it ends that: a proxy has to.
    Attack("endless-header-64", "T33", "refused; 5 s of processor",
           endless_header, {"bytes": 64 * MIB}, {}, proxied=True,
           direct=False),
    Attack("odd-headers", "T33", "answered or refused, others unharmed",
           odd_headers, {"memory": 8 * MIB}, {}, proxied=True),
]
