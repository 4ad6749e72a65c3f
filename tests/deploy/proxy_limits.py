"""What HAProxy refuses, seen by a gRPC client that is not ours."""

import os
import socket
import ssl

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # refusals are wanted here
import grpc  # noqa: E402

from deployment import PUBLIC, expect, wait_for
import sandbox_network

HEALTH = "/grpc.health.v1.Health/Check"
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
