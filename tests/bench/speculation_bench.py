#!/usr/bin/env python3
"""What guessing ahead brings: tokens/s of txl-server with --speculate auto over
those of one with --speculate off, in turns, over kinds of prompts.

  speculation_bench.py --model DIR [--prompts NAME=FILE ...] [--streams 1,32]
                       [--temperature 0,0.8] [--tokens 512] [--requests 4]
                       [--rounds 3] [--bin build/bin] [--json FILE]
                       [-- SERVER FLAGS]

DIR may have a table of n-grams (txl-model ngrams). A file has a prompt a line;
without one prompts are random tokens. Each line of the output has the medians
of the rounds' ratios, of tokens/s and of the server's processor time for a
token, and of the guesses the share that was accepted and how many tokens a step
made of a stream.

Linux: processor time comes from /proc.
"""

import contextlib
import copy
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import urllib.request

import bench_script
import front_bench

GUESSES = ("txl_tokens_guessed_total", "txl_guesses_accepted_total",
           "txl_rows_total{kind=\"decode\"}")


def parse_options(arguments):
    parser = bench_script.new_parser(__doc__)
    parser.add_argument("--prompts", action="append", default=[])
    parser.add_argument("--streams", type=bench_script.counts, default="1,32")
    parser.add_argument("--temperature", default="0,0.8",
                        type=lambda text: [float(t) for t in text.split(",")])
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--requests", type=int, default=4, help="of a stream")
    parser.add_argument("--rounds", type=int, default=3)
    return bench_script.parse(parser, arguments)


def counters(text):
    """The sums of GUESSES in a scrape."""
    values = dict.fromkeys(GUESSES, 0.0)
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name in values:
            values[name] = float(value)
    return values


def line_of(what, rounds, before, after):
    """`rounds`: pairs, without and with guesses, of tokens/s and processor
    seconds for a token."""
    guessed, accepted, rows = (after[name] - before[name] for name in GUESSES)
    own_rows = rows - guessed  # of streams' last tokens
    return {**what,
            "tokens_per_second_off":
                statistics.median(off[0] for off, _ in rounds),
            "tokens_per_second_auto":
                statistics.median(auto[0] for _, auto in rounds),
            "ratio":
                statistics.median(auto[0] / off[0] for off, auto in rounds),
            "processor_ratio":
                statistics.median(auto[1] / off[1] for off, auto in rounds),
            "guesses_accepted": accepted / guessed if guessed else 0.0,
            "tokens_per_row_of_a_stream":
                (own_rows + accepted) / own_rows if own_rows else 0.0}


def process_seconds(pid):
    """Processor seconds that a process has used."""
    return front_bench.seconds_of(
        pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"))


@contextlib.contextmanager
def server_with(options, speculate, folder):
    """(its address, its process, a function that scrapes it), until the block
    ends."""
    metrics = f"127.0.0.1:{bench_script.free_port()}"
    options = copy.copy(options)
    options.flags = [*options.flags, "--speculate", speculate,
                     "--metrics-listen", metrics]
    address = f"unix:{folder}/{speculate}.sock"
    server = front_bench.start_server(options, address)

    def scrape():
        with urllib.request.urlopen(f"http://{metrics}/metrics") as answer:
            return counters(answer.read().decode())

    try:
        yield address, server.pid, scrape
    finally:
        server.terminate()
        server.wait()


def load(options, server, what, seed):
    """(tokens/s, processor seconds of the server for a token)"""
    address, pid, _ = server
    prompts = ["--prompt-tokens", "32"]
    if what["file"]:
        prompts = ["--prompts", what["file"]]
    before = process_seconds(pid)
    result = subprocess.run(
        [options.bin / "txl", "bench", "--server", address, "--streams",
         str(what["streams"]), *prompts, "--max-tokens", str(options.tokens),
         "--requests", str(options.requests * what["streams"]),
         "--temperature", str(what["temperature"]), "--seed", str(seed),
         "--tokens-per-message", "16", "--json"],
        check=True, stdout=subprocess.PIPE, text=True)
    report = json.loads(result.stdout.splitlines()[-1])
    return (report["tokens_per_second"],
            (process_seconds(pid) - before) / report["tokens"])


def lines(options, off, auto):
    kinds = [prompts.split("=", 1) for prompts in options.prompts]
    for name, file in kinds or [("random", "")]:
        for temperature in options.temperature:
            for streams in options.streams:
                what = {"prompts": name, "file": file,
                        "temperature": temperature, "streams": streams}
                for server in (off, auto):
                    load(options, server, what, 0)  # warm
                before = auto[2]()
                rounds = [(load(options, off, what, seed),
                           load(options, auto, what, seed))
                          for seed in range(1, options.rounds + 1)]
                yield line_of(what, rounds, before, auto[2]())


def main():
    options = parse_options(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder, \
            server_with(options, "off", folder) as off, \
            server_with(options, "auto", folder) as auto:
        bench_script.report(lines(options, off, auto), options.json)


if __name__ == "__main__":
    main()
