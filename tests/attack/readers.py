"""Readers that read slowly, late or never."""

import random
import statistics
import time

import api
import observe
import wire
from case import SHAKESPEARE, TINY, Attack
from server import Fell, MIB, copy_model, expect, wait_until

GENERATE = "Generation.Generate"
_WINDOW = 512  # one event with 20 alternatives
# Events of a turn that its client has not taken: 64, and the steps in flight.
_UNREAD = 66
# HAProxy and its sockets hold some more of them: 64 KiB at most.
_PROXIED_UNREAD = _UNREAD + 64 * 1024 // _WINDOW
# One address, which through HAProxy has 250 calls at once, is to fill the slots.
_PROXIED_SLOTS = 240


def _trickle(server, readers, seconds, pause):
    """Readers that take an event every `pause` seconds each, for ever; they
    come back when they are closed. How often they were."""
    connections = [api.Client(server.connect(window=_WINDOW))
                   for _ in range(-(-readers // 50))]
    fields = api.turn(4096, logprobs=20)

    def start(i):
        client = connections[i % len(connections)]
        stream = client.start(GENERATE, fields)
        stream.reads = False
        return client, stream

    running = [start(i) for i in range(readers)]
    again = 0
    end = time.monotonic() + seconds
    due = time.monotonic() + pause
    while time.monotonic() < end:
        wire.pump_all([c.connection for c in connections], 0.1)
        for i, (client, stream) in enumerate(running):
            if stream.ended:
                again += 1
                client.connection.forget(stream)
                running[i] = start(i)
        if time.monotonic() >= due:
            due += pause
            for client, stream in running:
                client.connection.allow(stream, _WINDOW)
    for client in connections:
        client.connection.close()
    return again


def slow_readers(site, size):
    """Every slot's reader trickles; others come all the same."""
    # On a machine of two cores the readers' own client takes from a smaller
    # model's steps, which are shorter than a message takes it.
    slots = min(size.slots, _PROXIED_SLOTS) if site.proxied else size.slots
    server = site.warm_server(slots, "--max-sessions", "5000",
                              model=SHAKESPEARE)
    ratios, firsts, waits = [], [], []
    for _ in range(size.rounds):
        alone, _ = observe.pace(server, size.seconds / 2, size.tokens)
        load = observe.attack(_trickle, server, slots, 120, 3)
        wait_until(lambda: server.status().turns_active >= slots, 30,
                   "the readers' turns")
        # Until the buffers on the way are full, something reads for them: they
        # trickle once they are parked.
        wait_until(lambda: server.status().turns_parked >= 0.9 * slots, 90,
                   "the readers' turns to be parked")
        time.sleep(2)
        firsts.append(_first_token(server))
        expect(firsts[-1] <= 2, "another client's first token took "
               f"{firsts[-1]:.1f} s")
        beside, longest = observe.pace(server, size.seconds, size.tokens)
        ratios.append(beside / alone)
        waits.append(longest)
        load.kill()
        server.expect_quiet()
    ratio = statistics.median(ratios)
    figure = (f"first token {max(firsts) * 1e3:.0f} ms beside {slots}; "
              f"{ratio:.2f} of the tokens/s alone, longest wait "
              f"{max(waits) * 1e3:.0f} ms")
    expect(ratio >= size.pace, figure)
    server.expect_well()
    return figure


def _first_token(server):
    try:
        return observe.first_token(server, timeout=10)
    except (TimeoutError, api.Failed) as error:
        raise Fell(f"another client beside slow readers: {error}") from error


def never_read(site, size):
    """Windows of 0 from the start: the first message cannot leave."""
    server = site.server("--slots", "32", "--slow-reader-limit", "4s",
                         "--max-queue-calls", "4096", "--log-level", "error")
    server.warm(32)
    with server.client() as client:
        client.generate(api.turn(4000, logprobs=20))
    server.mark()
    before, started = (server.status().rows_decode,
                       server.status().turns_started)
    connections = [server.connect(window=0)
                   for _ in range(-(-size.streams // 50))]
    fields = api.message("GenerateRequest", **api.turn(4096, logprobs=20))
    streams = [(c, c.open(api.path_of(GENERATE), fields.SerializeToString()))
               for c in connections for _ in range(size.streams //
                                                   len(connections))]
    begin = time.monotonic()
    # Those that still wait for a slot come in when the first are closed.
    wait_until(lambda: server.status().turns_started > started and
               server.status().turns_active == 0, size.limit,
               "turns that are never read end")
    seconds = time.monotonic() - begin
    status = server.status()
    ends = status.turns_finished
    rows = status.rows_decode - before
    unread = _PROXIED_UNREAD if site.proxied else _UNREAD
    expect(rows <= len(streams) * unread,
           f"{rows} rows for {len(streams)} who read none")
    for connection in connections:
        connection.close()
    server.expect_well()
    return (f"{len(streams)} streams gone in {seconds:.1f} s, {rows} rows for "
            f"them: {dict(ends)}")


def stall_and_resume(site, size):
    """Pauses at random; every index is there once and in its place."""
    server = site.warm_server(size.streams, "--log-level", "error")
    draw = random.Random(5)
    clients = [api.Client(server.connect(window=4096)) for _ in range(4)]
    running = []
    for i in range(size.streams):
        client = clients[i % 4]
        stream = client.start(GENERATE, api.turn(size.tokens, logprobs=2))
        stream.reads = False
        running.append((client, stream))
    time.sleep(size.stall)
    end = time.monotonic() + 60
    while not all(s.ended for _, s in running):
        expect(time.monotonic() < end, "streams that read on do not end")
        wire.pump_all([c.connection for c in clients], 0.002)
        for client, stream in draw.sample(running, len(running) // 2):
            if not stream.ended:
                client.connection.allow(stream, draw.randrange(1, 8192))
    for _, stream in running:
        status = api.Status(stream)
        expect(status.code == api.OK, f"a stream that read on: {status}")
        got = api.events(stream)
        indices = [e.token.index for e in got if e.HasField("token")]
        expect(indices == list(range(size.tokens)) and
               got[-1].HasField("finished"), f"{len(indices)} tokens of "
               f"{size.tokens}, out of order or without an end")
    server.expect_well()
    return f"{size.streams} streams of {size.tokens} tokens whole, in order"


def _leave_unread(server, method, request, calls, name):
    """Makes `calls` calls, 50 on a connection, and reads no answer."""
    connections = [server.connect(window=1) for _ in range(-(-calls // 50))]
    sent = request.SerializeToString()
    for i in range(calls):
        connections[i % len(connections)].open(api.path_of(method),
                                               sent).reads = False
    end = time.monotonic() + 3
    while time.monotonic() < end:
        wire.pump_all(connections, 0.1)
        expect(server.growth() <= 64 * MIB,
               f"{calls} {name}: {server.growth() / MIB:.0f} MiB")
    for connection in connections:
        connection.close()
    server.expect_well()


def unread_replays(site, size):
    """A kept answer, asked for again and again and never read."""
    server = site.server("--slots", "4", "--log-level", "error")
    with server.client() as client:
        client.call("Session.CreateSession", {"sessionId": "a"})
        fields = api.turn(4096, "a", logprobs=20, request_id="r")
        client.generate(fields)
        client.generate(fields)  # once, for what a replay takes anyway
    server.mark()
    request = api.message("GenerateRequest", **fields)
    _leave_unread(server, GENERATE, request, size.calls, "unread replays")
    return f"{size.calls} unread replays"


def unread_sessions(site, size):
    """A session whose text is long, read by many who do not read."""
    model = copy_model(TINY, site.folder() / "model")
    (model / "words.txt").write_text(
        "\n".join(f"w{i:063}" for i in range(61)) + "\n")
    (model / "tokenizer.json").write_text(
        '{"kind": "symbols", "file": "words.txt"}')
    server = site.server("--slots", "4", "--log-level", "error", model=model)
    with server.client() as client:
        client.call("Session.CreateSession", {"sessionId": "a"})
        for _ in range(4):
            client.call("Session.AppendTokens", {
                "sessionId": "a", "tokens": {"ids": [1] * 8000}})
    request = api.message("GetSessionRequest", sessionId="a",
                          includeTokens=True)
    server.mark()
    _leave_unread(server, "Session.GetSession", request, size.calls,
                  "unread sessions")
    return f"{size.calls} unread answers with 32,000 long words each"


ATTACKS = [
    Attack("slow-readers", "limits",
           "first token within 2 s beside them, 90 % of the tokens/s",
           slow_readers,
           # One short round says that they go on, not how fast.
           {"slots": 4, "seconds": 2, "rounds": 1, "tokens": 1000, "pace": 0.5},
           {"slots": 256, "seconds": 5, "rounds": 5, "pace": 0.9},
           proxied=True),
    Attack("never-read", "T4", "no steps for nobody, closed at the limit",
           never_read, {"streams": 32, "limit": 15},
           {"streams": 1000, "limit": 200}, proxied=True),
    Attack("stall-and-resume", "T5", "every index once, in order",
           stall_and_resume, {"streams": 20, "stall": 1, "tokens": 1000},
           {"streams": 200, "stall": 5, "tokens": 2000}),
    Attack("unread-replays", "limits", "+64 MiB",
           unread_replays, {"calls": 100}, {"calls": 300}, proxied=True),
    Attack("unread-sessions", "limits", "+64 MiB",
           unread_sessions, {"calls": 60}, {"calls": 300}, proxied=True),
]
