"""What a client of the HTTP front can do to it: slow, endless, doubtful and
huge requests, and streams that nobody reads."""

import contextlib
import json
import time

import web
from case import Attack
from server import MIB, expect, wait_until

_FLAGS = ("--slots", "8", "--log-level", "error")


def _crowd(server, count, first, buffer=0):
    crowd = web.Crowd()
    for i in range(count):
        with contextlib.suppress(OSError):
            channel = web.connect(server, web.source(i), buffer)
            channel.sendall(first)
            crowd.add(channel)
    return crowd


def _served(server):
    """An honest client's first token, in milliseconds; no more than 2 s."""
    seconds = web.first_token_seconds(server)
    expect(seconds <= 2, f"an honest client's stream took {seconds:.1f} s")
    return f"{seconds * 1e3:.0f} ms for another's stream"


def _trickle(site, size, first, drop, limit):
    """Many connections that send a request byte by byte."""
    server = web.serve(site, *_FLAGS)
    server.warm(8)
    web.first_token_seconds(server)
    server.mark()
    crowd = _crowd(server, size.connections, first)
    worst = _served(server)
    end = time.monotonic() + (2 if size.short else limit + 3)
    while crowd.send(drop) and time.monotonic() < end:
        crowd.read(0.5)
    left = len(crowd.living())
    worst = _served(server)
    crowd.close()
    expect(size.short or left == 0,
           f"{left} of {size.connections} are still there after {limit} s")
    server.expect_well()
    return f"{size.connections} slow ones, {worst}, {left} left"


def slow_heads(site, size):
    return _trickle(site, size, b"GET /health HTTP/1.1\r\nHost: localhost\r\n",
                    b"x: y\r\n", 10)


def slow_bodies(site, size):
    body = web.post("/v1/completions", b'{"prompt": "', length=4 * MIB)
    return _trickle(site, size, body, b"a", 30)


def endless_heads(site, size):
    """Heads without an end, as fast as they are taken."""
    server = web.serve(site, *_FLAGS)
    server.warm(8)
    server.mark()
    answers = []
    for _ in range(size.connections):
        with web.connect(server) as channel:
            with contextlib.suppress(OSError):
                channel.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
                for i in range(2000):
                    channel.sendall(f"x-{i}: {'y' * 1000}\r\n".encode())
            answers += web.statuses(web.receive(channel))
    expect(set(answers) <= {431}, f"an endless head was answered {set(answers)}")
    figure = _served(server)
    server.expect_well()
    return f"{len(answers)} of {size.connections} were told 431, {figure}"


def one_host(site, size):
    """All the connections that one address can make."""
    server = web.serve(site, *_FLAGS)
    server.warm(8)
    server.mark()
    crowd = web.Crowd()
    for _ in range(size.connections):
        crowd.add(web.connect(server, "127.0.0.9"))
    crowd.read(1, keep=4096)
    refused = sum(b"429" in got for got in crowd.channels.values())
    expect(refused == size.connections - 64,
           f"{refused} of {size.connections} were refused")
    figure = _served(server)
    crowd.close()
    server.expect_well()
    return f"{refused} of {size.connections} refused, {figure}"


_SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
_BODY = b'{"prompt": "a", "max_tokens": 1}'
_LENGTHS = {
    "two lengths": b"Content-Length: 5\r\nContent-Length: %d\r\n",
    "two equal lengths": b"Content-Length: %d\r\nContent-Length: %d\r\n",
    "a list of lengths": b"Content-Length: %d, %d\r\n",
    "length and chunks": b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n",
    "chunks and length": b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n",
    "chunks": b"Transfer-Encoding: chunked\r\n",
    "odd chunks": b"Transfer-Encoding: xchunked\r\nContent-Length: %d\r\n",
    "identity": b"Transfer-Encoding: identity\r\nContent-Length: %d\r\n",
    "a sign": b"Content-Length: +%d\r\n",
    "a minus": b"Content-Length: -%d\r\n",
    "hexadecimal": b"Content-Length: 0x%x\r\n",
    "a space before the colon": b"Content-Length : %d\r\n",
    "a tab in the name": b"Content\tLength: %d\r\n",
    "a folded line": b"X: y\r\n Content-Length: %d\r\n",
    "a bare line feed": b"X: y\nContent-Length: %d\r\n",
    "a bare carriage return": b"X: y\rContent-Length: %d\r\n",
    "no length": b"",
    "too large a length": b"Content-Length: 99999999999999999999%d\r\n",
}


def smuggling(site, size):
    """Requests whose end two readers see in two places, each with another
    request behind it."""
    del size
    server = web.serve(site, *_FLAGS)
    server.warm(8)
    server.mark()
    for name, lines in _LENGTHS.items():
        with web.connect(server) as channel:
            count = lines.count(b"%")
            head = lines % ((len(_BODY),) * count) if count else lines
            channel.sendall(
                b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\n" + head + b"\r\n" +
                _BODY + _SMUGGLED)
            got = web.receive(channel, timeout=3)
        codes = web.statuses(got)
        expect(len(codes) <= 1 and b'"owned_by"' not in got,
               f"{name}: the request behind it was answered: {codes}")
        expect(not codes or codes[0] in (400, 411, 413, 431),
               f"{name}: {codes}")
    figure = _served(server)
    server.expect_well()
    return f"{len(_LENGTHS)} doubtful ends refused, {figure}"


def unread_streams(site, size):
    """Streams with all their alternatives that nobody reads."""
    server = web.serve(site, *_FLAGS, "--max-sessions", "5000",
                       "--max-calls", "2000", "--max-queue-calls", "2000")
    server.warm(8)
    web.first_token_seconds(server)
    server.mark()
    crowd = _crowd(server, size.streams, web.stream(4096, logprobs=20), 4096)
    time.sleep(1 if size.short else 5)
    figure = _served(server)
    steps = server.status().steps
    time.sleep(1)
    more = server.status().steps - steps
    crowd.close()
    server.expect_quiet()
    server.expect_well()
    return f"{len(crowd.channels)} streams unread, {more} steps/s, {figure}"


def _bodies():
    """(what it is, the body, fields that must be refused as, codes)."""
    nested = b"[" * 100_000
    yield "deep lists", b'{"prompt": ' + nested, {400}
    yield "deep objects", b'{"a":' * 100_000, {400}
    yield "ten thousand deep", b'{"prompt": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", {400}
    for number in (b"1e400", b"-1e400", b"9" * 100_000, b"1" + b"0" * 309,
                   b"0." + b"0" * 100_000 + b"1", b"1e-400", b"NaN"):
        for field in (b"temperature", b"max_tokens", b"n", b"seed", b"logprobs",
                      b"top_k"):
            yield (f"{field.decode()} {number[:12].decode()}",
                   b'{"prompt": "a", "max_tokens": 1, "x": 0, "' + field +
                   b'": ' + number + b"}" if field != b"max_tokens" else
                   b'{"prompt": "a", "max_tokens": ' + number + b"}",
                   {400, 200})
    yield "too many choices", json.dumps({"prompt": "a", "n": 129}).encode(), {400}
    yield "2^31 choices", b'{"prompt": "a", "n": 2147483648}', {400}
    yield ("too many prompts",
           json.dumps({"prompt": ["a"] * 200_000}).encode(), {400})
    yield ("choices of many prompts",
           json.dumps({"prompt": ["a"] * 100, "n": 100}).encode(), {400})
    yield ("many members", json.dumps(
        {f"k{i}": i for i in range(200_000)}).encode(), {200, 400})
    yield "a text of 3 MiB", json.dumps({"prompt": "a" * (3 * MIB)}).encode(), {400}
    yield "escapes", b'{"prompt": "' + b"\\u0000" * 500_000 + b'"}', {400}
    yield ("stop texts", json.dumps(
        {"prompt": "a", "stop": ["x"] * 300_000}).encode(), {400})


def bodies(site, size):
    """JSON that is deep, huge, or asks for much."""
    del size
    server = web.serve(site, *_FLAGS)
    server.warm(8)
    web.first_token_seconds(server)
    server.mark()
    worst, count = (0, ""), 0
    for name, body, codes in _bodies():
        begin = time.monotonic()
        with web.connect(server) as channel:
            with contextlib.suppress(OSError):
                channel.sendall(web.post("/v1/completions", body).replace(
                    b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            got = web.statuses(web.receive(channel))
        worst = max(worst, (time.monotonic() - begin, name))
        count += 1
        expect(len(got) == 1 and got[0] in codes, f"{name}: {got}")
    expect(worst[0] <= 2, f"{worst[1]} took {worst[0]:.1f} s")
    figure = _served(server)
    server.expect_well()
    return (f"{count} bodies, the slowest {worst[0] * 1e3:.0f} ms "
            f"({worst[1]}), {figure}")


def many_choices(site, size):
    """As many choices as a request may have, of many clients."""
    server = web.serve(site, *_FLAGS, "--max-sessions", "5000")
    server.warm(8)
    web.first_token_seconds(server)
    server.mark()
    asked = web.post("/v1/completions",
                     {"prompt": [[1, 2]] * 16, "n": 8, "max_tokens": 400,
                      "logprobs": 5, "ignore_eos": True})
    crowd = _crowd(server, size.clients, asked)
    crowd.read(0.5)
    seconds = web.first_token_seconds(server, timeout=30)
    crowd.close()
    server.expect_quiet(30)
    server.expect_well()
    return (f"{size.clients} clients with 128 choices each, another's stream "
            f"took {seconds:.1f} s")


def connects(site, size):
    """Connections that come and go, some in the middle of a request."""
    server = web.serve(site, *_FLAGS)
    server.warm(8)
    web.first_token_seconds(server)
    server.mark()
    for i in range(size.count):
        channel = web.connect(server, web.source(i % 600))
        if i % 4 == 1:
            channel.sendall(b"GET /heal")
        elif i % 4 == 2:
            channel.sendall(web.stream(4000))
        elif i % 4 == 3:
            channel.sendall(web.post("/v1/completions", b"{", length=4000))
        channel.close()
    figure = _served(server)
    wait_until(lambda: server.status().connections_open <= 3, 10,
               "connections that have gone")
    server.expect_quiet(30)
    server.expect_well()
    return f"{size.count} connections came and went, {figure}"


def thousand_streams(site, size):
    """Streams at once on the one thread of the front; then the server ends."""
    server = web.serve(site, "--slots", size.streams + 1, "--max-sessions", "5000",
                       "--max-calls", "2000", "--max-queue-calls", "2000",
                       "--http-connections", "2000", "--drain-timeout", "1s",
                       "--log-level", "error")
    server.warm(8)
    crowd = _crowd(server, size.streams, web.stream(4096))
    wait_until(lambda: server.status().turns_active == size.streams, 60,
               f"{size.streams} streams that run")
    crowd.read(1)
    begun = sum(bool(got) for got in crowd.channels.values())
    expect(begun == size.streams, f"{begun} of {size.streams} streams began")
    figure = _served(server)
    begin = time.monotonic()
    server.process.terminate()
    crowd.read(30)
    status = server.process.wait(30)
    seconds = time.monotonic() - begin
    whole = sum(got.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
                for got in crowd.channels.values())
    told = sum(b"SERVER_DRAIN" in got or b'"length"' in got
               for got in crowd.channels.values())
    expect(whole == told == size.streams, f"of {size.streams} streams {whole} "
           f"came to an end that {told} were told")
    expect(status == 0, f"it ended with {status}")
    return (f"{size.streams} streams, {figure}; all told of the end, which "
            f"took {seconds:.1f} s")


ATTACKS = [
    Attack("http-slow-heads", "H1", "gone within 10 s, another's stream in 2 s",
           slow_heads, {"connections": 100}, {"connections": 900}),
    Attack("http-slow-bodies", "H1", "gone within 30 s, another's stream in 2 s",
           slow_bodies, {"connections": 100}, {"connections": 900}),
    Attack("http-endless-heads", "H2", "431, +64 MiB", endless_heads,
           {"connections": 10}, {"connections": 200}),
    Attack("http-one-host", "H3", "64 connections of an address, others served",
           one_host, {"connections": 100}, {"connections": 900}),
    Attack("http-smuggling", "H4", "one answer, a refusal", smuggling, {}, {}),
    Attack("http-unread-streams", "H5", "+64 MiB, another's stream in 2 s",
           unread_streams, {"streams": 100}, {"streams": 900}),
    Attack("http-bodies", "H6", "400, each within 2 s", bodies, {}, {}),
    Attack("http-many-choices", "H6", "+64 MiB, another is served", many_choices,
           {"clients": 4}, {"clients": 60}),
    Attack("http-connects", "H7", "none is left over, another's stream in 2 s",
           connects, {"count": 500}, {"count": 20000}),
    Attack("http-streams", "H8", "all begin, all are told of the end",
           thousand_streams, {"streams": 200}, {"streams": 1000}),
]
