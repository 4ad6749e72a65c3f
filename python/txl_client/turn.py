"""One turn, whatever number of attempts it takes. No input or output here."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from txl_client import convert
from txl_client._proto import generation_service_pb2
from txl_client.errors import (DataLossError, InternalError, TxlError,
                               UnavailableError)
from txl_client.events import Event, Finished, FinishReason, Started
from txl_client.retry import Attempts


def new_request_id() -> str:
    """A name that no other turn has."""
    return secrets.token_hex(16)


class Turn:
    """Makes one turn of the responses of several attempts at it.

    Its `request` is that of the next attempt: it says what has been received,
    so that the server goes on behind it, also where there is no session, or
    where the server has lost its tokens.
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
        # The end that a server gave the turn because it shuts down, where
        # nothing came after it.
        self._drained: Finished | None = None

    def take(self, response: Any) -> Iterator[Event]:
        """What of a response of the running attempt is new.

        An attempt may begin with any token up to the first new one.
        DataLossError where it is not the same turn, or has a gap.
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
        """Seconds to wait before the next attempt, now that one has ended.

        `error`: how; None: well. Raises what ends the turn. None: the turn is
        over, and its end is `drained`.
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
        """The turn's end where no server goes on with it."""
        assert self._drained is not None
        return self._drained

    def _take_started(self, started: Started) -> Iterator[Started]:
        known = self._started
        if known is not None and _same_turn(known, started):
            return
        # Without a token nothing is lost: the turn begins anew, and the caller
        # hears with which seed.
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
