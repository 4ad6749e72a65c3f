"""Requests that are too large, too deep, or no requests at all."""

import gzip
import itertools
import struct

import api
import wire
from case import SHAKESPEARE, Attack
from server import MIB, expect

GENERATE = "/txl.v1.GenerationService/Generate"
TOKENIZE = "/txl.v1.ModelService/Tokenize"


def raw_status(server, path, data, metadata=(), ends=True, timeout=20):
    """How a call with these bytes (prefix and all) ends."""
    with server.client() as client:
        stream = client.connection.open(path, None, metadata)
        client.connection.write(stream, data, ends)
        try:
            return client.finish(stream, timeout)
        except wire.Closed:
            stream.reset = stream.reset or wire.NO_ERROR
            return api.Status(stream)


def malformed(site, _):
    """None of them may look like success."""
    server = site.server("--slots", "4")
    good = api.message("GenerateRequest",
                       **api.turn(2000)).SerializeToString()
    whole = wire.prefixed(good)
    cut = {"cut message": wire.prefixed(good[:-1]),
           "bad UTF-8": wire.prefixed(b"\x0a\x02\xff\xfe"),
           "wrong wire type": wire.prefixed(b"\x0f\x01"),
           "varint of 11 bytes": wire.prefixed(b"\x08" + b"\xff" * 10 + b"\1"),
           "longer than sent": struct.pack(">BI", 0, len(good) + 9) + good,
           "shorter than sent": struct.pack(">BI", 0, len(good) - 2) + good,
           "compressed flag": wire.prefixed(good, 1),
           "unknown flag": wire.prefixed(good, 7),
           "half a prefix": whole[:3],
           "nothing": b"",
           "two messages": whole + whole,
           "second malformed": whole + wire.prefixed(b"\xff")}
    server.warm()
    server.mark()
    seen = set()
    for name, data in cut.items():
        status = raw_status(server, GENERATE, data)
        expect(status.code != api.OK, f"{name}: OK")
        expect(status.code is not None or "reset" in status.text,
               f"{name}: {status}")
        seen.add(status.code)
    server.expect_well()
    return (f"{len(cut)} malformed requests, none OK "
            f"(codes {sorted(c for c in seen if c is not None)})")


def oversized(site, size):
    server = site.server("--slots", "4")
    bomb = gzip.compress(b"\0" * size.bomb, 9)
    deep = b"\x53" * 1000 + b"\x54" * 1000  # groups of field 10
    nested = b""
    for _ in range(1000):  # as field 4, a message with itself as its field 4
        nested = b"\x22" + wire.varint(len(nested)) + nested
    ints = b"\1" * (MIB - 64)
    tokens = b"\x0a" + wire.varint(len(ints)) + ints
    cases = {
        "5 MiB": (wire.prefixed(b"\x0a" + wire.varint(5 * MIB) + b"a" * 5 * MIB),
                  (), {api.RESOURCE_EXHAUSTED}),
        "gzip bomb": (wire.prefixed(bomb[:900_000], 1),
                      [("grpc-encoding", "gzip")],
                      {api.UNIMPLEMENTED, api.RESOURCE_EXHAUSTED,
                       api.INVALID_ARGUMENT}),
        "1,000 groups": (wire.prefixed(deep), (), {api.INVALID_ARGUMENT}),
        "1,000 messages": (wire.prefixed(nested), (), {api.INVALID_ARGUMENT}),
        "1 M ints": (wire.prefixed(b"\x1a" + wire.varint(len(tokens)) + tokens),
                     (), {api.INVALID_ARGUMENT}),
    }
    server.warm()
    raw_status(server, TOKENIZE, wire.prefixed(b"\x0a\x01a"))
    growths = {}
    for name, (data, metadata, wanted) in cases.items():
        server.mark()
        status = raw_status(server, GENERATE, data, metadata)
        growths[name] = server.growth()
        expect(status.code in wanted or (
            status.code is None and name == "5 MiB"), f"{name}: {status}")
    worst = max(growths, key=growths.get)
    expect(growths[worst] <= 8 * MIB,
           f"{worst}: {growths[worst] / MIB:+.1f} MiB")
    server.expect_well()
    return (f"{len(cases)} refused with their status, at most "
            f"{growths[worst] / MIB:+.1f} MiB ({worst})")


def parameters(site, size):
    """Every value is in its range, and none of them an internal error."""
    server = site.server("--slots", "4", model=SHAKESPEARE)
    tiny = 5e-324
    values = {
        "temperature": [0, 1e-308, tiny, 100],
        "repetitionPenalty": [1e-308, tiny, 10],
        "logitBias": [100, -100, None],
        "presencePenalty": [-2, 2], "topK": [0, 1], "topP": [1e-308, 1],
        "minP": [0, 1], "typicalP": [1e-308, 1], "frequencyPenalty": [-2, 2]}
    names = list(values)
    combinations = list(itertools.product(*values.values()))
    chosen = combinations[::max(len(combinations) // size.calls, 1)]
    first = {"temperature": 0, "repetitionPenalty": 1e-308, "logitBias": 100}
    nothing = {"temperature": tiny, "logitBias": -100, "topP": 1e-308}
    cases = [first, nothing, *(dict(zip(names, c)) for c in chosen)]
    server.mark()
    refused = 0
    with server.client() as client:
        for case in cases:
            sampling = {k: v for k, v in case.items() if v is not None}
            if "logitBias" in sampling:
                sampling["logitBias"] = {
                    i: sampling["logitBias"] for i in range(65)}
            fields = api.turn(4, ids=range(65))
            fields["sampling"] = {**sampling, "penaltyWindow": 64}
            status, _ = client.try_generate(fields)
            expect(status.code in (api.OK, api.INVALID_ARGUMENT),
                   f"{case}: {status}")
            refused += status.code != api.OK
    server.expect_well()
    return f"{len(cases)} turns, {refused} refused, no INTERNAL"


ATTACKS = [
    Attack("malformed", "T6", "a malformed message is never OK",
           malformed, {}, {}, proxied=True),
    Attack("oversized", "T37", "each refused with its status, +8 MiB",
           oversized, {"bomb": 64 * MIB},
           {"bomb": 900 * MIB}),
    Attack("parameters", "limits", "OK or INVALID_ARGUMENT",
           parameters, {"calls": 60}, {"calls": 2304}),
]
