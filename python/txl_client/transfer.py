"""Messages of sessions that move as files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from txl_client import call, checks, convert, infos
from txl_client._proto import session_service_pb2 as session_service

CHUNK_BYTES = 256 << 10


def export_request(session_id: str, include_state: bool) -> Any:
    """Of ExportSession."""
    return checks.filled(session_service.ExportSessionRequest(),
                         session_id=session_id, include_state=include_state)


def check_target(file: Any) -> None:
    """TypeError for what export() cannot write bytes to."""
    if not hasattr(file, "write") or isinstance(file, io.TextIOBase):
        raise checks.kind_error("file", "a file that is open for bytes", file)


class Upload:
    """The requests of ImportSession: the first one names the session, the rest
    is bytes of the source.

    They are read while they are sent. gRPC only says that a call was cancelled
    where that fails; `error` says why.
    """

    def __init__(self, session_id: str, ttl: checks.Seconds | None,
                 source: Any) -> None:
        self.error: Exception | None = None
        self._first = checks.filled(session_service.ImportSessionRequest(),
                                    session_id=session_id)
        call.set_ttl(self._first, ttl)
        if isinstance(source, (bytes, bytearray, memoryview)):
            source = io.BytesIO(source)
        elif not hasattr(source, "read") or isinstance(source, io.TextIOBase):
            raise checks.kind_error(
                "source", "bytes or a file that is open for bytes", source)
        self._source = source

    def requests(self) -> Iterator[Any]:
        """One after the other."""
        yield self._first
        try:
            while chunk := self._source.read(CHUNK_BYTES):
                if not isinstance(chunk, bytes):
                    raise checks.kind_error("source", "a file of bytes", chunk)
                yield session_service.ImportSessionRequest(chunk=chunk)
        except Exception as error:
            self.error = error
            raise


def imported(response: Any) -> infos.SessionInfo:
    """The session that was made."""
    return convert.from_message(infos.SessionInfo, response.session)
