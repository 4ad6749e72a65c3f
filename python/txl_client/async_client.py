"""The client whose calls are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import grpc
import grpc.aio

from txl_client import call as calls
from txl_client import checks, infos, tables
from txl_client.async_session import AsyncSession
from txl_client.async_stream import AsyncTurnStream, turn_events
from txl_client.bounded import map_bounded_async
from txl_client.call import Call
from txl_client.channel import ClientOptions, Settings, Stubs
from txl_client.errors import InternalError, from_rpc_error
from txl_client.events import Generation
from txl_client.options import Prompt, TurnOptions, generate_request
from txl_client.retry import Attempts
from txl_client.scores import AlternativeScore, Score
from txl_client.stream import OnEnd
from txl_client.turn import Turn

if TYPE_CHECKING:
    from typing_extensions import Unpack

R = TypeVar("R")


class AsyncClient:
    """The twin of Client: the same calls, awaited.

    Any number of tasks may use it, all of the event loop in which it makes its
    first call.
    """

    def __init__(self, address: str = "127.0.0.1:50051",
                 **options: Unpack[ClientOptions]) -> None:
        self.settings = Settings(address, **options)
        self._credentials = self.settings.credentials()
        # A channel belongs to the event loop in which it is made, which need
        # not run yet.
        self._channel: Any = None
        self._stubs: Stubs | None = None
        self._limits: infos.Limits | None = None

    async def close(self) -> None:
        """Ends the connection, and with it calls that run."""
        if self._channel is not None:
            await self._channel.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None,
                        error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    @overload
    async def generate(self, prompt: Prompt | None = None, *,
                       stream: Literal[False] = False,
                       **options: Unpack[TurnOptions]) -> Generation: ...

    @overload
    async def generate(self, prompt: Prompt | None = None, *,
                       stream: Literal[True],
                       **options: Unpack[TurnOptions]
                       ) -> AsyncTurnStream: ...

    async def generate(self, prompt: Prompt | None = None, *,
                       stream: bool = False, **options: Unpack[TurnOptions]
                       ) -> Generation | AsyncTurnStream:
        """Goes on with a text; the whole turn, or its events as they come.

        No prompt: the model's start tokens.
        """
        checks.flag("stream", stream)
        turn = self.start_turn("", prompt, options)
        return turn if stream else await turn.result()

    async def score(self, texts: Iterable[Prompt], *, logprobs: int = 0,
                    session_id: str = checks.UNNAMED) -> list[Score]:
        """Log-probabilities of texts, each by itself, `in_flight` at a time.

        `session_id`: stands before each of them and stays as it is.
        """
        behind = checks.optional_name("session_id", session_id)
        each_text = checks.listed("texts", texts, "a list of texts")
        return [each async for each in self._many(
            calls.score(text, logprobs, behind, f"texts[{index}]")
            for index, text in enumerate(each_text))]

    async def score_alternatives(
            self, alternatives: Sequence[Prompt], *,
            context: Prompt | None = None, return_tokens: bool = False,
            session_id: str = checks.UNNAMED) -> list[AlternativeScore]:
        """Log-probabilities of continuations of one context, fed once."""
        return await self.run(calls.score_alternatives(
            alternatives, context, return_tokens,
            checks.optional_name("session_id", session_id)))

    async def score_frame(self, frame: Any, text: str = "text") -> Any:
        """A data frame, or dictionaries, with the scores of a column's texts.

        New columns: sum_logprob, token_count, perplexity; NaN and 0 where a
        text is empty or missing. TypeError for what is not a text.
        """
        plan = tables.ScorePlan(frame, text)
        return plan.fill([each async for each in self._many(plan.calls())])

    async def rescore(self, rows: Any, *, group: str, text: str,
                      acoustic: str | None = None, weight: float = 1.0,
                      context: Prompt | None = None) -> Any:
        """N-best lists with what the model thinks of each hypothesis.

        `rows`: a data frame, or dictionaries; `group`, `text`, `acoustic` are
        names of its columns, `context` stands before each hypothesis. What
        comes back is a copy with lm_logprob, score = acoustic + weight *
        lm_logprob, and best, which is true for one row of each group. Where
        acoustic is missing there is no score, and the row is not best.
        """
        plan = tables.RescorePlan(
            rows, tables.RescoreColumns(group, text, acoustic, weight,
                                        context),
            (await self.limits()).max_alternatives)
        return plan.fill([each async for each in self._many(plan.calls())])

    async def tokenize(self, text: str) -> list[int]:
        """The ids of a text."""
        return await self.run(calls.tokenize(text))

    async def detokenize(self, ids: Iterable[int]) -> str:
        """The text of ids."""
        return await self.run(calls.detokenize(ids))

    async def model(self) -> infos.ModelInfo:
        """The model that is served, and every limit."""
        return await self.run(calls.model())

    async def limits(self) -> infos.Limits:
        """Limits of a request; the server is asked once."""
        if self._limits is None:
            self._limits = (await self.model()).limits
        return self._limits

    async def status(self) -> infos.ServerStatus:
        """The server's counters."""
        return await self.run(calls.status())

    def session(self, session_id: str = checks.UNNAMED) -> AsyncSession:
        """A handle on a session, which need not be there yet. No call.

        Without an id create() makes one up, and import_() is given one.
        """
        return AsyncSession(self, session_id)

    async def sessions(self) -> AsyncIterator[infos.SessionInfo]:
        """All sessions, by their ids."""
        token = ""
        while True:
            page = await self.run(calls.list_page(token))
            for each in page.sessions:
                yield each
            token = page.next_page_token
            if not token:
                return

    # What follows carries calls out, for sessions and for what is not here.

    async def run(self, call: Call[R]) -> R:
        """Carries a call out."""
        method = self._method(call.method)
        attempts = Attempts(self.settings.retry, self.settings.timeout)
        while True:
            try:
                response = await method(
                    call.request, timeout=attempts.time_left(),
                    metadata=self.settings.metadata(call.session_id))
                if response is None:  # grpc.aio's word for that
                    raise InternalError("the answer cannot be read")
                return call.read(response)
            except grpc.RpcError as broken:
                error = from_rpc_error(broken)
                delay = attempts.delay(error, call.repeatable)
                if delay is None:
                    raise error from broken
            await asyncio.sleep(delay)

    def start_turn(self, session_id: str, prompt: Prompt | None,
                   options: TurnOptions, on_end: OnEnd | None = None
                   ) -> AsyncTurnStream:
        """A turn; it begins when its first event is asked for."""
        request = generate_request(session_id, prompt, options)
        timeout = options.get("timeout", self.settings.timeout)
        turn = Turn(request, Attempts(self.settings.retry, timeout))
        return AsyncTurnStream(
            turn_events(self._method("Generation.Generate"), turn,
                        self.settings.metadata(session_id)), on_end)

    def stream_call(self, method: str, request: Any, session_id: str) -> Any:
        """A call with streams, as gRPC makes it; it raises grpc.RpcError."""
        return self._method(method)(
            request, timeout=self.settings.time_limit,
            metadata=self.settings.metadata(session_id))

    def _method(self, name: str) -> Any:
        if self._stubs is None:
            address = self.settings.address
            arguments = self.settings.arguments()
            self._channel = (
                grpc.aio.insecure_channel(address, options=arguments)
                if self._credentials is None else
                grpc.aio.secure_channel(address, self._credentials,
                                        options=arguments))
            self._stubs = Stubs(self._channel)
        return self._stubs.method(name)

    def _many(self, requests: Iterable[Call[R]]) -> AsyncIterator[R]:
        return map_bounded_async(self.run, requests, self.settings.in_flight)
