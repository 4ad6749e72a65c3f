#!/usr/bin/env python3
"""How many tokens a second come through gRPC from a device of a programmed
rate (txl-bench-front), and what they cost: tokens/s of those that the device
could give, processor time per token of server and client, the longest token
queue, inter-token latencies.

  front_rate.py --model DIR [--streams 32,128,512] [--rate 60000] [--rows 512]
                [--prompt 4] [--tokens uniform:256:768] [--batch 1]
                [--connections 0] [--warmup 2] [--seconds 8] [--bin build/bin]
                [--json FILE]

The runner's own processor time is in the server's; `txl-bench-front --sink`
says what it is. Linux: processor time comes from /proc.
"""

import contextlib
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import urllib.request

import bench_script
import front_bench

QUEUE = "txl_stream_queue_tokens"
POLL_SECONDS = 0.25  # a scrape takes the server about a millisecond


def gauge_of(text, name):
    """The value of a sample without labels."""
    match = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"{name}: not among the metrics")
    return float(match.group(1))


def line_of(options, streams, report, seconds, queue):
    """One measurement; `report`: of `txl bench --json`, `seconds`: of
    processor, (server's, client's), `queue`: lengths seen."""
    server, client = seconds
    gaps = report["inter_token_seconds"]
    return {"streams": streams,
            "tokens_per_message": options.batch,
            "device_tokens_per_second": options.rate,
            "tokens_per_second": report["tokens_per_second"],
            "share_of_device": report["tokens_per_second"] / options.rate,
            "tokens": report["tokens"],
            "server_microseconds_per_token": 1e6 * server / report["tokens"],
            "client_microseconds_per_token": 1e6 * client / report["tokens"],
            "longest_queue_tokens": max(queue),
            "mean_queue_tokens": sum(queue) / len(queue),
            "inter_token_milliseconds": {
                name: 1e3 * gaps[name]
                for name in ("p50", "p90", "p99", "p999", "max")},
            "statuses": report["statuses"]}


def server_command(options, address):
    return [options.bin / "txl-bench-front", "--model", options.model,
            "--listen", address, "--metrics-listen", "127.0.0.1:0", "--rows",
            str(options.rows), "--tokens-per-second", str(options.rate)]


def load_command(options, address, streams):
    return [options.bin / "txl", "bench", "--server", address, "--streams",
            str(streams), "--connections", str(options.connections),
            "--prompt-tokens", str(options.prompt), "--max-tokens",
            options.tokens, "--tokens-per-message", str(options.batch),
            "--warmup", str(options.warmup), "--seconds",
            str(options.warmup + options.seconds), "--json"]


@contextlib.contextmanager
def running_server(options, address):
    """(process, URL of its metrics)."""
    with subprocess.Popen(server_command(options, address),
                          stdout=subprocess.PIPE, text=True) as server:
        try:
            for line in server.stdout:
                if line.startswith("metrics on "):
                    yield server, line.split()[-1]
                    return
            raise SystemExit("the server does not start")
        finally:
            server.terminate()


def measure(options, server, url, address, streams):
    def server_seconds():
        stat = pathlib.Path(f"/proc/{server.pid}/stat").read_text()
        return front_bench.seconds_of(stat)

    def client_seconds():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = server_seconds(), client_seconds()
    queue = []
    with subprocess.Popen(load_command(options, address, streams),
                          stdout=subprocess.PIPE, text=True) as load:
        while True:
            with urllib.request.urlopen(url, timeout=10) as answer:
                queue.append(gauge_of(answer.read().decode(), QUEUE))
            try:
                output, _ = load.communicate(timeout=POLL_SECONDS)
                break
            except subprocess.TimeoutExpired:
                pass
    if load.returncode != 0:
        raise SystemExit("the load test failed")
    seconds = (server_seconds() - before[0], client_seconds() - before[1])
    report = json.loads(output.splitlines()[-1])
    return line_of(options, streams, report, seconds, queue)


def parse_options(arguments):
    parser = bench_script.new_parser(__doc__)
    parser.add_argument("--streams", type=bench_script.counts,
                        default="32,128,512")
    parser.add_argument("--rate", type=float, default=60000,
                        help="tokens a second of the device")
    parser.add_argument("--rows", type=int, default=512, help="of a step")
    parser.add_argument("--prompt", type=int, default=4)
    parser.add_argument("--tokens", default="uniform:256:768",
                        help="of a turn, as --max-tokens of txl bench")
    parser.add_argument("--batch", type=int, default=1,
                        help="tokens that may come in one message")
    parser.add_argument("--connections", type=int, default=0,
                        help="0: as txl bench has it")
    parser.add_argument("--warmup", type=float, default=2)
    parser.add_argument("--seconds", type=float, default=8)
    return parser.parse_args(arguments)


def main():
    options = parse_options(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/server.sock"
        with running_server(options, address) as (server, url):
            bench_script.report(
                (measure(options, server, url, address, count)
                 for count in options.streams), options.json)


if __name__ == "__main__":
    main()
