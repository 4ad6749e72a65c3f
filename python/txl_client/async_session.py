"""A session of the client whose calls are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, overload

import grpc

from txl_client import call as calls
from txl_client import checks, infos, transfer
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

    def __init__(self, client: AsyncClient,
                 session_id: str = checks.UNNAMED) -> None:
        super().__init__(session_id)
        self._client = client

    async def create(self, ttl: Ttl = None) -> AsyncSession:
        """Makes the session. `ttl`: seconds that it lives when not used."""
        named, new_id = bool(self.id), self.id or new_request_id()
        call = calls.create(new_id, ttl, repeatable=not named)
        self.id = new_id
        try:
            self._saw(await self._client.run(call))
        except AlreadyExistsError as error:
            # Of an attempt whose answer was lost.
            if named or error.attempts == 1:
                raise
            await self.get()
        return self

    async def get(self) -> infos.SessionInfo:
        """The session as it is."""
        return self._saw(await self._client.run(calls.get(self._named())))

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
            await self._client.run(calls.delete(self._named()))
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
        checks.flag("stream", stream)
        await self._learn_position(options)
        turn = self._client.start_turn(
            self._named(), prompt, self._with_position(options),
            self._turn_ended)
        self.position = None  # until the turn has ended
        return turn if stream else await turn.result()

    async def append(self, value: Prompt, *, return_logprobs: bool = False
                     ) -> Appended:
        """Feeds text or ids without generating, all or nothing."""
        await self._learn_position({})
        call = calls.append(self._named(), value, return_logprobs,
                            self.position)
        self.position = None  # until it is fed
        appended = await self._client.run(call)
        self.position = appended.position
        return appended

    async def fork(self, new_session_id: str = checks.UNNAMED, *,
                   position: int | None = None,
                   ttl: Ttl = None) -> AsyncSession:
        """A session that holds all of this one, or its first tokens.

        Without an id the server makes one up.
        """
        new_id = checks.optional_name("new_session_id", new_session_id)
        forked = AsyncSession(self._client)
        forked._saw(await self._client.run(calls.fork(
            self._named(), new_id, position, ttl)))
        return forked

    async def rewind(self, position: int) -> infos.SessionInfo:
        """Takes the session back: what came later has never happened."""
        return self._saw(await self._client.run(
            calls.rewind(self._named(), position)))

    async def score(self, texts: Iterable[Prompt], *, logprobs: int = 0
                    ) -> list[Score]:
        """Log-probabilities of texts behind this session, which stays."""
        return await self._client.score(texts, logprobs=logprobs,
                                        session_id=self._named())

    async def score_alternatives(self, alternatives: Sequence[Prompt], *,
                                 context: Prompt | None = None,
                                 return_tokens: bool = False
                                 ) -> list[AlternativeScore]:
        """As AsyncClient.score_alternatives, behind this session."""
        return await self._client.score_alternatives(
            alternatives, context=context, return_tokens=return_tokens,
            session_id=self._named())

    async def export(self, file: BinaryIO | None = None, *,
                     include_state: bool = False) -> bytes:
        """The session as the bytes of a file; with `file` written there."""
        request = transfer.export_request(self._named(), include_state)
        pieces = []
        if file is not None:
            transfer.check_target(file)
        try:
            async for response in self._client.stream_call(
                    "Session.ExportSession", request, request.session_id):
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
        upload = transfer.Upload(self.id, ttl, source)
        try:
            response: Any = await self._client.stream_call(
                "Session.ImportSession", upload.requests(), self.id)
        except (grpc.RpcError, asyncio.CancelledError) as broken:
            if upload.error:
                raise upload.error from broken
            if isinstance(broken, grpc.RpcError):
                raise from_rpc_error(broken) from broken
            raise
        self._saw(transfer.imported(response))
        return self

    async def _learn_position(self, options: TurnOptions) -> None:
        if self.position is None and "expected_position" not in options:
            await self.get()

    async def _pages(self) -> AsyncIterator[calls.TokenPage]:
        token = ""
        while True:
            page = await self._client.run(calls.token_page(
                self._named(), token))
            yield page
            token = page.next_page_token
            if not token:
                return
