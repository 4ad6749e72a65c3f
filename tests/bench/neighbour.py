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
import pathlib
import subprocess
import sys
import tempfile

import front_bench

ROOT = pathlib.Path(__file__).resolve().parents[2]
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


def rounds_beside(options, folder):
    """Every round has both kinds, so that a better hour favours neither."""
    address = f"unix:{folder}/server.sock"
    for threads in options.threads.split(",") * options.rounds:
        yield from measure(options, threads, False)
        server = front_bench.start_server(
            argparse.Namespace(bin=options.bin, model=options.neighbour,
                               flags=[]), address)
        load = subprocess.Popen(load_command(options, address),
                                stdout=subprocess.DEVNULL)
        try:
            lines = measure(options, threads, True)
            if load.poll() is not None or server.poll() is not None:
                raise SystemExit("the neighbour ended before the engine")
            yield from lines
        finally:
            load.kill()
            load.wait()
            server.kill()
            server.wait()


def parse_options(arguments):
    end = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", required=True, help="of the engine")
    parser.add_argument("--sessions", default="1,8")
    parser.add_argument("--threads", default="2,1")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--neighbour", default=ROOT / "models" / "shakespeare")
    parser.add_argument("--rate", default="5", help="requests a second")
    parser.add_argument("--tokens", default="64", help="of a request")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--bin", type=pathlib.Path,
                        default=ROOT / "build" / "bin")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args(arguments[:end])
    options.flags = arguments[end + 1:]
    return options


def main():
    options = parse_options(sys.argv[1:])
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for line in rounds_beside(options, folder):
            lines.append(line)
            print(json.dumps(line), flush=True)
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1) + "\n",
                                encoding="utf-8")


if __name__ == "__main__":
    main()
