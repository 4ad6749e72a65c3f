"""The API's messages and calls over `wire`: what an honest client needs."""

import base64
import binascii
import functools
import pathlib
import subprocess
import tempfile
import time

from google.protobuf import (descriptor_pb2, descriptor_pool, json_format,
                             message_factory)
from google.rpc import error_details_pb2, status_pb2

import wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEALTH = "/grpc.health.v1.Health/Check"
SERVING = b"\x08\x01"
OK, CANCELLED, INVALID_ARGUMENT, DEADLINE_EXCEEDED = 0, 1, 3, 4
NOT_FOUND, ABORTED, RESOURCE_EXHAUSTED = 5, 10, 8
UNIMPLEMENTED, INTERNAL, UNAVAILABLE = 12, 13, 14


@functools.cache
def _pool():
    """The messages of proto/txl/v1, as protoc reads them."""
    files = sorted((ROOT / "proto/txl/v1").glob("*.proto"))
    with tempfile.NamedTemporaryFile() as output:
        subprocess.run(["protoc", "--include_imports", "-I", ROOT / "proto",
                        f"--descriptor_set_out={output.name}", *files],
                       check=True)
        described = descriptor_pb2.FileDescriptorSet.FromString(output.read())
    pool = descriptor_pool.DescriptorPool()
    for file in described.file:
        pool.Add(file)
    return pool


def message(name, **fields):
    """txl.v1.NAME with these fields (dictionaries for messages)."""
    kind = message_factory.GetMessageClass(
        _pool().FindMessageTypeByName(f"txl.v1.{name}"))
    return json_format.ParseDict(fields, kind())


def _method(name):
    """(path, class of its response) of "Service.Method" without "Service"."""
    service, _, method = name.partition(".")
    found = _pool().FindServiceByName(
        f"txl.v1.{service}Service").methods_by_name[method]
    return (f"/txl.v1.{service}Service/{method}",
            message_factory.GetMessageClass(found.output_type))


def path_of(name):
    return _method(name)[0]


class Status:
    """How a call ended. `reason`: of ErrorInfo."""

    def __init__(self, stream):
        self.code, self.reason, self.text = None, "", ""
        trailers = stream.trailers
        if "grpc-status" in trailers:
            self.code = int(trailers["grpc-status"])
            self.text = trailers.get("grpc-message", "")
            self.reason = _reason(trailers.get("grpc-status-details-bin", ""))
        elif stream.reset is not None:
            self.text = f"reset {stream.reset}"
        elif ":status" in trailers:
            self.text = f"HTTP {trailers[':status']}"

    def __str__(self):
        code = "no status" if self.code is None else self.code
        return " ".join(str(w) for w in (code, self.reason, self.text) if w)


def _reason(encoded):
    try:
        details = base64.b64decode(encoded + "=" * (-len(encoded) % 4))
        status = status_pb2.Status.FromString(details)
    except (binascii.Error, ValueError):
        return ""
    info = error_details_pb2.ErrorInfo()
    for detail in status.details:
        if detail.Unpack(info):
            return info.reason
    return ""


class Failed(Exception):
    """An honest call got something else than OK."""


class Client:
    """Calls on one connection. `bearer`: the key that they carry, if any."""

    def __init__(self, connection):
        self.connection = connection
        self.bearer = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def start(self, name, fields=None, metadata=(), **options):
        """Sends a request; its stream."""
        request = message(f"{name.partition('.')[2]}Request", **(fields or {}))
        if self.bearer:
            metadata = [*metadata, ("authorization", f"Bearer {self.bearer}")]
        return self.connection.open(path_of(name), request.SerializeToString(),
                                    metadata=metadata, **options)

    def finish(self, stream, timeout=30):
        """Waits for the end of a stream; its status."""
        if not self.connection.wait(lambda: stream.ended, timeout):
            raise TimeoutError(f"no end of a call within {timeout:.1f} s")
        self.connection.forget(stream)
        return Status(stream)

    def try_call(self, name, fields=None, timeout=30, **options):
        """(status, response or None)."""
        stream = self.start(name, fields, **options)
        status = self.finish(stream, timeout)
        if status.code != OK or not stream.messages:
            return status, None
        return status, _method(name)[1].FromString(stream.messages[0])

    def call(self, name, fields=None, **options):
        """The response of a call that has to succeed."""
        status, response = self.try_call(name, fields, **options)
        if status.code != OK:
            raise Failed(f"{name}: {status}")
        return response

    def try_generate(self, fields, timeout=30, **options):
        """(status, events)."""
        stream = self.start("Generation.Generate", fields, **options)
        status = self.finish(stream, timeout)
        return status, events(stream)

    def generate(self, fields, **options):
        """The token ids of a turn that has to succeed."""
        status, got = self.try_generate(fields, **options)
        if status.code != OK:
            raise Failed(f"Generate: {status}")
        return [e.token.token_id for e in got if e.HasField("token")]

    def health_seconds(self, timeout=10):
        """How long Health/Check takes to say SERVING."""
        begin = time.monotonic()
        stream = self.connection.open(HEALTH, b"")
        status = self.finish(stream, timeout)
        if status.code != OK or list(stream.messages) != [SERVING]:
            raise Failed(f"health: {status} {list(stream.messages)}")
        return time.monotonic() - begin


def events(stream):
    """The events of a Generate that have arrived."""
    kind = _method("Generation.Generate")[1]
    return [kind.FromString(m) for m in stream.messages]


def turn(max_tokens, session="", ids=(1, 2, 3), logprobs=0, request_id=""):
    """Fields of a greedy turn of exactly `max_tokens` tokens."""
    fields = {"sampling": {"temperature": 0},
              "stop": {"maxTokens": max_tokens, "ignoreEndToken": True}}
    if ids:
        fields["tokens"] = {"ids": list(ids)}
    if session:
        fields["sessionId"] = session
    if logprobs:
        fields["output"] = {"logprobs": logprobs}
    if request_id:
        fields["requestId"] = request_id
    return fields
