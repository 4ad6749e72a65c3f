"""Mistakes of a caller: an error that names the argument, before any call.

Each is made on both clients, with a server that would remember a call.
"""

import asyncio
import io
import math
import pathlib

import numpy
import pandas
import pytest
from scripted_server import ScriptedServer

from txl_client import AsyncClient, Client

HALF = "\ud800"


def run_waiting(address, work):
    with Client(address) as client:
        return work(client)


def run_awaited(address, work):
    async def run():
        async with AsyncClient(address) as client:
            return await work(client)

    return asyncio.run(run())


@pytest.fixture(params=[run_waiting, run_awaited])
def fails(request):
    """fails(work, error): the message, where nothing was sent."""
    def check(work, error):
        with ScriptedServer() as server:
            with pytest.raises(error) as caught:
                request.param(server.address, work)
            assert server.calls == []
        assert type(caught.value) is error
        return str(caught.value)

    return check


PROMPTS = [
    ([23.7], TypeError, "[0]"), ([5, 23.0], TypeError, "[1]"),
    ([True], TypeError, "[0]"), (["1"], TypeError, "[0]"),
    ([None], TypeError, "[0]"), ([[1]], TypeError, "[0]"),
    ([-1], ValueError, "[0]"), ([2**32], ValueError, "[0]"),
    (numpy.array([1.0]), TypeError, "[0]"),
    (pandas.Series([1, None]), TypeError, "[0]"),
    ({1, 2}, TypeError, ""), ({1: 2}, TypeError, ""), (5, TypeError, ""),
    (math.nan, TypeError, ""), (b"ROMEO", TypeError, ""),
    (bytearray(b"ROMEO"), TypeError, ""), (HALF, ValueError, "")]


@pytest.mark.parametrize("value, error, place", PROMPTS)
def test_what_is_neither_text_nor_ids_is_named_in_every_place(
        fails, value, error, place):
    for work, name in (
            (lambda c: c.generate(value), "prompt"),
            (lambda c: c.session("verona").generate(
                value, expected_position=0), "prompt"),
            (lambda c: c.score([value]), "texts[0]"),
            (lambda c: c.session("verona").score([value]), "texts[0]"),
            (lambda c: c.score_alternatives([value]), "alternatives[0]"),
            (lambda c: c.score_alternatives(["a"], context=value), "context")):
        assert fails(work, error).startswith(f"{name}{place}: ")


def test_a_session_is_fed_with_text_or_ids(fails):
    async def fed(session):
        session.position = 0
        return await session.append(None)

    def work(client):
        session = client.session("verona")
        if isinstance(client, AsyncClient):
            return fed(session)
        session.position = 0
        return session.append(None)

    assert fails(work, TypeError).startswith("value: ")


@pytest.mark.parametrize("texts", [
    "To be", b"To be", {"a": "b"}, {"a", "b"}, None, 5,
    pandas.DataFrame({"text": ["a"]})], ids=lambda value: str(type(value)))
def test_one_text_is_no_list_of_texts(fails, texts):
    assert fails(lambda c: c.score(texts), TypeError).startswith("texts: ")
    assert fails(lambda c: c.score_alternatives(texts),
                 TypeError).startswith("alternatives: ")


def test_texts_that_come_by_awaiting_are_collected_by_the_caller(fails):
    async def texts():
        yield "To be"

    assert fails(lambda c: c.score(texts()), TypeError).startswith("texts: ")


def test_a_missing_text_of_a_list_is_named(fails):
    for missing in (None, math.nan, pandas.NA):
        assert fails(lambda c: c.score([missing]),
                     TypeError).startswith("texts[0]: ")


@pytest.mark.parametrize("ids", ["12", b"12", 5, None, {1: 2}, {1}])
def test_what_is_no_list_of_ids_has_no_text(fails, ids):
    assert fails(lambda c: c.detokenize(ids), TypeError).startswith("ids: ")
    assert fails(lambda c: c.detokenize([1.0]), TypeError).startswith("ids[0]")


def test_a_text_that_is_none_has_no_ids(fails):
    for text in (b"a", None, 5, ["a"]):
        assert fails(lambda c: c.tokenize(text),
                     TypeError).startswith("text: ")
    assert fails(lambda c: c.tokenize(HALF), ValueError).startswith("text: ")


@pytest.mark.parametrize("midi", ["song.mid", pathlib.Path("song.mid"), 5,
                                  [77, 84], io.BytesIO(b"MThd")],
                         ids=lambda value: str(type(value)))
def test_a_midi_file_is_given_as_its_bytes(fails, midi):
    assert fails(lambda c: c.tokenize(midi=midi),
                 TypeError).startswith("midi: ")


def test_a_midi_file_and_a_text_are_not_given_together(fails):
    assert fails(lambda c: c.tokenize("a", midi=b"MThd"),
                 TypeError).startswith("midi: ")


OPTIONS = [
    (TypeError, {"max_tokens": [True, 2.0, 2.5, "5"], "top_k": [1.0],
                 "min_tokens": [1.0], "penalty_window": [True],
                 "seed": [1.5, True, "7"], "logprobs": [True, 1.0],
                 "temperature": [True, "1"], "top_p": ["x"],
                 "ignore_end_token": [1, 0, "no", "false"],
                 "include_stop_text": ["yes"], "include_token_bytes": [1.5],
                 "expected_position": ["0", 0.0, True],
                 "logit_bias": [[(3, 1.0)], 5, "a", {"3": 1.0}, {3.0: 1.0},
                                {True: 1.0}, {None: 1.0}, {3: "1"}, {3: None}],
                 "stop_texts": ["a", b"a", {"a": 1}, [b"a"], [None], 5],
                 "stop_token_ids": [5, "5", [5.0], [True], ["5"], {5: 1}],
                 "allowed_token_ids": [5, [5.0], {5: 1}],
                 "follow_kinds": [1, "yes"],
                 "logprob_token_ids": [5, [5.0], {5}],
                 "token_count": [5, (5, 1), {"id": 5}, {},
                                 {"id": 5, "count": 1, "more": 1}],
                 "request_id": [5, b"x"], "timeout": ["5", True, [5]],
                 "stream": ["no", 1, None]}),
    (ValueError, {"max_tokens": [2**31], "seed": [2**64, -1],
                  "logprobs": [-1, 2**32], "temperature": [10**400],
                  "expected_position": [2**63],
                  "logit_bias": [{-1: 1.0}, {2**32: 1.0}, {3: 10**400}],
                  "stop_texts": [[HALF]], "stop_token_ids": [[-1]],
                  "allowed_token_ids": [[2**32]], "logprob_token_ids": [[-1]],
                  "token_count": [{"id": -1, "count": 1}],
                  "request_id": ["", "a b", "x" * 65, HALF],
                  "timeout": [math.nan]})]


@pytest.mark.parametrize("error, name, value", [
    (error, name, value) for error, options in OPTIONS
    for name, values in options.items() for value in values])
def test_an_option_of_another_kind_is_named(fails, error, name, value):
    assert name in fails(lambda c: c.generate("a", **{name: value}), error)


def test_an_option_that_there_is_not_is_named(fails):
    assert "'max_token'" in fails(lambda c: c.generate("a", max_token=3),
                                  TypeError)


NAMES = [(5, TypeError), (None, TypeError), (b"x", TypeError),
         (True, TypeError), ("", ValueError), ("a b", ValueError),
         ("a\n", ValueError), ("caf\xe9", ValueError), ("x" * 65, ValueError),
         (HALF, ValueError)]


@pytest.mark.parametrize("value, error", NAMES)
def test_what_is_no_session_s_name_is_refused_everywhere(fails, value, error):
    assert fails(lambda c: c.session(value), error).startswith("session_id: ")
    for work in (lambda c: c.score(["a"], session_id=value),
                 lambda c: c.score_alternatives(["a"], session_id=value)):
        assert fails(work, error).startswith("session_id: ")
    assert fails(lambda c: c.session("verona").fork(value),
                 error).startswith("new_session_id: ")


@pytest.mark.parametrize("work", [
    lambda s: s.get(), lambda s: s.token_ids(), lambda s: s.text(),
    lambda s: s.delete(), lambda s: s.generate("a"),
    lambda s: s.generate("a", expected_position=0), lambda s: s.append("a"),
    lambda s: s.fork(), lambda s: s.rewind(0), lambda s: s.score(["a"]),
    lambda s: s.score_alternatives(["a"]), lambda s: s.export()])
def test_a_session_without_a_name_is_made_first(fails, work):
    assert "create()" in fails(lambda c: work(c.session()), ValueError)


@pytest.mark.parametrize("position", [None, 2.0, True, "2", [2]])
def test_a_position_is_an_integer_that_is_given(fails, position):
    assert fails(lambda c: c.session("verona").rewind(position),
                 TypeError).startswith("position: ")
    if position is not None:
        assert fails(lambda c: c.session("verona").fork(position=position),
                     TypeError).startswith("position: ")


@pytest.mark.parametrize("ttl, error", [
    ("60", TypeError), ("1h", TypeError), (True, TypeError),
    (math.nan, ValueError), (math.inf, ValueError), (1e30, ValueError),
    (10**400, ValueError)])
def test_a_ttl_is_a_time(fails, ttl, error):
    for work in (lambda c: c.session().create(ttl=ttl),
                 lambda c: c.session("verona").fork(ttl=ttl),
                 lambda c: c.session().import_(b"x", ttl=ttl)):
        assert fails(work, error).startswith("ttl: ")


@pytest.mark.parametrize("source", [
    "verona.txls", None, 5, [b"x"], io.StringIO("x"), numpy.zeros(3)],
    ids=lambda value: str(type(value)))
def test_a_file_is_open_and_holds_bytes(fails, source):
    assert fails(lambda c: c.session().import_(source),
                 TypeError).startswith("source: ")


@pytest.mark.parametrize("file", ["verona.txls", 5, [], io.StringIO()],
                         ids=lambda value: str(type(value)))
def test_a_file_is_open_for_bytes(fails, file):
    assert fails(lambda c: c.session("verona").export(file),
                 TypeError).startswith("file: ")


@pytest.mark.parametrize("work, name", [
    (lambda c: c.score(["a"], logprobs=1.0), "logprobs"),
    (lambda c: c.score_alternatives(["a"], return_tokens=1), "return_tokens"),
    (lambda c: c.session("a").export(include_state="no"), "include_state")])
def test_other_arguments_have_their_kinds_too(fails, work, name):
    assert fails(work, TypeError).startswith(f"{name}: ")
