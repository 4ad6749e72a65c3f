"""What goes over the wire when a call is made again, and when it is not."""

import asyncio
import datetime
import math
import socketserver
import sys
import threading
import time

import pytest
from scripted_server import (CODES, Refusal, ScriptedServer, generation,
                             model_service, session_service)

from txl_client import (AbortedError, AsyncClient, CancelledError, Client,
                        FinishReason, InternalError, InvalidArgumentError,
                        NotFoundError, ResourceExhaustedError, RetryPolicy,
                        UnavailableError, UnimplementedError)

SOON = RetryPolicy(max_failures=3, first_delay=0.001, max_delay=0.001)

LOST = Refusal(CODES.UNAVAILABLE)
OK = model_service.TokenizeResponse(token_ids=[1, 2])


def started(position=4):
    return generation.GenerateResponse(started=generation.Started(
        position=position, prompt_token_count=1, seed=8))


def token(index):
    return generation.GenerateResponse(token=generation.Token(
        index=index, token_id=70 + index, text="abc"[index]))


def finished(reason="MAX_TOKENS"):
    return generation.GenerateResponse(finished=generation.Finished(
        reason=f"FINISH_REASON_{reason}", position=8))


def session(state="IDLE", position=4, response="Get"):
    return getattr(session_service, f"{response}SessionResponse")(
        session=session_service.Session(
            session_id="verona", position=position,
            state=f"SESSION_STATE_{state}"))


def run_waiting(address, work, **options):
    with Client(address, retry=SOON, **options) as client:
        return work(client)


def run_awaited(address, work, **options):
    async def run():
        async with AsyncClient(address, retry=SOON, **options) as client:
            return await work(client)

    return asyncio.run(run())


@pytest.fixture(params=[run_waiting, run_awaited])
def run(request):
    return request.param


def test_each_attempt_is_the_same_request_with_what_was_received(run):
    script = ([started(), token(0), LOST], [started(), token(1), LOST],
              [started(), token(2), finished()])
    with ScriptedServer(*script) as server:
        turn = run(server.address,
                   lambda client: client.generate("x", max_tokens=3))
        requests = [request for _, request, _ in server.calls]
    assert turn.text == "abc"
    assert turn.token_ids == [70, 71, 72]
    said = [(each.received.seed, list(each.received.token_ids))
            for each in requests]
    assert said == [(0, []), (8, [70]), (8, [70, 71])]
    assert not requests[0].HasField("received")
    for each in requests:
        each.ClearField("received")
    assert requests[1] == requests[0] and requests[2] == requests[0]
    assert requests[0].request_id


def test_a_session_s_turn_says_where_it_begins_in_every_attempt(run):
    with ScriptedServer([session()], [LOST], [started(), LOST],
                        [started(), finished()]) as server:
        run(server.address,
            lambda client: client.session("verona").generate("x"))
        calls = server.calls
    assert [method for method, _, _ in calls] == (
        ["Session.GetSession"] + ["Generation.Generate"] * 3)
    assert [each.expected_position for _, each, _ in calls[1:]] == [4, 4, 4]
    assert {sent["x-txl-session"] for _, _, sent in calls} == {"verona"}


def test_of_a_busy_session_nobody_knows_where_the_turn_begins(run):
    with ScriptedServer([session("BUSY")],
                        [started(), finished()]) as server:
        run(server.address,
            lambda client: client.session("verona").generate("x"))
        assert not server.calls[1][1].HasField("expected_position")


@pytest.mark.parametrize("refusal", [
    Refusal(CODES.ABORTED, "SESSION_BUSY", 0.0),
    Refusal(CODES.ABORTED, "SUPERSEDED"),
    Refusal(CODES.RESOURCE_EXHAUSTED, "QUEUE_FULL", 0.0),
    Refusal(CODES.UNAVAILABLE, "DRAINING"), LOST],
    ids=lambda refusal: str(refusal) or "lost")
def test_a_turn_outlives_what_may_be_tried_again(run, refusal):
    with ScriptedServer([refusal], [started(), refusal],
                        [started(), token(0), finished()]) as server:
        turn = run(server.address, lambda client: client.generate("x"))
        assert turn.text == "a"
        assert len(server.calls) == 3


def test_a_server_says_how_long_to_wait(run):
    busy = Refusal(CODES.ABORTED, "SESSION_BUSY", 0.3)
    with ScriptedServer([busy], [started(), finished()]) as server:
        before = time.monotonic()
        run(server.address, lambda client: client.generate("x"))
        assert time.monotonic() - before >= 0.3


def test_what_a_server_decided_comes_at_once_with_what_came_before(run):
    gone = Refusal(CODES.ABORTED, "SESSION_DELETED")
    with ScriptedServer([started(), token(0), gone]) as server:
        with pytest.raises(AbortedError) as caught:
            run(server.address, lambda client: client.generate("x"))
        assert len(server.calls) == 1
    assert caught.value.reason == "SESSION_DELETED"
    assert caught.value.partial.text == "a"
    assert caught.value.partial.finished is None


def test_patience_ends_with_the_last_error(run):
    full = Refusal(CODES.RESOURCE_EXHAUSTED, "QUEUE_FULL", 0.0)
    with ScriptedServer([LOST], [LOST], [full]) as server:
        with pytest.raises(ResourceExhaustedError) as caught:
            run(server.address, lambda client: client.tokenize("x"))
        assert caught.value.attempts == len(server.calls) == 3


@pytest.mark.parametrize("refusal, error", [
    (Refusal(CODES.INVALID_ARGUMENT, "FIELD_INVALID"), InvalidArgumentError),
    (Refusal(CODES.RESOURCE_EXHAUSTED), ResourceExhaustedError),
    (Refusal(CODES.RESOURCE_EXHAUSTED, "QUOTA"), ResourceExhaustedError),
    (Refusal(CODES.UNIMPLEMENTED), UnimplementedError)])
def test_what_can_never_succeed_is_sent_once(run, refusal, error):
    for work in (lambda client: client.tokenize("x"),
                 lambda client: client.generate("x")):
        with ScriptedServer([refusal]) as server:
            with pytest.raises(error) as caught:
                run(server.address, work)
            assert caught.value.attempts == len(server.calls) == 1


def test_a_message_that_is_too_large_is_sent_once(run):
    with ScriptedServer() as server:
        with pytest.raises(ResourceExhaustedError, match="larger") as caught:
            run(server.address, lambda client: client.tokenize("x" * (5 << 20)))
        assert caught.value.attempts == 1
        assert server.calls == []


def test_an_answer_that_cannot_be_read_is_asked_for_once(run):
    class Unreadable:
        def SerializeToString(self):  # pylint: disable=invalid-name
            return b"\xff"

    with ScriptedServer([Unreadable()]) as server:
        with pytest.raises(InternalError) as caught:
            run(server.address, lambda client: client.tokenize("x"))
        assert caught.value.attempts == len(server.calls) == 1


def test_a_server_of_something_else_is_asked_once(run):
    class Web(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(24)  # the preface of HTTP/2
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Web) as web:
        threading.Thread(target=web.serve_forever).start()
        try:
            with pytest.raises(UnavailableError, match="HTTP/1 ") as caught:
                run("127.0.0.1:%d" % web.server_address[1],
                    lambda client: client.tokenize("x"))
        finally:
            web.shutdown()
    assert caught.value.attempts == 1


def test_a_call_ends_with_its_client():
    running = threading.Event()
    ended = threading.Event()

    class Waiting:
        def SerializeToString(self):  # pylint: disable=invalid-name
            running.set()
            ended.wait(60)
            return b""

    with ScriptedServer([Waiting()]) as server:
        client = Client(server.address)
        closing = threading.Thread(
            target=lambda: running.wait(60) and client.close())
        closing.start()
        with pytest.raises(CancelledError) as caught:
            client.tokenize("x")
        ended.set()
        closing.join()
    assert caught.value.attempts == 1


CALLS = [lambda client: client.tokenize("x"),
         lambda client: client.generate("x"),
         lambda client: client.session("s").export(),
         lambda client: client.session("s").import_(b"x")]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("used", [True, False])
def test_a_closed_client_says_so(call, used):
    async def await_it(address):
        client = AsyncClient(address)
        if used:
            await client.tokenize("x")
        await client.close()
        await call(client)

    with ScriptedServer([OK], [OK]) as server:
        client = Client(server.address)
        if used:
            client.tokenize("x")
        client.close()
        with pytest.raises(ValueError, match="^the client is closed$"):
            call(client)
        with pytest.raises(ValueError, match="^the client is closed$"):
            asyncio.run(await_it(server.address))
        assert len(server.calls) == (2 if used else 0)


def test_a_stream_behind_the_block_of_its_client_says_so():
    with ScriptedServer() as server:
        with Client(server.address) as client:
            stream = client.generate("x", stream=True)
        with pytest.raises(ValueError, match="^the client is closed$"):
            next(stream)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs cancelling()")
def test_a_call_awaited_while_its_client_is_closed_is_no_cancelled_task():
    async def close_during(address, call):
        client = AsyncClient(address)
        task = asyncio.create_task(call(client))
        await asyncio.to_thread(running.wait, 60)
        await client.close()
        with pytest.raises(CancelledError, match="the client was closed"):
            await task

    async def a_turn(client):
        async for _ in await client.generate("x", stream=True):
            pass

    class Waiting:
        def SerializeToString(self):  # pylint: disable=invalid-name
            running.set()
            ended.wait(60)
            return b""

    for call in (lambda client: client.tokenize("x"), a_turn):
        running, ended = threading.Event(), threading.Event()
        with ScriptedServer([Waiting()]) as server:
            asyncio.run(close_during(server.address, call))
            ended.set()
            assert len(server.calls) == 1


@pytest.mark.parametrize("call", CALLS)
def test_a_client_of_another_event_loop_says_so(call):
    async def await_it(work):
        return await work

    with ScriptedServer([OK]) as server:
        client = AsyncClient(server.address)
        asyncio.run(await_it(client.tokenize("x")))
        with pytest.raises(RuntimeError, match="^the client belongs to"):
            asyncio.run(await_it(call(client)))
        assert len(server.calls) == 1


def test_ids_of_a_midi_file_are_a_prompt(run):
    with ScriptedServer([OK], [started(), finished()]) as server:
        ids = run(server.address, lambda client: client.tokenize(midi=b"MThd"))
        run(server.address, lambda client: client.generate(ids))
        (_, asked, _), (_, turn, _) = server.calls
    assert asked == model_service.TokenizeRequest(midi=b"MThd")
    assert turn.tokens.ids == ids == [1, 2]


@pytest.mark.parametrize("timeout", [math.inf, 1e30])
def test_an_endless_timeout_ends_no_call(run, timeout):
    with ScriptedServer([OK], [started(), finished()]) as server:
        assert run(server.address, lambda client: client.tokenize("x"),
                   timeout=timeout) == [1, 2]
        run(server.address,
            lambda client: client.generate("x", timeout=timeout))


def test_a_timeout_of_none_left_has_passed(run):
    for timeout in (0, -1, datetime.timedelta(0)):
        with ScriptedServer() as server:
            with pytest.raises(TimeoutError):
                run(server.address,
                    lambda client: client.generate("x", timeout=timeout))
            assert server.calls == []


def test_a_drained_turn_goes_on_or_ends_as_drained(run):
    with ScriptedServer([started(), token(0), finished("SERVER_DRAIN")],
                        [started(), token(1), finished()]) as server:
        turn = run(server.address, lambda client: client.generate("x"))
        assert turn.text == "ab"
        assert turn.finish_reason == FinishReason.MAX_TOKENS
        assert list(server.calls[1][1].received.token_ids) == [70]
    gone = Refusal(CODES.NOT_FOUND, "SESSION_UNKNOWN")
    with ScriptedServer([started(), token(0), finished("SERVER_DRAIN")],
                        [gone]) as server:
        turn = run(server.address, lambda client: client.generate("x"))
        assert turn.text == "a"
        assert turn.finish_reason == FinishReason.SERVER_DRAIN


def test_a_timeout_is_that_of_all_attempts(run):
    later = Refusal(CODES.RESOURCE_EXHAUSTED, "OVERLOADED", 60.0)
    with ScriptedServer([later]) as server:
        with pytest.raises(ResourceExhaustedError):
            run(server.address, lambda client: client.tokenize("x"),
                timeout=5.0)
        assert len(server.calls) == 1


def test_a_session_of_one_s_own_name_is_made_once(run):
    # Whether it was made before the connection broke nobody can tell.
    with ScriptedServer([LOST]) as server:
        with pytest.raises(UnavailableError):
            run(server.address,
                lambda client: client.session("verona").create())
        assert len(server.calls) == 1
    refused = Refusal(CODES.UNAVAILABLE, "NOT_READY")
    with ScriptedServer([refused],
                        [session(response="Create")]) as server:
        made = run(server.address,
                   lambda client: client.session("verona").create())
        assert made.position == 4


def test_what_is_not_there_was_ended_by_the_attempt_before(run):
    gone = Refusal(CODES.NOT_FOUND, "SESSION_UNKNOWN")
    with ScriptedServer([LOST], [gone]) as server:
        run(server.address, lambda client: client.session("a").delete())
        assert len(server.calls) == 2
    with ScriptedServer([gone]) as server:
        with pytest.raises(NotFoundError):
            run(server.address, lambda client: client.session("a").delete())


def test_a_key_goes_along_with_every_call(run):
    with ScriptedServer([OK]) as server:
        assert run(server.address, lambda client: client.tokenize("x"),
                   bearer="secret") == [1, 2]
        assert server.calls[0][2]["authorization"] == "Bearer secret"
        assert "x-txl-session" not in server.calls[0][2]
