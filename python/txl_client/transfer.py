"""Messages of sessions that move as files."""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from txl_client import call, convert, infos
from txl_client._proto import session_service_pb2 as session_service

CHUNK_BYTES = 256 << 10


def export_request(session_id: str, include_state: bool) -> Any:
    """Of ExportSession."""
    return session_service.ExportSessionRequest(
        session_id=session_id, include_state=include_state)


def import_requests(session_id: str, ttl: float | datetime.timedelta | None,
                    source: bytes | BinaryIO) -> Iterator[Any]:
    """Of ImportSession: the first one names the session, the rest is bytes."""
    first = session_service.ImportSessionRequest(session_id=session_id)
    call.set_ttl(first, ttl)
    yield first
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    while chunk := file.read(CHUNK_BYTES):
        yield session_service.ImportSessionRequest(chunk=chunk)


def imported(response: Any) -> infos.SessionInfo:
    """The session that was made."""
    return convert.from_message(infos.SessionInfo, response.session)
