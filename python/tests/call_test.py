import datetime
import io

import pytest

from txl_client import call, events
from txl_client._proto import generation_service_pb2 as generation
from txl_client._proto import model_service_pb2 as model_service
from txl_client._proto import session_service_pb2 as session_service
from txl_client._proto import token_pb2
from txl_client.channel import Stubs
from txl_client.transfer import CHUNK_BYTES, Upload

CALLS = {
    "Model.Tokenize": call.tokenize("a"),
    "Model.Detokenize": call.detokenize([1]),
    "Model.GetModel": call.model(),
    "Model.GetServerStatus": call.status(),
    "Generation.Score": call.score("a", 2, "verona"),
    "Generation.ScoreAlternatives": call.score_alternatives(
        ["a"], session_id="verona"),
    "Session.CreateSession": call.create("verona", None, False),
    "Session.GetSession": call.get("verona"),
    "Session.ListSessions": call.list_page("p"),
    "Session.DeleteSession": call.delete("verona"),
    "Session.AppendTokens": call.append("verona", "a", True, 3),
    "Session.ForkSession": call.fork("verona", "padua", 0, 60),
    "Session.RewindSession": call.rewind("verona", 0),
}


class Channel:
    """Has every method, and knows its path."""

    def unary_unary(self, path, *_, **__):
        return path

    unary_stream = stream_unary = unary_unary


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_a_method_of_the_api_with_its_request(name):
    service, _, method = name.partition(".")
    assert CALLS[name].method == name
    assert Stubs(Channel()).method(name) == f"/txl.v1.{service}Service/{method}"
    assert CALLS[name].request.DESCRIPTOR.name == f"{method}Request"


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_names_a_session_says_so_to_proxies(name):
    named = getattr(CALLS[name].request, "session_id", "")
    assert CALLS[name].session_id == named


@pytest.mark.parametrize("make", [
    lambda: call.append("s", "a", False, None), lambda: call.rewind("s", 1),
    lambda: call.fork("s", "", None, None)])
def test_what_changes_a_session_has_a_name_of_its_own(make):
    one, other = make().request.request_id, make().request.request_id
    assert one and other and one != other


def test_a_position_of_zero_is_one_and_none_is_absent():
    fork = CALLS["Session.ForkSession"].request
    assert fork.HasField("position") and fork.position == 0
    assert not call.fork("s", "", None, None).request.HasField("position")
    append = call.append("s", "a", False, 0).request
    assert append.HasField("expected_position")


@pytest.mark.parametrize("ttl", [90, 90.0, datetime.timedelta(minutes=1.5)])
def test_a_ttl_is_seconds_or_a_timedelta(ttl):
    assert call.create("s", ttl, False).request.ttl.ToSeconds() == 90


def test_bytes_of_a_file_may_be_of_any_type():
    for data in (b"ab", bytearray(b"ab"), memoryview(b"ab"), io.BytesIO(b"ab")):
        _, chunk = Upload("verona", None, data).requests()
        assert chunk.chunk == b"ab"


def test_inputs_are_texts_or_ids_in_every_place():
    request = call.score_alternatives(["a", [1, 2]], context=[3]).request
    assert request == generation.ScoreAlternativesRequest(
        tokens=token_pb2.TokenIds(ids=[3]), alternatives=[
            generation.Alternative(text="a"),
            generation.Alternative(tokens=token_pb2.TokenIds(ids=[1, 2]))])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_midi_file_is_sent_as_it_is(kind):
    sent = call.tokenize_midi(kind(b"MThd\x00\xff")).request
    assert sent == model_service.TokenizeRequest(midi=b"MThd\x00\xff")
    # Bytes that are none are no text.
    assert call.tokenize_midi(kind(b"")).request.HasField("midi")


def test_what_a_midi_file_lost_is_beside_its_ids():
    music = call.tokenize_midi(b"MThd").read(model_service.TokenizeResponse(
        token_ids=[3, 1], left_out=[
            model_service.LeftOut(what="pedal", count=12)]))
    assert music == [3, 1]
    assert music.left_out == {"pedal": 12}


def test_scores_are_read_in_their_order():
    response = generation.ScoreAlternativesResponse(scores=[
        generation.AlternativeScore(sum_logprob=-1.5, token_count=2),
        generation.AlternativeScore(sum_logprob=-0.5, token_count=1, tokens=[
            token_pb2.ScoredToken(token_id=4, logprob=-0.5, text="x")])])
    first, second = CALLS["Generation.ScoreAlternatives"].read(response)
    assert (first.sum_logprob, first.token_count) == (-1.5, 2)
    assert [(t.id, t.logprob, t.text) for t in second.tokens] == [
        (4, -0.5, "x")]


def test_scores_and_appends_say_what_they_took():
    usage = generation.Usage(prompt_tokens=9, cached_tokens=7,
                             rebuilt_tokens=2)
    for method, response in (
            ("Generation.Score", generation.ScoreResponse(usage=usage)),
            ("Session.AppendTokens",
             session_service.AppendTokensResponse(usage=usage))):
        assert CALLS[method].read(response).usage == events.Usage(
            prompt_tokens=9, generated_tokens=0, cached_tokens=7,
            rebuilt_tokens=2)


def test_a_file_goes_in_pieces_behind_a_message_that_names_the_session():
    data = bytes(CHUNK_BYTES) + b"rest"
    first, *rest = Upload("verona", 60, data).requests()
    expected = session_service.ImportSessionRequest(session_id="verona")
    expected.ttl.FromSeconds(60)
    assert first == expected
    assert [len(each.chunk) for each in rest] == [CHUNK_BYTES, 4]
    assert b"".join(each.chunk for each in rest) == data
    assert all(each.session_id == "" for each in rest)


def test_a_score_names_ids():
    request = call.score("a", logprob_token_ids=range(2)).request
    assert list(request.logprob_token_ids) == [0, 1]
    (each,) = call.score_each(["a"], 1, "", (7,))
    assert list(each.request.logprob_token_ids) == [7]
    with pytest.raises(TypeError, match=r"logprob_token_ids\[0\]"):
        call.score("a", logprob_token_ids=[1.5])
