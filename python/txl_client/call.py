"""Calls with one answer, as values: the request, and how to read the answer.

Both clients send the same calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from txl_client import checks, convert, events, infos, scores
from txl_client._proto import generation_service_pb2 as generation
from txl_client._proto import model_service_pb2 as model_service
from txl_client._proto import session_service_pb2 as session_service
from txl_client.checks import filled
from txl_client.options import Prompt, set_input
from txl_client.turn import new_request_id

R = TypeVar("R")
Ttl = checks.Seconds | None  # None: the server's default


@dataclass(frozen=True)
class Call(Generic[R]):
    """A call of `method`, such as "Model.Tokenize"."""

    method: str
    request: Any
    read: Callable[[Any], R]
    session_id: str = ""
    # True: sent twice, it has the same effect as sent once.
    repeatable: bool = True
    # Of fields of the request, where the caller gave them ("texts[57]").
    places: Mapping[str, str] = field(default_factory=dict)


def at(place: str) -> dict[str, str]:
    """The places of an input, text or ids, that was given at one."""
    return {"text": place, "tokens": place}


def alone_at(place: str) -> dict[str, str]:
    """at(), of an input that is all of its message."""
    return {"": place, **at(place)}


def tokenize(text: str, unknown: int = 0) -> Call[list[int]]:
    """The ids of a text. `unknown`: an UnknownText."""
    request = filled(model_service.TokenizeRequest(), text=text)
    request.unknown = unknown
    return Call("Model.Tokenize", request,
                lambda response: list(response.token_ids))


def tokenize_midi(midi: bytes) -> Call[infos.MidiTokens]:
    """The ids of a MIDI file."""
    if not isinstance(midi, (bytes, bytearray, memoryview)):
        raise checks.kind_error("midi", "the bytes of a MIDI file", midi)
    return Call("Model.Tokenize",
                model_service.TokenizeRequest(midi=bytes(midi)),
                lambda response: infos.MidiTokens(
                    response.token_ids,
                    {part.what: part.count for part in response.left_out}))


def detokenize(ids: Iterable[int]) -> Call[str]:
    """The text of ids."""
    request = model_service.DetokenizeRequest(
        token_ids=checks.token_ids("ids", ids))
    return Call("Model.Detokenize", request,
                lambda response: str(response.text))


def _reader(cls: type[R]) -> Callable[[Any], R]:
    return functools.partial(convert.from_message, cls)


def _usage(response: Any) -> events.Usage:
    return convert.from_message(events.Usage, response.usage)


def model() -> Call[infos.ModelInfo]:
    """The model that the server runs."""
    return Call("Model.GetModel", model_service.GetModelRequest(),
                _reader(infos.ModelInfo))


def status() -> Call[infos.ServerStatus]:
    """The server's counters."""
    return Call("Model.GetServerStatus",
                model_service.GetServerStatusRequest(),
                _reader(infos.ServerStatus))


def score(text: Prompt, logprobs: int = 0, session_id: str = "",
          name: str = "text",
          logprob_token_ids: Sequence[int] = ()) -> Call[scores.Score]:
    """The score of a text, which errors call `name`."""
    request = filled(generation.ScoreRequest(), session_id=session_id,
                     logprobs=logprobs)
    request.logprob_token_ids.extend(
        checks.token_ids("logprob_token_ids", logprob_token_ids))
    set_input(request, name, text)

    def read(response: Any) -> scores.Score:
        return scores.Score(
            tuple(convert.scored_token(token) for token in response.tokens),
            response.sum_logprob, response.position,
            _usage(response))

    return Call("Generation.Score", request, read, session_id,
                places=alone_at(name))


def score_each(texts: Iterable[Prompt], logprobs: int, session_id: str,
               logprob_token_ids: Sequence[int] = ()
               ) -> Iterator[Call[scores.Score]]:
    """The scores of the argument `texts`, each by itself."""
    listed = checks.listed("texts", texts, "a list of texts")
    ids = checks.token_ids("logprob_token_ids", logprob_token_ids)
    for index, text in enumerate(listed):
        yield score(text, logprobs, session_id, f"texts[{index}]", ids)


def score_alternatives(
        alternatives: Sequence[Prompt], context: Prompt | None = None,
        return_tokens: bool = False, session_id: str = "",
        unknown: int = 0) -> Call[list[scores.AlternativeScore]]:
    """The scores of continuations of a context, in their order.

    `unknown`: an UnknownText.
    """
    request = filled(generation.ScoreAlternativesRequest(),
                     session_id=session_id, return_tokens=return_tokens)
    request.unknown = unknown
    if context is not None:
        set_input(request, "context", context)
    for index, alternative in enumerate(checks.listed(
            "alternatives", alternatives, "a list of texts")):
        set_input(request.alternatives.add(), f"alternatives[{index}]",
                  alternative)

    def read(response: Any) -> list[scores.AlternativeScore]:
        return [scores.AlternativeScore(
            each.sum_logprob, each.token_count,
            tuple(convert.scored_token(token) for token in each.tokens))
            for each in response.scores]

    return Call("Generation.ScoreAlternatives", request, read, session_id,
                places=at("context"))


def session_info(response: Any) -> infos.SessionInfo:
    """The session of a response."""
    return convert.from_message(infos.SessionInfo, response.session)


def set_ttl(request: Any, ttl: Ttl) -> None:
    """Sets `ttl` from seconds or a timedelta; None leaves it out."""
    if ttl is not None:
        request.ttl.FromTimedelta(checks.duration("ttl", ttl))


def create(session_id: str, ttl: Ttl,
           repeatable: bool) -> Call[infos.SessionInfo]:
    """A new session. `repeatable`: no other client can have created it."""
    request = filled(session_service.CreateSessionRequest(),
                     session_id=session_id)
    set_ttl(request, ttl)
    return Call("Session.CreateSession", request, session_info, session_id,
                repeatable)


def get(session_id: str) -> Call[infos.SessionInfo]:
    """A session as the server sees it."""
    request = filled(session_service.GetSessionRequest(),
                     session_id=session_id)
    return Call("Session.GetSession", request, session_info, session_id)


def token_page(session_id: str, page_token: str) -> Call[Any]:
    """A page of a session's tokens, as its message; "": the first page."""
    request = filled(session_service.GetSessionRequest(),
                     session_id=session_id, include_tokens=True,
                     page_token=page_token)
    return Call("Session.GetSession", request, lambda response: response,
                session_id)


def list_page(page_token: str) -> Call[Any]:
    """A page of all sessions, as its message; "": the first page."""
    request = filled(session_service.ListSessionsRequest(),
                     page_token=page_token)
    return Call("Session.ListSessions", request, lambda response: response)


def delete(session_id: str) -> Call[None]:
    """Deletes a session; NOT_FOUND the second time."""
    request = filled(session_service.DeleteSessionRequest(),
                     session_id=session_id)
    return Call("Session.DeleteSession", request, lambda response: None,
                session_id)


def append(session_id: str, value: Prompt, return_logprobs: bool,
           expected_position: int | None) -> Call[scores.Appended]:
    """Appends to a session, once."""
    request = filled(session_service.AppendTokensRequest(),
                     session_id=session_id, request_id=new_request_id(),
                     return_logprobs=return_logprobs)
    if expected_position is not None:
        checks.put(request, "expected_position", expected_position)
    set_input(request, "value", value)

    def read(response: Any) -> scores.Appended:
        return scores.Appended(
            response.position,
            tuple(convert.scored_token(token) for token in response.scored),
            response.sum_logprob, _usage(response))

    return Call("Session.AppendTokens", request, read, session_id)


def fork(session_id: str, new_session_id: str, position: int | None,
         ttl: Ttl) -> Call[infos.SessionInfo]:
    """A new session with the first tokens of another one."""
    request = filled(session_service.ForkSessionRequest(),
                     session_id=session_id, new_session_id=new_session_id,
                     request_id=new_request_id())
    if position is not None:
        checks.put(request, "position", position)
    set_ttl(request, ttl)
    return Call("Session.ForkSession", request, session_info, session_id)


def rewind(session_id: str, position: int) -> Call[infos.SessionInfo]:
    """Removes all tokens of a session from `position` on."""
    request = filled(session_service.RewindSessionRequest(),
                     session_id=session_id, position=position,
                     request_id=new_request_id())
    return Call("Session.RewindSession", request, session_info, session_id)
