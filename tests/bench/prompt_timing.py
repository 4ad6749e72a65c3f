#!/usr/bin/env python3
"""Whether the time to the first token tells that another tenant has sent a
prompt.

Usage: prompt_timing.py [--server build/bin/txl-server]
                        [--model models/shakespeare] [--pairs 1000]
                        [--tokens 400] [-- FLAGS]

Starts the server with keys of two tenants. For each pair one tenant sends a
prompt; then, in random order, the other one sends the same prompt and one that
nobody has sent, and the first one its own again and one that nobody has sent.
Prints medians in milliseconds and Welch's t of both pairs, slowest twentieth
left out. |t| below 4.5 is what equal times give: the other tenant's have to be
equal, the first one's must differ, or nothing was measured. Exits with 1 where
that is not so.
"""

import argparse
import pathlib
import random
import statistics
import sys
import tempfile
import time

import secret_timing

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/attack"), str(ROOT / "tests/survival")]

# pylint: disable=wrong-import-position
import api
from prefixes import add_key
from server import Server


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--server", type=pathlib.Path,
                        default=ROOT / "build/bin/txl-server")
    parser.add_argument("--model", default=ROOT / "models/shakespeare")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("flags", nargs="*")
    return parser.parse_args()


class Caller:
    """A tenant's connection."""

    def __init__(self, server, key):
        self._client = server.client()
        self._client.bearer = key

    def milliseconds(self, ids):
        """To the first token; and cached tokens."""
        begin = time.perf_counter_ns()
        stream = self._client.start("Generation.Generate", api.turn(1, ids=ids))
        self._client.connection.wait(
            lambda: len(stream.messages) > 1 or stream.ended, 30)
        took = (time.perf_counter_ns() - begin) / 1e6
        status = self._client.finish(stream)
        if status.code != api.OK:
            raise SystemExit(f"a prompt was refused: {status}")
        return took, api.events(stream)[-1].finished.usage.cached_tokens


def measure(owner, other, pairs, draw):
    """{(who, prompt): times}"""
    took = {(who, what): [] for who in ("other", "owner")
            for what in ("sent", "unknown")}
    callers = {"other": other, "owner": owner}
    for _ in range(pairs):
        sent = draw()
        owner.milliseconds(sent)
        # The other tenant's first: what it sends would be its own then.
        for who in ("other", "owner"):
            for what in random.sample(("sent", "unknown"), 2):
                ids = sent if what == "sent" else draw()
                time_to_token, cached = callers[who].milliseconds(ids)
                took[who, what].append(time_to_token)
                known = (who, what) == ("owner", "sent")
                if (cached > 0) != known:
                    raise SystemExit(f"{what} prompt of {who}: {cached} cached")
    return took


def compare(who, took):
    """Welch's t of what was sent and what was not."""
    pair = [took[who, "sent"], took[who, "unknown"]]
    longest = sorted(pair[0] + pair[1])[
        int(secret_timing.KEPT * 2 * len(pair[0])) - 1]
    kept = [[t for t in times if t <= longest] for times in pair]
    t = secret_timing.welch(*kept)
    print(f"{who}: sent {statistics.median(kept[0]):.3f}, unknown "
          f"{statistics.median(kept[1]):.3f} ms, t = {t:.2f}", flush=True)
    return t


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        keys = [add_key(options.server, folder / "keys.toml", tenant)
                for tenant in ("owner", "other")]
        server = Server(options.server, str(options.model), [
            "--keys", folder / "keys.toml", "--slots", "8", "--log-level",
            "error", *options.flags], folder)
        try:
            callers = [Caller(server, key) for key in keys]
            with server.client() as client:
                client.bearer = keys[0]
                size = client.call("Model.GetModel").vocabulary_size
            took = measure(*callers, options.pairs, lambda: [
                random.randrange(size) for _ in range(options.tokens)])
        finally:
            server.kill()
    equal = abs(compare("other", took)) < secret_timing.LIMIT
    differs = compare("owner", took) < -secret_timing.LIMIT
    return 0 if equal and differs else 1


if __name__ == "__main__":
    sys.exit(main())
