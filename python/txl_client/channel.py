"""The address of a server, how to reach it, and the headers of every call."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypedDict, Union

import grpc

from txl_client import checks
from txl_client._proto import (generation_service_pb2_grpc,
                               model_service_pb2_grpc,
                               session_service_pb2_grpc)
from txl_client.errors import CancelledError
from txl_client.retry import RetryPolicy

Path = Union[str, "pathlib.PurePath"]
Metadata = tuple[tuple[str, str], ...]

# An IPv6 host stands in brackets.
_HOST_PORT = re.compile(r"(?:\[[^\x00-\x20\x7f/@,\[\]]+\]"
                        r"|[^\x00-\x20\x7f/@,:\[\]]+):([0-9]{1,5})")
_MAX_SOCKET_BYTES = 107  # of the path of a Unix socket
_KEY = re.compile(r"[!-~]+")

# gRPC's default delays of 1 s to 2 min are long for a person who waits, and a
# scored text with alternatives for each token exceeds its default of 4 MiB.
_ARGUMENTS = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    ("grpc.max_receive_message_length", 64 << 20),
)


class ClientOptions(TypedDict, total=False):
    """Options of Client() and AsyncClient()."""

    tls: bool  # on if one of the next three is given
    ca: Path  # PEM file of roots; default: gRPC's
    cert: Path  # PEM file of the client's own certificate, with `key`
    key: Path  # PEM file of its private key
    bearer: str  # key that the server requires
    retry: RetryPolicy
    timeout: checks.Seconds | None  # of each call, with all its attempts
    in_flight: int  # calls at a time, of methods that make many


@dataclass(frozen=True)
class Settings:
    """ClientOptions, checked. TypeErrors and ValueErrors name the option."""

    address: str
    tls: bool = False
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    bearer: str | None = field(default=None, repr=False)
    retry: RetryPolicy = RetryPolicy()
    timeout: checks.Seconds | None = None
    in_flight: int = 32

    def __post_init__(self) -> None:
        check_address(self.address)
        checks.flag("tls", self.tls)
        for name in ("ca", "cert", "key"):
            if getattr(self, name) is not None:
                checks.path(name, getattr(self, name))
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert, key: must be given together")
        if self.bearer is not None:
            self._set("bearer", bearer_key(self.bearer))
        if not isinstance(self.retry, RetryPolicy):
            raise checks.kind_error("retry", "a RetryPolicy", self.retry)
        if self.time_limit is not None and self.time_limit <= 0:
            raise ValueError("timeout: must be more than 0")
        self._set("in_flight", checks.integer("in_flight", self.in_flight, 1))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def time_limit(self) -> float | None:
        """Seconds of each call; None: no limit."""
        return checks.timeout("timeout", self.timeout)

    def credentials(self) -> Any:
        """Credentials of the channel; None: it is not encrypted."""
        if not (self.tls or self.ca or self.cert):
            return None
        files = [_read(self.ca), _read(self.key), _read(self.cert)]
        _check_pem(self.ca, self.cert, self.key)
        return grpc.ssl_channel_credentials(*files)

    def metadata(self, session_id: str) -> Metadata:
        """Headers of a call: the session for proxies, the key for servers."""
        pairs: Metadata = ()
        if session_id:
            pairs += (("x-txl-session",
                       checks.name_of("session_id", session_id)),)
        if self.bearer:
            pairs += (("authorization", f"Bearer {self.bearer}"),)
        return pairs


def check_address(address: str) -> None:
    """ValueError unless the address is HOST:PORT or unix:PATH."""
    if checks.text("address", address).startswith("unix:"):
        socket = address.removeprefix("unix:").removeprefix("//").encode()
        # gRPC takes what follows unix:// for a host, unless it is a path.
        is_path = (not address.startswith("unix://")
                   or address.startswith("unix:///"))
        if len(socket) > _MAX_SOCKET_BYTES:
            raise ValueError(f"address: a socket's path has at most "
                             f"{_MAX_SOCKET_BYTES} bytes, this one has "
                             f"{len(socket)}")
        valid = is_path and bool(socket) and min(socket) > 0x1f
    else:
        match = _HOST_PORT.fullmatch(address)
        valid = match is not None and 0 < int(match.group(1)) < 65536
    if not valid:
        raise ValueError(
            f"address: {address!r} is neither HOST:PORT nor unix:PATH")


def bearer_key(value: Any) -> str:
    """A key without surrounding white space; errors do not show it."""
    if not isinstance(value, str):
        raise TypeError(f"bearer: must be text, is {type(value).__name__}")
    key = value.strip()
    if not _KEY.fullmatch(key):
        raise ValueError("bearer: must be a key of printable ASCII characters "
                         "without spaces; leave it out to send no key")
    return key


def _check_pem(ca: Path | None, cert: Path | None, key: Path | None) -> None:
    """ValueError for files that gRPC could not use.

    gRPC itself would report a server that does not answer, or use its own roots
    if the file has none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("DEFAULT@SECLEVEL=0")  # gRPC decides about strength
    name = "ca"
    try:
        if ca is not None:
            context.load_verify_locations(ca)
        name = "cert, key"
        if cert is not None:
            # Without a password, OpenSSL would prompt for the passphrase.
            context.load_cert_chain(cert, key, password="")
    except ssl.SSLError as error:
        raise ValueError(f"{name}: must be PEM files that belong together, "
                         f"without a passphrase: {error}") from error


def _read(path: Path | None) -> bytes | None:
    return None if path is None else pathlib.Path(path).read_bytes()


class Stubs:
    """The methods of all services on a channel of grpc or grpc.aio."""

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
        """The method of a name such as "Model.Tokenize"."""
        service, _, method = name.partition(".")
        return getattr(self._services[service], method)


class Channel:
    """A channel of `library`, which is grpc or grpc.aio."""

    def __init__(self, library: Any, settings: Settings) -> None:
        self._library = library
        self._settings = settings
        self._credentials = settings.credentials()
        self.opened: Any = None  # the library's own
        self.closed = False
        self._stubs: Stubs | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # A channel of grpc.aio belongs to the event loop in which it is made,
        # which may not run yet.
        if library is grpc:
            self._open()

    def _open(self) -> Stubs:
        if self._library is not grpc:
            self._loop = asyncio.get_running_loop()
        address, options = self._settings.address, list(_ARGUMENTS)
        self.opened = (
            self._library.insecure_channel(address, options=options)
            if self._credentials is None else
            self._library.secure_channel(address, self._credentials,
                                         options=options))
        self._stubs = Stubs(self.opened)
        return self._stubs

    def method(self, name: str) -> Any:
        """The method of a name such as "Model.Tokenize".

        Its call raises ValueError after close(), and RuntimeError in another
        event loop than the first call's. gRPC's own errors for this do not name
        the client.
        """
        def call(*arguments: Any, **options: Any) -> Any:
            if self.closed:
                raise ValueError("the client is closed")
            stubs = self._stubs or self._open()
            if self._loop and self._loop is not asyncio.get_running_loop():
                raise RuntimeError("the client belongs to the event loop of "
                                   "its first call: make one for each loop")
            return stubs.method(name)(*arguments, **options)

        return call

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """CancelledError where close() ends the call in it.

        grpc.aio raises asyncio's, which would look as if the caller's own task
        were cancelled. Python 3.10 cannot tell the two apart.
        """
        try:
            yield
        except asyncio.CancelledError:
            task: Any = asyncio.current_task()
            cancelling = getattr(task, "cancelling", None)
            if not self.closed or cancelling is None or cancelling():
                raise
            error = CancelledError("the client was closed")
            error.lasting = True
            raise error from None
