"""A session of the client whose calls wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, overload

import grpc

from txl_client import call as calls
from txl_client import checks, infos, transfer
from txl_client.errors import (AlreadyExistsError, NotFoundError,
                               from_rpc_error)
from txl_client.events import Finished, Generation
from txl_client.options import Prompt, TurnOptions
from txl_client.scores import AlternativeScore, Appended, Score
from txl_client.stream import TurnStream
from txl_client.turn import new_request_id

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from txl_client.client import Client

Ttl = checks.Seconds | None


class SessionPosition:
    """What a handle knows of its session; the base of both sessions."""

    def __init__(self, session_id: str) -> None:
        # Empty until there is one.
        self.id = checks.optional_name("session_id", session_id)
        # Tokens that the session holds, as far as this handle knows: what it
        # sends as expected_position, so that a turn never goes on behind a
        # text that its writer has not seen. None: it will ask.
        self.position: int | None = None

    def _named(self) -> str:
        """The id; ValueError where there is none yet."""
        if self.id == "":
            raise ValueError("session_id: this session has none before "
                             "create() or import_()")
        return checks.name_of("session_id", self.id)

    def _saw(self, info: infos.SessionInfo) -> infos.SessionInfo:
        self.id = info.id
        # Of a turn that runs nobody knows where it ends.
        idle = info.state == infos.SessionState.IDLE
        self.position = info.position if idle else None
        return info

    def _turn_ended(self, finished: Finished | None) -> None:
        self.position = finished.position if finished else None

    def _with_position(self, options: TurnOptions) -> TurnOptions:
        if self.position is None or "expected_position" in options:
            return options
        return {**options, "expected_position": self.position}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, position={self.position})"


class Session(SessionPosition):
    """A handle on a session: a text that is continued turn by turn.

    One turn at a time. Where somebody else has gone on with the session, the
    next turn of this handle raises AbortedError, POSITION_MISMATCH, once: the
    handle then looks where the session is.
    """

    def __init__(self, client: Client,
                 session_id: str = checks.UNNAMED) -> None:
        super().__init__(session_id)
        self._client = client

    def create(self, ttl: Ttl = None) -> Session:
        """Makes the session. `ttl`: seconds that it lives when not used."""
        named, new_id = bool(self.id), self.id or new_request_id()
        call = calls.create(new_id, ttl, repeatable=not named)
        self.id = new_id
        try:
            self._saw(self._client.run(call))
        except AlreadyExistsError as error:
            # Of an attempt whose answer was lost.
            if named or error.attempts == 1:
                raise
            self.get()
        return self

    def get(self) -> infos.SessionInfo:
        """The session as it is."""
        return self._saw(self._client.run(calls.get(self._named())))

    def token_ids(self) -> list[int]:
        """All ids that the session holds."""
        return [i for page in self._pages() for i in page.token_ids]

    def text(self) -> str:
        """The text that the session holds."""
        return "".join(page.text for page in self._pages())

    def delete(self) -> None:
        """Ends the session, and a turn that runs on it."""
        self.position = None
        try:
            self._client.run(calls.delete(self._named()))
        except NotFoundError as error:
            # The answer of an earlier attempt may have been lost.
            if error.attempts == 1:
                raise

    @overload
    def generate(self, prompt: Prompt | None = None, *,
                 stream: Literal[False] = False,
                 **options: Unpack[TurnOptions]) -> Generation: ...

    @overload
    def generate(self, prompt: Prompt | None = None, *,
                 stream: Literal[True],
                 **options: Unpack[TurnOptions]) -> TurnStream: ...

    def generate(self, prompt: Prompt | None = None, *, stream: bool = False,
                 **options: Unpack[TurnOptions]) -> Generation | TurnStream:
        """A turn, as Client.generate. No prompt: from the last token on."""
        checks.flag("stream", stream)
        self._learn_position(options)
        turn = self._client.start_turn(
            self._named(), prompt, self._with_position(options),
            self._turn_ended)
        self.position = None  # until the turn has ended
        return turn if stream else turn.result()

    def append(self, value: Prompt, *, return_logprobs: bool = False
               ) -> Appended:
        """Feeds text or ids without generating, all or nothing."""
        self._learn_position({})
        call = calls.append(self._named(), value, return_logprobs,
                            self.position)
        self.position = None  # until it is fed
        appended = self._client.run(call)
        self.position = appended.position
        return appended

    def fork(self, new_session_id: str = checks.UNNAMED, *,
             position: int | None = None, ttl: Ttl = None) -> Session:
        """A session that holds all of this one, or its first tokens.

        Without an id the server makes one up.
        """
        new_id = checks.optional_name("new_session_id", new_session_id)
        forked = Session(self._client)
        forked._saw(self._client.run(calls.fork(
            self._named(), new_id, position, ttl)))
        return forked

    def rewind(self, position: int) -> infos.SessionInfo:
        """Takes the session back: what came later has never happened."""
        return self._saw(self._client.run(
            calls.rewind(self._named(), position)))

    def score(self, texts: Iterable[Prompt], *, logprobs: int = 0
              ) -> list[Score]:
        """Log-probabilities of texts behind this session, which stays."""
        return self._client.score(texts, logprobs=logprobs,
                                  session_id=self._named())

    def score_alternatives(self, alternatives: Sequence[Prompt], *,
                           context: Prompt | None = None,
                           return_tokens: bool = False
                           ) -> list[AlternativeScore]:
        """As Client.score_alternatives, behind this session."""
        return self._client.score_alternatives(
            alternatives, context=context, return_tokens=return_tokens,
            session_id=self._named())

    def export(self, file: BinaryIO | None = None, *,
               include_state: bool = False) -> bytes:
        """The session as the bytes of a file; with `file` written there."""
        request = transfer.export_request(self._named(), include_state)
        pieces = []
        if file is not None:
            transfer.check_target(file)
        try:
            for response in self._client.stream_call(
                    "Session.ExportSession", request, request.session_id):
                if file is None:
                    pieces.append(response.chunk)
                else:
                    file.write(response.chunk)
        except grpc.RpcError as broken:
            raise from_rpc_error(broken) from broken
        return b"".join(pieces)

    def import_(self, source: bytes | BinaryIO, *, ttl: Ttl = None) -> Session:
        """Makes the session from what export() gave."""
        upload = transfer.Upload(self.id, ttl, source)
        try:
            response: Any = self._client.stream_call(
                "Session.ImportSession", upload.requests(), self.id)
        except grpc.RpcError as broken:
            raise upload.error or from_rpc_error(broken) from broken
        self._saw(transfer.imported(response))
        return self

    def _learn_position(self, options: TurnOptions) -> None:
        if self.position is None and "expected_position" not in options:
            self.get()

    def _pages(self) -> Iterable[calls.TokenPage]:
        token = ""
        while True:
            page = self._client.run(calls.token_page(self._named(),
                                                      token))
            yield page
            token = page.next_page_token
            if not token:
                return
