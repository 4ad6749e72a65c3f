#!/usr/bin/env python3
"""What the load tester costs beyond gRPC: processor time per token of
`txl bench` beside a bare loop that reads the same streams (bare_reader.cc),
in turns against one server.

  tester_cost.py --model DIR [--streams 1,8,32] [--bin build/bin]
                 [--tokens 512] [--turns 4] [--rounds 3] [--json FILE]
                 [-- SERVER FLAGS]
"""

import json
import statistics
import subprocess
import sys

import bench_script
import front_bench


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
    parser = bench_script.new_parser(__doc__)
    parser.add_argument("--streams", type=bench_script.counts,
                        default="1,8,32")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--turns", type=int, default=4, help="of a stream")
    parser.add_argument("--rounds", type=int, default=3)
    return bench_script.parse(parser, arguments)


def measure(options, address, streams):
    bare, tester = commands_of(options, address, streams)
    run(bare)  # warm
    rounds = [(run(bare), run(tester)) for _ in range(options.rounds)]
    return line_of(streams, *zip(*rounds))


def main():
    options = parse_options(sys.argv[1:])
    with front_bench.running_server(options) as (_, address):
        bench_script.report((measure(options, address, count)
                             for count in options.streams), options.json)


if __name__ == "__main__":
    main()
