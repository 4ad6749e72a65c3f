#!/usr/bin/env python3
"""Tokens a second of 1 to N servers that share one Redis, each with a device of
a programmed rate (txl-bench-front) and a load of sessions of its own (txl
bench): in proportion to one server's, with what the store was asked for and how
busy machine and Redis were.

  fleet_rate.py --model DIR [--servers 3] [--rate 500] [--rows 64]
                [--streams 16] [--turns 4] [--prompt 16] [--tokens 100]
                [--fsync always] [--warmup 3] [--seconds 15] [--bin build/bin]
                [--json FILE]

Where the machine is busy it is the limit, and no proportion can be seen: take a
lower rate. Linux: processor time comes from /proc.
"""

import contextlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

import bench_script
import front_bench
import store_rate


def calls_of(text):
    """How often functions were called, of `INFO commandstats`."""
    match = re.search(r"^cmdstat_fcall:calls=(\d+),", text, re.MULTILINE)
    return int(match.group(1)) if match else 0


def ask(port, *words):
    """What a Redis answers as one text."""
    with socket.create_connection(("127.0.0.1", port), 5) as to:
        to.sendall(store_rate.command(*words))
        reader = to.makefile("rb")
        length = int(reader.readline()[1:])
        return reader.read(length).decode()


def machine_seconds(stat):
    """(busy, all) seconds of all processors, of /proc/stat."""
    ticks = [int(each) for each in stat.splitlines()[0].split()[1:9]]
    return ((sum(ticks) - ticks[3] - ticks[4]) / front_bench.TICKS,
            sum(ticks) / front_bench.TICKS)


def server_command(options, port):
    return [options.bin / "txl-bench-front", "--model", options.model,
            "--rows", str(options.rows), "--tokens-per-second",
            str(options.rate), "--store", f"redis://127.0.0.1:{port}"]


def load_command(options, address, number):
    return [options.bin / "txl", "bench", "--server", address, "--streams",
            str(options.streams), "--turns", str(options.turns),
            "--prompt-tokens", str(options.prompt), "--max-tokens",
            str(options.tokens), "--seed", str(number), "--warmup",
            str(options.warmup), "--seconds",
            str(options.warmup + options.seconds), "--json"]


def line_of(reports, store, machine, redis_share):
    """One measurement. `reports`: of `txl bench --json`, of each server;
    `store`: (calls of functions, seconds); `machine`: (busy, all) seconds."""
    statuses = {}
    for report in reports:
        for status, count in report["statuses"].items():
            statuses[status] = statuses.get(status, 0) + count
    return {"servers": len(reports),
            "tokens_per_second": sum(report["tokens_per_second"]
                                     for report in reports),
            "turns_per_second": sum(report["requests_per_second"]
                                    for report in reports),
            "commands_per_second": store[0] / store[1],
            "commands_per_turn": store[0] / sum(report["requests"]
                                                for report in reports),
            "machine_busy": machine[0] / machine[1],
            "redis_share_of_a_core": redis_share,
            "statuses": statuses}


def with_proportion(lines):
    """Adds to each line its tokens/s over those of as many single servers."""
    first = None
    for line in lines:
        first = first or line["tokens_per_second"] / line["servers"]
        yield {**line, "of_proportion":
               line["tokens_per_second"] / (line["servers"] * first)}


@contextlib.contextmanager
def running_servers(options, count, port):
    """Their addresses."""
    with contextlib.ExitStack() as stack:
        addresses = []
        for _ in range(count):
            server = stack.enter_context(subprocess.Popen(
                server_command(options, port), stdout=subprocess.PIPE,
                text=True))
            stack.callback(server.terminate)
            line = server.stdout.readline()
            if not line.startswith("listening on "):
                raise SystemExit("a server does not start")
            addresses.append(line.split()[-1])
        yield addresses


def readings(redis, port):
    """(calls, machine's seconds, Redis's seconds, the clock's)."""
    stat = pathlib.Path(f"/proc/{redis.pid}/stat").read_text()
    return (calls_of(ask(port, "INFO", "commandstats")),
            machine_seconds(pathlib.Path("/proc/stat").read_text()),
            front_bench.seconds_of(stat), time.monotonic())


def measure(options, count):
    """The line of so many servers."""
    with tempfile.TemporaryDirectory() as folder, \
            store_rate.running_redis(folder, options.fsync) as (redis, port), \
            running_servers(options, count, port) as addresses:
        before = readings(redis, port)
        loads = [subprocess.Popen(load_command(options, address, number),
                                  stdout=subprocess.PIPE, text=True)
                 for number, address in enumerate(addresses)]
        outputs = [load.communicate()[0] for load in loads]
        after = readings(redis, port)
        if any(load.returncode != 0 for load in loads):
            raise SystemExit("a load test failed")
    wall = after[3] - before[3]
    return line_of([json.loads(output.splitlines()[-1]) for output in outputs],
                   (after[0] - before[0], wall),
                   [a - b for a, b in zip(after[1], before[1])],
                   (after[2] - before[2]) / wall)


def parse_options(arguments):
    parser = bench_script.new_parser(__doc__)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--rate", type=float, default=500,
                        help="tokens a second of each device")
    parser.add_argument("--rows", type=int, default=64, help="of a step")
    parser.add_argument("--streams", type=int, default=16,
                        help="of each server")
    parser.add_argument("--turns", type=int, default=4,
                        help="of a session; more than 1, or it is none")
    parser.add_argument("--prompt", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--fsync", choices=["always", "everysec"],
                        default="always")
    parser.add_argument("--warmup", type=float, default=3)
    parser.add_argument("--seconds", type=float, default=15)
    return parser.parse_args(arguments)


def main():
    options = parse_options(sys.argv[1:])
    bench_script.report(with_proportion(
        measure(options, count) for count in range(1, options.servers + 1)),
        options.json)


if __name__ == "__main__":
    main()
