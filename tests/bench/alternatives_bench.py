#!/usr/bin/env python3
"""What ScoreAlternatives saves against calls of Score.

Usage: alternatives_bench.py BIN [MODEL_DIRECTORY [FLAG...]]

BIN is a folder with a txl-server.

Scores 100 alternatives of 20 tokens behind a context of 1,000 in four ways, in
turn, five rounds: one ScoreAlternatives with the context, Score with the context
in each call; one ScoreAlternatives on a session that holds the context, Score
on that session, one call after the other. Once with alternatives that begin
alike, as n-best lists do (each has the beginning of one of four sentences), and
once with ones that share nothing. Prints the medians, the ratios of like to
like and whether every score has the same bits in all four ways.
"""

import pathlib
import random
import statistics
import sys
import time

from google.protobuf import json_format, message_factory

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))

from same_bits import serving  # noqa: E402

COUNT, TOKENS, CONTEXT, ROUNDS = 100, 20, 1000, 5
GENERATION = "txl.v1.GenerationService"


def n_best(rng, vocabulary):
    """Sentences that part from one of four somewhere behind their middle."""
    stems = [[rng.randrange(vocabulary) for _ in range(TOKENS)]
             for _ in range(4)]
    lists = []
    for i in range(COUNT):
        parted = rng.randrange(TOKENS // 2, TOKENS)
        lists.append(stems[i % 4][:parted] + [
            rng.randrange(vocabulary) for _ in range(TOKENS - parted)])
    return lists


def unrelated(rng, vocabulary):
    """Sentences without a common beginning, as far as ids allow."""
    return [[(i * 7 + 1) % vocabulary] +
            [rng.randrange(vocabulary) for _ in range(TOKENS - 1)]
            for i in range(COUNT)]


class Caller:
    """Calls a unary method with a message that was made before."""

    def __init__(self, api, method):
        service, name = f"{GENERATION}/{method}".split("/")
        descriptor = api.pool.FindServiceByName(service).methods_by_name[name]
        self.request_class = message_factory.GetMessageClass(
            descriptor.input_type)
        response_class = message_factory.GetMessageClass(
            descriptor.output_type)
        self.stub = api.channel.unary_unary(
            f"/{GENERATION}/{method}",
            request_serializer=lambda request: request,
            response_deserializer=response_class.FromString)

    def message(self, fields):
        return json_format.ParseDict(
            fields, self.request_class()).SerializeToString()


def timed(caller, messages):
    start = time.monotonic()
    responses = [caller.stub(message, timeout=600) for message in messages]
    return time.monotonic() - start, responses


def run(api, name, context, alternatives):
    score, many = Caller(api, "Score"), Caller(api, "ScoreAlternatives")
    each = [{"tokens": {"ids": ids}} for ids in alternatives]
    lists = {"returnTokens": True, "alternatives": each}
    on_session = {"sessionId": "context"}
    ways = {
        "alternatives": (many, [many.message(
            {"tokens": {"ids": context}} | lists)]),
        "score": (score, [score.message({"tokens": {"ids": context + ids}})
                          for ids in alternatives]),
        "alternatives on a session": (many, [many.message(on_session | lists)]),
        "score on a session": (score, [score.message(on_session | one)
                                       for one in each]),
    }
    seconds = {way: [] for way in ways}
    for _ in range(ROUNDS):
        bits = {}
        for way, (caller, messages) in ways.items():
            took, responses = timed(caller, messages)
            seconds[way].append(took)
            parts = responses[0].scores if caller is many else responses
            bits[way] = [[token.logprob for token in part.tokens[-TOKENS:]]
                         for part in parts]
        same = all(of == bits["score"] for of in bits.values())
    median = {way: statistics.median(took) for way, took in seconds.items()}
    for where in ("", " on a session"):
        one, calls = median["alternatives" + where], median["score" + where]
        print(f"{name}{where}: alternatives {one * 1e3:.1f} ms, score "
              f"{calls * 1e3:.1f} ms ({calls / one:.1f} times)", flush=True)
    print(f"{name}: {'same bits' if same else 'OTHER BITS'}", flush=True)
    return same


def main(argv):
    folder, *rest = argv[1:]
    model = rest[0] if rest else str(ROOT / "models/shakespeare")
    with serving(folder, model, rest[1:]) as api:
        facts = api.call("txl.v1.ModelService/GetModel", {})
        vocabulary = int(facts["vocabularySize"])
        rng = random.Random(7)
        context = [rng.randrange(vocabulary) for _ in range(CONTEXT)]
        api.call("txl.v1.SessionService/CreateSession",
                 {"sessionId": "context"})
        api.call("txl.v1.SessionService/AppendTokens",
                 {"sessionId": "context", "tokens": {"ids": context}})
        same = [run(api, name, context, make(rng, vocabulary))
                for name, make in (("n-best", n_best),
                                   ("unrelated", unrelated))]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
