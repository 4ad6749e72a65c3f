"""A session of the client whose calls are awaited."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, overload

import grpc

from txl_client import call as calls
from txl_client import checks, infos, transfer
from txl_client.async_caller import AsyncCaller
from txl_client.async_stream import AsyncTurnStream
from txl_client.call import Ttl
from txl_client.errors import (AlreadyExistsError, NotFoundError,
                               from_rpc_error)
from txl_client.events import Generation
from txl_client.options import Prompt, TurnOptions
from txl_client.position import SessionPosition
from txl_client.scores import AlternativeScore, Appended, Score
from txl_client.turn import new_request_id

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncSession(SessionPosition):
    """A handle on a session: a text that is continued turn by turn.

    It runs one turn at a time. If another client has written to the session,
    the next turn of this handle raises AbortedError, POSITION_MISMATCH, once;
    then the handle reads the session's position again.
    """

    def __init__(self, client: AsyncCaller,
                 session_id: str = checks.UNNAMED) -> None:
        super().__init__(session_id)
        self._client = client

    async def create(self, ttl: Ttl = None) -> AsyncSession:
        """Creates the session. `ttl`: seconds that it lives when not used."""
        named, new_id = bool(self.id), self.id or new_request_id()
        call = calls.create(new_id, ttl, repeatable=not named)
        self.id = new_id
        try:
            self._saw(await self._client.run(call))
        except AlreadyExistsError as error:
            # An earlier attempt created it, and its answer was lost.
            if named or error.attempts == 1:
                raise
            await self.get()
        return self

    async def get(self) -> infos.SessionInfo:
        """The session as the server sees it."""
        return self._saw(await self._client.run(calls.get(self._named())))

    async def token_ids(self) -> list[int]:
        """All ids that the session holds."""
        return [i async for page in self._pages() for i in page.token_ids]

    async def text(self) -> str:
        """The text that the session holds."""
        return "".join([page.text async for page in self._pages()])

    async def delete(self) -> None:
        """Deletes the session, which ends a turn that runs on it."""
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
        """Continues the session, as AsyncClient.generate.

        Without a prompt the turn begins after the last token.
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
        """Appends text or ids without generating, all or nothing."""
        await self._learn_position({})
        call = calls.append(self._named(), value, return_logprobs,
                            self.position)
        self.position = None  # until the text is appended
        appended = await self._client.run(call)
        self.position = appended.position
        return appended

    async def fork(self, new_session_id: str = checks.UNNAMED, *,
                   position: int | None = None,
                   ttl: Ttl = None) -> AsyncSession:
        """A new session with all tokens of this one, or its first `position`.

        Without an id the server makes one.
        """
        new_id = checks.optional_name("new_session_id", new_session_id)
        forked = AsyncSession(self._client)
        forked._saw(await self._client.run(calls.fork(
            self._named(), new_id, position, ttl)))
        return forked

    async def rewind(self, position: int) -> infos.SessionInfo:
        """Removes all tokens from `position` on."""
        return self._saw(await self._client.run(
            calls.rewind(self._named(), position)))

    async def score(self, texts: Iterable[Prompt], *, logprobs: int = 0,
                    logprob_token_ids: Sequence[int] = ()) -> list[Score]:
        """Log-probabilities of texts after this session, which stays as is."""
        return [each async for each in self._client.many(
            calls.score_each(texts, logprobs, self._named(),
                             logprob_token_ids))]

    async def score_alternatives(self, alternatives: Sequence[Prompt], *,
                                 context: Prompt | None = None,
                                 return_tokens: bool = False
                                 ) -> list[AlternativeScore]:
        """As AsyncClient.score_alternatives, with this session before."""
        return await self._client.run(calls.score_alternatives(
            alternatives, context, return_tokens, self._named()))

    async def export(self, file: BinaryIO | None = None, *,
                     include_state: bool = False) -> bytes:
        """The session as the bytes of a file; they go to `file` if given."""
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
        """Creates the session from the result of export()."""
        upload = transfer.Upload(self.id, ttl, source)
        try:
            response: Any = await self._client.stream_call(
                "Session.ImportSession", upload.requests(), self.id)
        except transfer.BROKEN as broken:
            if upload.error:
                raise upload.error from broken
            if isinstance(broken, grpc.RpcError):
                raise from_rpc_error(broken) from broken
            raise
        self._saw(calls.session_info(response))
        return self

    async def _learn_position(self, options: TurnOptions) -> None:
        if self.position is None and "expected_position" not in options:
            await self.get()

    def _pages(self) -> AsyncIterator[Any]:
        return self._client.pages(functools.partial(calls.token_page,
                                                    self._named()))
