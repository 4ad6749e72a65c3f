#!/usr/bin/env python3
"""What a neighbour on the same cores does to a step's time: the 99th
percentile over the median, of the engine alone and beside another txl-server
that answers requests all the time.

  neighbour.py --model SHAPE [--sessions 1,8] [--threads 2,1] [--steps 200]
               [--neighbour DIR] [--rate 5] [--tokens 64] [--rounds 1]
               [--bin build/bin] [--json FILE] [-- ENGINE FLAGS]
"""

import argparse
import json
import subprocess
import sys

import bench_script
import front_bench

FOREVER = "86400"


def line_of(threads, beside, measured):
    """One of the engine's lines, `beside` the neighbour or not."""
    median = measured["step_milliseconds_p50"]
    return {"threads": threads, "neighbour": beside,
            "sessions": measured["sessions"],
            "step_milliseconds_p50": median,
            "step_milliseconds_p99": measured["step_milliseconds_p99"],
            "p99_over_p50": round(measured["step_milliseconds_p99"] / median,
                                  2)}


def engine_lines(output):
    """The decoding lines of txl-bench-engine's output."""
    lines = [json.loads(line) for line in output.splitlines()]
    return [line for line in lines if line.get("kind") == "decode"]


def measure(options, threads, beside):
    result = subprocess.run(
        [options.bin / "txl-bench-engine", "--model", options.model,
         "--sessions", options.sessions, "--steps", str(options.steps),
         "--threads", threads, "--no-peaks", *options.flags],
        check=True, stdout=subprocess.PIPE, text=True)
    return [line_of(int(threads), beside, line)
            for line in engine_lines(result.stdout)]


def load_command(options, address):
    """What keeps the neighbour busy, until it is killed."""
    return [options.bin / "txl", "bench", "--server", address, "--rate",
            options.rate, "--max-tokens", options.tokens, "--seconds",
            FOREVER]


def measure_beside(options, threads):
    neighbour = argparse.Namespace(bin=options.bin, model=options.neighbour,
                                   flags=[])
    with front_bench.running_server(neighbour) as (server, address):
        load = subprocess.Popen(load_command(options, address),
                                stdout=subprocess.DEVNULL)
        try:
            lines = measure(options, threads, True)
            if load.poll() is not None or server.poll() is not None:
                raise SystemExit("the neighbour ended before the engine")
            return lines
        finally:
            load.kill()
            load.wait()


def rounds(options):
    """Every round has both kinds, so that a better hour favours neither."""
    for threads in options.threads.split(",") * options.rounds:
        yield from measure(options, threads, False)
        yield from measure_beside(options, threads)


def parse_options(arguments):
    parser = bench_script.new_parser(__doc__)
    parser.add_argument("--sessions", default="1,8")
    parser.add_argument("--threads", default="2,1")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--neighbour",
                        default=bench_script.ROOT / "models" / "shakespeare")
    parser.add_argument("--rate", default="5", help="requests a second")
    parser.add_argument("--tokens", default="64", help="of a request")
    parser.add_argument("--rounds", type=int, default=1)
    return bench_script.parse(parser, arguments)


def main():
    options = parse_options(sys.argv[1:])
    bench_script.report(rounds(options), options.json)


if __name__ == "__main__":
    main()
