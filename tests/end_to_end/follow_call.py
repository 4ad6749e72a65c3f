#!/usr/bin/env python3
"""A call is followed by one id: from what its client is told, through the line
of HAProxy (with the configuration that is shipped) and those of the server's
log and audit log, to its span. Over gRPC and HTTP, of calls that succeed and of
calls that the server or HAProxy refuses.

  follow_call.py [--programs build/bin] [--model models/shakespeare]

Needs haproxy and openssl, no rights. Prints what was followed; exits with 1
where an id is lost."""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
SENT = f"00-{TRACE}-{SPAN}-01"
# What stands in no line of anybody.
SESSION = "balcony-scene"
PROMPT = "ROMEO: wherefore"


def expect(holds, text):
    if not holds:
        raise SystemExit(f"follow_call: {text}")


def wait_for(what, find, seconds=20):
    end = time.monotonic() + seconds
    while not (found := find()):
        expect(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return found


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class World:
    """A server behind HAProxy, and its clients."""

    def __init__(self, arguments, folder, stack):
        self.programs = arguments.programs.resolve()
        self.folder = folder
        self.grpc_port, self.http_port = free_port(), free_port()
        self.port = free_port()
        self.make_files()
        self.server = self.start(stack, "server", [
            self.programs / "txl-server", "--model", arguments.model,
            "--threads", "1", "--memory-limit", "1gb",
            "--listen", f"127.0.0.1:{self.grpc_port}",
            "--http-listen", f"127.0.0.1:{self.http_port}",
            "--keys", folder / "keys.toml", "--audit-log", folder / "audit",
            "--trace-file", folder / "spans"])
        self.proxy = self.start(
            stack, "haproxy",
            ["haproxy", "-db", "-f", ROOT / "deploy/haproxy/haproxy.cfg"],
            TXL_PROXY_LISTEN=f"127.0.0.1:{self.port}",
            TXL_PROXY_CERTIFICATE=str(folder / "tls.crt"),
            TXL_PROXY_METRICS=f"127.0.0.1:{free_port()}",
            TXL_PROXY_PEER=f"127.0.0.1:{free_port()}",
            TXL_PROXY_SERVER_1=f"127.0.0.1:{self.grpc_port}",
            TXL_PROXY_HTTP_1=f"127.0.0.1:{self.http_port}")
        wait_for("a call through HAProxy",
                 lambda: self.txl("status").returncode == 0)

    def make_files(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", self.folder / "tls.key", "-out",
             self.folder / "tls.crt"], check=True, capture_output=True)
        added = subprocess.run(
            [self.programs / "txl-server", "keys", "add", "--keys",
             self.folder / "keys.toml", "--name", "laptop", "--tenant",
             "alice", "--role", "user"], check=True, capture_output=True,
            text=True)
        self.key = added.stdout.split()[-1]
        (self.folder / "key").write_text(self.key)
        (self.folder / "key").chmod(0o600)

    def start(self, stack, name, command, **environment):
        with (self.folder / name).open("w") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1", **environment})
        stack.callback(process.wait)
        stack.callback(process.terminate)
        return process

    def txl(self, *command, key=True):
        return subprocess.run(
            [self.programs / "txl", *map(str, command), "--server",
             f"127.0.0.1:{self.port}", "--tls", "--ca",
             self.folder / "tls.crt",
             *(["--key-file", self.folder / "key"] if key else [])],
            text=True, capture_output=True, timeout=60)

    def http(self, method, path, body=None, headers=(), key=True):
        """(status, traceparent of the answer)."""
        context = ssl.create_default_context(cafile=self.folder / "tls.crt")
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=30, context=context)
        connection.putrequest(method, path)
        data = json.dumps(body).encode() if body is not None else b""
        if data:
            connection.putheader("content-type", "application/json")
            connection.putheader("content-length", str(len(data)))
        if key:
            connection.putheader("authorization", f"Bearer {self.key}")
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders(data or None)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, answer.getheader("traceparent")

    def text(self, name):
        return (self.folder / name).read_text()

    def proxy_line(self, trace):
        return wait_for(f"HAProxy's line of {trace}", lambda: next(
            (line for line in self.text("haproxy").splitlines()
             if f"trace={trace} " in line), None))

    def server_line(self, name, trace):
        """The fields of the call's line."""
        def find():
            for line in self.text(name).splitlines():
                if trace in line and line.startswith("{"):
                    return json.loads(line)["fields"]
            return None
        return wait_for(f"the line of {trace} in {name}", find)

    def spans(self, trace):
        def find():
            spans = [span for line in self.text("spans").splitlines()
                     for span in json.loads(line)["resourceSpans"][0]
                     ["scopeSpans"][0]["spans"]]
            return [span for span in spans if span["traceId"] == trace]
        return wait_for(f"spans of {trace}", find)

    def follow(self, trace, **fields):
        """Every line of a call that came to the server; its spans."""
        self.proxy_line(trace)
        for name in ("server", "audit"):
            line = self.server_line(name, trace)
            for field, value in fields.items():
                expect(line[field] == value, f"{name}: {field} of {line}")
        return self.spans(trace)


def trace_of(traceparent):
    match = re.fullmatch("00-([0-9a-f]{32})-([0-9a-f]{16})-0[01]",
                         traceparent or "")
    expect(match, f"no traceparent: {traceparent!r}")
    return match[1]


def error_trace(result):
    """What `txl` tells its user."""
    match = re.search("; trace ([0-9a-f]{32})$", result.stderr, re.MULTILINE)
    expect(match, f"an error without a trace: {result.stderr}")
    return match[1]


def check_grpc(world):
    """gRPC: an error of the server names the call to the user of txl."""
    result = world.txl("generate", "--session", SESSION, "--prompt", PROMPT)
    world.follow(error_trace(result), status="NOT_FOUND", tenant="alice",
                 key="laptop")
    refused = world.txl("generate", "--prompt", PROMPT, key=False)
    world.follow(error_trace(refused), status="UNAUTHENTICATED", tenant="")


def check_own_trace(world):
    """HTTP: a client's own trace goes through HAProxy to the server's span."""
    status, parent = world.http(
        "POST", "/v1/completions", {"prompt": PROMPT, "max_tokens": 3},
        [("traceparent", SENT)])
    expect(status == 200 and trace_of(parent) == TRACE, f"{status} {parent}")
    spans = world.follow(TRACE, status="OK", generated_tokens=3)
    names = [span["name"] for span in spans]
    expect(names == ["txl.v1.GenerationService/Generate", "queue", "prefill",
                     "decode"], f"spans: {names}")
    expect(spans[0]["parentSpanId"] == SPAN, f"the parent of {spans[0]}")
    expect(spans[0]["spanId"] in parent, f"{spans[0]} is not {parent}")


def check_made(world):
    """A trace is made by HAProxy where there is none that is one."""
    bad = ["00-nonsense", SENT.upper(), f"ff-{TRACE}-{SPAN}-01",
           f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01",
           SENT + "-more", SENT[:-1]]
    for headers in ([], *([("traceparent", value)] for value in bad),
                    [("traceparent", SENT)] * 2):
        _, parent = world.http("GET", "/v1/models", headers=headers)
        trace = trace_of(parent)
        expect(trace != TRACE, f"{headers} is taken for a trace")
        span, = world.follow(trace, status="OK")
        expect(span["parentSpanId"] != SPAN, f"{headers}: {span}")
    later = f"cc-{TRACE[::-1]}-{SPAN}-01-more"
    _, parent = world.http("GET", "/v1/models",
                           headers=[("traceparent", later)])
    expect(trace_of(parent) == TRACE[::-1], f"{later}: {parent}")


def check_rotation(world):
    """After SIGHUP lines stand in new files."""
    for name in ("audit", "spans"):
        (world.folder / name).rename(world.folder / f"{name}.1")
    world.server.send_signal(signal.SIGHUP)
    wait_for("new files", lambda: all(
        (world.folder / name).exists() for name in ("audit", "spans")))
    _, parent = world.http("GET", "/v1/models")
    world.follow(trace_of(parent), status="OK")


def check_proxy(world):
    """What HAProxy refuses by itself it names too."""
    status, parent = world.http("GET", f"/{SESSION}")
    expect(status == 404, f"a path that is not there: {status}")
    expect(" 404 " in world.proxy_line(trace_of(parent)), "HAProxy's 404")
    world.server.terminate()
    world.server.wait()

    def no_server():
        result = world.txl("generate", "--prompt", PROMPT)
        return result if "no server is ready" in result.stderr else None
    trace = error_trace(wait_for("HAProxy without a server", no_server))
    expect(" 503 " in world.proxy_line(trace), "HAProxy's 503")


def check_texts(world):
    """No line of anybody has a text, a session or a key."""
    for name in ("server", "haproxy", "audit", "audit.1", "spans", "spans.1"):
        for word in (SESSION, "wherefore", world.key):
            expect(word not in world.text(name), f"{name} has {word!r}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--programs", type=pathlib.Path,
                        default=ROOT / "build/bin")
    parser.add_argument("--model", default=ROOT / "models/shakespeare")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.ExitStack() as stack:
        world = World(arguments, pathlib.Path(folder), stack)
        for check in (check_grpc, check_own_trace, check_made, check_rotation,
                      check_proxy, check_texts):
            check(world)
            print(f"ok: {' '.join(check.__doc__.split())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
