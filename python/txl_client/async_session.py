"""A session of the client whose calls are awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, overload

import grpc

from txl_client import call as calls
from txl_client import infos, transfer
from txl_client.async_stream import AsyncTurnStream
from txl_client.errors import (AlreadyExistsError, NotFoundError,
                               from_rpc_error)
from txl_client.events import Generation
from txl_client.options import Prompt, TurnOptions
from txl_client.scores import AlternativeScore, Appended, Score
from txl_client.session import SessionPosition, Ttl
from txl_client.turn import new_request_id

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from txl_client.async_client import AsyncClient


class AsyncSession(SessionPosition):
    """The twin of Session: the same calls, awaited."""

    def __init__(self, client: AsyncClient, session_id: str) -> None:
        super().__init__(session_id)
        self._client = client

    async def create(self, ttl: Ttl = None) -> AsyncSession:
        """Makes the session. `ttl`: seconds that it lives when not used."""
        named, self.id = bool(self.id), self.id or new_request_id()
        try:
            self._saw(await self._client.run(calls.create(
                self.id, ttl, repeatable=not named)))
        except AlreadyExistsError as error:
            # Of an attempt whose answer was lost.
            if named or error.attempts == 1:
                raise
            await self.get()
        return self

    async def get(self) -> infos.SessionInfo:
        """The session as it is."""
        return self._saw(await self._client.run(calls.get(self.id)))

    async def token_ids(self) -> list[int]:
        """All ids that the session holds."""
        return [i async for page in self._pages() for i in page.token_ids]

    async def text(self) -> str:
        """The text that the session holds."""
        return "".join([page.text async for page in self._pages()])

    async def delete(self) -> None:
        """Ends the session, and a turn that runs on it."""
        self.position = None
        try:
            await self._client.run(calls.delete(self.id))
        except NotFoundError as error:
            # The answer of an earlier attempt may have been lost.
            if error.attempts == 1:
                raise

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
        """A turn, as AsyncClient.generate. No prompt: from the last token on.
        """
        await self._learn_position(options)
        turn = self._client.start_turn(
            self.id, prompt, self._with_position(options), self._turn_ended)
        self.position = None  # until the turn has ended
        return turn if stream else await turn.result()

    async def append(self, value: Prompt, *, return_logprobs: bool = False
                     ) -> Appended:
        """Feeds text or ids without generating, all or nothing."""
        await self._learn_position({})
        position, self.position = self.position, None
        appended = await self._client.run(calls.append(
            self.id, value, return_logprobs, position))
        self.position = appended.position
        return appended

    async def fork(self, new_session_id: str = "", *,
                   position: int | None = None,
                   ttl: Ttl = None) -> AsyncSession:
        """A session that holds all of this one, or its first tokens."""
        forked = AsyncSession(self._client, new_session_id)
        forked._saw(await self._client.run(calls.fork(
            self.id, new_session_id, position, ttl)))
        return forked

    async def rewind(self, position: int) -> infos.SessionInfo:
        """Takes the session back: what came later has never happened."""
        return self._saw(await self._client.run(
            calls.rewind(self.id, position)))

    async def score(self, texts: Iterable[Prompt], *, logprobs: int = 0
                    ) -> list[Score]:
        """Log-probabilities of texts behind this session, which stays."""
        return await self._client.score(texts, logprobs=logprobs,
                                        session_id=self.id)

    async def score_alternatives(self, alternatives: Sequence[Prompt], *,
                                 context: Prompt | None = None,
                                 return_tokens: bool = False
                                 ) -> list[AlternativeScore]:
        """As AsyncClient.score_alternatives, behind this session."""
        return await self._client.score_alternatives(
            alternatives, context=context, return_tokens=return_tokens,
            session_id=self.id)

    async def export(self, file: BinaryIO | None = None, *,
                     include_state: bool = False) -> bytes:
        """The session as the bytes of a file; with `file` written there."""
        pieces = []
        try:
            async for response in self._client.stream_call(
                    "Session.ExportSession",
                    transfer.export_request(self.id, include_state), self.id):
                if file is None:
                    pieces.append(response.chunk)
                else:
                    file.write(response.chunk)
        except grpc.RpcError as broken:
            raise from_rpc_error(broken) from broken
        return b"".join(pieces)

    async def import_(self, source: bytes | BinaryIO, *, ttl: Ttl = None
                      ) -> AsyncSession:
        """Makes the session from what export() gave."""
        try:
            response: Any = await self._client.stream_call(
                "Session.ImportSession",
                transfer.import_requests(self.id, ttl, source), self.id)
        except grpc.RpcError as broken:
            raise from_rpc_error(broken) from broken
        self._saw(transfer.imported(response))
        return self

    async def _learn_position(self, options: TurnOptions) -> None:
        if self.position is None and "expected_position" not in options:
            await self.get()

    async def _pages(self) -> AsyncIterator[calls.TokenPage]:
        token = ""
        while True:
            page = await self._client.run(calls.token_page(self.id, token))
            yield page
            token = page.next_page_token
            if not token:
                return
