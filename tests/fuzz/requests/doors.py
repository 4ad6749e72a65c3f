"""Sends a case's request over gRPC or HTTP; what came back, in one form."""

import base64
import dataclasses
import functools
import http.client
import json
import math
import time
import urllib.parse

import grpc
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2

import paths  # pylint: disable=unused-import

import api

# What an answer says of tokens and positions: where gRPC has it, then HTTP.
_ESSENCE = {
    "GenerationService/Score": ("tokens.token_id", "sum_logprob", "position"),
    "GenerationService/ScoreAlternatives": ("scores.sum_logprob",
                                            "scores.token_count",
                                            "scores.tokens.token_id"),
    "SessionService/GetSession": ("token_ids", "text", "session.position"),
    "SessionService/AppendTokens": ("position", "scored.token_id",
                                    "sum_logprob"),
    "SessionService/ForkSession": ("session.position",),
    "SessionService/RewindSession": ("session.position",),
    "ModelService/Tokenize": (("token_ids", "tokens"),),
    "ModelService/Detokenize": (("text", "prompt"),),
}
_HTTP_CODES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED",
               403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
               413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED",
               431: "INVALID_ARGUMENT", 500: "INTERNAL"}
_TYPES = {"invalid_request_error": 400, "not_found_error": 404,
          "conflict_error": 409, "rate_limit_error": 429, "server_error": 500}
_ALIKE = {"ALREADY_EXISTS": "ABORTED", "FAILED_PRECONDITION": "ABORTED"}
_PATIENCE = 60  # seconds until nothing will come


@functools.cache
def _kind(name):
    return type(api.message(name))


def _message(name):
    return _kind(name)()


class Inexpressible(Exception):
    """The door's types do not have the value."""


@dataclasses.dataclass
class Answer:
    code: str = "OK"     # a gRPC code; "NONE": there was no answer
    reason: str = ""
    field: str = ""
    text: str = ""       # of an error
    essence: object = None  # what both doors have to say
    tokens: object = None   # of a turn
    seconds: float = 0.0    # to the first event, or the end
    broken: str = ""     # how its form is wrong

    @property
    def ok(self):
        return self.code == "OK"

    def same_code(self, other):
        return _ALIKE.get(self.code, self.code) == _ALIKE.get(other.code,
                                                              other.code)


def named(value, ids):
    """A value with the case's own ids in the place of symbols."""
    return ids.get(value, value) if isinstance(value, str) else value


def _dig(value, path):
    for part in path.split("."):
        if value is None or isinstance(value, dict):
            value = value and value.get(part)
        elif hasattr(value, "extend"):
            value = [_dig(v, part) for v in value]
        else:
            value = getattr(value, part)
    return list(value) if hasattr(value, "extend") else value


def _essence(name, door, message):
    pairs = [(p, p) if isinstance(p, str) else p
             for p in _ESSENCE.get(name, ())]
    return [_finite(_dig(message, pair[door])) for pair in pairs]


def _finite(value):
    """HTTP has no infinity."""
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return -9999.0 if value == -math.inf else value


# --- gRPC

def _set(message, path, value):
    *owners, last = path.split(".")
    for owner in owners:
        message = getattr(message, owner)
        message.SetInParent()
    try:
        if last == "ttl":
            whole = math.floor(value)
            message.ttl.CopyFrom(duration_pb2.Duration(
                seconds=whole, nanos=round((value - whole) * 1e9)))
        elif last == "alternatives":
            for one in value:
                new = message.alternatives.add()
                if isinstance(one, str):
                    new.text = one
                else:
                    new.tokens.SetInParent()
                    new.tokens.ids.extend(one)
        elif isinstance(value, list):
            getattr(message, last).extend(value)
        elif isinstance(value, dict):
            for key, number in value.items():
                getattr(message, last)[key] = number
        else:
            setattr(message, last, value)
    except (ValueError, TypeError, OverflowError) as error:
        raise Inexpressible(f"{path}: {error}") from error


def grpc_message(case, ids, paths=None):
    service, _, method = case.name.partition("/")
    message = _message(f"{method}Request")
    for path, value in case.fields.items():
        if (path in case.method.fields and case.changes.get(path) != "other"
                and (paths is None or path in paths)):
            _set(message, path, named(value, ids))
    return message


def grpc_bytes(case, ids):
    message = grpc_message(case, ids)
    data = message.SerializeToString()
    for path, how in case.changes.items():
        if how == "unknown":
            data += b"\xc0\x3e\x07"  # field 1000 is 7
        elif how == "doubled":
            data += grpc_message(case, ids, [path]).SerializeToString()
        elif how == "other" and "." not in path:
            number = message.DESCRIPTOR.fields_by_name[path].number
            data += bytes([number << 3 | 5]) + b"\1\0\0\0"  # a fixed32
    return data


class Grpc:
    """One thread's; `key`: of its tenant."""

    def __init__(self, address, key=""):
        self._channel = grpc.insecure_channel(address, [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1)])
        self._metadata = [("authorization", f"Bearer {key}")] if key else []

    def close(self):
        self._channel.close()

    def call(self, name, **fields):
        """The response of a call that has to succeed."""
        method = name.rpartition("/")[2]
        request = _message(f"{method}Request")
        for path, value in fields.items():
            _set(request, path, value)
        data = self._channel.unary_unary(f"/txl.v1.{name}")(
            request.SerializeToString(), _PATIENCE, self._metadata)
        return _kind(f"{method}Response").FromString(data)

    def ids(self, session):
        """Of a session; None: there is none."""
        try:
            got = self.call("SessionService/GetSession", session_id=session,
                            include_tokens=True)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return None
            raise
        return list(got.token_ids)

    def delete(self, *sessions):
        """Those that are there."""
        for session in sessions:
            try:
                self.call("SessionService/DeleteSession", session_id=session)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.NOT_FOUND:
                    raise

    def export(self, session):
        request = _message("ExportSessionRequest")
        request.session_id = session
        kind = _kind("ExportSessionResponse")
        return b"".join(kind.FromString(m).chunk for m in self._stream(
            "SessionService/ExportSession", request.SerializeToString()))

    def import_(self, session, data):
        first = _message("ImportSessionRequest")
        first.session_id = session
        self._channel.stream_unary("/txl.v1.SessionService/ImportSession")(
            iter(_import_messages(first, data)), _PATIENCE, self._metadata)

    def turn(self, session, tokens):
        """A turn that has started and runs on."""
        request = _message("GenerateRequest")
        request.session_id = session
        request.tokens.ids.append(1)
        request.stop.max_tokens = tokens
        stream = self._stream("GenerationService/Generate",
                              request.SerializeToString())
        next(stream)
        return stream

    def _stream(self, name, data):
        return self._channel.unary_stream(f"/txl.v1.{name}")(
            data, _PATIENCE, self._metadata)

    def send(self, case, ids):
        begin = time.monotonic()
        got, first = [], None
        try:
            for message in self._messages(case, ids):
                first = first or time.monotonic()
                got.append(message)
            answer = _grpc_answer(case.name, got)
        except grpc.RpcError as error:
            answer = _grpc_error(error)
            answer.tokens = _tokens(got) if got else None
        answer.seconds = (first or time.monotonic()) - begin
        return answer

    def _messages(self, case, ids):
        kind = _kind(case.name.partition("/")[2] + "Response")
        if case.name == "SessionService/ImportSession":
            first = grpc_message(case, ids)
            data, twice = first.chunk, case.changes.get("chunk") == "doubled"
            first.ClearField("chunk")
            messages = _import_messages(first, data * 2 if twice else data)
            answers = [self._channel.stream_unary(f"/txl.v1.{case.name}")(
                iter(messages), _PATIENCE, self._metadata)]
        elif case.name in ("GenerationService/Generate",
                           "SessionService/ExportSession"):
            answers = self._stream(case.name, grpc_bytes(case, ids))
        else:
            answers = [self._channel.unary_unary(f"/txl.v1.{case.name}")(
                grpc_bytes(case, ids), _PATIENCE, self._metadata)]
        for data in answers:
            yield kind.FromString(data)


def _import_messages(first, data):
    messages = [first.SerializeToString()]
    for at in range(0, len(data), 1 << 18):
        part = type(first)(chunk=data[at:at + (1 << 18)])
        messages.append(part.SerializeToString())
    return messages


def _tokens(events):
    ids = []
    for event in events:
        if event.HasField("token"):
            ids.append(event.token.token_id)
        ids += [t.token_id for t in event.tokens.tokens]
    return ids


def _grpc_answer(name, messages):
    answer = Answer()
    if name == "GenerationService/Generate":
        answer.tokens = answer.essence = _tokens(messages)
        if not messages or not messages[-1].HasField("finished"):
            answer.broken = "OK, and no Finished"
    elif len(messages) == 1:
        answer.essence = _essence(name, 0, messages[0])
    return answer


def _grpc_error(error):
    answer = Answer(error.code().name, text=error.details() or "")
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        for detail in status_pb2.Status.FromString(value).details:
            info = error_details_pb2.ErrorInfo()
            bad = error_details_pb2.BadRequest()
            if detail.Unpack(info):
                answer.reason = info.reason
            elif detail.Unpack(bad) and bad.field_violations:
                answer.field = bad.field_violations[0].field
    return answer


# --- HTTP

_ENUM = {0: None, 1: "skip", 2: "symbol"}


def misspelt(name):
    """Without the letter before its last: of "stream_options.event_ids" in the
    last part."""
    return name[:-2] + name[-1:]


def _json_value(case, path, ids):
    value = named(case.fields[path], ids)
    if case.field(path).kind == "enum" and \
            case.changes.get(path) != "other":
        value = _ENUM.get(value, str(value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value) or \
            isinstance(value, dict) and any(map(math.isinf, filter(
                lambda v: isinstance(v, float), value.values()))):
        raise Inexpressible(path)
    return value


def http_members(case, ids):
    """(name, value) of a body or a query, a name perhaps twice."""
    http_names = case.method.http.names
    members = []
    for path in case.fields:
        name = http_names.get(path) or (
            path if path in case.method.http.more else None)
        if name and not ("prompt" in case.fields and path in
                         ("text", "tokens.ids")):
            members += [(name, _json_value(case, path, ids))] * (
                2 if case.changes.get(path) == "doubled" else 1)
    if "return_token_ids" in case.method.http.more and not any(
            n == "return_token_ids" for n, _ in members) and \
            "return_token_ids" not in case.changes:
        members.append(("return_token_ids", True))
    for path, how in case.changes.items():
        name = http_names.get(path, path)
        if how == "null":
            members.append((name, None))
        elif how == "misspelt":
            members.append((misspelt(name), 1))
        elif how == "unknown":
            members.append(("zzzzzzzzzzzzzz", 1))
    return members


def _nested(members):
    """"received.seed" stands in an object."""
    result, objects = [], {}
    for name, value in members:
        owner, dot, last = name.partition(".")
        if not dot:
            result.append((name, value))
            continue
        if owner not in objects:
            objects[owner] = []
            result.append((owner, objects[owner]))
        objects[owner].append((last, value))
    return "{" + ",".join(
        json.dumps(n) + ":" + (_nested(v) if v is objects.get(n) and
                               n in objects else json.dumps(v))
        for n, v in result) + "}"


def _query_value(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def http_request(case, ids):
    """(verb, target, body)."""
    endpoint = case.method.http
    path = endpoint.path.replace("{id}", urllib.parse.quote(
        str(named(case.fields.get("session_id", ""), ids)), safe=""))
    members = http_members(case, ids)
    if endpoint.query:
        query = urllib.parse.urlencode([
            (n, _query_value(v)) for n, v in members if v is not None])
        return endpoint.verb, path + ("?" + query if query else ""), None
    return endpoint.verb, path, _nested(members).encode()


class Http:
    """One thread's."""

    def __init__(self, host, port, key=""):
        self._connection = http.client.HTTPConnection(host, port,
                                                      timeout=_PATIENCE)
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    def close(self):
        self._connection.close()

    def send(self, case, ids):
        verb, target, body = http_request(case, ids)
        begin = time.monotonic()
        try:
            self._connection.request(verb, target, body, self._headers)
            got = self._connection.getresponse()
            stream = "event-stream" in got.headers.get("Content-Type", "")
            seconds = time.monotonic() - begin
            data = got.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return Answer("NONE", text=f"{type(error).__name__}: {error}")
        answer = (_stream_answer if stream else _http_answer)(
            case.name, got.status, data)
        answer.seconds = seconds if stream else time.monotonic() - begin
        if case.fields.get("echo"):
            answer.essence = None  # the prompt's ids are among them
        return answer


def _http_answer(name, status, data):
    try:
        body = json.loads(data)
    except ValueError:
        return Answer(_HTTP_CODES.get(status, str(status)),
                      broken=f"no JSON: {data[:80]!r}")
    if status != 200:
        return _http_error(status, body)
    answer = Answer()
    if "choices" in body:
        answer.tokens = body["choices"][0].get("token_ids")
        answer.essence = answer.tokens
    else:
        answer.essence = _essence(name, 1, body)
    return answer


def _http_error(status, body):
    error = body.get("error")
    answer = Answer(_HTTP_CODES.get(status, str(status)))
    if not isinstance(error, dict) or not {"message", "type", "param",
                                           "code"} <= error.keys():
        answer.broken = f"no error object: {body}"
        return answer
    answer.reason, answer.text = error["code"], error["message"]
    answer.field = error["param"] or ""
    return answer


def _stream_answer(_name, status, data):
    """Of server-sent events."""
    events = [e.partition(b"data: ")[2] for e in data.split(b"\n\n")
              if b"data: " in e]
    if status != 200 or not events or events[-1] != b"[DONE]":
        return Answer(broken=f"a stream without [DONE]: {data[-80:]!r}")
    answer = Answer(tokens=[])
    whole = True
    for event in map(json.loads, events[:-1]):
        if "error" in event:
            tokens = answer.tokens
            answer = _http_error(_TYPES[event["error"]["type"]], event)
            answer.tokens = tokens
            return answer
        for choice in event["choices"]:
            whole &= "token_ids" in choice
            if choice["index"] == 0:
                answer.tokens += choice.get("token_ids") or []
    answer.essence = answer.tokens if whole else None
    return answer
