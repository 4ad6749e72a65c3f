"""Messages of sessions that are exported and imported as files."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from typing import Any

import grpc

from txl_client import call, checks
from txl_client._proto import session_service_pb2 as session_service

CHUNK_BYTES = 256 << 10

# Errors that gRPC raises when a transfer fails.
BROKEN = (grpc.RpcError, asyncio.CancelledError)


def export_request(session_id: str, include_state: bool) -> Any:
    """The request of ExportSession."""
    return checks.filled(session_service.ExportSessionRequest(),
                         session_id=session_id, include_state=include_state)


def check_target(file: Any) -> None:
    """TypeError for a file that export() cannot write bytes to."""
    if not hasattr(file, "write") or isinstance(file, io.TextIOBase):
        raise checks.kind_error("file", "a file that is open for bytes", file)


class Upload:
    """The requests of ImportSession: the first one names the session, the
    others hold bytes of the source.

    The source is read while they are sent. If reading fails, gRPC only reports
    a cancelled call; `error` has the reason.
    """

    def __init__(self, session_id: str, ttl: call.Ttl,
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
        """The requests in their order."""
        yield self._first
        try:
            while chunk := self._source.read(CHUNK_BYTES):
                if not isinstance(chunk, bytes):
                    raise checks.kind_error("source", "a file of bytes", chunk)
                yield session_service.ImportSessionRequest(chunk=chunk)
        except Exception as error:
            self.error = error
            raise
