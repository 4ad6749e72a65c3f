"""Calls of a server's HTTP API, sent again by the rules of the package."""

from __future__ import annotations

import http.client
import json
import math
import socket
import ssl
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from txl_client.channel import ClientOptions, Settings
from txl_client.errors import (DeadlineExceededError, InternalError, TxlError,
                               UnavailableError)
from txl_client.retry import Attempts

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Statuses without a reason that another attempt may change. Servers between
# this client and txl-server send them.
_PASSING = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Answer:
    """What came back, also from a refusal."""

    status: int
    request_id: str
    body: Any  # read from JSON; a text if it is not JSON


class NoServerError(UnavailableError):
    """No HTTP server is there, for this request and for all others."""


class Web:
    """POSTs to a server at `http://HOST:PORT` or `https://HOST:PORT`.

    Any number of threads may use it.
    """

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        tls, self._host, self._port = _server(url)
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.settings = Settings(f"{host}:{self._port}", **options)
        self.settings.credentials()  # checks the files
        self._context = _context(self.settings) if tls else None

    def post(self, path: str, body: Mapping[str, Any],
             repeatable: bool = True) -> Answer:
        """The answer, after as many attempts as it takes.

        TxlError if there is none. Not `repeatable`: as in Call.
        """
        data = json.dumps(body).encode()
        attempts = Attempts(self.settings.retry, self.settings.timeout)
        while True:
            answer, error = self._attempt(path, data, attempts.time_left())
            delay = (None if error is None
                     else attempts.delay(error, repeatable))
            if delay is None:
                if answer is None:
                    assert error is not None
                    raise error
                return answer
            time.sleep(delay)

    def _attempt(self, path: str, data: bytes, time_left: float | None
                 ) -> tuple[Answer | None, TxlError | None]:
        connection = self._connection(time_left)
        try:
            try:
                connection.connect()
            except OSError as broken:
                return None, _broken(NoServerError, broken)
            connection.sock.setsockopt(socket.SOL_SOCKET,
                                       socket.SO_KEEPALIVE, 1)
            try:
                connection.request("POST", path, data, {
                    "Content-Type": "application/json",
                    **dict(self.settings.metadata(""))})
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as broken:
                return None, _broken(UnavailableError, broken)
            answer = Answer(response.status,
                            response.getheader("x-request-id", ""),
                            _content(content))
            return answer, _refusal(answer, response)
        finally:
            connection.close()

    def _connection(self, timeout: float | None
                    ) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port,
                                              timeout=timeout)
        return http.client.HTTPSConnection(self._host, self._port,
                                           timeout=timeout,
                                           context=self._context)


def _server(url: str) -> tuple[bool, str, int]:
    """Whether a server's URL is for TLS, its host and its port."""
    wrong = ValueError(f"server: {url!r} is not http://HOST:PORT or "
                       "https://HOST:PORT")
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:  # a port or an IPv6 host that cannot be
        raise wrong from None
    if (parts.scheme not in ("http", "https") or not parts.hostname
            or port == 0 or "@" in parts.netloc or parts.path.strip("/")
            or parts.query or parts.fragment):
        raise wrong
    tls = parts.scheme == "https"
    return tls, parts.hostname, port or (443 if tls else 80)


def _context(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ca)
    if settings.cert:
        context.load_cert_chain(settings.cert, settings.key)
    return context


def _content(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content.decode(errors="replace")


def _broken(kind: type[TxlError], broken: Exception) -> TxlError:
    if isinstance(broken, TimeoutError):
        return DeadlineExceededError("the timeout has passed")
    if (isinstance(broken, http.client.BadStatusLine)
            and not isinstance(broken, ConnectionError)):
        error: TxlError = NoServerError("it does not speak HTTP/1.1 there")
        error.lasting = True
        return error
    error = kind(str(broken) or type(broken).__name__)
    error.lasting = isinstance(broken, ssl.SSLError)
    return error


def _refusal(answer: Answer, response: http.client.HTTPResponse
             ) -> TxlError | None:
    """What an answer means for another attempt; None: it is a success."""
    if answer.status < 400:
        return None
    said = answer.body.get("error") if isinstance(answer.body, dict) else None
    reason = said.get("code") if isinstance(said, dict) else None
    error = InternalError(f"HTTP {answer.status}",
                          reason=reason if isinstance(reason, str) else "",
                          retry_after=_retry_after(response))
    again = response.getheader("x-should-retry")
    error.lasting = again == "false" or (
        not again and not error.reason and answer.status not in _PASSING)
    if answer.status == 408:
        error.reason = ""  # the server did not get the request
    return error


def _retry_after(response: http.client.HTTPResponse) -> float | None:
    for header, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(response.getheader(header, "")) * unit
        except ValueError:  # a date, or none
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None
