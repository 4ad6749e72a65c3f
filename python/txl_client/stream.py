"""A turn that is read while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from types import TracebackType
from typing import Any

import grpc

from txl_client.channel import Metadata
from txl_client.errors import TxlError, from_rpc_error
from txl_client.events import Event, Finished, Generation, Started, Token
from txl_client.turn import Turn

OnEnd = Callable[["Finished | None"], None]


class Collector:
    """What of a turn has come; the base of both streams."""

    def __init__(self, on_end: OnEnd | None) -> None:
        self._started: Started | None = None
        self._tokens: list[Token] = []
        self._finished: Finished | None = None
        self._on_end = on_end

    @property
    def generation(self) -> Generation:
        """What of the turn has come so far."""
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


class TurnStream(Collector, Iterator[Event]):
    """An iterator of the turn's events: Started, Token, ..., Finished.

    Leaving a `for` loop early leaves the turn running until the stream is
    closed, by close(), at the end of a `with` block, or when nobody holds it
    any more. The session then keeps the tokens that were sent.
    """

    def __init__(self, events: Generator[Event, None, None],
                 on_end: OnEnd | None = None) -> None:
        super().__init__(on_end)
        self._events = events

    def __iter__(self) -> TurnStream:
        return self

    def __next__(self) -> Event:
        try:
            return self._collect(next(self._events))
        except BaseException as error:
            self._ended(error)
            raise

    def result(self) -> Generation:
        """Reads the turn to its end."""
        for _ in self:
            pass
        return self.generation

    def close(self) -> None:
        """Ends the turn, if it still runs."""
        self._events.close()
        self._ended()

    def __enter__(self) -> TurnStream:
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def turn_events(method: Any, turn: Turn,
                metadata: Metadata) -> Generator[Event, None, None]:
    """Carries a turn out, by as many attempts as it takes."""
    while True:
        error: TxlError | None = None
        call = method(turn.request, timeout=turn.attempts.time_left(),
                      metadata=metadata)
        try:
            for response in call:
                yield from turn.take(response)
        except grpc.RpcError as broken:
            error = from_rpc_error(broken)
        finally:
            call.cancel()
        if turn.done:
            return
        delay = turn.delay_after(error)
        if delay is None:
            yield turn.drained
            return
        time.sleep(delay)
