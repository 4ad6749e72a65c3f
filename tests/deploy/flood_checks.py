"""What one client's connection can do to the others, through HAProxy."""

import re
import struct
import urllib.request

import http2_frames
from deployment import expect, wait_for
from http2_frames import END_HEADERS, END_STREAM, field, frame
import proxy_limits
import proxy_process
import sandbox_network

GENERATE = "/txl.v1.GenerationService/Generate"
MEGABYTE = 2**20


def connect(d, **options):
    return http2_frames.Connection(
        (sandbox_network.HOST_ADDRESS, 8443), d.authority.certificate,
        **options)


def turn(tokens, logprobs=0):
    """A GenerateRequest."""
    return (field(2, "ROMEO:") + field(5, field(1, tokens)) +
            field(6, field(1, logprobs)))


def server_bytes(d):
    """Resident memory of each server."""
    return [1024 * int(c.status()["VmRSS"].split()[0]) for c in d.servers]


def calls_for_servers(d):
    """Calls that HAProxy has handed on."""
    return sum(map(int, re.findall(
        r'haproxy_server_sessions_total\{proxy="servers",.*\} (\d+)',
        d.proxy_metrics())))


def parked_turns(d):
    total = 0
    for container in d.servers:
        with urllib.request.urlopen(
                f"{d.inner_url(container, 9464)}/metrics") as answer:
            total += int(re.search(r"^txl_requests_parked (\d+)",
                                   answer.read().decode(), re.M)[1])
    return total


def expect_service(d):
    """Others are served; the same address is, once its calls are forgotten."""
    proxy_limits.wait_for_service(d)
    d.expect_turn(None)


def check_unread_stream(d):
    """A stream that its client does not read holds up no other stream of the
    same connection."""
    server = d.servers[0].addresses["inner"]
    with (proxy_process.running(d, "unread", {
            "TXL_PROXY_SERVER_1": f"{server}:50051"}),
          http2_frames.Connection((proxy_process.HOST, proxy_process.PORT),
                                  d.authority.certificate,
                                  window=0) as connection):
        connection.call(GENERATE, turn(4000, logprobs=20))
        seen = []

        def full():
            seen.append(parked_turns(d))
            return seen[-10:] == [1] * 10

        wait_for("the turn stays parked: all buffers on its way are full",
                 full)
        read = connection.call(GENERATE, turn(200))
        connection.allow(read, MEGABYTE)
        while (f := connection.receive()).stream != read or not (
                f.kind == http2_frames.HEADERS and f.flags & END_STREAM):
            pass


def sent_until_end(connection, pieces):
    """Bytes sent when the peer ended the connection; it does, or this fails."""
    sent = 0
    try:
        for piece in pieces:
            connection.send(piece)
            sent += len(piece)
        while True:
            connection.receive()
    except (ConnectionError, OSError) as error:
        expect(not isinstance(error, TimeoutError),
               f"after {sent} bytes the connection still stands")
    return sent


def check_headers(d):
    """A header without an end, and one that grows without limit when it is
    decoded, end their connection within 64 KiB."""
    block = http2_frames.header("a", "b" * 8000)
    with connect(d) as connection:
        sent_until_end(connection, [
            frame(http2_frames.HEADERS, 0, 1,
                  http2_frames.request_header(GENERATE)),
            *[frame(http2_frames.MORE, 0, 1, block)] * 8])
    # One line of 3,900 bytes for the table, then 12,000 times its number.
    line = (b"\x40" + http2_frames.integer(1) + b"a" +
            http2_frames.integer(3900) + b"b" * 3900)
    with connect(d) as connection:
        sent_until_end(connection, [frame(
            http2_frames.HEADERS, END_HEADERS | END_STREAM, 1,
            http2_frames.request_header(GENERATE) + line +
            bytes([0x80 | 62]) * 12_000)])
    expect_service(d)


def check_frames(d):
    """Frames without a call in them reach no server and take no memory."""
    calls, memory = calls_for_servers(d), server_bytes(d)
    for flood in (
            frame(http2_frames.PING, payload=bytes(8)),
            frame(http2_frames.SETTINGS),
            frame(http2_frames.PRIORITY, 0, 1, struct.pack(">LB", 0, 1)),
            frame(http2_frames.DATA, 0, 1),
            frame(http2_frames.WINDOW, 0, 1, struct.pack(">L", 1))):
        with connect(d) as connection:
            connection.send(frame(http2_frames.HEADERS, END_HEADERS, 1,
                                  http2_frames.request_header(GENERATE)))
            for _ in range(100):
                connection.send(flood * 200)
    expect(calls_for_servers(d) == calls, "an unfinished call reached a server")
    expect_growth(d, memory)
    expect_service(d)


def check_rapid_reset(d):
    """Of 5,000 calls that are reset at once, the servers see what an address
    may begin, and keep nothing of them."""
    calls, memory = calls_for_servers(d), server_bytes(d)
    with connect(d) as connection:
        header = http2_frames.request_header(GENERATE)
        body = http2_frames.message(turn(1000))
        for _ in range(5000):
            stream = connection.new_stream()
            connection.send(
                frame(http2_frames.HEADERS, END_HEADERS, stream, header) +
                frame(http2_frames.DATA, END_STREAM, stream, body) +
                frame(http2_frames.RST_STREAM, 0, stream,
                      struct.pack(">L", 8)))
    seen = calls_for_servers(d) - calls
    expect(seen <= 1000, f"{seen} calls reached a server")
    expect_growth(d, memory)
    expect_service(d)


def expect_growth(d, before):
    """At most 64 MiB for each server."""
    grown = [now - then for now, then in zip(server_bytes(d), before)]
    expect(max(grown) <= 64 * MEGABYTE, f"memory has grown: {grown}")


def check_unfinished_call(d):
    """A call whose request does not arrive ends, and no server heard of it."""
    calls = calls_for_servers(d)
    with connect(d) as connection:
        connection.send(frame(http2_frames.HEADERS, END_HEADERS, 1,
                              http2_frames.request_header(GENERATE)))
        answer = wait_for("its end", lambda: (
            f := connection.receive()).kind == http2_frames.HEADERS and f)
    expect(b"the request did not arrive in time" in answer.payload,
           f"it ended with {answer}")
    expect(calls_for_servers(d) == calls, "it reached a server")
