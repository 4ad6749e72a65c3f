"""Errors of calls: a class for each status, with the server's details."""

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
    """A call failed.

    `message` is for people; programs use the class, or `reason`.
    """

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN

    def __init__(self, message: str, *, reason: str = "",
                 fields: Iterable[str] = (),
                 retry_after: float | None = None,
                 metadata: Mapping[str, str] | None = None,
                 trace_id: str = "") -> None:
        super().__init__(message)
        self.message = message
        # "SESSION_BUSY", ...; empty: the server sent none, or did not get the
        # call.
        self.reason = reason
        # Wrong fields of the request.
        self.fields = tuple(fields)
        # Seconds after which the server suggests another attempt; None: it does
        # not suggest one.
        self.retry_after = retry_after
        # Details of the reason, such as the true `position` or the `quota`.
        self.metadata = dict(metadata or {})
        # The item that is wrong, of a list or table of the caller, with which
        # `message` begins: "texts[57]"; empty: none was named.
        self.place = ""
        # Finds the call in logs of servers and proxies, 32 hex digits;
        # empty: no server got the call.
        self.trace_id = trace_id
        # True: the call would fail again until a setting is changed.
        self.lasting = False
        # How often the call was sent; this is the error of the last attempt.
        self.attempts = 1
        # For a turn: the part that had arrived.
        self.partial: Generation | None = None

    @property
    def field(self) -> str:
        """The first wrong field of the request; empty: none was named."""
        return self.fields[0] if self.fields else ""

    def name(self, places: Mapping[str, str]) -> None:
        """Names the place of the wrong field, if `places` has its beginning.

        Of "tokens.ids[3]" that is "tokens", and [3] follows the place. Of a
        message that is too large for a server it is "".
        """
        beginning, _, rest = self.field.partition(".")
        if beginning in places and (self.field or self.is_too_large):
            self.place = "".join((places[beginning],
                                  *re.findall(r"\[\d+\]$", rest)))
            self.message = f"{self.place}: {self.message}"

    @property
    def is_too_large(self) -> bool:
        """True if the message was larger than a server or gRPC takes."""
        return (self.code == grpc.StatusCode.RESOURCE_EXHAUSTED
                and not self.reason and self.retry_after is None)

    def __str__(self) -> str:
        text = self.code.name
        if self.reason:
            text += f" ({self.reason})"
        if self.field and not self.place and self.field not in self.message:
            text += f": {', '.join(self.fields)}"
        text += f": {self.message}"
        if self.retry_after is not None:
            text += f"; retry after {self.retry_after:g} s"
        if self.trace_id:
            text += f"; trace {self.trace_id}"
        return text


class InvalidArgumentError(TxlError):
    """The request is wrong; `field` says where."""


class NotFoundError(TxlError):
    """The session does not exist (any longer)."""


class AlreadyExistsError(TxlError):
    """A session with this id exists."""


class AbortedError(TxlError):
    """Another call was in the way: busy, moved, at another position."""


class FailedPreconditionError(TxlError):
    """The server's state does not fit, such as a session of another model."""


class ResourceExhaustedError(TxlError):
    """The server has no room in its queue, memory, disk or quota."""


class DeadlineExceededError(TxlError, TimeoutError):
    """The call's timeout has passed."""


class CancelledError(TxlError):
    """The call was cancelled."""


class UnavailableError(TxlError, ConnectionError):
    """No server answers, or it is not ready, or it is shutting down."""


class UnauthenticatedError(TxlError):
    """The key is missing or wrong."""


class PermissionDeniedError(TxlError):
    """The key may not do this."""


class UnimplementedError(TxlError):
    """The server does not have this method."""


class DataLossError(TxlError):
    """Data is lost: a damaged session, a turn that was not continued."""


class InternalError(TxlError):
    """The server failed, or the connection broke."""


_CLASSES: dict[grpc.StatusCode, type[TxlError]] = {}
for _class in TxlError.__subclasses__():  # NotFoundError is NOT_FOUND's
    _class.code = grpc.StatusCode[re.sub(
        r"\B(?=[A-Z])", "_", _class.__name__.removesuffix("Error")).upper()]
    _CLASSES[_class.code] = _class

# Messages of gRPC for calls that cannot succeed, with their meaning if they do
# not tell it. Those of TLS come from BoringSSL or OpenSSL.
_LASTING = tuple((re.compile(words, re.IGNORECASE), meaning)
                 for words, meaning in (
    ("wrong.version.number", "the server does not speak TLS"),
    ("certificate.verify.failed", "the server's certificate is not trusted"),
    ("not in peer certificate|hostname verification check failed",
     "the server's certificate names another host"),
    ("http1.x server", "the server speaks HTTP/1 there, not gRPC"),
    # From a proxy. After 408, 425 and 429 a retry may succeed.
    (r"http2 header with status: (4(?!08|25|29)\d\d|501|505)", ""),
    ("exception deserializing response", ""),
    ("channel closed", "")))


def _lasting_meaning(error: TxlError) -> str | None:
    """The meaning of an error that would last; None: it may pass."""
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
    said: dict[str, Any] = {}
    try:
        _read_details(status_pb2.Status.FromString(details), said)
    except Exception:  # pylint: disable=broad-except
        said = {}
    parts = traceparent.split("-")  # VERSION-TRACE-SPAN-FLAGS
    if len(parts) >= 4:
        said["trace_id"] = parts[1]
    error = _CLASSES.get(code, TxlError)(message, **said)
    error.code = code
    meaning = _lasting_meaning(error)
    error.lasting = meaning is not None
    if meaning:
        error.message = f"{meaning}: {message}"
    return error


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
    # In an answer without a message, such as a proxy's, all metadata trail.
    metadata = {key: value
                for part in (error.trailing_metadata(),
                             error.initial_metadata())
                for key, value in part or ()}
    return error_of(error.code(), error.details() or "",
                    metadata.get(_DETAILS, b""),
                    metadata.get(_TRACEPARENT, ""))
