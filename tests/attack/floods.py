"""Frames that are cheap to send and dear to take."""

import struct
import time

import api
import observe
import wire
from case import Attack
from server import Fell, MIB, expect

_CONNECTIONS = 200  # that a flood may open anew at most


def _flood(server, frames, count, batch, reads=True):
    """Sends what `frames` gives for a stream's number, `batch` at once, on new
    connections where one is closed; how many were sent, on how many. Who does
    not read never acknowledges the server's settings either."""
    connection, number, made, sent = None, 1, 0, 0
    while sent < count:
        try:
            if connection is None:
                if made == _CONNECTIONS:
                    break
                connection, number, made = server.connect(), 1, made + 1
                connection.socket.settimeout(10)
            data = b"".join(frames(number + 2 * i) for i in range(batch))
            number += 2 * batch
            sent += batch
            connection.send(data)
            while reads and connection.pump():
                pass
        except OSError:
            if connection:
                connection.close()
            connection = None
    if connection:
        connection.close()
    return sent, made


def _beside(server, *flood):
    """Floods from a process of its own while health is probed: (frames,
    connections, longest health check)."""
    # As fast as can be: it does not give way to the server.
    load = observe.Child(_flood, server, *flood)
    longest = 0.0
    with server.client() as client:
        while load.process.is_alive():
            try:
                longest = max(longest, client.health_seconds(timeout=10))
            except (OSError, TimeoutError, api.Failed) as error:
                load.kill()
                raise Fell(f"health beside it: {error}") from error
            time.sleep(0.02)
    return (*load.result(120), longest)


def _run(site, flood, limit_seconds, what):
    """The common part; `flood`: what `_flood` takes behind the server."""
    server = site.server("--slots", "4")
    server.warm()
    steps = server.status().steps
    server.mark()
    begin = server.processor_seconds()
    sent, made, longest = _beside(server, *flood)
    server.settle(limit_seconds)
    spent = server.processor_seconds() - begin
    figure = (f"{sent} {what} on {made} connections, {spent:.1f} s of "
              f"processor, health {longest * 1e3:.0f} ms at most")
    expect(server.status().steps == steps, f"{figure}: steps were run for it")
    expect(spent <= limit_seconds, figure)
    server.expect_well()
    return figure


def _reset_stream(number):
    block = _GENERATE
    return (wire.frame(wire.HEADERS, wire.END_HEADERS, number, block) +
            wire.reset(number))


def _reset_request(number):
    return (wire.frame(wire.HEADERS, wire.END_HEADERS, number, _TOKENIZE) +
            wire.frame(wire.DATA, wire.END_STREAM, number, _TEXT) +
            wire.reset(number))


_GENERATE = wire.request_headers("/txl.v1.GenerationService/Generate")
_TOKENIZE = wire.request_headers("/txl.v1.ModelService/Tokenize")
_TEXT = wire.prefixed(b"\x0a\x0bTo be or no")


def rapid_reset(site, size):
    """HEADERS and RST_STREAM, a hundred at a time."""
    figure = _run(site, (_reset_stream, size.resets, 100), size.seconds,
                  "resets")
    return f"{figure}, {site.servers[0].log_text().count(chr(10))} log lines"


def reset_requests(site, size):
    return _run(site, (_reset_request, size.resets, 50), size.seconds,
                "whole requests that are reset")


def provoked_resets(site, size):
    """Window updates that the server has to answer with a reset."""
    return _run(site, (_overflow, size.resets, 50), size.seconds,
                "streams with windows that overflow")


def unheeded_limit(site, size):
    """Streams beyond their limit, which is not acknowledged."""
    return _run(site, (_open_stream, size.streams, 50, False), size.seconds,
                "streams that stay open")


def provoked_ends(site, size):
    """Window updates of 0, which end streams or connections."""
    return _run(site, (_no_increment, size.resets, 2), size.seconds,
                "streams with window updates of 0")


def _overflow(number):
    return (wire.frame(wire.HEADERS, wire.END_HEADERS, number, _GENERATE) +
            2 * wire.window_update(number, wire.MAX_WINDOW))


def _open_stream(number):
    return wire.frame(wire.HEADERS, wire.END_HEADERS, number, _GENERATE)


def _no_increment(number):
    return (wire.frame(wire.HEADERS, wire.END_HEADERS, number, _GENERATE) +
            wire.window_update(number, 0))


def frames_of_no_use(site, size):
    """PING, SETTINGS, empty DATA, PRIORITY, window updates."""
    figures = []
    stream = wire.frame(wire.HEADERS, wire.END_HEADERS, 1, _GENERATE)
    kinds = {
        "PING": wire.frame(wire.PING, 0, 0, bytes(8)),
        "SETTINGS": wire.settings(**{"4": 65535, "5": 16384}),
        "empty DATA": wire.frame(wire.DATA, 0, 1),
        "PRIORITY": wire.frame(wire.PRIORITY, 0, 3, struct.pack(">IB", 0, 1)),
        "WINDOW_UPDATE": wire.window_update(1, 1),
        "unknown": wire.frame(0xfa, 0, 0, b"x"),
    }
    for name, frame in kinds.items():
        server = site.warm_server(4, "--log-level", "error")
        begin = server.processor_seconds()
        load = observe.attack(_send_unread, server, stream, frame, size.frames)
        sent = load.result(60)
        server.settle(size.seconds)
        spent = server.processor_seconds() - begin
        growth = server.growth() / MIB
        expect(spent <= size.seconds, f"{sent} {name} frames took {spent:.1f} "
               "s of processor")
        expect(growth <= 64, f"{sent} {name} frames took {growth:.0f} MiB")
        server.expect_well()
        figures.append(f"{name} {sent} ({spent:.2f} s, {growth:.0f} MiB)")
    return ", ".join(figures)


def _send_unread(server, stream, frame, count):
    """Frames whose answers nobody reads; how many were taken."""
    connection = server.connect()
    connection.socket.settimeout(5)
    sent = 0
    try:
        connection.wait(lambda: connection._peer_window, 0.05)
        connection.send(stream)
        while sent < count:
            connection.send(frame * 1000)
            sent += 1000
    except OSError:
        pass
    time.sleep(0.2)
    connection.close()
    return sent


def held_windows(site, size):
    """Answers that have no window to leave by."""
    server = site.warm_server(8, "--log-level", "error")
    connections = []
    request = api.message("GenerateRequest", **api.turn(64))
    for _ in range(size.connections):
        connection = server.connect(window=0)
        connections.append(connection)
        for _ in range(20):
            connection.open(api.path_of("Generation.Generate"),
                            request.SerializeToString())
            connection.open(api.path_of("Model.GetModel"), b"")
    time.sleep(0.5)
    begin = server.processor_seconds()
    end = time.monotonic() + size.seconds
    while time.monotonic() < end:
        wire.pump_all(connections, 0.1)
    spent = server.processor_seconds() - begin
    expect(spent <= 1, f"holding windows costs {spent:.1f} s in "
           f"{size.seconds} s")
    with server.client() as client:
        client.health_seconds()
    for connection in connections:
        connection.close()
    server.expect_well()
    return f"{size.connections * 40} answers held, {spent:.2f} s of processor"


ATTACKS = [
    Attack("rapid-reset", "T34",
           "5 s of processor, +256 MiB, no steps", rapid_reset,
           {"resets": 20_000, "seconds": 2, "memory": 256 * MIB},
           {"resets": 50_000, "seconds": 5}, proxied=True),
    Attack("reset-requests", "T34", "5 s of processor, +256 MiB",
           reset_requests,
           {"resets": 5_000, "seconds": 2, "memory": 256 * MIB},
           {"resets": 50_000, "seconds": 5},
           proxied=True),
    Attack("provoked-resets", "T34", "5 s of processor, no steps",
           provoked_resets,
           {"resets": 10_000, "seconds": 2, "memory": 256 * MIB},
           {"resets": 50_000, "seconds": 5, "memory": 256 * MIB},
           proxied=True),
    Attack("unheeded-limit", "T34", "5 s of processor, no steps",
           unheeded_limit,
           {"streams": 10_000, "seconds": 2, "memory": 256 * MIB},
           {"streams": 50_000, "seconds": 5, "memory": 256 * MIB},
           proxied=True),
    Attack("provoked-ends", "T34", "5 s of processor, no steps",
           provoked_ends, {"resets": 300, "seconds": 2},
           {"resets": 5_000, "seconds": 5}, proxied=True),
    Attack("useless-frames", "T35", "closed, or 1 s of processor; +64 MiB",
           frames_of_no_use, {"frames": 50_000, "seconds": 1},
           {"frames": 300_000, "seconds": 1}, proxied=True),
    Attack("held-windows", "T35", "1 s of processor; +64 MiB", held_windows,
           {"connections": 5, "seconds": 1}, {"connections": 40, "seconds": 10},
           proxied=True),
]
