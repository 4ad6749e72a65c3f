#!/usr/bin/env python3
"""Reads a server's --trace-file by OTLP's own definitions: every line is one
TracesData in OTLP's JSON, with no field that these do not know; ids have their
sizes, are there once, and parents are the caller's span or the call's.

  otlp_spans.py [--programs build/bin] [--model models/shakespeare]

Needs PyPI's opentelemetry-proto, which deploy/setup.sh --all installs. Prints
what was checked; exits with 1 where something is wrong."""

import argparse
import base64
import http.client
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from google.protobuf import json_format
from opentelemetry.proto.trace.v1 import trace_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
# Where OTLP's JSON differs from protobuf's: these bytes are hex digits, see
# https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
IDS = ("traceId", "spanId", "parentSpanId")
HEX = re.compile(r"(?:[0-9a-f]{2})+")
PARTS = ["queue", "prefill", "decode"]


def expect(holds, text):
    if not holds:
        raise SystemExit(f"otlp_spans: {text}")


def with_bytes(value):
    """The same as protobuf's JSON has it. Enums are numbers there: no names."""
    if isinstance(value, list):
        return [with_bytes(each) for each in value]
    if not isinstance(value, dict):
        return value
    changed = {}
    for name, each in value.items():
        if name in IDS:
            if not HEX.fullmatch(each):
                raise json_format.ParseError(f"{name} is not hex: {each}")
            each = base64.b64encode(bytes.fromhex(each)).decode()
        elif name in ("kind", "code") and not isinstance(each, int):
            raise json_format.ParseError(f"{name} is not a number: {each}")
        else:
            each = with_bytes(each)
        changed[name] = each
    return changed


def parse(line):
    """TracesData; ParseError where a field is unknown or of another type."""
    return json_format.ParseDict(with_bytes(json.loads(line)),
                                 trace_pb2.TracesData(),
                                 ignore_unknown_fields=False)


def check_reader():
    """What is not OTLP is not taken for some."""
    span = {"traceId": TRACE, "spanId": CALLER, "name": "a", "kind": 2}

    def line(**changes):
        return json.dumps({"resourceSpans": [{"scopeSpans": [
            {"spans": [{**span, **changes}]}]}]})
    expect(parse(line()).resource_spans[0].scope_spans[0].spans[0].span_id
           == bytes.fromhex(CALLER), "a span that is right is read wrongly")
    for changes in ({"parentId": CALLER}, {"kind": "SPAN_KIND_SERVER"},
                    {"traceId": base64.b64encode(b"x" * 16).decode()},
                    {"startTimeUnixNano": "soon"},
                    {"attributes": {"a": "b"}}):
        try:
            parse(line(**changes))
        except json_format.ParseError:
            continue
        raise SystemExit(f"otlp_spans: {changes} is read")


def read_after(stream, prefix):
    line = stream.readline()
    expect(line.startswith(prefix), f"the server said {line!r}")
    return line.removeprefix(prefix).strip()


def call(address, path, body, headers=()):
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("POST", path, json.dumps(body),
                       {"content-type": "application/json", **dict(headers)})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def make_spans(arguments, spans):
    """Calls over gRPC and HTTP, with a caller's span and without, one that is
    refused."""
    process = subprocess.Popen(
        [arguments.programs / "txl-server", "--model", arguments.model,
         "--threads", "1", "--memory-limit", "1gb", "--log-level", "error",
         "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0",
         "--trace-file", spans], stdout=subprocess.PIPE, text=True)
    try:
        address = read_after(process.stdout, "listening on ")
        web = read_after(process.stdout, "http on http://")
        prompt = {"prompt": "ROMEO:", "max_tokens": 4}
        subprocess.run(
            [arguments.programs / "txl", "generate", "--server", address,
             "--prompt", "ROMEO:", "--max-tokens", "4"], check=True,
            stdout=subprocess.DEVNULL)
        sampled = [("traceparent", f"00-{TRACE}-{CALLER}-01")]
        expect(call(web, "/v1/completions", prompt, sampled) == 200, "HTTP")
        expect(call(web, "/v1/completions", {**prompt, "n": 2}) == 200, "n")
        expect(call(web, "/v1/score", {"text": "ROMEO:"}) == 200, "score")
        expect(call(web, "/v1/completions", {**prompt, "session_id": "no"})
               == 404, "a session that is not there")
    finally:
        process.terminate()
        process.wait()


def spans_of(data):
    expect(len(data.resource_spans) == 1, "a line is of one resource")
    resource, = data.resource_spans
    names = {each.key: each.value.string_value
             for each in resource.resource.attributes}
    expect(names.get("service.name") == "txl-server", f"resource: {names}")
    return [span for scope in resource.scope_spans for span in scope.spans]


def check_call(root, parts):
    """The spans of one line: a call, and below it the parts of its turn."""
    expect(root.kind == trace_pb2.Span.SPAN_KIND_SERVER, f"kind of {root}")
    expect("/" in root.name, f"no method: {root}")
    expect([part.name for part in parts] == PARTS[:len(parts)],
           f"parts of {root}")
    failed = root.status.code == trace_pb2.Status.STATUS_CODE_ERROR
    expect(failed or root.status.code == trace_pb2.Status.STATUS_CODE_OK,
           f"status of {root}")
    expect(failed == bool(root.status.message), f"why: {root}")
    for part in parts:
        expect(part.kind == trace_pb2.Span.SPAN_KIND_INTERNAL, f"kind: {part}")
        expect(part.trace_id == root.trace_id, f"{part} is of another trace")
        expect(part.parent_span_id == root.span_id, f"{part} is not below it")
        expect(root.start_time_unix_nano <= part.start_time_unix_nano
               <= part.end_time_unix_nano <= root.end_time_unix_nano,
               f"{part} is not within {root}")


def check_lines(lines):
    calls, ids = [], set()
    for line in lines:
        root, *parts = spans_of(parse(line))
        for span in (root, *parts):
            expect(len(span.trace_id) == 16 and any(span.trace_id),
                   f"trace_id: {span}")
            expect(len(span.span_id) == 8 and any(span.span_id),
                   f"span_id: {span}")
            expect(span.span_id not in ids, f"{span} is there twice")
            ids.add(span.span_id)
        check_call(root, parts)
        of_caller = root.trace_id == bytes.fromhex(TRACE)
        expect(not of_caller or root.parent_span_id == bytes.fromhex(CALLER),
               f"the parent of {root}")
        # The calls that a request of HTTP makes are below the request.
        expect(len(root.parent_span_id) in (0, 8), f"the parent of {root}")
        calls.append((root, parts))
    return calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--programs", type=pathlib.Path,
                        default=ROOT / "build/bin")
    parser.add_argument("--model", default=ROOT / "models/shakespeare")
    arguments = parser.parse_args()
    check_reader()
    with tempfile.TemporaryDirectory() as folder:
        spans = pathlib.Path(folder) / "spans"
        make_spans(arguments, spans)
        lines = spans.read_text().splitlines()
    calls = check_lines(lines)
    of_caller = [root for root, _ in calls
                 if root.trace_id == bytes.fromhex(TRACE)]
    expect(len(of_caller) == 1, "the caller's trace has its call")
    turns = [root for root, parts in calls if parts]
    expect(len(turns) >= 4, f"turns: {[root.name for root in turns]}")
    failed = [root for root, _ in calls if root.status.message]
    expect([root.status.message for root in failed] == ["SESSION_UNKNOWN"],
           f"refused: {failed}")
    print(f"{len(lines)} lines are OTLP's, {len(turns)} of them turns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
