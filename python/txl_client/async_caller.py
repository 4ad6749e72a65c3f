"""The part of a client that sends calls; its own calls are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import grpc.aio

from txl_client.async_stream import AsyncTurnStream, turn_events
from txl_client.bounded import map_bounded_async
from txl_client.call import Call
from txl_client.channel import Channel, ClientOptions, Settings
from txl_client.errors import InternalError, from_rpc_error
from txl_client.options import Prompt, TurnOptions, generate_request
from txl_client.retry import Attempts
from txl_client.turn import OnEnd, Turn

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

R = TypeVar("R")


class AsyncCaller:
    """Sends calls, for clients, for sessions and for other code."""

    def __init__(self, address: str = "127.0.0.1:50051",
                 **options: Unpack[ClientOptions]) -> None:
        self.settings = Settings(address, **options)
        self._channel = Channel(grpc.aio, self.settings)

    async def close(self) -> None:
        """Closes the connection, which ends running calls."""
        self._channel.closed = True
        if self._channel.opened is not None:
            await self._channel.opened.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None,
                        error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    async def run(self, call: Call[R]) -> R:
        """The result of a call, after as many attempts as it takes."""
        method = self._channel.method(call.method)
        attempts = Attempts(self.settings.retry, self.settings.timeout)
        while True:
            try:
                with self._channel.ending():
                    response = await method(
                        call.request, timeout=attempts.time_left(),
                        metadata=self.settings.metadata(call.session_id))
                if response is None:  # from grpc.aio
                    raise InternalError("the answer cannot be read")
                return call.read(response)
            except grpc.RpcError as broken:
                error = from_rpc_error(broken)
                delay = attempts.delay(error, call.repeatable)
                if delay is None:
                    error.name(call.places)
                    raise error from broken
            await asyncio.sleep(delay)

    def start_turn(self, session_id: str, prompt: Prompt | None,
                   options: TurnOptions, on_end: OnEnd | None = None
                   ) -> AsyncTurnStream:
        """A turn; it begins when its first event is requested."""
        request = generate_request(session_id, prompt, options)
        timeout = options.get("timeout", self.settings.timeout)
        turn = Turn(request, Attempts(self.settings.retry, timeout))
        return AsyncTurnStream(
            turn_events(self._channel, turn,
                        self.settings.metadata(session_id)), on_end)

    def stream_call(self, method: str, request: Any, session_id: str) -> Any:
        """A streaming call of gRPC, which raises grpc.RpcError."""
        return self._channel.method(method)(
            request, timeout=self.settings.time_limit,
            metadata=self.settings.metadata(session_id))

    def many(self, requests: Iterable[Call[R]]) -> AsyncIterator[R]:
        """The results of calls in their order, `in_flight` calls at a time."""
        return map_bounded_async(self.run, requests, self.settings.in_flight)

    async def pages(self, page: Callable[[str], Call[Any]]
                    ) -> AsyncIterator[Any]:
        """The pages of an answer. `page`: makes the call for a page token."""
        token = ""
        while True:
            response = await self.run(page(token))
            yield response
            token = response.next_page_token
            if not token:
                return
