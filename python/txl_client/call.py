"""Calls with one answer, as values: what is asked, and how the answer reads.

Both clients carry the same calls out, one by waiting, one by awaiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from txl_client import checks, convert, infos, scores
from txl_client._proto import generation_service_pb2 as generation
from txl_client._proto import model_service_pb2 as model_service
from txl_client._proto import session_service_pb2 as session_service
from txl_client.checks import filled
from txl_client.options import Prompt, set_input
from txl_client.turn import new_request_id

R = TypeVar("R")


@dataclass(frozen=True)
class Call(Generic[R]):
    """A call of `method`, "Service.Method" without "Service"."""

    method: str
    request: Any
    read: Callable[[Any], R]
    session_id: str = ""
    # True: carried out twice it does what it does once.
    repeatable: bool = True


def tokenize(text: str) -> Call[list[int]]:
    """The ids of a text."""
    request = filled(model_service.TokenizeRequest(), text=text)
    return Call("Model.Tokenize", request,
                lambda response: list(response.token_ids))


def detokenize(ids: Iterable[int]) -> Call[str]:
    """The text of ids."""
    request = model_service.DetokenizeRequest(
        token_ids=checks.token_ids("ids", ids))
    return Call("Model.Detokenize", request,
                lambda response: str(response.text))


def model() -> Call[infos.ModelInfo]:
    """The model that is served."""
    return Call("Model.GetModel", model_service.GetModelRequest(),
                lambda response: convert.from_message(infos.ModelInfo,
                                                      response))


def status() -> Call[infos.ServerStatus]:
    """The server's counters."""
    return Call("Model.GetServerStatus",
                model_service.GetServerStatusRequest(),
                lambda response: convert.from_message(infos.ServerStatus,
                                                      response))


def score(text: Prompt, logprobs: int = 0, session_id: str = "",
          name: str = "text") -> Call[scores.Score]:
    """The score of a text, which errors call `name`."""
    request = filled(generation.ScoreRequest(), session_id=session_id,
                     logprobs=logprobs)
    set_input(request, name, text)

    def read(response: Any) -> scores.Score:
        return scores.Score(
            tuple(convert.scored_token(token) for token in response.tokens),
            response.sum_logprob, response.position)

    return Call("Generation.Score", request, read, session_id)


def score_alternatives(
        alternatives: Sequence[Prompt], context: Prompt | None = None,
        return_tokens: bool = False,
        session_id: str = "") -> Call[list[scores.AlternativeScore]]:
    """The scores of continuations, in their order."""
    request = filled(generation.ScoreAlternativesRequest(),
                     session_id=session_id, return_tokens=return_tokens)
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

    return Call("Generation.ScoreAlternatives", request, read, session_id)


def _session(response: Any) -> infos.SessionInfo:
    return convert.from_message(infos.SessionInfo, response.session)


def set_ttl(request: Any, ttl: checks.Seconds | None) -> None:
    """Seconds, or a timedelta; None: the server's default."""
    if ttl is not None:
        request.ttl.FromTimedelta(checks.duration("ttl", ttl))


def create(session_id: str, ttl: checks.Seconds | None,
           repeatable: bool) -> Call[infos.SessionInfo]:
    """A new session. `repeatable`: nobody else can have made it."""
    request = filled(session_service.CreateSessionRequest(),
                     session_id=session_id)
    set_ttl(request, ttl)
    return Call("Session.CreateSession", request, _session, session_id,
                repeatable)


def get(session_id: str) -> Call[infos.SessionInfo]:
    """A session as it is."""
    request = filled(session_service.GetSessionRequest(),
                     session_id=session_id)
    return Call("Session.GetSession", request, _session, session_id)


@dataclass(frozen=True)
class TokenPage:
    """A page of what a session holds."""

    token_ids: list[int]
    text: str
    next_page_token: str


def token_page(session_id: str, page_token: str) -> Call[TokenPage]:
    """A page of what a session holds; "": the first one."""
    request = filled(session_service.GetSessionRequest(),
                     session_id=session_id, include_tokens=True,
                     page_token=page_token)
    return Call("Session.GetSession", request,
                lambda response: TokenPage(list(response.token_ids),
                                           response.text,
                                           response.next_page_token),
                session_id)


@dataclass(frozen=True)
class SessionPage:
    """A page of all sessions."""

    sessions: list[infos.SessionInfo]
    next_page_token: str


def list_page(page_token: str) -> Call[SessionPage]:
    """A page of all sessions, by their ids; "": the first one."""
    request = filled(session_service.ListSessionsRequest(),
                     page_token=page_token)

    def read(response: Any) -> SessionPage:
        return SessionPage(
            [convert.from_message(infos.SessionInfo, each)
             for each in response.sessions], response.next_page_token)

    return Call("Session.ListSessions", request, read)


def delete(session_id: str) -> Call[None]:
    """Ends a session; the second time it is not there."""
    request = filled(session_service.DeleteSessionRequest(),
                     session_id=session_id)
    return Call("Session.DeleteSession", request, lambda response: None,
                session_id)


def append(session_id: str, value: Prompt, return_logprobs: bool,
           expected_position: int | None) -> Call[scores.Appended]:
    """Feeds a session, once."""
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
            response.sum_logprob)

    return Call("Session.AppendTokens", request, read, session_id)


def fork(session_id: str, new_session_id: str, position: int | None,
         ttl: checks.Seconds | None) -> Call[infos.SessionInfo]:
    """A session that holds the first tokens of another one."""
    request = filled(session_service.ForkSessionRequest(),
                     session_id=session_id, new_session_id=new_session_id,
                     request_id=new_request_id())
    if position is not None:
        checks.put(request, "position", position)
    set_ttl(request, ttl)
    return Call("Session.ForkSession", request, _session, session_id)


def rewind(session_id: str, position: int) -> Call[infos.SessionInfo]:
    """Takes a session back."""
    request = filled(session_service.RewindSessionRequest(),
                     session_id=session_id, position=position,
                     request_id=new_request_id())
    return Call("Session.RewindSession", request, _session, session_id)
