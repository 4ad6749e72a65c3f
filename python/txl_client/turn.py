"""One turn, over any number of attempts, without input and output."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

from txl_client import convert
from txl_client._proto import generation_service_pb2
from txl_client.errors import (DataLossError, InternalError, TxlError,
                               UnavailableError)
from txl_client.events import (Event, Finished, FinishReason, Generation,
                               Started, Token)
from txl_client.retry import Attempts

OnEnd = Callable[["Finished | None"], None]


def new_request_id() -> str:
    """A random name for one request."""
    return secrets.token_hex(16)


class Turn:
    """Merges the responses of several attempts into one turn.

    `request` is the request of the next attempt. It lists what has been
    received, so that the server continues after it, even without a session or
    if the server has lost its tokens.
    """

    def __init__(self, request: generation_service_pb2.GenerateRequest,
                 attempts: Attempts) -> None:
        self.request = request
        self.attempts = attempts
        self.done = False
        if not request.request_id:
            request.request_id = new_request_id()
        self._started: Started | None = None
        self._ids: list[int] = []
        # The end of the turn that a server sent because it shuts down, unless
        # something came after it.
        self._drained: Finished | None = None

    def take(self, response: Any) -> Iterator[Event]:
        """The new events of a response of the running attempt.

        An attempt may begin with any token up to the first new one.
        DataLossError if it is another turn, or has a gap.
        """
        kind = response.WhichOneof("event")
        if kind == "started":
            yield from self._take_started(
                convert.from_message(Started, response.started))
        elif kind == "token":
            yield from self._take_token(response.token)
        elif kind == "tokens":
            for token in response.tokens.tokens:
                yield from self._take_token(token)
        elif kind == "finished":
            yield from self._take_finished(
                convert.from_message(Finished, response.finished))

    def delay_after(self, error: TxlError | None) -> float | None:
        """Seconds to wait before the next attempt, after one has ended.

        `error`: of the ended attempt; None: it had no error. Raises the error
        that ends the turn. Returns None if the turn ends with `drained`.
        """
        if error is None:
            error = (UnavailableError("the server is shutting down",
                                      reason="SERVER_DRAIN")
                     if self._drained else
                     InternalError("the stream ended before the turn"))
        delay = self.attempts.delay(error)
        if delay is None and self._drained is None:
            raise error
        if self._started is not None:
            self.request.received.seed = self._started.seed
            del self.request.received.token_ids[:]
            self.request.received.token_ids.extend(self._ids)
        return delay

    @property
    def drained(self) -> Finished:
        """The end of the turn if no server continues it."""
        assert self._drained is not None
        return self._drained

    def _take_started(self, started: Started) -> Iterator[Started]:
        known = self._started
        if known is not None and _same_turn(known, started):
            return
        # Without a token nothing is lost: the turn restarts, and its Started
        # has the new seed.
        if self._ids:
            raise DataLossError("the server began another turn")
        self._started = started
        yield started

    def _take_token(self, message: Any) -> Iterator[Event]:
        index, expected = message.index, len(self._ids)
        if not 0 <= index <= expected:
            raise DataLossError(
                f"token {index} came, expected was {expected}")
        if index < expected:
            if self._ids[index] != message.token_id:
                raise DataLossError(
                    f"token {index} came again as another one")
            return
        self._ids.append(message.token_id)
        self._drained = None
        self.attempts.made_progress()
        yield convert.token(message)

    def _take_finished(self, finished: Finished) -> Iterator[Event]:
        if finished.reason == FinishReason.SERVER_DRAIN:
            self._drained = finished
            return
        self.done = True
        yield finished


def _same_turn(one: Started, other: Started) -> bool:
    return ((one.position, one.prompt_token_count, one.seed,
             one.model_fingerprint)
            == (other.position, other.prompt_token_count, other.seed,
                other.model_fingerprint))


class Collector:
    """Collects the events of a turn; the base of both streams."""

    def __init__(self, on_end: OnEnd | None) -> None:
        self._started: Started | None = None
        self._tokens: list[Token] = []
        self._finished: Finished | None = None
        self._on_end = on_end

    @property
    def generation(self) -> Generation:
        """The part of the turn that has arrived so far."""
        return Generation(self._started, tuple(self._tokens), self._finished)

    def _collect(self, event: Event) -> Event:
        if isinstance(event, Started):
            self._started = event
        elif isinstance(event, Token):
            self._tokens.append(event)
        else:
            self._finished = event
        return event

    def _ended(self, error: BaseException | None = None) -> None:
        if isinstance(error, TxlError):
            error.partial = self.generation
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(self._finished)
