import dataclasses
import datetime

import pytest

from txl_client import convert, events, infos
from txl_client._proto import (generation_service_pb2, model_service_pb2,
                               sampling_pb2, session_service_pb2, token_pb2)

PAIRS = [
    (events.Started, generation_service_pb2.Started),
    (events.Token, generation_service_pb2.Token),
    (events.Finished, generation_service_pb2.Finished),
    (events.Usage, generation_service_pb2.Usage),
    (events.Timing, generation_service_pb2.Timing),
    (events.SamplingParams, sampling_pb2.SamplingParams),
    (events.StopConditions, sampling_pb2.StopConditions),
    (events.TokenLogprob, token_pb2.TokenLogprob),
    (infos.SessionInfo, session_service_pb2.Session),
    (infos.LastTurn, session_service_pb2.LastTurn),
    (infos.ModelInfo, model_service_pb2.GetModelResponse),
    (infos.Limits, model_service_pb2.Limits),
    (infos.ServerStatus, model_service_pb2.GetServerStatusResponse),
    (infos.StoreStatus, model_service_pb2.StoreStatus),
    (infos.SelfTest, model_service_pb2.SelfTest),
    (infos.MemoryDivision, model_service_pb2.MemoryDivision),
    (infos.SoftmaxTail, model_service_pb2.SoftmaxTail),
]


@pytest.mark.parametrize("cls, message", PAIRS)
def test_a_dataclass_has_the_fields_of_its_message(cls, message):
    ours = [convert.proto_name(field) for field in dataclasses.fields(cls)
            if field.name != "id" or "proto" in field.metadata]
    theirs = [field.name for field in message.DESCRIPTOR.fields]
    if cls is events.Token:  # read by hand, and named so for its users
        theirs.remove("token_id")
    assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("cls, enum, prefix", [
    (events.FinishReason, generation_service_pb2.FinishReason,
     "FINISH_REASON_"),
    (infos.SessionState, session_service_pb2.SessionState, "SESSION_STATE_"),
    (infos.ServerState, model_service_pb2.ServerState, "SERVER_STATE_")])
def test_an_enum_has_the_values_of_its_like(cls, enum, prefix):
    assert [prefix + value.value for value in cls] == list(enum.keys())


def test_values_are_read_by_their_kinds():
    message = session_service_pb2.Session(session_id="verona", position=7,
                                          state="SESSION_STATE_BUSY")
    message.create_time.FromJsonString("2026-03-01T12:00:00.5Z")
    message.ttl.FromSeconds(3600)
    info = convert.from_message(infos.SessionInfo, message)
    assert info.id == "verona"
    assert info.state is infos.SessionState.BUSY
    assert info.position == 7
    assert info.create_time == datetime.datetime(
        2026, 3, 1, 12, 0, 0, 500_000, tzinfo=datetime.timezone.utc)
    assert info.ttl == datetime.timedelta(hours=1)
    assert info.last_turn is None
    message.last_turn.outcome = "MAX_TOKENS"
    info = convert.from_message(infos.SessionInfo, message)
    assert info.last_turn.outcome == "MAX_TOKENS"


def test_lists_and_maps_are_read_deep():
    message = model_service_pb2.GetServerStatusResponse(
        turns_finished={"OK": 3}, softmax_tails=[
            model_service_pb2.SoftmaxTail(computed=1, skipped=2)])
    status = convert.from_message(infos.ServerStatus, message)
    assert status.turns_finished == {"OK": 3}
    assert status.softmax_tails == (infos.SoftmaxTail(1, 2),)
    assert status.memory is None and status.store is None


def test_a_value_of_a_newer_server_is_unspecified():
    message = generation_service_pb2.Finished()
    message.MergeFromString(b"\x08\x63")  # reason: 99
    assert (convert.from_message(events.Finished, message).reason
            is events.FinishReason.UNSPECIFIED)


def test_a_first_token_without_context_has_no_logprob():
    message = token_pb2.ScoredToken(token_id=4, text="a")
    assert convert.scored_token(message).logprob is None
    message.logprob = 0.0
    assert convert.scored_token(message).logprob == 0.0


def test_the_server_s_model_and_status_are_read_whole(client):
    model = client.model()
    assert model.vocabulary_kind == "characters"
    assert model.api_version == "txl.v1"
    assert len(model.fingerprint) == 64
    assert model.limits.max_alternatives > 1
    assert model.default_sampling.temperature == 0.8
    assert model.start_tokens == (0,)
    status = client.status()
    assert status.state is infos.ServerState.READY
    assert status.turns_started == (sum(status.turns_finished.values())
                                    + status.turns_active)
    assert status.store is None


def test_a_token_is_read_whole():
    message = generation_service_pb2.Token(
        index=3, token_id=7, text="a", logprob=-0.5, token_bytes=b"a",
        held_back=2)
    assert convert.token(message) == events.Token(3, 7, "a", -0.5, (), b"a", 2)
