"""What HAProxy refuses, seen by a gRPC client that is not ours."""

import os
import socket
import ssl

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # refusals are wanted here
import grpc  # noqa: E402

from deployment import PUBLIC, expect, wait_for
import http2_frames
import proxy_process
import sandbox_network

HEALTH = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
SERVING = b"\x08\x01"


def channel(d):
    credentials = grpc.ssl_channel_credentials(
        d.authority.certificate.read_bytes())
    return grpc.secure_channel(PUBLIC, credentials)


def call(connection, method, request=b"", metadata=()):
    """(status name, details) of a call without generated code."""
    try:
        connection.unary_unary(method)(request, timeout=20, metadata=metadata)
        return "OK", ""
    except grpc.RpcError as error:
        return error.code().name, error.details()


def get_session_without_metadata(d, session):
    """Name of the status of GetSession {session_id = 1}."""
    request = bytes([0x0A, len(session)]) + session.encode()
    with channel(d) as connection:
        return call(connection, "/txl.v1.SessionService/GetSession",
                    request)[0]


def check_paths(d):
    """The API and its health, and no other method: no reflection either."""
    with channel(d) as connection:
        expect(connection.unary_unary(HEALTH)(b"", timeout=20) == SERVING,
               "Health/Check does not say SERVING")
        status, _ = call(connection, "/txl.v1.ModelService/GetModel")
        expect(status == "OK", f"GetModel: {status}")
        for method in (
                "/grpc.reflection.v1alpha.ServerReflection"
                "/ServerReflectionInfo", "/txl.v1.ModelService/GetModel/",
                "/TXL.v1.ModelService/GetModel",
                "/metrics", "/"):
            status, details = call(connection, method)
            expect((status, details) == ("UNIMPLEMENTED", "no such method"),
                   f"{method}: {status} {details}")
        status, details = call(connection, HEALTH,
                               metadata=[("x-txl-session", "a" * 65)])
        expect(status == "INVALID_ARGUMENT" and "x-txl-session" in details,
               f"a long session name: {status} {details}")
        status, _ = call(connection, HEALTH, metadata=[("a", "b" * 20_000)])
        expect(status != "OK", "20 kB of metadata got through")
        status, _ = call(connection, HEALTH,
                         metadata=[(f"a{i}", "b") for i in range(200)])
        expect(status != "OK", "200 lines of metadata got through")
        status, _ = call(connection, HEALTH)
        expect(status == "OK", f"after what was refused: {status}")


def connect(d):
    context = ssl.create_default_context(cafile=d.authority.certificate)
    context.set_alpn_protocols(["h2"])
    connection = context.wrap_socket(
        socket.create_connection((sandbox_network.HOST_ADDRESS, 8443), 20),
        server_hostname=sandbox_network.HOST_ADDRESS)
    return connection


def calls_at_once(connection, count):
    """Statuses of `count` calls that run at the same time."""
    method = connection.unary_unary(HEALTH)
    futures = [method.future(b"", timeout=20) for _ in range(count)]
    return {(f.code().name, f.details()) for f in futures}


def check_limits(d):
    """64 connections and 500 calls in 10 seconds for one address."""
    refused = ("RESOURCE_EXHAUSTED", "too many calls from this address")
    with channel(d) as connection:
        statuses = calls_at_once(connection, 300)
        expect(statuses == {("OK", "")}, f"of 300 calls: {statuses}")
        statuses = wait_for("a refused call", lambda: refused in (
            seen := calls_at_once(connection, 300)) and seen)
        expect(statuses <= {("OK", ""), refused}, f"of 600: {statuses}")
        wait_for("calls are taken again", lambda: call(
            connection, HEALTH)[0] == "OK")
    held, failed = [], 0
    for _ in range(70):
        try:
            held.append(connect(d))
        except OSError:
            failed += 1
    for connection in held:
        connection.close()
    expect((len(held), failed) == (64, 6),
           f"of 70 connections {len(held)} were taken")



def hold_streams(connect, count):
    """(connections with so many Watch streams, how many of these were ended at
    once)"""
    connections, ended = [], 0
    for begin in range(0, count, 100):
        connection = connect()
        connections.append(connection)
        streams = {connection.call(WATCH)
                   for _ in range(min(100, count - begin))}
        while streams:
            frame = connection.receive()
            ended += (frame.kind == http2_frames.HEADERS and
                      bool(frame.flags & http2_frames.END_STREAM))
            if frame.kind in (http2_frames.HEADERS, http2_frames.DATA):
                streams.discard(frame.stream)
    return connections, ended


def wait_for_service(d, seconds=30):
    """Until calls of before are forgotten: each refused one counts too."""
    with channel(d) as connection:
        wait_for("calls are taken", seconds=seconds, condition=lambda: (
            call(connection, HEALTH)[0] == "OK"))


def check_running(d):
    """250 calls at once for one address, a quarter of what a server takes; they
    end when their connections do."""
    address = (proxy_process.HOST, proxy_process.PORT)
    with proxy_process.running(d, "running", {
            "TXL_PROXY_CALLS": "100000", **proxy_process.by_address(d)}):
        connections, ended = hold_streams(lambda: http2_frames.Connection(
            address, d.authority.certificate), 300)
        expect(ended == 50, f"of 300 calls at once {ended} were refused")
        refused = proxy_process.txl(d, "status")
        expect("too many calls at once from this address" in refused.stderr,
               f"the next call: {refused.stderr}")
        for held in connections:
            held.socket.close()
        # Without abortonclose the calls of who has left went on for minutes.
        wait_for("calls are taken again", seconds=10, condition=lambda: (
            proxy_process.txl(d, "status").returncode == 0))


NETWORKS = ("fd00:0:0:1::1", "fd00:0:0:1::2", "fd00:0:0:2::1")


def check_networks(d):
    """Addresses of one IPv6 /64 have one limit together, of connections and of
    calls; another /64 and IPv4 have their own."""
    for address in NETWORKS:
        sandbox_network.run("ip", "address", "add", f"{address}/128", "dev",
                            "lo", "nodad")
    first, same, other = NETWORKS

    def connect(source):
        return http2_frames.Connection(
            ("::1" if ":" in source else proxy_process.HOST,
             proxy_process.PORT), d.authority.certificate,
            name=proxy_process.HOST, source=source)

    def connections(source, count):
        """Those of so many that are taken."""
        held = []
        for _ in range(count):
            try:
                held.append(connect(source))
            except OSError:
                pass
        return held

    with proxy_process.running(d, "networks", {
            "TXL_PROXY_LISTEN": f"[::]:{proxy_process.PORT}",
            "TXL_PROXY_CONNECTIONS": "4", "TXL_PROXY_RUNNING": "10",
            **proxy_process.by_address(d)}):
        held = [connections(source, 3) for source in NETWORKS]
        taken = [len(h) for h in held]
        expect(taken == [3, 1, 3], f"connections taken: {taken}")
    with proxy_process.running(d, "networks-calls", {
            "TXL_PROXY_LISTEN": f"[::]:{proxy_process.PORT}",
            "TXL_PROXY_RUNNING": "10", **proxy_process.by_address(d)}):
        kept, refused = [], []
        for source in (first, same, other, "127.0.0.1"):
            more, ended = hold_streams(lambda: connect(source), 8)
            kept += more
            refused.append(ended)
        expect(refused == [0, 6, 0, 0], f"calls refused: {refused}")


def check_new_sessions(d):
    """An address makes so many sessions in ten minutes, and HAProxy remembers
    no more."""
    with proxy_process.running(d, "sessions", {
            "TXL_PROXY_SESSIONS": "20", **proxy_process.by_address(d)}):
        results = [proxy_process.txl(d, "sessions", "create")
                   for _ in range(22)]
        refused = [r for r in results if r.returncode != 0]
        expect(len(refused) == 2 and all(
            "too many new sessions from this address" in r.stderr
            for r in refused), f"refused: {[r.stderr for r in refused]}")
        expect(proxy_process.remembered_sessions() == 20,
               f"{proxy_process.remembered_sessions()} are remembered")
        turn = proxy_process.txl(
            d, "generate", "--session", results[0].stdout.strip(),
            "--max-tokens", "2", "--prompt", "A")
        expect(turn.returncode == 0, f"a turn: {turn.stderr}")


def check_unknown_sessions(d):
    """HAProxy remembers no name of a session that no server knows."""
    with proxy_process.running(d, "unknown", proxy_process.by_address(d)):
        connection = http2_frames.Connection(
            (proxy_process.HOST, proxy_process.PORT), d.authority.certificate)
        for number in range(100):
            name = f"unknown-{number}"
            for method in ("SessionService/GetSession",
                           "SessionService/DeleteSession",
                           "GenerationService/Generate"):
                stream = connection.call(
                    f"/txl.v1.{method}", http2_frames.field(1, name),
                    [("x-txl-session", name)])
                while connection.receive().stream != stream:
                    pass
        expect(proxy_process.remembered_sessions() == 0,
               f"{proxy_process.remembered_sessions()} unknown names are "
               "remembered")
