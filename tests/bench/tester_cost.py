#!/usr/bin/env python3
"""What the load tester costs beyond gRPC: processor time per token of
`txl bench` beside a bare loop that reads the same streams (bare_reader.cc),
in turns against one server.

  tester_cost.py --model DIR [--streams 1,8,32] [--bin build/bin]
                 [--tokens 512] [--turns 4] [--rounds 3] [--json FILE]
                 [-- SERVER FLAGS]
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import front_bench

ROOT = pathlib.Path(__file__).resolve().parents[2]


def line_of(streams, bare, tester):
    """Medians over the rounds; `bare` and `tester`: microseconds per token of
    each round."""
    return {"streams": streams,
            "bare_microseconds_per_token": statistics.median(bare),
            "tester_microseconds_per_token": statistics.median(tester),
            "beyond_microseconds_per_token":
                statistics.median(tester) - statistics.median(bare)}


def commands_of(options, address, streams):
    """(bare reader's, tester's) command lines: the same turns."""
    load = ["--server", address, "--streams", str(streams), "--requests",
            str(options.turns * streams), "--prompt-tokens", "32",
            "--max-tokens", str(options.tokens)]
    return ([options.bin / "txl-bench-bare-reader", *load],
            [options.bin / "txl", "bench", *load, "--json"])


def microseconds_of(output):
    """Of a run of either program, from its last line."""
    report = json.loads(output.splitlines()[-1])
    return report.get("tester", report)["cpu_microseconds_per_token"]


def run(command):
    result = subprocess.run([str(part) for part in command], check=True,
                            stdout=subprocess.PIPE, text=True)
    return microseconds_of(result.stdout)


def parse_options(arguments):
    end = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--streams", default="1,8,32")
    parser.add_argument("--bin", type=pathlib.Path,
                        default=ROOT / "build" / "bin")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--turns", type=int, default=4, help="of a stream")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args(arguments[:end])
    options.flags = arguments[end + 1:]
    options.counts = [int(count) for count in options.streams.split(",")]
    return options


def main():
    options = parse_options(sys.argv[1:])
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/server.sock"
        server = front_bench.start_server(options, address)
        try:
            for streams in options.counts:
                bare, tester = commands_of(options, address, streams)
                run(bare)  # warm
                rounds = [(run(bare), run(tester))
                          for _ in range(options.rounds)]
                lines.append(line_of(streams, *zip(*rounds)))
                print(json.dumps(lines[-1]), flush=True)
        finally:
            server.terminate()
            server.wait()
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1) + "\n",
                                encoding="utf-8")


if __name__ == "__main__":
    main()
