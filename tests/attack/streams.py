"""Calls that are opened, left, cut off and cancelled in every way."""

import os
import random
import signal
import socket
import struct
import time

import api
import observe
import wire
from case import Attack
from server import MIB, expect

GENERATE = "Generation.Generate"


def _request(**options):
    return api.message("GenerateRequest",
                       **api.turn(**options)).SerializeToString()


def _cut(connection):
    """A TCP reset."""
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                 struct.pack("ii", 1, 0))
    connection.socket.close()


def storm(site, size):
    """Opened and cancelled at one of six points."""
    server = site.warm_server(8, "--log-level", "error",
                              "--max-queue-calls", "1024")
    draw = random.Random(1)
    body = _request(max_tokens=200)
    path = api.path_of(GENERATE)
    connections = [server.connect() for _ in range(8)]
    halves = []
    for half in range(2):
        for n in range(size.streams // 2):
            connection = connections[n % 8]
            point = draw.randrange(6)
            stream = connection.open(path, None if point == 0 else body)
            if point == 5:
                stream.reads = False
            elif point > 1:
                connection.wait(lambda: len(stream.messages) > (
                    0, 0, 0, 1, 20)[point] or stream.ended, 10)
            connection.cancel(stream)
            connection.pump()
        halves.append(server.growth())
    for connection in connections:
        connection.close()
    release = server.expect_quiet(2)
    second = halves[1] - halves[0]
    expect(second <= 8 * MIB, f"the second half takes {second / MIB:.1f} MiB "
           "more")
    status = server.status()
    expect(status.sessions_busy == 0 and status.queued_calls == 0,
           f"{status.sessions_busy} busy, {status.queued_calls} queued")
    server.expect_well()
    return (f"{size.streams} streams, {status.turns_started} turns started "
            f"and ended, quiet after {release * 1e3:.0f} ms; second half "
            f"{second / MIB:+.1f} MiB")


def _at_headers(server, connection):
    return connection.open(api.path_of(GENERATE)), ()


def _at_half_message(server, connection):
    stream = connection.open(api.path_of(GENERATE))
    body = wire.prefixed(_request(max_tokens=50))
    connection.write(stream, body[:len(body) // 2])
    return stream, ()


def _at_queue(server, connection):
    others = [connection.open(api.path_of(GENERATE), _request(max_tokens=4096))
              for _ in range(4)]
    return connection.open(api.path_of(GENERATE),
                           _request(max_tokens=50)), others


def _at_tokens(count):
    def reach(server, connection):
        stream = connection.open(api.path_of(GENERATE),
                                 _request(max_tokens=4000))
        connection.wait(lambda: len(stream.messages) >= count, 10)
        return stream, ()
    return reach


def _at_end(server, connection):
    stream = connection.open(api.path_of(GENERATE), _request(max_tokens=8))
    connection.wait(lambda: len(stream.messages) >= 9, 10)
    return stream, ()


def _at_parked(server, connection):
    connection.send(wire.settings(**{"4": 600}))
    stream = connection.open(api.path_of(GENERATE),
                             _request(max_tokens=4000, logprobs=20))
    time.sleep(0.02)
    return stream, ()


def _by_deadline(connection, stream):
    """Its own: a new call of a deadline that passes at once."""
    connection.open(api.path_of(GENERATE), _request(max_tokens=4000),
                    timeout=0.001)


def _by_goaway(connection, stream):
    connection.send(wire.frame(wire.GOAWAY, 0, 0, bytes(8)))
    connection.close()


POINTS = {"headers": _at_headers, "half message": _at_half_message,
          "queue": _at_queue, "started": _at_tokens(1),
          "tokens": _at_tokens(40), "parked": _at_parked, "end": _at_end}
KINDS = {"RST": lambda c, s: c.cancel(s),
         "half-close": lambda c, s: c.write(s, b"", ends=True)
         if not s.ends_after else None,
         "deadline": _by_deadline, "GOAWAY": _by_goaway,
         "TCP reset": lambda c, s: _cut(c)}


def cancel_pairs(site, size):
    """Every kind at every point: one end each, and nothing stays."""
    server = site.warm_server(4, "--log-level", "error")
    longest, pairs = 0, 0
    draw = random.Random(2)
    for point, reach in POINTS.items():
        for kind, leave in KINDS.items():
            for _ in range(size.seeds):
                connection = server.connect()
                stream, _ = reach(server, connection)
                time.sleep(draw.random() * 0.002)
                leave(connection, stream)
                if kind == "deadline" or kind == "half-close":
                    time.sleep(0.002)
                connection.close()
                pairs += 1
            try:
                longest = max(longest, server.expect_quiet(2))
            except Exception as error:
                raise type(error)(f"{kind} at {point}: {error}") from error
            status = server.status()
            ends = set(status.turns_finished) - {
                "OK", "CANCELLED", "DEADLINE_EXCEEDED"}
            expect(not ends, f"{kind} at {point}: {ends}")
            expect(status.sessions_busy + status.sessions_idle == 0,
                   f"{kind} at {point}: {status.sessions_busy} sessions left")
    server.expect_well()
    return (f"{pairs} cuts in {len(POINTS) * len(KINDS)} kinds, quiet within "
            f"{longest * 1e3:.0f} ms")


def _stream_until_killed(server, ready):
    with server.client() as client:
        stream = client.start(GENERATE, api.turn(4096, logprobs=20))
        client.connection.wait(lambda: len(stream.messages) > 5, 10)
        os.write(ready, b"x")
        while True:
            client.connection.pump(0.01)
            time.sleep(0.005)


def killed_clients(site, size):
    server = site.warm_server(4, "--log-level", "error")
    longest = 0
    for _ in range(size.rounds):
        reading, writing = os.pipe()
        children = [observe.Child(_stream_until_killed, server, writing)
                    for _ in range(4)]
        for _ in children:
            os.read(reading, 1)
        os.close(reading)
        os.close(writing)
        for child in children:
            os.kill(child.process.pid, signal.SIGKILL)
            child.process.join()
        longest = max(longest, server.expect_quiet(2))
    server.expect_well()
    return (f"{size.rounds * 4} clients killed, released within "
            f"{longest * 1e3:.0f} ms")


def deadlines(site, size):
    """The queue is full, and most have no time to wait in it."""
    server = site.warm_server(2, "--log-level", "error")
    draw = random.Random(3)
    late, codes = [], {}
    # Small windows: what is late is not late for what lies before it.
    with server.connect() as fill, server.connect(window=256) as connection:
        for _ in range(size.calls // 50):
            while len(fill.streams) < 8:
                fill.open(api.path_of(GENERATE), _request(max_tokens=4096))
            calls = []
            for _ in range(50):
                timeout = draw.uniform(0.001, 0.2)
                stream = connection.open(
                    api.path_of(GENERATE), _request(max_tokens=4096),
                    timeout=timeout)
                stream.reads = False
                calls.append((time.monotonic() + timeout, stream))
            _collect(connection, calls, late, codes)
            fill.pump()
            for stream in [s for s in fill.streams.values() if s.ended]:
                fill.forget(stream)
    late.sort()
    p99 = late[int(len(late) * 0.99)]
    expect(set(codes) <= {api.OK, api.CANCELLED, api.DEADLINE_EXCEEDED,
                          api.RESOURCE_EXHAUSTED}, f"codes {codes}")
    expect(p99 <= 0.1, f"p99 is {p99 * 1e3:.0f} ms after the deadline")
    server.expect_quiet()
    server.expect_well()
    return (f"{len(late)} calls, p99 {p99 * 1e3:.0f} ms after the deadline, "
            f"codes {codes}")


def _collect(connection, calls, late, codes):
    waiting = dict(enumerate(calls))
    end = time.monotonic() + 10
    while waiting:
        expect(time.monotonic() < end, f"{len(waiting)} calls have no end 10 s "
               "after their deadlines")
        connection.pump(0.01)
        now = time.monotonic()
        for i, (deadline, stream) in list(waiting.items()):
            if stream.ended:
                late.append(max(now - deadline, 0))
                code = api.Status(stream).code
                codes[code] = codes.get(code, 0) + 1
                del waiting[i]
                connection.forget(stream)


ATTACKS = [
    Attack("storm", "T1", "started = ended; second half +8 MiB", storm,
           {"streams": 1000}, {"streams": 20000}, proxied=True),
    Attack("cancel-pairs", "T2", "one end each, nothing left over",
           cancel_pairs, {"seeds": 1}, {"seeds": 25}),
    Attack("killed-clients", "T3", "released within 2 s", killed_clients,
           {"rounds": 5}, {"rounds": 50}, proxied=True),
    Attack("deadlines", "T7", "p99 within 100 ms of the deadline", deadlines,
           {"calls": 300}, {"calls": 5000}),
]
