#!/usr/bin/env python3
"""What a setting or a change costs through gRPC: two servers of one model under
the same load in turns, the second over the first.

  paired_bench.py --model DIR [--first FLAGS] [--second FLAGS]
                  [--first-server PROGRAM] [--second-server PROGRAM]
                  [--second-key FILE] [--second-tls] [--streams 1,8,32] [--tokens 512]
                  [--turns 1] [--seconds 5] [--rounds 4] [--bin build/bin]
                  [--json FILE] [-- FLAGS OF BOTH]

FLAGS are one argument, as "--data-dir /tmp/a --durability turn". The servers
listen on Unix sockets; with --second-tls on TCP, the second with TLS, by a
certificate that is made with openssl. Each line of the output has, for a count of streams, the medians of both and of the rounds'
ratios: tokens/s, p50 and p99 between tokens, processor time per token of the
server (Linux).
"""

import contextlib
import copy
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

import bench_script
import front_bench

FIGURES = ("tokens_per_second", "p50_milliseconds", "p99_milliseconds",
           "server_microseconds_per_token")


def parse_options(arguments):
    parser = bench_script.new_parser(__doc__)
    for which in ("first", "second"):
        parser.add_argument(f"--{which}", type=shlex.split, default="")
        parser.add_argument(f"--{which}-server", type=pathlib.Path)
    parser.add_argument("--second-key")
    parser.add_argument("--second-tls", action="store_true")
    parser.add_argument("--streams", type=bench_script.counts,
                        default="1,8,32")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--turns", type=int, default=1, help="of a session, "
                        "which stores keep; 1: without one")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=4, help="of a start")
    return bench_script.parse(parser, arguments)


def figures(report, server_seconds):
    """FIGURES of one load; `report`: of `txl bench --json`."""
    gaps = report["inter_token_seconds"]
    return dict(zip(FIGURES, (report["tokens_per_second"], 1e3 * gaps["p50"],
                              1e3 * gaps["p99"],
                              1e6 * server_seconds / report["tokens"])))


def line_of(streams, rounds):
    """`rounds`: pairs of what `figures` returns, of the first and the second
    server."""
    line = {"streams": streams}
    for name in FIGURES:
        pairs = [(first[name], second[name]) for first, second in rounds]
        line[name] = [statistics.median(values) for values in zip(*pairs)]
        line[f"{name}_ratio"] = statistics.median(
            second / first for first, second in pairs)
    return line


def in_turns(rounds):
    """Who goes first takes turns, too: True where the first server does."""
    return [number % 2 == 0 for number in range(rounds)]


class Side:
    """One of the two servers, and how its clients come."""

    def __init__(self, process, address, client_flags):
        self.process = process
        self.address = address
        self.client_flags = client_flags

    def load(self, options, streams, seed):
        before = front_bench.thread_seconds(self.process.pid)
        result = subprocess.run(
            [options.bin / "txl", "bench", "--server", self.address,
             "--streams", str(streams), "--prompt-tokens", "32",
             "--max-tokens", str(options.tokens), "--turns",
             str(options.turns), "--seconds", str(options.seconds),
             "--seed", str(seed), "--json", *self.client_flags],
            check=True, stdout=subprocess.PIPE, text=True)
        after = front_bench.thread_seconds(self.process.pid)
        return figures(json.loads(result.stdout.splitlines()[-1]),
                       sum(front_bench.spent(before, after)))


def tls_flags(folder):
    """Of the server and of its clients, with a new certificate."""
    certificate, key = (pathlib.Path(folder) / name
                        for name in ("tls.crt", "tls.key"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", key, "-out", certificate], check=True,
        capture_output=True)
    return (["--tls-cert", str(certificate), "--tls-key", str(key)],
            ["--tls", "--ca", str(certificate)])


@contextlib.contextmanager
def side(options, which, folder):
    """A Side, until the block ends."""
    chosen = copy.copy(options)
    chosen.flags = [*options.flags, *getattr(options, which)]
    chosen.server = getattr(options, f"{which}_server")
    address = f"unix:{folder}/{which}.sock"
    client_flags = []
    if options.second_tls:
        address = f"127.0.0.1:{bench_script.free_port()}"
    if which == "second":
        if options.second_key:
            client_flags = ["--key-file", options.second_key]
        if options.second_tls:
            server_flags, tls = tls_flags(folder)
            chosen.flags += server_flags
            client_flags += tls
    process = front_bench.start_server(chosen, address, client_flags)
    try:
        yield Side(process, address, client_flags)
    finally:
        process.terminate()
        process.wait()


def measure(options, streams, first, second):
    """The rounds of one count of streams, as `line_of` takes them."""
    for who in (first, second):
        who.load(options, streams, 0)  # warm
    rounds = []
    for seed, first_goes_first in enumerate(in_turns(options.rounds), 1):
        order = (first, second) if first_goes_first else (second, first)
        pair = [who.load(options, streams, seed) for who in order]
        rounds.append(pair if first_goes_first else pair[::-1])
    return rounds


def lines(options):
    """Both servers are started twice, in either order: of two servers of the
    same flags, the one that starts last has been up to a tenth faster."""
    rounds = {streams: [] for streams in options.streams}
    for order in (("first", "second"), ("second", "first")):
        with tempfile.TemporaryDirectory() as folder, \
                side(options, order[0], folder) as one, \
                side(options, order[1], folder) as other:
            first, second = (one, other) if order[0] == "first" else (other,
                                                                      one)
            for streams in options.streams:
                rounds[streams] += measure(options, streams, first, second)
    return [line_of(streams, pairs) for streams, pairs in rounds.items()]


def main():
    options = parse_options(sys.argv[1:])
    bench_script.report(lines(options), options.json)


if __name__ == "__main__":
    main()
