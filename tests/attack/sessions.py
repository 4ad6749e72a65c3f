"""Sessions: too many, too long, and requests that come too late."""

import time

import api
from case import Attack
from server import expect

_MONTH = "2592000s"


def squatters(site, size):
    """Idle sessions for 30 days each, as many as there may be."""
    server = site.server("--slots", "4", "--max-sessions", size.sessions,
                         "--log-level", "error")
    server.mark()
    with server.client() as client:
        made = 0
        for _ in range(size.sessions + 10):
            status, _ = client.try_call("Session.CreateSession",
                                        {"ttl": _MONTH})
            made += status.code == api.OK
        expect(made >= size.sessions // 2, f"only {made} sessions")
        status, _ = client.try_generate(api.turn(3))
        expect(status.code == api.OK,
               f"beside {made} idle sessions a turn without one: {status}")
    server.expect_well()
    return f"{made} idle sessions, a turn without a session is served"


def late_retries(site, _):
    """Append a, b, then a again: the first one's answer was lost."""
    server = site.server("--slots", "4", "--log-level", "error")
    with server.client() as client:
        client.call("Session.CreateSession", {"sessionId": "s"})
        for name, ids in (("a", [1, 2]), ("b", [3])):
            client.call("Session.AppendTokens", {
                "sessionId": "s", "requestId": name, "tokens": {"ids": ids}})
        status, _ = client.try_call("Session.AppendTokens", {
            "sessionId": "s", "requestId": "a", "tokens": {"ids": [1, 2]}})
        first, _ = client.try_generate(api.turn(2, "s", ids=[4],
                                                request_id="g"))
        later, _ = client.try_generate(api.turn(2, "s", ids=[5],
                                                request_id="h"))
        again, _ = client.try_generate(api.turn(2, "s", ids=[4],
                                                request_id="g"))
        position = client.call("Session.GetSession",
                               {"sessionId": "s"}).session.position
    expect(first.code == later.code == api.OK, f"{first}; {later}")
    expect(position == 3 + 3 + 3, f"append a, b, a ({status}) and turns g, h, "
           f"g ({again}): position {position} instead of 9")
    server.expect_well()
    return f"position 9 after a, b, a, g, h, g; refused with: {status}"


def routing_header(site, size):
    """The name of a session that is not there does not come back."""
    server = site.server("--slots", "4", "--log-level", "error")
    server.mark()
    calls = [("Session.GetSession", {"sessionId": "{}"}),
             ("Generation.Generate", {**api.turn(1), "sessionId": "{}"}),
             ("Model.GetServerStatus", {}), ("Session.DeleteSession",
                                             {"sessionId": "{}"}),
             ("Session.AppendTokens", {"sessionId": "{}",
                                       "tokens": {"ids": [1]}}),
             ("Session.CreateSession", {"sessionId": "bad id {}"})]
    with server.client() as client:
        client.call("Session.CreateSession", {"sessionId": "there"})
        for i in range(size.calls):
            name, fields = calls[i % len(calls)]
            unknown = f"nobody{i}"
            fields = {k: v.format(unknown) if isinstance(v, str) else v
                      for k, v in fields.items()}
            stream = client.start(name, fields,
                                  metadata=[("x-txl-session", unknown)])
            client.finish(stream)
            for sent in (stream.headers, stream.trailers):
                expect(sent.get("x-txl-session") != unknown,
                       f"{name} echoes a session that is not there")
        stream = client.start("Session.GetSession", {"sessionId": "there"},
                              metadata=[("x-txl-session", "there")])
        client.finish(stream)
        expect(stream.headers.get("x-txl-session") == "there",
               "a session that is there is not named")
    table = ""
    if server.proxy:
        used = server.proxy.metric('haproxy_sticktable_used{proxy="servers"')
        expect(used <= 1, f"{size.calls} unknown names took {used:.0f} places "
               "in the proxy's table")
        table = f", the proxy's table holds {used:.0f}"
    server.expect_well()
    return f"{size.calls} unknown names, none comes back{table}"


def session_ids(site, size):
    """A session that grows for ever."""
    flags = ["--slots", "4", "--log-level", "error"]
    if site.has_flag("--max-session-tokens"):
        flags += ["--max-session-tokens", size.tokens]
    server = site.server(*flags)
    server.warm()
    server.mark()
    with server.client() as client:
        client.call("Session.CreateSession", {"sessionId": "s"})
        status, taken = None, 0
        for _ in range(size.tokens // 8000 + 2):
            status, got = client.try_call("Session.AppendTokens", {
                "sessionId": "s", "tokens": {"ids": [1] * 8000}})
            if status.code != api.OK:
                break
            taken = got.position
        expect(taken <= size.tokens, f"{taken} ids, no limit refuses more")
        expect(status.reason == "OVER_LIMIT", f"beyond the limit: {status}")
        # What is left of it can be used to the last one.
        rest = size.tokens - taken
        client.call("Session.AppendTokens", {
            "sessionId": "s", "tokens": {"ids": [1] * rest}})
        status, _ = client.try_generate(api.turn(1, "s"))
        expect(status.reason == "OVER_LIMIT", f"a turn beyond: {status}")
        session = client.call("Session.GetSession",
                              {"sessionId": "s"}).session
    expect(session.position == size.tokens, f"position {session.position}")
    expect(session.memory_bytes >= 4 * size.tokens,
           f"memory_bytes {session.memory_bytes} does not count the ids")
    server.expect_well()
    return f"refused after {size.tokens} ids: {status.reason}"


def delete_races(site, size):
    """Turns that end while their session is deleted and made anew."""
    server = site.warm_server(4, "--log-level", "error")
    codes = {}
    with server.client() as turns, server.client() as deletes:
        for i in range(size.rounds):
            name = f"s{i % 4}"
            made = deletes.start("Session.CreateSession", {"sessionId": name})
            deletes.finish(made)
            running = [turns.start("Generation.Generate", api.turn(
                1 + i % 3, name, ids=[i % 61])) for _ in range(2)]
            if i % 2:
                turns.connection.wait(
                    lambda: running[0].messages or running[0].ended, 5)
            delete = deletes.start("Session.DeleteSession",
                                   {"sessionId": name})
            if i % 5 == 0:
                turns.connection.cancel(running.pop())
            for stream in running:
                status = turns.finish(stream, 10)
                codes[status.code] = codes.get(status.code, 0) + 1
            deletes.finish(delete)
    server.expect_quiet()
    status = server.status()
    expect(status.sessions_busy == 0, f"{status.sessions_busy} sessions stay "
           f"busy after {size.rounds} deletes")
    expect(set(codes) <= {api.OK, api.ABORTED, api.NOT_FOUND},
           f"codes {codes}")
    server.expect_well()
    return f"{size.rounds} deletes, none stays busy, codes {codes}"


def expiry(site, size):
    """Nobody calls, and sessions end all the same."""
    server = site.server("--slots", "4")
    with server.client() as client:
        for _ in range(size.sessions):
            client.call("Session.CreateSession", {"ttl": "1s"})
    time.sleep(3)
    left = server.status().sessions_idle
    expect(left == 0, f"{left} sessions are still there 2 s after their end")
    server.expect_well()
    return f"{size.sessions} sessions gone within 2 s of their end"


def round_robin(site, size):
    """More sessions than slots, turn by turn, each as if it were alone."""
    server = site.server("--slots", size.slots, "--log-level", "error")
    server.warm(size.slots)
    with server.client() as client:
        length = 2 * -(-size.turns // size.sessions)
        alone = [client.generate(api.turn(length, ids=[s % 61, s // 61]))
                 for s in range(size.sessions)]
        for s in range(size.sessions):
            client.call("Session.CreateSession", {"sessionId": f"s{s}"})
        server.mark()
        got = [[] for _ in range(size.sessions)]
        for t in range(size.turns):
            s = t % size.sessions
            ids = [] if got[s] else [s % 61, s // 61]
            got[s] += client.generate(api.turn(2, f"s{s}", ids=ids))
    for s in range(size.sessions):
        expect(got[s] == alone[s][:len(got[s])], f"session {s} differs from "
               "its turn alone")
    server.expect_well()
    return (f"{size.turns} turns of {size.sessions} sessions on {size.slots} "
            "slots, each token as alone")


ATTACKS = [
    Attack("squatters", "limits", "a turn without a session is served",
           squatters, {"sessions": 200}, {"sessions": 2000}),
    Attack("late-retries", "limits", "nothing is fed twice",
           late_retries, {}, {}),
    Attack("routing-header", "limits", "unknown names do not come back",
           routing_header, {"calls": 120}, {"calls": 450}, proxied=True),
    Attack("session-ids", "limits", "OVER_LIMIT at --max-session-tokens",
           session_ids, {"tokens": 50_000}, {"tokens": 1_000_003}),
    Attack("delete-races", "limits", "no session stays busy",
           delete_races, {"rounds": 500}, {"rounds": 5000}),
    Attack("expiry", "limits", "shown within 2 s on an idle server",
           expiry, {"sessions": 20}, {"sessions": 1000}),
    Attack("round-robin", "T26", "every turn as alone; +64 MiB",
           round_robin, {"slots": 4, "sessions": 16, "turns": 200},
           {"slots": 64, "sessions": 1000, "turns": 10_000}),
]
