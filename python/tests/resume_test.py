"""A turn whose connection is cut is the turn that was not cut."""

import asyncio
import threading
import time

import pytest
from relay import Relay
from server_process import ServerProcess

from txl_client import (AsyncClient, Client, FinishReason, NotFoundError,
                        RetryPolicy, UnavailableError)

TOKENS = 10
TURN = {"max_tokens": TOKENS, "seed": 11, "logprobs": 2}
# grpcio 1.51 may need several times its 5 s to connect again on a busy machine;
# each attempt fails until it has.
SOON = RetryPolicy(max_failures=300, first_delay=0.01, max_delay=0.1)


@pytest.fixture
def relay(server):
    made = Relay(server.address)
    yield made
    made.close()


@pytest.fixture
def uncut(client):
    return client.generate("ROMEO:", **TURN)


# Before Started, behind it, behind each token, behind Finished.
EVERY_CUT = range(TOKENS + 3)


@pytest.mark.parametrize("reset", [True, False])
def test_a_session_s_turn_survives_a_cut_behind_every_message(
        client, relay, uncut, reset):
    with Client(relay.address, retry=SOON) as cut_client:
        for messages in EVERY_CUT:
            name = f"cut-{messages}-{reset}"
            session = cut_client.session(name).create()
            cuts = relay.cuts
            relay.cut_after(messages, reset)
            turn = session.generate("ROMEO:", **TURN)
            assert relay.cuts == cuts + 1, messages
            assert turn.tokens == uncut.tokens
            assert turn.text == uncut.text
            assert turn.finished.position == session.position
            assert client.session(name).text() == "ROMEO:" + uncut.text
            client.session(name).delete()


def test_a_turn_without_a_session_survives_it_too(relay, uncut):
    with Client(relay.address, retry=SOON) as cut_client:
        for messages in EVERY_CUT:
            cuts = relay.cuts
            relay.cut_after(messages)
            turn = cut_client.generate("ROMEO:", **TURN)
            assert relay.cuts == cuts + 1, messages
            assert turn.tokens == uncut.tokens


def test_events_come_once_and_in_order(relay):
    with Client(relay.address, retry=SOON) as cut_client:
        relay.cut_after(5)
        events = list(cut_client.generate("ROMEO:", stream=True, **TURN))
        assert relay.cuts == 1
        kinds = [type(event).__name__ for event in events]
        assert kinds == ["Started"] + ["Token"] * TOKENS + ["Finished"]
        assert [e.index for e in events[1:-1]] == list(range(TOKENS))


def test_an_awaited_turn_survives_a_cut_behind_every_message(relay, uncut):
    async def run():
        async with AsyncClient(relay.address, retry=SOON) as cut_client:
            for messages in EVERY_CUT:
                session = await cut_client.session(f"a-{messages}").create()
                cuts = relay.cuts
                relay.cut_after(messages)
                turn = await session.generate("ROMEO:", **TURN)
                assert relay.cuts == cuts + 1, messages
                assert turn.tokens == uncut.tokens
                assert turn.text == uncut.text
                await session.delete()

    asyncio.run(run())


def test_what_is_appended_is_fed_once_whenever_the_answer_is_lost(relay):
    with Client(relay.address, retry=SOON) as cut_client:
        for messages in (0, 1):
            session = cut_client.session().create()
            cuts = relay.cuts
            relay.cut_after(messages)
            appended = session.append("ROMEO:", return_logprobs=True)
            assert relay.cuts == cuts + 1
            assert appended.position == len("ROMEO:")
            assert session.text() == "ROMEO:"


def test_a_session_is_made_and_ended_once_whenever_the_answer_is_lost(
        client, relay):
    with Client(relay.address, retry=SOON) as cut_client:
        for messages in (0, 1):
            relay.cut_after(messages)
            session = cut_client.session().create()
            assert client.session(session.id).get().position == 0
            relay.cut_after(messages)
            session.delete()
            with pytest.raises(NotFoundError):
                client.session(session.id).get()
            # Where nothing was lost, what is not there cannot be ended.
            with pytest.raises(NotFoundError):
                session.delete()


def test_a_turn_without_a_policy_ends_with_the_connection(relay, uncut):
    once = RetryPolicy(max_failures=1)
    with Client(relay.address, retry=once) as cut_client:
        relay.cut_after(4, reset=False)
        with pytest.raises(UnavailableError) as caught:
            cut_client.generate("ROMEO:", **TURN)
        assert caught.value.reason == ""
        # Started and three tokens were sent; gRPC may drop what was not read.
        partial = caught.value.partial
        assert partial.tokens == uncut.tokens[:len(partial.tokens)]
        assert len(partial.tokens) <= 3
        assert partial.finished is None


@pytest.mark.parametrize("stored", [True, False])
def test_a_turn_that_a_draining_server_ended_goes_on_at_the_next_one(
        tmp_path, stored):
    arguments = ["--drain-timeout", "100ms"]
    if stored:
        arguments += ["--data-dir", str(tmp_path / "data")]
    server = ServerProcess(*arguments)
    options = {"max_tokens": 4000, "seed": 5}
    try:
        with Client(server.address, retry=RetryPolicy(
                max_failures=20)) as client:
            whole = client.generate("ROMEO:", **options)
            maker = client.session("d").create() if stored else client
            stream = maker.generate("ROMEO:", stream=True, **options)
            for _ in range(6):
                next(stream)
            # A reader that stands still holds the turn long before its end.
            server.terminate()
            server.end()
            restart = threading.Timer(0.3, server.start)
            restart.start()
            turn = stream.result()
            restart.join()
        assert turn.tokens == whole.tokens
        assert turn.text == whole.text
        assert turn.finish_reason == FinishReason.MAX_TOKENS
    finally:
        server.close()


def test_where_no_server_comes_back_the_drain_is_the_turn_s_end():
    server = ServerProcess("--drain-timeout", "100ms")
    try:
        policy = RetryPolicy(max_failures=3, first_delay=0.05)
        with Client(server.address, retry=policy) as client:
            stream = client.generate("ROMEO:", stream=True, max_tokens=4000)
            for _ in range(6):
                next(stream)
            server.terminate()
            server.end()
            turn = stream.result()
        assert turn.finish_reason == FinishReason.SERVER_DRAIN
        assert 5 <= len(turn.tokens) < 4000
        assert [t.index for t in turn.tokens] == list(range(len(turn.tokens)))
    finally:
        server.close()


def test_a_killed_server_s_turn_goes_on_behind_what_was_received(tmp_path):
    server = ServerProcess("--data-dir", str(tmp_path / "data"))
    try:
        with Client(server.address, retry=RetryPolicy(
                max_failures=20)) as client:
            options = {"max_tokens": 4000, "seed": 5}
            whole = client.generate("ROMEO:", **options)
            session = client.session("k").create()
            stream = session.generate("ROMEO:", stream=True, **options)
            for _ in range(41):
                next(stream)
            server.kill()
            server.start()
            assert stream.result().tokens == whole.tokens
            assert session.text() == "ROMEO:" + whole.text
    finally:
        server.close()


def test_closing_a_stream_ends_the_turn_and_keeps_its_tokens(client):
    session = client.session().create()
    with session.generate("ROMEO:", stream=True, max_tokens=4000) as stream:
        for _ in range(4):
            next(stream)
    received = stream.generation
    assert received.finished is None
    deadline = time.monotonic() + 10
    while session.get().state != "IDLE" and time.monotonic() < deadline:
        time.sleep(0.01)
    text = session.text()
    assert text.startswith("ROMEO:" + received.text)
    assert len(text) < 4000
    # The handle knows where it is, and goes on from there.
    assert session.generate(max_tokens=1).started.position == len(text)
