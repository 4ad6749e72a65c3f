"""More work than there is memory for, of every kind at once."""

import random
import time

import api
import observe
import wire
from case import Attack
from server import Fell, MIB, expect, memory_status

_GENERATE = "Generation.Generate"
_KEPT = api.turn(4096, "kept", logprobs=20, request_id="kept")


def _sessions(server, seconds, seed):
    """Sessions that grow, turns with kept answers."""
    draw = random.Random(seed)
    codes = {}
    end = time.monotonic() + seconds
    with server.client(hostile=True) as client:
        names = []
        while time.monotonic() < end:
            if len(names) < 3000:
                status, got = client.try_call("Session.CreateSession",
                                              {"ttl": "3600s"})
                if got:
                    names.append(got.session.session_id)
                _count(codes, status)
            name = draw.choice(names) if names else "none"
            status, _ = client.try_call("Session.AppendTokens", {
                "sessionId": name, "tokens": {"ids": [1] * 8000}})
            _count(codes, status)
            status, _ = client.try_generate(api.turn(
                200, name, logprobs=20, request_id=f"r{draw.random()}"[2:30]))
            _count(codes, status)
    return codes


def _count(codes, status):
    key = f"{status.code} {status.reason}".strip()
    codes[key] = codes.get(key, 0) + 1


def _hoard(server, seconds):
    """Messages half sent, kept answers and sessions that nobody reads, turns
    of readers that do not; connection after connection."""
    codes = {}
    held = []
    body = wire.prefixed(b"\x0a" + b"a" * (MIB - 20))[:-1]
    calls = [(api.path_of(_GENERATE), api.message(
        "GenerateRequest", **_KEPT).SerializeToString()),
             (api.path_of("Session.GetSession"), api.message(
                 "GetSessionRequest", sessionId="long",
                 includeTokens=True).SerializeToString())]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if len(held) < 40:
                held.append(_hold(server, body, calls))
            for connection in held:
                connection.pump(0.001)
        except OSError:
            held = [c for c in held if _alive(c)]
            time.sleep(0.05)
        for connection in held:
            for stream in [s for s in connection.streams.values() if s.ended]:
                _count(codes, api.Status(stream))
                connection.forget(stream)
    return codes


def _hold(server, body, calls):
    connection = server.connect(window=0)
    connection.socket.settimeout(2)
    for _ in range(15):
        stream = connection.open("/txl.v1.ModelService/Tokenize")
        connection.write(stream, body)
        for path, request in calls:
            connection.open(path, request)
    connection.open(api.path_of(_GENERATE), api.message(
        "GenerateRequest",
        **api.turn(4096, logprobs=20)).SerializeToString())
    return connection


def _prepare(server):
    """A long session, and one whose last answer is kept."""
    with server.client(direct=True) as client:
        for name in ("long", "kept"):
            client.call("Session.CreateSession", {"sessionId": name})
        for _ in range(12):
            client.call("Session.AppendTokens", {
                "sessionId": "long", "tokens": {"ids": [1] * 8000}})
        client.generate(_KEPT)


def _alive(connection):
    try:
        connection.pump()
        return True
    except OSError:
        connection.close()
        return False


def _probe(server):
    """An honest client's health check and turn; how the turn ended."""
    what = "health"
    try:
        with server.client() as client:
            client.health_seconds(timeout=10)
            what = "a turn"
            return client.try_generate(api.turn(3), timeout=10)[0]
    except (OSError, TimeoutError, api.Failed) as error:
        server.expect_alive()
        raise Fell(f"{what} of an honest client: {error}; "
                   f"{server.memory() / MIB:.0f} MiB") from error


def memory_limit(site, size):
    """Offered: twice what --memory-limit leaves."""
    if site.has_flag("--memory-limit"):
        flags = ["--memory-limit", f"{size.limit // MIB}mb"]
    else:
        flags = []
    server = site.server("--slots", "16", "--log-level", "error", *flags)
    server.warm(16)
    _prepare(server)
    loads = [observe.attack(_sessions, server, size.seconds, i)
             for i in range(2)]
    loads += [observe.attack(_hoard, server, size.seconds) for _ in range(2)]
    peak, probes, refused, served = 0, 0, 0, 0
    end = time.monotonic() + size.seconds
    while time.monotonic() < end:
        time.sleep(0.2)
        # Of files, too: the limit is for all that is resident.
        peak = max(peak, memory_status(server.pid)["VmHWM"])
        status = _probe(server)
        probes += 1
        served += status.code == api.OK
        refused += status.code == api.RESOURCE_EXHAUSTED
        expect(served + refused == probes, f"an honest turn: {status}")
        expect(peak <= size.limit,
               f"{peak / MIB:.0f} MiB with a limit of {size.limit // MIB}")
    codes = {}
    for load in loads:
        for key, count in load.result(60).items():
            codes[key] = codes.get(key, 0) + count
    expect(any(k.startswith("8 ") for k in codes), f"nothing was shed: {codes}")
    time.sleep(1)
    server.expect_well(30)
    return (f"peak {peak / MIB:.0f} of {size.limit // MIB} MiB in "
            f"{size.seconds} s, {served} of {probes} honest turns served; "
            f"{codes}")


ATTACKS = [
    Attack("memory-limit", "T28",
           "resident memory stays below --memory-limit, honest turns go on",
           memory_limit, {"limit": 256 * MIB, "seconds": 8},
           {"limit": 1024 * MIB, "seconds": 600}),
]
