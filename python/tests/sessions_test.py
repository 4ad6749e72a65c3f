import asyncio
import io

import pytest

from txl_client import (AbortedError, AsyncClient, Client,
                        InvalidArgumentError, NotFoundError, SessionState)


@pytest.fixture
def session(client):
    made = client.session().create()
    yield made
    try:
        client.session(made.id).delete()
    except NotFoundError:
        pass


def test_a_session_without_a_name_is_given_one_that_nobody_guesses(
        client, session):
    assert len(session.id) == 32
    assert client.session().create().id != session.id
    info = session.get()
    assert (info.id, info.position, info.state) == (
        session.id, 0, SessionState.IDLE)
    assert info.last_turn is None


def test_a_ttl_is_seconds(client):
    with_ttl = client.session().create(ttl=90)
    info = with_ttl.get()
    assert info.ttl.total_seconds() == 90
    assert (info.expire_time - info.last_use_time).total_seconds() == (
        pytest.approx(90, abs=1))
    with_ttl.delete()


def test_all_sessions_are_listed_by_id(client):
    names = [f"list-{n:03}" for n in range(130)]
    for name in names:
        client.session(name).create()
    listed = [info.id for info in client.sessions()]
    assert listed == sorted(listed)
    assert set(names) <= set(listed)
    for name in names:
        client.session(name).delete()


def test_what_is_appended_is_scored_as_score_does(client, session):
    appended = session.append("To be, ", return_logprobs=True)
    score, = client.score(["To be, "])
    assert appended.scored == score.tokens
    assert appended.sum_logprob == score.sum_logprob
    assert score.position == 0
    more = session.append(client.tokenize("or not"))
    assert more.position == session.position == len("To be, or not")
    assert session.token_ids() == client.tokenize("To be, or not")


def test_a_session_is_the_context_of_scores_and_stays(client, session):
    session.append("To be, or ")
    behind, = session.score(["not"])
    alternatives = session.score_alternatives(["not", "nut"])
    assert all(token.logprob is not None for token in behind.tokens)
    assert behind.position == len("To be, or ")
    assert alternatives[0].sum_logprob == behind.sum_logprob
    assert session.get().position == len("To be, or ")


def test_a_fork_goes_on_by_itself(client, session):
    session.append("ROMEO:\n")
    copy = session.fork("forked", position=5)
    assert (copy.id, copy.position) == ("forked", 5)
    assert copy.text() == "ROMEO"
    copy.append("!")
    assert session.text() == "ROMEO:\n"
    copy.delete()


def test_a_rewound_session_has_never_been_further(client, session):
    first = session.generate("ROMEO:", max_tokens=8, seed=4)
    info = session.rewind(0)
    assert info.position == session.position == 0
    assert session.generate("ROMEO:", max_tokens=8,
                            seed=4).tokens == first.tokens


def test_a_session_moves_as_a_file(client, session):
    session.append("ROMEO:")
    data = session.export()
    file = io.BytesIO()
    assert session.export(file) == b""
    # The time of the export aside both are the same session.
    assert len(file.getvalue()) == len(data)
    moved = client.session("moved").import_(data, ttl=60)
    assert moved.position == 6
    again = client.session().import_(io.BytesIO(file.getvalue()))
    assert again.id not in ("", session.id)
    options = {"max_tokens": 8, "seed": 4}
    tokens = session.generate(**options).tokens
    assert moved.generate(**options).tokens == tokens
    assert again.generate(**options).tokens == tokens
    moved.delete()
    again.delete()


def test_a_file_that_is_none_is_refused(client):
    with pytest.raises(InvalidArgumentError) as caught:
        client.session().import_(b"no session")
    assert caught.value.field == "chunk"
    with pytest.raises(NotFoundError):
        client.session("nowhere").export()


def test_a_handle_notices_that_another_one_has_written(client, session):
    session.append("ROMEO:")
    other = client.session(session.id)
    other.append("JULIET:")
    with pytest.raises(AbortedError) as caught:
        session.generate(max_tokens=1)
    assert caught.value.reason == "POSITION_MISMATCH"
    assert caught.value.metadata["position"] == "13"
    # Once it is told, it goes on behind what is there.
    assert session.generate(max_tokens=1).started.position == 13


def test_a_handle_follows_its_own_turns(session):
    for _ in range(3):
        turn = session.generate("ROMEO:" if not session.position else None,
                                max_tokens=2)
        assert session.position == turn.finished.position
    assert session.position == 6 + 3 * 2


class Broken(io.RawIOBase):
    """A file that breaks behind its first piece."""

    def __init__(self, error):
        self.pieces = [b"TXLS", error]

    def read(self, size=-1):
        piece = self.pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        return piece


class Texts:
    """A file of texts that does not say so."""

    def read(self, size):
        return "TXLS"


@pytest.mark.parametrize("file, error", [
    (lambda: Broken(OSError("the disk is gone")), OSError),
    (Texts, TypeError)])
def test_a_file_that_cannot_be_read_is_the_error(client, server, file, error):
    with pytest.raises(error):
        client.session("broken").import_(file())

    async def run():
        async with AsyncClient(server.address) as twin:
            await twin.session("broken").import_(file())

    with pytest.raises(error):
        asyncio.run(run())
    with pytest.raises(NotFoundError):
        client.session("broken").get()


def test_a_session_that_was_not_made_has_no_name(client):
    handle = client.session()
    with pytest.raises(TypeError, match="^ttl: "):
        handle.create(ttl="1h")
    assert handle.id == ""
    handle.create(ttl=60).delete()


def test_a_turn_that_is_refused_leaves_its_handle_where_it_is(session):
    session.append("ROMEO:")
    for work in (lambda: session.generate(b"x"), lambda: session.append(b"x"),
                 lambda: session.generate("x", max_tokens="5")):
        with pytest.raises(TypeError):
            work()
        assert session.position == 6


def test_a_turn_waits_for_the_one_before_it(server, client, session):
    stream = session.generate("ROMEO:", stream=True, max_tokens=500)
    next(stream)
    next(stream)  # with its first token the session holds the prompt
    with Client(server.address) as other:
        waiting = other.session(session.id)
        waiting.position = None
        # The first turn's reader stands still; what frees the session is its
        # end, not patience.
        stream.close()
        assert waiting.generate(max_tokens=1).started.position > 6


def test_an_awaited_session_does_all_of_it(server):
    async def run():
        async with AsyncClient(server.address) as client:
            session = await client.session("awaited").create(ttl=60)
            first = await session.generate("ROMEO:", max_tokens=4, seed=1)
            appended = await session.append("\n", return_logprobs=True)
            assert appended.position == session.position == 11
            assert await session.text() == "ROMEO:" + first.text + "\n"
            assert len(await session.token_ids()) == 11
            assert (await session.get()).position == 11
            fork = await session.fork("awaited-2", position=6)
            again = await fork.generate(max_tokens=4, seed=2, stream=True)
            assert len((await again.result()).tokens) == 4
            await session.rewind(6)
            score, = await session.score(["x"])
            alternative, = await session.score_alternatives(["x"])
            assert alternative.sum_logprob == score.sum_logprob
            moved = await client.session("awaited-3").import_(
                await session.export())
            assert moved.position == 6
            names = [info.id async for info in client.sessions()]
            assert {"awaited", "awaited-2", "awaited-3"} <= set(names)
            for each in (session, fork, moved):
                await each.delete()
            with pytest.raises(NotFoundError):
                await session.export()
            with pytest.raises(InvalidArgumentError):
                await client.session().import_(b"no session")

    asyncio.run(run())


def test_an_awaited_stream_is_closed_by_its_block(server):
    async def run():
        async with AsyncClient(server.address) as client:
            session = await client.session().create()
            async with await session.generate(
                    "ROMEO:", stream=True, max_tokens=4000) as stream:
                async for event in stream:
                    if event.text:
                        break
            assert stream.generation.finished is None
            turn = await session.generate(max_tokens=1)
            assert 6 < turn.started.position < 4006
            await session.delete()

    asyncio.run(run())
