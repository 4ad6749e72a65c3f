"""Connections that are held, half made or never used, and what they cost."""

import time

import api
import proxy
import wire
from case import Attack
from server import Fell, MIB, expect, wait_until

TOKENIZE = "/txl.v1.ModelService/Tokenize"
_REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


def unfinished_messages(site, size):
    """A megabyte each, but for its last byte."""
    server = site.warm_server(4, "--log-level", "error")
    body = wire.prefixed(b"\x0a" + b"a" * (MIB - 20))[:-1]
    connections = [server.connect() for _ in range(size.connections)]
    streams = []
    for connection in connections:
        for _ in range(size.messages // size.connections):
            stream = connection.open(TOKENIZE)
            streams.append((connection, stream))
            connection.write(stream, body)
    end = time.monotonic() + size.seconds
    ended = 0
    while time.monotonic() < end and ended < len(streams):
        _pump_living(connections)
        ended = sum(s.ended or c.socket.fileno() < 0 for c, s in streams)
        expect(server.growth() <= 64 * MIB, f"{size.messages} unfinished "
               f"messages: {server.growth() / MIB:.0f} MiB")
    expect(size.short or ended == len(streams),
           f"after {size.seconds} s {len(streams) - ended} are still there")
    with server.client() as client:
        client.health_seconds()
    for connection in connections:
        connection.close()
    server.expect_well()
    return f"{size.messages} unfinished messages of 1 MiB, {ended} ended"


def _pump_living(connections):
    living = [c for c in connections if c.socket.fileno() >= 0]
    for connection in living:
        try:
            connection.pump(0.1 / len(living))
        except wire.Closed:
            connection.close()


def idle_connections(site, size):
    """Some say nothing, some half a preface, some all but SETTINGS."""
    server = site.warm_server(4, "--log-level", "error")
    sockets, refused = [], 0
    for i in range(size.count):
        try:
            channel = (server.proxy.tcp("127.0.0.3") if server.proxy
                       else server.channel())
            sockets.append(channel)
            if i % 3:
                channel.sendall(b"\x16\x03\x01\x02" if server.proxy
                                else wire.PREFACE[:12 * (i % 3)])
        except OSError:
            refused += 1
    begin = time.monotonic()
    good = 0
    for _ in range(size.good):
        with server.client() as client:
            client.health_seconds()
            good += 1
    good_seconds = time.monotonic() - begin
    # HAProxy 2.6 limits a handshake by its `timeout client` alone. Some more
    # for timers and for looking.
    limit = 60 if server.proxy else 10
    left = _still_open(sockets, limit + 3 - good_seconds)
    for channel in sockets:
        channel.close()
    expect(left == 0, f"{left} of {size.count} idle connections are still "
           f"there after {limit} s; {good} good ones in {good_seconds:.1f} s")
    server.expect_well()
    return (f"{size.count} idle ones gone within {limit} s, {good} good ones in "
            f"{good_seconds:.1f} s")


def _still_open(sockets, timeout):
    """How many the peer has not closed after this time."""
    end = time.monotonic() + max(timeout, 1)
    left = list(sockets)
    for channel in left:
        channel.setblocking(False)
    while left and time.monotonic() < end:
        left = [c for c in left if not _ended(c)]
        time.sleep(0.05)
    return len(left)


def _ended(channel):
    try:
        while data := channel.recv(4096):
            del data
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def open_files(site, size):
    """More connections than files; then they go."""
    server = site.server("--slots", "4", "--log-level", "error",
                         files=size.files)
    server.mark()
    sockets = []
    for _ in range(size.connections):
        try:
            channel = wire.connect_tcp(*_host_port(server), timeout=2)
            channel.sendall(wire.PREFACE + wire.settings())
            sockets.append(channel)
        except OSError:
            pass
    time.sleep(1)
    for channel in sockets:
        channel.close()
    begin = time.monotonic()
    while time.monotonic() - begin < 10:
        if not server.alive():
            server.marked = None
            status = server.process.wait()
            expect(status != 0, "it ended with 0: nobody starts it again")
            return (f"the watchdog ended it with {status} after "
                    f"{time.monotonic() - begin:.1f} s")
        try:
            with server.client() as client:
                client.health_seconds(timeout=1)
            break
        except (OSError, TimeoutError, api.Failed):
            time.sleep(0.1)
    else:
        raise Fell(f"NOFILE {size.files}: no new call within 10 s after "
                   f"{len(sockets)} connections have closed, and no exit")
    seconds = time.monotonic() - begin
    expect(seconds <= 5, f"a new call after {seconds:.1f} s")
    server.expect_well()
    return f"a new call {seconds:.1f} s after {len(sockets)} have closed"


def _host_port(server):
    host, _, port = server.address.rpartition(":")
    return host, int(port)


def many_connections(site, size):
    """One address, all that it can get; another one is served."""
    server = site.warm_server(4, "--log-level", "error")
    fields = api.message("GenerateRequest", **api.turn(4096, logprobs=20))
    held = []
    for _ in range(size.connections):
        try:
            connection = server.connect(window=0)
            for _ in range(size.streams):
                connection.open(api.path_of("Generation.Generate"),
                                fields.SerializeToString())
            held.append(connection)
        except OSError:
            pass
    end = time.monotonic() + 1
    while time.monotonic() < end:
        _pump_living(held)
    try:
        with server.client() as client:
            seconds = client.health_seconds(timeout=5)
    except (OSError, TimeoutError, api.Failed) as error:
        raise Fell(f"beside {len(held)} connections of {size.streams} streams "
                   f"another address gets: {error}") from error
    for connection in held:
        connection.close()
    wait_until(lambda: server.status().turns_active == 0, 30, "turns left")
    server.expect_well()
    return (f"{len(held)} connections of {size.streams} streams; another's "
            f"health check took {seconds * 1e3:.0f} ms")


def held_services(site, size):
    """Streams that gRPC's own services keep open: Watch, reflection."""
    server = site.warm_server(4, "--log-level", "error")
    held = []
    for _ in range(size.connections):
        connection = server.connect(window=0)
        held.append(connection)
        for _ in range(25):
            connection.open("/grpc.health.v1.Health/Watch", b"")
            # list_services, and the stream stays open
            connection.open(_REFLECTION, b"\x3a\x01*", ends=False)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        _pump_living(held)
    try:
        with server.client() as client:
            seconds = client.health_seconds(timeout=5)
            got = client.generate(api.turn(3), timeout=5)
    except (OSError, TimeoutError, api.Failed) as error:
        raise Fell(f"beside {len(held) * 50} held streams: {error}") from error
    for connection in held:
        connection.close()
    expect(len(got) == 3, "no turn")
    server.expect_well()
    return (f"{len(held) * 50} streams held, another's health check took "
            f"{seconds * 1e3:.0f} ms")


def many_addresses(site, size):
    """One customer has a network of 2^64 addresses, and is one customer."""
    server = site.warm_server(4, "--log-level", "error")
    held, refused = [], 0
    for i in range(size.connections):
        try:
            held.append(server.proxy.channel(f"{proxy.CUSTOMER}{i + 1:x}"))
        except OSError:
            refused += 1
    with server.client() as client:
        client.health_seconds()
    for channel in held:
        channel.close()
    expect(0 < len(held) <= 64, f"{len(held)} connections from as many addresses "
           "of one /64")
    server.expect_well()
    return f"{len(held)} connections of one /64 were taken, {refused} refused"


def kept_alive(site, size):
    """An idle, whole connection is not for ever, and closing it harms no
    call."""
    server = site.server("--slots", "4")
    with server.client() as client:
        got = []
        end = time.monotonic() + size.seconds
        while time.monotonic() < end:
            got.append(len(client.generate(api.turn(500))))
    expect(set(got) == {500}, f"turns of 500 tokens had {set(got)}")
    server.expect_well()
    return f"{len(got)} turns on one connection, all whole"


ATTACKS = [
    Attack("unfinished-messages", "limits",
           "+64 MiB; ended after 20 s", unfinished_messages,
           {"messages": 100, "connections": 10, "seconds": 2},
           {"messages": 300, "seconds": 40}, proxied=True),
    Attack("idle-connections", "T36",
           "gone within 10 s (proxy: 60); good ones all served", idle_connections,
           {"count": 60, "good": 30}, {"count": 500, "good": 300},
           proxied=True),
    Attack("open-files", "T22",
           "a new call within 5 s, or an exit within 10 s", open_files,
           {"files": 256, "connections": 400}, {}),
    Attack("open-files-128", "T22",
           "a new call within 5 s, or an exit within 10 s", open_files,
           {"files": 128, "connections": 200}, {}),
    Attack("many-connections", "limits",
           "another address is served within 5 s", many_connections,
           {"connections": 10, "streams": 50},
           {"connections": 64, "streams": 100}, proxied=True),
    Attack("held-services", "limits", "health and turns go on beside them",
           held_services, {"connections": 8}, {"connections": 60}),
    Attack("many-addresses", "limits", "a /64 has one address's connections",
           many_addresses, {"connections": 100}, {"connections": 1000},
           proxied=True, direct=False),
    Attack("kept-alive", "limits", "turns on one connection stay whole",
           kept_alive, {"seconds": 1}, {"seconds": 20}, proxied=True),
]
