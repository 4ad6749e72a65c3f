"""A turn that is read while it runs; its calls are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType

import grpc

from txl_client.channel import Channel, Metadata
from txl_client.errors import CancelledError, TxlError, from_rpc_error
from txl_client.events import Event, Generation
from txl_client.turn import Collector, OnEnd, Turn


class AsyncTurnStream(Collector, AsyncIterator[Event]):
    """An iterator of the turn's events: Started, Token, ..., Finished.

    If a loop over it is left early, the turn runs on until close() is called
    or its `async with` block ends.
    The session then keeps the tokens that were sent.
    """

    def __init__(self, events: AsyncGenerator[Event, None],
                 on_end: OnEnd | None = None) -> None:
        super().__init__(on_end)
        self._events = events

    def __aiter__(self) -> AsyncTurnStream:
        return self

    async def __anext__(self) -> Event:
        try:
            return self._collect(await self._events.__anext__())
        except BaseException as error:
            self._ended(error)
            raise

    async def result(self) -> Generation:
        """The whole turn, which is read to its end."""
        async for _ in self:
            pass
        return self.generation

    async def close(self) -> None:
        """Ends the turn if it still runs."""
        await self._events.aclose()
        self._ended()

    async def __aenter__(self) -> AsyncTurnStream:
        return self

    async def __aexit__(self, kind: type[BaseException] | None,
                        error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()


async def turn_events(channel: Channel, turn: Turn,
                      metadata: Metadata) -> AsyncGenerator[Event, None]:
    """The events of a turn, from as many attempts as it takes."""
    method = channel.method("Generation.Generate")
    while True:
        error: TxlError | None = None
        call = method(turn.request, timeout=turn.attempts.time_left(),
                      metadata=metadata)
        try:
            with channel.ending():
                async for response in call:
                    for event in turn.take(response):
                        yield event
        except grpc.RpcError as broken:
            error = from_rpc_error(broken)
        except CancelledError as closed:
            error = closed
        finally:
            call.cancel()
        if turn.done:
            return
        delay = turn.delay_after(error)
        if delay is None:
            yield turn.drained
            return
        await asyncio.sleep(delay)
