#!/usr/bin/env python3
"""What the way through gRPC costs: tokens/s of txl-server under `txl bench`
beside the engine alone, and processor time per token of the server beyond its
engine and of the client.

  front_bench.py --model DIR [--streams 1,8,32] [--bin build/bin]
                 [--tokens 512] [--prompt 32] [--turns 2]
                 [--json FILE] [-- SERVER FLAGS]

Linux: processor time comes from /proc. The engine is the server's busiest
thread (with --threads 1 it has one).
"""

import contextlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import bench_script

TICKS = os.sysconf("SC_CLK_TCK")


def seconds_of(stat):
    """User and system seconds of a line of /proc/PID/stat."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def thread_seconds(pid):
    """{thread: processor seconds} of a process."""
    seconds = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            seconds[task.name] = seconds_of((task / "stat").read_text())
        except OSError:
            pass  # the thread has ended meanwhile
    return seconds


def spent(before, after):
    """(busiest thread's, the others') seconds between two readings."""
    used = sorted(after[thread] - before.get(thread, 0) for thread in after)
    return used[-1], sum(used[:-1])


def line_of(streams, report, server, client_seconds):
    """One measurement; `report`: of `txl bench --json`."""
    tokens = report["tokens"]
    engine, front = server
    return {"streams": streams,
            "tokens_per_second": report["tokens_per_second"],
            "tokens": tokens,
            "engine_microseconds_per_token": 1e6 * engine / tokens,
            "server_microseconds_per_token": 1e6 * front / tokens,
            "client_microseconds_per_token": 1e6 * client_seconds / tokens}


def start_server(options, address, client_flags=()):
    """`options.server`: the program, where it is not that of `options.bin`;
    `client_flags`: with which it is asked."""
    program = getattr(options, "server", None) or options.bin / "txl-server"
    server = subprocess.Popen(
        [program, "--model", options.model, "--listen", address,
         "--log-level", "error", *options.flags])
    deadline = time.monotonic() + 120
    while subprocess.run([options.bin / "txl", "status", "--server", address,
                          "--check", *client_flags], check=False,
                         stderr=subprocess.DEVNULL).returncode != 0:
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            raise SystemExit("the server does not get ready")
        time.sleep(0.1)
    return server


def measure(options, server, address, streams):
    def load(turns):
        result = subprocess.run(
            [options.bin / "txl", "bench", "--server", address, "--streams",
             str(streams), "--prompt-tokens", str(options.prompt),
             "--max-tokens", str(options.tokens), "--requests",
             str(turns * streams), "--json"],
            check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(result.stdout.splitlines()[-1])

    load(1)  # warm
    before = thread_seconds(server.pid)
    client = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = load(options.turns)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    client_seconds = (used.ru_utime + used.ru_stime - client.ru_utime -
                      client.ru_stime)
    return line_of(streams, report,
                   spent(before, thread_seconds(server.pid)), client_seconds)


def parse_options(arguments):
    parser = bench_script.new_parser(__doc__)
    parser.add_argument("--streams", type=bench_script.counts,
                        default="1,8,32")
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--turns", type=int, default=2, help="of a stream")
    return bench_script.parse(parser, arguments)


@contextlib.contextmanager
def running_server(options):
    """(the server's process, its address), until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/server.sock"
        server = start_server(options, address)
        try:
            yield server, address
        finally:
            server.terminate()
            server.wait()


def main():
    options = parse_options(sys.argv[1:])
    with running_server(options) as (server, address):
        bench_script.report((measure(options, server, address, count)
                             for count in options.streams), options.json)


if __name__ == "__main__":
    main()
