#!/usr/bin/env python3
"""How long a server takes from its start until it serves, by the size of its
model, beside what it cannot do without: reading the file once and testing the
step.

  start_bench.py [--shapes small,large] [--runs 5] [--json FILE]
                 [--bin DIR] [-- SERVER_FLAG...]

Models have random weights. Their files are in the page cache: each is read
before the first start. A line for each shape, of medians; `ratio` is
serving / (read + self_test).
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import bench_script

SHAPES = {"small": "tests/bench/small.json",
          "large": "tests/bench/wt103_large.json"}


def read_seconds(folder):
    """Seconds for all bytes of the files of `folder`, and their number."""
    size = 0
    begin = time.monotonic()
    for path in sorted(folder.iterdir()):
        with path.open("rb", buffering=0) as file:
            while block := file.read(1 << 20):
                size += len(block)
    return time.monotonic() - begin, size


def self_test_seconds(log):
    """What the server's log says of the self-test that its step passed; 0: it
    made none."""
    for line in log.splitlines():
        if '"event":"self_test"' in line:
            fields = json.loads(line)["fields"]
            if "seconds" in fields:
                return fields["seconds"]
    return 0.0


def start(server, folder, flags):
    """Seconds until the server says where it listens, and of its self-test."""
    begin = time.monotonic()
    with subprocess.Popen([server, "--model", folder, "--listen",
                           "127.0.0.1:0", *flags], text=True,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        line = process.stdout.readline()
        seconds = time.monotonic() - begin
        process.terminate()
        _, log = process.communicate()
    if not line.startswith("listening on "):
        sys.exit(f"the server did not start:\n{log}")
    return seconds, self_test_seconds(log)


def summary(shape, size, starts):
    """The line of a shape. `starts`: [(read, serving, self_test)], seconds."""
    read, serving, self_test = (statistics.median(column)
                                for column in zip(*starts))
    return {"shape": shape, "bytes": size, "runs": len(starts),
            "read_seconds": read, "self_test_seconds": self_test,
            "serving_seconds": serving, "ratio": serving / (read + self_test)}


def measure(options, shape):
    """The line of a shape, measured."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "model"
        subprocess.run([options.bin / "txl-model", "random", folder, "--spec",
                        bench_script.ROOT / SHAPES[shape]], check=True,
                       stdout=subprocess.DEVNULL)
        _, size = read_seconds(folder)
        starts = []
        for _ in range(options.runs):
            read, _ = read_seconds(folder)
            starts.append((read, *start(options.bin / "txl-server", folder,
                                        options.flags)))
        return summary(shape, size, starts)


def parse_options(arguments):
    """The options; what stands behind "--" goes to the server."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--shapes", default=",".join(SHAPES),
                        type=lambda text: text.split(","))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--bin", type=pathlib.Path,
                        default=bench_script.ROOT / "build" / "bin")
    parser.add_argument("--json", type=pathlib.Path)
    return bench_script.parse(parser, arguments)


def main(arguments):
    """Prints a line for each shape."""
    options = parse_options(arguments)
    bench_script.report((measure(options, shape) for shape in options.shapes),
                        options.json)


if __name__ == "__main__":
    main(sys.argv[1:])
