"""A session over HTTP, as a plain client has it: a connection for each request,
and the same request again until it is answered (docs/http.md)."""

import http.client
import json
import ssl
import time

from life import bits
from turn_worker import PATIENCE, Failed

_SILENCE = 5.0  # seconds, after which it asks again, elsewhere
_PAUSE = 0.05
_AGAIN = {408, 429, 502, 503, 504}
# Of an error within a stream.
_AGAIN_CODES = {"SERVER_DRAIN", "DRAINING", "NOT_READY", "STORE_UNAVAILABLE",
                "SESSION_MOVED", "SESSION_BUSY", "QUEUE_FULL", "OVERLOADED",
                "NO_SESSION_MEMORY", "CLIENT_TOO_SLOW"}


class _Broken(Exception):
    """Another attempt may be answered."""


class WebSession:
    """`door`: TurnWorker's, with web_address()."""

    KIND, APPENDS = "web", True

    def __init__(self, door, name):
        self.name = name
        self._door = door
        self._named = 0

    def create(self):
        """Made by an attempt that nobody heard of is made, too."""
        self._until_answered(self._create)

    def _create(self, again):
        try:
            self._ask("POST", "/v1/sessions", {"session_id": self.name})
        except Failed as error:
            if not again or "SESSION_EXISTS" not in str(error):
                raise

    def turn(self, ask):
        """End, text, ids, bits of log-probabilities."""
        self._named += 1
        body = {"request_id": f"r{self._named}"}
        if not ask.tokens:
            return self._append({**body, "text": ask.prompt})
        body |= {"session_id": self.name, "seed": ask.seed,
                 "max_tokens": ask.tokens, "logprobs": 0,
                 "return_token_ids": True}
        if ask.prompt:
            body["prompt"] = ask.prompt
        if ask.streamed:
            return self._stream(body)
        got = self._until_answered(
            lambda _: self._ask("POST", "/v1/completions", body))
        return _joined(got["choices"])

    def _append(self, body):
        got = self._until_answered(lambda _: self._ask(
            "POST", f"/v1/sessions/{self.name}/append",
            {**body, "return_logprobs": True}))
        return got["position"], got["scored"]

    def ids(self):
        ids, token = [], ""
        while True:
            path = (f"/v1/sessions/{self.name}?include_tokens=true"
                    f"&page_token={token}")
            page = self._until_answered(lambda _, p=path: self._ask("GET", p))
            ids += page.get("token_ids", [])
            token = page.get("next_page_token", "")
            if not token:
                return ids

    def close(self):
        """It keeps nothing open."""

    def _stream(self, body):
        body = {**body, "stream": True, "stream_options": {"event_ids": True}}
        choices = []  # of the events that came
        self._until_answered(lambda _: self._read_stream(body, choices))
        return _joined(choices)

    def _until_answered(self, attempt):
        """`attempt`: called with whether there were others."""
        end, again = time.monotonic() + PATIENCE, False
        while True:
            try:
                return attempt(again)
            except (_Broken, OSError, http.client.HTTPException) as error:
                if time.monotonic() > end:
                    raise Failed(f"no answer: {error!r}") from error
            again = True
            self._door.report.count("web_requests_made_again")
            time.sleep(_PAUSE)

    def _ask(self, method, path, body=None):
        connection = self._connect()
        try:
            answer = _send(connection, method, path, body)
            return json.loads(answer.read())
        finally:
            connection.close()

    def _read_stream(self, body, choices):
        """Takes on what is new of the stream. Raises _Broken before its end."""
        connection = self._connect()
        try:
            answer = _send(connection, "POST", "/v1/completions", body,
                           {"Last-Event-ID": str(len(choices))}
                           if choices else {})
            number = None
            for line in answer:
                kind, _, value = line.decode().strip("\n").partition(": ")
                if kind == "id":
                    number = int(value)
                elif kind == "data" and value == "[DONE]":
                    return
                elif kind == "data":
                    _take(json.loads(value), number, choices)
        finally:
            connection.close()
        raise _Broken("the stream was cut off")

    def _connect(self):
        host, port, certificate = self._door.web_address()
        if certificate is None:
            return http.client.HTTPConnection(host, port, timeout=_SILENCE)
        return http.client.HTTPSConnection(
            host, port, timeout=_SILENCE,
            context=ssl.create_default_context(cafile=certificate))


def _send(connection, method, path, body, headers=None):
    """The answer, which is a good one."""
    data = None if body is None else json.dumps(body).encode()
    connection.request(method, path, data, {
        "Content-Type": "application/json", **(headers or {})})
    answer = connection.getresponse()
    if answer.status == 200:
        return answer
    text = f"{method} {path}: {answer.status} {answer.read()[:300]}"
    if answer.status in _AGAIN or answer.headers["x-should-retry"] == "true":
        raise _Broken(text)
    raise Failed(text)


def _take(event, number, choices):
    if "error" in event:
        text = f"in a stream: {event['error']}"
        if event["error"].get("code") in _AGAIN_CODES:
            raise _Broken(text)
        raise Failed(text)
    if number != len(choices) + 1:
        raise Failed(f"event {number} instead of {len(choices) + 1}")
    choices += event["choices"]


def _joined(choices):
    """What the parts of one choice say together."""
    ids, logprobs, text = [], [], ""
    for each in choices:
        ids += each.get("token_ids") or []
        logprobs += (each.get("logprobs") or {}).get("token_logprobs", [])
        text += each["text"]
    return (choices[-1]["finish_reason"], text, ids,
            [bits(logprob) for logprob in logprobs])
