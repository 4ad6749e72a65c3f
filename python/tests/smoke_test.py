"""What every supported version of protobuf and grpcio must do."""

import asyncio

import pytest

from txl_client import (AsyncClient, Finished, FinishReason,
                        InvalidArgumentError, Started, Token)


def test_a_turn_comes_as_a_whole(client):
    turn = client.generate("ROMEO:", max_tokens=20, seed=7)
    assert len(turn.tokens) == 20
    assert turn.text == client.detokenize(turn.token_ids)
    assert turn.finish_reason == FinishReason.MAX_TOKENS
    assert turn.seed == 7
    assert str(turn) == turn.text


def test_the_same_call_streams_the_same_turn(client):
    whole = client.generate("ROMEO:", max_tokens=20, seed=7, logprobs=2)
    events = list(client.generate("ROMEO:", max_tokens=20, seed=7,
                                  logprobs=2, stream=True))
    assert [type(event) for event in events] == (
        [Started] + [Token] * 20 + [Finished])
    assert tuple(events[1:-1]) == whole.tokens
    assert "".join(event.text for event in events) == whole.text
    assert [event.index for event in events[1:-1]] == list(range(20))


def test_a_prompt_may_be_ids(client):
    ids = client.tokenize("ROMEO:")
    assert client.detokenize(ids) == "ROMEO:"
    of_text = client.generate("ROMEO:", max_tokens=5, seed=1)
    of_ids = client.generate(ids, max_tokens=5, seed=1)
    assert of_ids.token_ids == of_text.token_ids


def test_a_session_is_the_sum_of_its_turns(client):
    session = client.session().create(ttl=60)
    first = session.generate("ROMEO:", max_tokens=5)
    second = session.generate("\nJULIET:", max_tokens=5)
    assert session.text() == (
        "ROMEO:" + first.text + "\nJULIET:" + second.text)
    session.delete()


def test_errors_name_what_is_wrong(client):
    with pytest.raises(InvalidArgumentError) as caught:
        client.generate("ROMEO:", temperature=-1.0)
    assert caught.value.reason == "FIELD_INVALID"
    assert caught.value.field == "sampling.temperature"


def test_awaited_calls_give_the_same(client, server):
    async def run():
        async with AsyncClient(server.address) as twin:
            whole = await twin.generate("ROMEO:", max_tokens=9, seed=3)
            stream = await twin.generate("ROMEO:", max_tokens=9, seed=3,
                                         stream=True)
            text = "".join([event.text async for event in stream])
            scores = await twin.score(["To be", "or not"])
            return whole, text, scores

    whole, text, scores = asyncio.run(run())
    assert whole.tokens == client.generate("ROMEO:", max_tokens=9,
                                           seed=3).tokens
    assert text == whole.text
    assert scores == client.score(["To be", "or not"])
