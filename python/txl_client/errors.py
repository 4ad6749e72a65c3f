"""Errors of calls: a class for each status, with what the server said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import grpc
from google.rpc import error_details_pb2, status_pb2

if TYPE_CHECKING:
    from txl_client.events import Generation

DOMAIN = "txl.v1"
_DETAILS = "grpc-status-details-bin"
_TRACEPARENT = "traceparent"


class TxlError(Exception):
    """A call did not succeed.

    `message` is for people; programs go by the class, or by `reason`.
    """

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN

    def __init__(self, message: str, *, reason: str = "",
                 fields: Iterable[str] = (),
                 retry_after: float | None = None,
                 metadata: Mapping[str, str] | None = None,
                 trace_id: str = "") -> None:
        super().__init__(message)
        self.message = message
        # "SESSION_BUSY", ...; empty: the server sent none, or never heard of
        # the call.
        self.reason = reason
        # Fields of the request that are wrong.
        self.fields = tuple(fields)
        # Seconds after which the server wants to be asked again; None: it does
        # not say that asking again makes sense.
        self.retry_after = retry_after
        # What belongs to the reason: the true `position`, the `quota`.
        self.metadata = dict(metadata or {})
        # By which the call is found in the lines of servers and proxies, 32
        # hex digits; empty: it came to none.
        self.trace_id = trace_id
        # True: the call would end so again, until somebody changes something.
        self.lasting = False
        # How often the call was made; only the last time ended so.
        self.attempts = 1
        # Of a turn: what of it had come.
        self.partial: Generation | None = None

    @property
    def field(self) -> str:
        """The first wrong field of the request; empty: none was named."""
        return self.fields[0] if self.fields else ""

    def __str__(self) -> str:
        text = self.code.name
        if self.reason:
            text += f" ({self.reason})"
        if self.field and self.field not in self.message:
            text += f": {', '.join(self.fields)}"
        text += f": {self.message}"
        if self.retry_after is not None:
            text += f"; retry after {self.retry_after:g} s"
        if self.trace_id:
            text += f"; trace {self.trace_id}"
        return text


class InvalidArgumentError(TxlError):
    """The request is wrong; `field` says where."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class NotFoundError(TxlError):
    """There is no such session (any more)."""

    code = grpc.StatusCode.NOT_FOUND


class AlreadyExistsError(TxlError):
    """A session of this id is there."""

    code = grpc.StatusCode.ALREADY_EXISTS


class AbortedError(TxlError):
    """Another call was in the way: busy, moved, at another position."""

    code = grpc.StatusCode.ABORTED


class FailedPreconditionError(TxlError):
    """What the server has does not fit: a session of another model."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class ResourceExhaustedError(TxlError):
    """There is no room: queue, memory, disk or quota."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class DeadlineExceededError(TxlError, TimeoutError):
    """The call's timeout has passed."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class CancelledError(TxlError):
    """The call was cancelled."""

    code = grpc.StatusCode.CANCELLED


class UnavailableError(TxlError, ConnectionError):
    """No server answers, or it is not ready, or shutting down."""

    code = grpc.StatusCode.UNAVAILABLE


class UnauthenticatedError(TxlError):
    """No key was sent, or a wrong one."""

    code = grpc.StatusCode.UNAUTHENTICATED


class PermissionDeniedError(TxlError):
    """The key may not do this."""

    code = grpc.StatusCode.PERMISSION_DENIED


class UnimplementedError(TxlError):
    """The server has no such method."""

    code = grpc.StatusCode.UNIMPLEMENTED


class DataLossError(TxlError):
    """Something is lost: a damaged session, a turn that was not continued."""

    code = grpc.StatusCode.DATA_LOSS


class InternalError(TxlError):
    """The server failed, or the connection broke."""

    code = grpc.StatusCode.INTERNAL


_CLASSES: dict[grpc.StatusCode, type[TxlError]] = {
    cls.code: cls for cls in TxlError.__subclasses__()}


# gRPC's own words for calls that cannot succeed, and what they mean where they
# do not say it. Those of TLS come from BoringSSL or OpenSSL.
_LASTING = tuple((re.compile(words, re.IGNORECASE), meaning)
                 for words, meaning in (
    ("wrong.version.number", "the server does not speak TLS"),
    ("certificate.verify.failed", "the server's certificate is not trusted"),
    ("not in peer certificate|hostname verification check failed",
     "the server's certificate names another host"),
    ("http1.x server", "the server speaks HTTP/1 there, not gRPC"),
    # A proxy's; too early, too slow and too often may pass.
    (r"http2 header with status: (4(?!08|25|29)\d\d|501|505)", ""),
    ("exception deserializing response", ""),
    ("channel closed", "")))


def _lasting_meaning(error: TxlError) -> str | None:
    """What is lasting in an error; None: nothing."""
    if not error.reason and error.retry_after is None:
        for words, meaning in _LASTING:
            if words.search(error.message):
                return meaning
    return None


def error_of(code: grpc.StatusCode, message: str,
             details: bytes = b"", traceparent: str = "") -> TxlError:
    """The error of a status. `details`: a serialized google.rpc.Status.

    Details that do not parse are dropped.
    """
    error = _error_of(code, message, details, traceparent)
    meaning = _lasting_meaning(error)
    error.lasting = meaning is not None
    if meaning:
        error.message = f"{meaning}: {message}"
    return error


def _error_of(code: grpc.StatusCode, message: str, details: bytes,
              traceparent: str) -> TxlError:
    said: dict[str, Any] = {}
    try:
        _read_details(status_pb2.Status.FromString(details), said)
    except Exception:  # pylint: disable=broad-except
        said = {}
    parts = traceparent.split("-")  # VERSION-TRACE-SPAN-FLAGS
    if len(parts) >= 4:
        said["trace_id"] = parts[1]
    cls = _CLASSES.get(code)
    if cls is None:
        error = TxlError(message, **said)
        error.code = code
        return error
    return cls(message, **said)


def _read_details(status: Any, said: dict[str, Any]) -> None:
    info = error_details_pb2.ErrorInfo()
    bad = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    for detail in status.details:
        if detail.Unpack(info) and info.domain == DOMAIN:
            said["reason"] = info.reason
            said["metadata"] = dict(info.metadata)
        elif detail.Unpack(bad):
            said["fields"] = [each.field for each in bad.field_violations]
        elif detail.Unpack(retry):
            said["retry_after"] = (retry.retry_delay.seconds
                                   + retry.retry_delay.nanos / 1e9)


def from_rpc_error(error: Any) -> TxlError:
    """The error of a grpc.RpcError, of grpc or of grpc.aio."""
    # Of an answer without a message, as a proxy's, all metadata are trailing.
    metadata = {key: value
                for part in (error.trailing_metadata(),
                             error.initial_metadata())
                for key, value in part or ()}
    return error_of(error.code(), error.details() or "",
                    metadata.get(_DETAILS, b""),
                    metadata.get(_TRACEPARENT, ""))
