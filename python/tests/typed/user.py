"""What a type checker knows of the package; mypy reads it, nobody runs it."""

from __future__ import annotations

import datetime

from typing_extensions import assert_type

from txl_client import (AlternativeScore, AsyncClient, AsyncSession,
                        AsyncTurnStream, Client, Event, Generation, MidiTokens,
                        ModelInfo, Score, ServerStatus, Session, SessionInfo, TurnStream)


def waiting(client: Client) -> None:
    assert_type(client.generate("a", max_tokens=3), Generation)
    assert_type(client.generate([1, 2], stream=True), TurnStream)
    for event in client.generate(stream=True):
        assert_type(event, Event)
        assert_type(event.text, str)
    assert_type(client.score(["a"]), list[Score])
    assert_type(client.score_alternatives(["a"]), list[AlternativeScore])
    assert_type(client.tokenize("a"), list[int])
    music = client.tokenize(midi=b"MThd")
    assert_type(music, MidiTokens)
    assert_type(music.left_out, dict[str, int])
    client.generate(music)
    client.generate("a", timeout=datetime.timedelta(minutes=1))
    client.score(["a"], session_id="verona")
    Client(timeout=None)
    assert_type(client.model(), ModelInfo)
    assert_type(client.status(), ServerStatus)
    session = client.session("verona").create(ttl=60)
    assert_type(session, Session)
    assert_type(session.generate("a"), Generation)
    assert_type(session.generate(stream=True), TurnStream)
    assert_type(session.fork(), Session)
    assert_type(session.export(), bytes)
    assert_type([info for info in client.sessions()], list[SessionInfo])
    assert_type(session.get().ttl, datetime.timedelta)


async def awaited(client: AsyncClient) -> None:
    assert_type(await client.generate("a", max_tokens=3), Generation)
    stream = await client.generate("a", stream=True)
    assert_type(stream, AsyncTurnStream)
    async for event in stream:
        assert_type(event, Event)
    assert_type(await client.score(["a"]), list[Score])
    session = await client.session("verona").create()
    assert_type(session, AsyncSession)
    assert_type(await session.generate("a"), Generation)


def wrong(client: Client) -> None:
    # Each would be an error that mypy does not expect if it were none.
    client.generate("a", max_tokenz=3)  # type: ignore[call-overload]
    client.generate("a", top_k="x")  # type: ignore[call-overload]
    client.tokenize("a", midi=b"a")  # type: ignore[call-overload]
    client.score("a", 3)  # type: ignore[call-arg]
    client.session("a").rewind()  # type: ignore[call-arg]
    client.session(None)  # type: ignore[arg-type]
    Client("h:1", tsl=True)  # type: ignore[call-arg]
