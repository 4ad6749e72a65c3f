#!/usr/bin/env python3
"""Runs other engines and txl-bench-engine one after the other and prints a
Markdown table of tokens/s with ratios of this run.

  peers.py [--shape tests/bench/wt103_large.json] [--sessions 1,8,32]
           [--bin build/bin] [--threads N] [--seconds 10] [--json FILE]
           [--only TEXT]

A run that dies (an engine built with instructions that this processor does not
have, say) is named below the table and the others go on; the exit code is 1.

Peers: Hugging Face's TransfoXL (PyTorch) with a memory of the shape's length,
and llama.cpp with a GPT-2 as wide, deep and long, whose cache is in half
precision or in 8-bit blocks. Each lives in a virtual environment under .deps/peers, made when it
is missing (llama.cpp is built from source: minutes).
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / ".deps" / "peers"
SCRIPTS = pathlib.Path(__file__).resolve().parent / "peers"

REQUIREMENTS = {
    "transfoxl": ["torch==2.13.0", "transformers==4.35.2",
                  "sacremoses==0.1.1", "numpy==1.26.4"],
    "llama": ["llama-cpp-python==0.3.36", "gguf==0.19.0", "numpy==2.4.6"],
}

# Name, peer, its arguments.
PEER_RUNS = [
    ("Hugging Face TransfoXL, f32", "transfoxl", []),
    ("llama.cpp GPT-2, f32, f16 cache", "llama", ["f32", "f16"]),
    ("llama.cpp GPT-2, Q8_0, f16 cache", "llama", ["q8_0", "f16"]),
    ("llama.cpp GPT-2, Q8_0, q8_0 cache", "llama", ["q8_0", "q8_0"]),
    ("llama.cpp GPT-2, Q4_0, q8_0 cache", "llama", ["q4_0", "q8_0"]),
]

# Rows of the memory, keys and values, products.
INTEGERS = ["--memory", "int8", "--derived", "int8", "--products", "int8"]

# Name, flags of txl-bench-engine, peers that the ratios are to.
OWN_RUNS = [
    ("txl, f32", [], [0, 1]),
    ("txl, f32, keys and values f16", ["--derived", "f16"], [0, 1]),
    ("txl, int8, keys and values f16",
     ["--weights", "int8", "--derived", "f16"], [2]),
    ("txl, all int8", ["--weights", "int8", *INTEGERS], [0, 2, 3]),
    ("txl, int4 weights, the rest int8",
     ["--weights", "int4", *INTEGERS], [4]),
]


def python_of(peer):
    """The interpreter of a peer's environment, which is made if missing."""
    folder = PEERS / peer
    python = folder / "bin" / "python"
    done = folder / "installed.txt"
    wanted = "\n".join(REQUIREMENTS[peer])
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    print(f"making {folder}", file=sys.stderr)
    venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet",
                    *REQUIREMENTS[peer]], check=True)
    done.write_text(wanted, encoding="utf-8")
    return python


def rates_of(lines):
    """{sessions: tokens/s} of a program's JSON lines; others are skipped."""
    rates = {}
    for line in lines:
        if not line.startswith("{"):
            continue
        record = json.loads(line)
        if "sessions" in record:
            rates[record["sessions"]] = record["tokens_per_second"]
    return rates


def run(command, threads):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    result = subprocess.run([str(part) for part in command], check=True,
                            stdout=subprocess.PIPE, text=True,
                            env=environment)
    return result.stdout.splitlines()


def run_peer(options, peer, arguments):
    command = [python_of(peer)]
    if peer == "transfoxl":
        command += [SCRIPTS / "transfoxl.py", options.shape, options.sessions,
                    options.seconds, options.threads]
    else:
        command += [SCRIPTS / "llama_gpt2.py", options.shape, *arguments,
                    options.sessions, options.seconds, options.threads, PEERS]
    return rates_of(run(command, options.threads))


def run_own(options, flags):
    return rates_of(run(
        [options.bin / "txl-bench-engine", "--model", options.shape,
         "--sessions", options.sessions, "--steps", options.steps,
         "--threads", options.threads, "--no-peaks", *flags],
        options.threads))


def machine(options):
    """The machine's peaks, measured in this run on a small model."""
    lines = run([options.bin / "txl-bench-engine", "--model",
                 pathlib.Path(__file__).with_name("sorter.json"),
                 "--sessions", 1, "--steps", 1, "--threads",
                 options.threads], options.threads)
    return json.loads(lines[0])


def number(value):
    if value is None:
        return "-"
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def ratio(rate, to):
    return None if rate is None or not to else rate / to


def table(sessions, peers, own):
    """Markdown. peers: [(name, rates)]; own: [(name, rates, peer indices)],
    rates None where a run was left out or died."""
    head = ["tokens/s", *map(str, sessions)]
    rows = [head, ["-"] * len(head)]
    for name, rates in [*peers, *[(name, rates) for name, rates, _ in own]]:
        if rates is None:
            continue
        rows.append([name, *[number(rates.get(count)) for count in sessions]])
    for name, rates, indices in own:
        for index in indices:
            peer, peer_rates = peers[index]
            if rates is None or peer_rates is None:
                continue
            cells = [number(ratio(rates.get(count), peer_rates.get(count)))
                     for count in sessions]
            rows.append([f"{name} ÷ {peer}", *cells])
    return "\n".join("|" + "|".join(f" {cell} " for cell in row) + "|"
                     for row in rows)


def cause(error):
    """Of a process that failed, in a few words."""
    if error.returncode < 0:
        return f"died of {signal.Signals(-error.returncode).name}"
    return f"ended with exit code {error.returncode}"


def measure(options, name, run_it, failures):
    """The rates of one run; None where --only leaves it out, or where it fails,
    which goes into failures: [(name, cause)]. Runs take minutes: each is told
    when it ends."""
    if options.only not in name:
        return None
    try:
        rates = run_it()
    except subprocess.CalledProcessError as error:
        failures.append((name, cause(error)))
        print(f"{name}: {cause(error)}", file=sys.stderr, flush=True)
        return None
    print(f"{name}: {rates}", file=sys.stderr, flush=True)
    return rates


def parse_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--shape", type=pathlib.Path,
                        default=pathlib.Path(__file__).with_name(
                            "wt103_large.json"))
    parser.add_argument("--sessions", default="1,8,32")
    parser.add_argument("--bin", type=pathlib.Path,
                        default=ROOT / "build" / "bin")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=10,
                        help="of each measurement of a peer, at least")
    parser.add_argument("--steps", type=int, default=20,
                        help="of each measurement of txl-bench-engine")
    parser.add_argument("--only", default="",
                        help="runs whose name contains this")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args(arguments)


def main():
    options = parse_options(sys.argv[1:])
    sessions = [int(count) for count in options.sessions.split(",")]
    peaks = machine(options)
    print(f"{peaks['cpu']}, {peaks['threads']} threads, "
          f"{peaks['vector_target']}: {peaks['read_gigabytes_per_second']:.1f}"
          f" GB/s read, {peaks['fma_gigaflops']:.0f} GFLOP/s\n", flush=True)
    peers, own, failures = [], [], []
    for name, peer, arguments in PEER_RUNS:
        rates = measure(options, name,
                        lambda: run_peer(options, peer, arguments), failures)
        peers.append((name, rates))
    for name, flags, indices in OWN_RUNS:
        rates = measure(options, name, lambda: run_own(options, flags),
                        failures)
        own.append((name, rates, indices))
    print(table(sessions, peers, own))
    for name, why in failures:
        print(f"\n{name}: {why}")
    if options.json:
        runs = [{"name": run[0], "tokens_per_second": run[1]}
                for run in [*peers, *own] if run[1] is not None]
        options.json.write_text(
            json.dumps({"machine": peaks, "shape": options.shape.stem,
                        "runs": runs}, indent=1) + "\n", encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
