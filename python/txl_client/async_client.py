"""The client whose calls are awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from txl_client import call as calls
from txl_client import checks, convert, infos, tables
from txl_client.async_caller import AsyncCaller
from txl_client.async_session import AsyncSession
from txl_client.async_stream import AsyncTurnStream
from txl_client.channel import ClientOptions
from txl_client.events import Generation
from txl_client.options import Prompt, TurnOptions
from txl_client.scores import AlternativeScore, Score

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncClient(AsyncCaller):
    """A client of one server, to which it connects with its first call.

    Any number of tasks may use it, all of one event loop. A call that a broken
    connection or a busy server ended is sent again, as RetryPolicy says, unless
    it could take effect twice. Errors are TxlErrors.
    """

    def __init__(self, address: str = "127.0.0.1:50051",
                 **options: Unpack[ClientOptions]) -> None:
        super().__init__(address, **options)
        self._limits: infos.Limits | None = None

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
        """Continues a text. Returns the whole turn, or a stream of its events.

        Without a prompt the turn begins with the model's start tokens.
        """
        checks.flag("stream", stream)
        turn = self.start_turn("", prompt, options)
        return turn if stream else await turn.result()

    async def score(self, texts: Iterable[Prompt], *, logprobs: int = 0,
                    session_id: str = checks.UNNAMED) -> list[Score]:
        """Log-probabilities of texts, each by itself, `in_flight` at a time.

        `session_id`: the context of each text; the session does not change.
        """
        return [each async for each in self.many(calls.score_each(
            texts, logprobs, checks.optional_name("session_id", session_id)))]

    async def score_alternatives(
            self, alternatives: Sequence[Prompt], *,
            context: Prompt | None = None, return_tokens: bool = False,
            session_id: str = checks.UNNAMED) -> list[AlternativeScore]:
        """Log-probabilities of continuations of one context, computed once."""
        return await self.run(calls.score_alternatives(
            alternatives, context, return_tokens,
            checks.optional_name("session_id", session_id)))

    async def score_frame(self, frame: Any, text: str = "text") -> Any:
        """A data frame, or dictionaries, with the scores of a column's texts.

        New columns: sum_logprob, token_count, perplexity. They are NaN and 0 if
        a text is empty or missing. TypeError for a value that is not text.
        """
        plan = tables.ScorePlan(frame, text)
        return plan.fill([each async for each in self.many(plan.calls())])

    async def rescore(self, rows: Any, *, group: str, text: str,
                      acoustic: str | None = None, weight: float = 1.0,
                      context: Prompt | None = None) -> Any:
        """N-best lists with the model's score of each hypothesis.

        `rows`: a data frame, or dictionaries; `group`, `text`, `acoustic` are
        names of its columns, `context` comes before each hypothesis. Returns a
        copy with lm_logprob, score = acoustic + weight * lm_logprob, and best,
        which is true for one row of each group. A row without an acoustic value
        has no score and is not best.
        """
        plan = tables.RescorePlan(
            rows, tables.RescoreColumns(group, text, acoustic, weight,
                                        context),
            (await self.limits()).max_alternatives)
        return plan.fill([each async for each in self.many(plan.calls())])

    @overload
    async def tokenize(self, text: str) -> list[int]: ...

    @overload
    async def tokenize(self, *, midi: bytes) -> infos.MidiTokens: ...

    async def tokenize(self, text: Any = None, *,
                       midi: bytes | None = None) -> list[int]:
        """The ids of a text, or of the bytes of a MIDI file."""
        if midi is None:
            return await self.run(calls.tokenize(text))
        if text is not None:
            raise TypeError("midi: cannot be given together with a text")
        return await self.run(calls.tokenize_midi(midi))

    async def detokenize(self, ids: Iterable[int]) -> str:
        """The text of ids."""
        return await self.run(calls.detokenize(ids))

    async def model(self) -> infos.ModelInfo:
        """The model that the server runs, and all limits."""
        return await self.run(calls.model())

    async def limits(self) -> infos.Limits:
        """Limits of a request, which are read from the server once."""
        if self._limits is None:
            self._limits = (await self.model()).limits
        return self._limits

    async def status(self) -> infos.ServerStatus:
        """The server's counters."""
        return await self.run(calls.status())

    def session(self, session_id: str = checks.UNNAMED) -> AsyncSession:
        """A handle on a session, which may not exist yet. Sends nothing.

        Without an id, create() makes a random one, and import_() gets one from
        the server.
        """
        return AsyncSession(self, session_id)

    async def sessions(self) -> AsyncIterator[infos.SessionInfo]:
        """All sessions, by their ids."""
        async for page in self.pages(calls.list_page):
            for each in page.sessions:
                yield convert.from_message(infos.SessionInfo, each)
