"""Where a server is, how to reach it, and what goes along with every call."""

from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass, field
from typing import Any, TypedDict, Union

import grpc

from txl_client._proto import (generation_service_pb2_grpc,
                               model_service_pb2_grpc,
                               session_service_pb2_grpc)
from txl_client.retry import RetryPolicy

Path = Union[str, "pathlib.PurePath"]
Metadata = tuple[tuple[str, str], ...]

_HOST_PORT = re.compile(r".+:(\d{1,5})")

# gRPC's own second and two minutes are long for a person who waits, and a
# scored text with alternatives for each token is larger than its 4 MiB.
_ARGUMENTS = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    ("grpc.max_receive_message_length", 64 << 20),
)


class ClientOptions(TypedDict, total=False):
    """Options of Client() and AsyncClient()."""

    tls: bool  # on where one of the next three is given
    ca: Path  # PEM file of roots; default: gRPC's
    cert: Path  # PEM file of the client's own certificate, with `key`
    key: Path  # PEM file of its private key
    bearer: str  # key that the server asks for
    retry: RetryPolicy
    timeout: float  # seconds of each call, all its attempts together
    in_flight: int  # calls at a time where there are many to make


@dataclass(frozen=True)
class Settings:
    """ClientOptions, checked. ValueError names what is wrong."""

    address: str
    tls: bool = False
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    bearer: str | None = field(default=None, repr=False)
    retry: RetryPolicy = RetryPolicy()
    timeout: float | None = None
    in_flight: int = 32

    def __post_init__(self) -> None:
        check_address(self.address)
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert, key: one is of no use without the other")
        if self.in_flight < 1:
            raise ValueError("in_flight: must be at least 1")

    def credentials(self) -> Any:
        """Of the channel; None: it is not encrypted."""
        if not (self.tls or self.ca or self.cert):
            return None
        return grpc.ssl_channel_credentials(
            _read(self.ca), _read(self.key), _read(self.cert))

    def arguments(self) -> list[tuple[str, int]]:
        """Of the channel."""
        return list(_ARGUMENTS)

    def metadata(self, session_id: str) -> Metadata:
        """Of a call: proxies route by the session, servers check the key."""
        pairs: Metadata = ()
        if session_id:
            pairs += (("x-txl-session", session_id),)
        if self.bearer:
            pairs += (("authorization", f"Bearer {self.bearer}"),)
        return pairs


def check_address(address: str) -> None:
    """ValueError for what is neither HOST:PORT nor unix:PATH."""
    if address.startswith("unix:") and len(address) > len("unix:"):
        return
    match = _HOST_PORT.fullmatch(address)
    if "://" in address or not match or not 0 < int(match.group(1)) < 65536:
        raise ValueError(
            f"address: {address!r} is neither HOST:PORT nor unix:PATH")


def _read(path: Path | None) -> bytes | None:
    return None if path is None else pathlib.Path(path).read_bytes()


class Stubs:
    """The services' methods on a channel, of grpc or of grpc.aio."""

    def __init__(self, channel: Any) -> None:
        # Generated code has no types.
        generation: Any = generation_service_pb2_grpc
        model: Any = model_service_pb2_grpc
        session: Any = session_service_pb2_grpc
        self._services: dict[str, Any] = {
            "Generation": generation.GenerationServiceStub(channel),
            "Model": model.ModelServiceStub(channel),
            "Session": session.SessionServiceStub(channel),
        }

    def method(self, name: str) -> Any:
        """Of "Service.Method" without "Service"."""
        service, _, method = name.partition(".")
        return getattr(self._services[service], method)
