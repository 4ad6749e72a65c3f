#!/usr/bin/env python3
"""A client that knows nothing but an address generates text by reflection.

Usage: reflection_client.py TXL_SERVER [MODEL_DIRECTORY]

Starts the server on a free port, learns the API from grpc.reflection, creates a
session, generates two turns in it, and compares the session's position with
what was streamed. Exits 0 when all of it holds.
"""

import pathlib
import subprocess
import sys

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase)

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Api:
    """Calls methods of a server by name, with messages as dictionaries."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        database = ProtoReflectionDescriptorDatabase(self.channel)
        self.services = set(database.get_services())
        self.pool = descriptor_pool.DescriptorPool(database)

    def call(self, method, request):
        service, name = method.split("/")
        descriptor = self.pool.FindServiceByName(service).methods_by_name[name]
        request_class = message_factory.GetMessageClass(descriptor.input_type)
        response_class = message_factory.GetMessageClass(
            descriptor.output_type)
        factory = (self.channel.unary_stream if descriptor.server_streaming
                   else self.channel.unary_unary)
        stub = factory(f"/{method}",
                       request_serializer=request_class.SerializeToString,
                       response_deserializer=response_class.FromString)
        result = stub(json_format.ParseDict(request, request_class()),
                      timeout=30)
        if descriptor.server_streaming:
            return [json_format.MessageToDict(r) for r in result]
        return json_format.MessageToDict(result)


def generate(api, request):
    """Runs one turn; checks the events' order and returns the token ids."""
    events = api.call("txl.v1.GenerationService/Generate", request)
    assert "started" in events[0], events[0]
    assert "finished" in events[-1], events[-1]
    tokens = [event["token"] for event in events[1:-1]]
    assert [t.get("index", 0) for t in tokens] == list(range(len(tokens)))
    return [t.get("tokenId", 0) for t in tokens]


def check(address):
    api = Api(address)
    for service in ("txl.v1.GenerationService", "txl.v1.SessionService",
                    "txl.v1.ModelService", "grpc.health.v1.Health"):
        assert service in api.services, f"{service} not in reflection"
    health = api.call("grpc.health.v1.Health/Check", {})
    assert health == {"status": "SERVING"}, health

    session = "reflection"
    api.call("txl.v1.SessionService/CreateSession", {"sessionId": session})
    greedy = {"temperature": 0}
    first = generate(api, {"sessionId": session, "tokens": {"ids": [1, 2, 3]},
                           "sampling": greedy, "stop": {"maxTokens": 5}})
    second = generate(api, {"sessionId": session, "sampling": greedy,
                            "stop": {"maxTokens": 7}})
    assert (len(first), len(second)) == (5, 7), (first, second)
    state = api.call("txl.v1.SessionService/GetSession",
                     {"sessionId": session, "includeTokens": True})
    expected = [1, 2, 3] + first + second
    assert state["tokenIds"] == expected, (state, expected)
    whole = generate(api, {"tokens": {"ids": [1, 2, 3]}, "sampling": greedy,
                           "stop": {"maxTokens": 12}})
    assert whole == first + second, (whole, first, second)


def main():
    server = sys.argv[1]
    model = sys.argv[2] if len(sys.argv) > 2 else str(
        ROOT / "tests/golden/kimi-char")
    process = subprocess.Popen(
        [server, "--model", model, "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        check(line.removeprefix("listening on ").strip())
    finally:
        process.terminate()
        status = process.wait(timeout=60)
    assert status == 0, f"the server exited with {status}"
    print("reflection client: two turns and their sum agree")


if __name__ == "__main__":
    main()
