#!/usr/bin/env python3
"""Kills a txl-server under clients of three tenants whose prompts begin alike.

Usage: prefixes.py [--server build/bin/txl-server] [--kills N] [--seed S]
                   [--clients C] [--slots N] [--prefix-cache SIZE]
                   [--model-program build/bin/txl-model] [--keep FOLDER]
                   [-- FLAGS OF BOTH]

Half of the clients send prompts over gRPC and HTTP, which are generated from,
scored, or left; the others live as those of kills.py do, with sessions that are
fed, forked and rewound. Every answer has to be, to the bit, that of a server
with --prefix-cache 0 that nobody kills; cached tokens may only be a tenant's
own. Some prompts are those that another tenant has just sent. The model is
small, made by --model-program; without the program it is the shipped one.
Exits 0 without violations, 1 with, 2 for a wrong usage.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import paths

import draws
import kills
import small_model
from asker import Asker, Tenant
from keeper import Keeper, free_port
from report import Report, times
from server import Server
from worker import Worker

_TENANTS = ["alice", "bob", "carol"]
_LAG = 16
_FEW = ["--snapshot-tokens", "100", "--session-memory", "12MiB",
        "--journal-lag", _LAG, "--log-level", "warning"]


def add_key(program, file, tenant):
    return subprocess.run(
        [program, "keys", "add", "--keys", file, "--name", tenant, "--tenant",
         tenant, "--role", "user"], check=True, capture_output=True,
        text=True).stdout.split()[-1]


def texts_of(tenant):
    """Texts that a tenant's sessions begin with."""
    begin = f"{tenant.upper()}:\n" + "Now is the winter of our discontent\n" * 3
    return [*draws.PROMPTS, begin, begin + "O, ", begin + "the king"]


def make_workers(tenants, options, client, rng):
    vocabulary = client.call("Model.GetModel").vocabulary_size
    workers = []
    for number in range(options.clients // 2):
        tenant = tenants[number % len(tenants)]
        facts = kills.Facts(vocabulary, {
            text: list(client.call("Model.Tokenize", {"text": text}).token_ids)
            for text in texts_of(tenant.name)}, [0])
        workers.append(Worker(number, tenant, random.Random(
            rng.getrandbits(64)), facts, _LAG))
    return workers


def live(keeper, clients, options, rng):
    for client in clients:
        client.thread.start()
    keeper.run(options.kills, rng)
    keeper.over.set()
    for client in clients:
        client.thread.join(120)
        if client.thread.is_alive() or client.failure:
            keeper.report.violation("-", "a client did not come to its end: "
                                    f"{client.failure}")


def look(tenants, workers, keeper):
    for number, tenant in enumerate(tenants):
        own = workers[number::len(tenants)]
        for worker in own:
            worker.verify_all()
        with tenant.connect() as client:
            kills.compare_lists(client, own, keeper.report)
    # Otherwise it compared nothing that could be wrong.
    for what in ("answers_with_cached_tokens", "prompts_of_another_tenant"):
        if keeper.report.counted(what) == 0:
            keeper.report.violation("-", f"{what} 0")


def start_plain(options, model, folder):
    """The server whose answers are right."""
    folder.mkdir()
    port = free_port()
    server = Server(options.server, str(model),
                    ["--prefix-cache", "0", "--slots", "8", "--log-level",
                     "error", "--http-listen", f"127.0.0.1:{port}",
                     *options.flags], folder)
    server.http_port = port
    return server


def run(options, folder, report):
    """The keeper, at the end."""
    rng = random.Random(options.seed)
    model = paths.SHAKESPEARE
    if options.model_program:
        model = small_model.make(options.model_program, folder / "model")
    plain = start_plain(options, model, folder / "plain")
    file, port = folder / "keys.toml", free_port()
    keys = {name: add_key(options.server, file, name) for name in _TENANTS}
    keeper = Keeper(options.server, model, [
        "--keys", file, "--http-listen", f"127.0.0.1:{port}", "--slots",
        options.slots, "--prefix-cache", options.prefix_cache, *_FEW,
        *options.flags], folder, report)
    try:
        keeper.start()
        with plain.client() as client:
            vocabulary = client.call("Model.GetModel").vocabulary_size
            tenants = [Tenant(keeper, name, key, port, rng, vocabulary)
                       for name, key in keys.items()]
            workers = make_workers(tenants, options, client, rng)
        askers = [Asker(number, tenants, plain, random.Random(
            rng.getrandbits(64)))
                  for number in range(options.clients - len(workers))]
        live(keeper, workers + askers, options, rng)
        look(tenants, workers, keeper)
        kills.replay(plain, workers, report)
    finally:
        keeper.close()
        plain.kill()
    return keeper


def main():
    options = parse()
    begin, report = time.monotonic(), Report(options.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="txl-prefixes-"))
    try:
        keeper = run(options, folder, report)
        if options.keep:
            keeper.keep(options.keep)
    finally:
        shutil.rmtree(folder)
    print(f"prefix cache {options.prefix_cache}, {options.slots} slots, seed "
          f"{options.seed}, {options.clients} clients, "
          f"{time.monotonic() - begin:.0f} s:", report.counts())
    print("start to listening:", times(keeper.starts))
    print("violations:", len(report.violations))
    return 1 if report.violations else 0


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--server", type=pathlib.Path, default=paths.SERVER)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--prefix-cache", default="auto")
    parser.add_argument("--model-program", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("flags", nargs="*")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
