#!/usr/bin/env python3
"""Kills a txl-server with a store again and again under clients that go on.

Usage: kills.py [--server build/bin/txl-server] [--kills N] [--seed S]
                [--clients C] [--durability turn|token] [--keep FOLDER]
                [--cuda build/bin/txl-model]

The clients make, feed, continue, fork, rewind and delete sessions, send each
request again until it is answered, and compare what they were told with what
the server says later. Then all requests are made on a server that nobody
kills: token ids and the bits of log-probabilities have to be the same.
Prints figures and each violation with seed and session. --cuda: the server is
build/tests/txl_emulated_server, on a small model that the named program makes.
Exits 0 without violations, 1 with, 2 for a wrong usage.
"""

import argparse
import concurrent.futures
import dataclasses
import pathlib
import random
import shutil
import sys
import tempfile
import time

import paths

import api
import draws
import small_model
from keeper import Keeper
from replay import Replay
from report import Report, times
from server import Server
from worker import Worker

_LAG = 16  # --journal-lag
_REPLAYS = 4
# Sessions of the server's own for choices over HTTP: one whose turn a kill took
# stays until its time-to-live.
_SAMPLES = "sample-"
# Sessions leave the device and their images the memory all the time.
_FEW = ["--slots", "3", "--snapshot-tokens", "100", "--session-memory", "12MiB"]
_CUDA = ["--device", "cuda", "--step", "native"]


@dataclasses.dataclass
class Facts:
    """What clients have to know of the server."""
    vocabulary: int
    texts: dict         # the ids of each of draws.PROMPTS
    start_tokens: list  # of generation.json


def facts_of(client):
    model = client.call("Model.GetModel")
    return Facts(model.vocabulary_size, {
        text: list(client.call("Model.Tokenize", {"text": text}).token_ids)
        for text in draws.PROMPTS}, [0])


def compare_lists(client, workers, report, others=()):
    """ListSessions has those that live, `others` and none beside."""
    listed, token = set(), ""
    while True:
        page = client.call("Session.ListSessions", {"pageToken": token})
        listed |= {session.session_id for session in page.sessions
                   if not session.session_id.startswith(_SAMPLES)}
        token = page.next_page_token
        if not token:
            break
    living = {life.name for worker in workers for life in worker.living()}
    lost = {life.name for worker in workers for life in worker.lives
            if life.lost}
    living |= set(others)
    if listed - lost != living - lost:
        report.violation("-", f"listed {sorted(listed - living - lost)}, "
                         f"missing {sorted(living - listed)}")


def replay(server, workers, report, others=()):
    """`others`: run beside."""
    lives = [life for worker in workers for life in worker.lives
             if not life.lost]
    try:
        # Several at once share the server's steps.
        with concurrent.futures.ThreadPoolExecutor(
                _REPLAYS + len(others)) as pool:
            parts = [pool.submit(_replay_part, server, lives[part::_REPLAYS],
                                 report, f"replay{part}")
                     for part in range(_REPLAYS)]
            parts += [pool.submit(each) for each in others]
            for part in parts:
                part.result()
    finally:
        server.kill()


def _replay_part(server, lives, report, prefix):
    with server.client() as client:
        run = Replay(client, report, prefix)
        for life in lives:
            run.run(life)


def live(keeper, options, rng):
    """The clients' time; the clients."""
    with keeper.connect() as client:
        facts = facts_of(client)
    lag = 0 if options.durability == "token" else _LAG
    workers = [Worker(number, keeper, random.Random(rng.getrandbits(64)),
                      facts, lag) for number in range(options.clients)]
    for worker in workers:
        worker.thread.start()
    keeper.run(options.kills, random.Random(rng.getrandbits(64)))
    keeper.over.set()
    for worker in workers:
        worker.thread.join(120)
        if worker.thread.is_alive() or worker.failure:
            keeper.report.violation("-", "a client did not come to its end: "
                                    f"{worker.failure}")
    return workers


def look(keeper, workers):
    """What the server has of everything, before another kill and after."""
    for _ in range(2):
        for worker in workers:
            worker.verify_all()
        with keeper.connect() as client:
            compare_lists(client, workers, keeper.report)
        keeper.kill()
        keeper.start()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--server", type=pathlib.Path, default=paths.SERVER)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--durability", choices=["turn", "token"],
                        default="turn")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--cuda", type=pathlib.Path)
    options = parser.parse_args()
    begin, report = time.monotonic(), Report(options.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="txl-kills-"))
    model, device = paths.SHAKESPEARE, []
    if options.cuda:
        model = small_model.make(options.cuda, folder / "model")
        device = _CUDA
    flags = ["--durability", options.durability, "--journal-lag", _LAG,
             "--log-level", "warning", *_FEW, *device]
    keeper = Keeper(options.server, model, flags, folder, report)
    try:
        keeper.start()
        workers = live(keeper, options, random.Random(options.seed))
        look(keeper, workers)
        keeper.server.kill()
        replay(Server(options.server, str(model),
                      ["--log-level", "error", "--slots", "8", *device],
                      folder), workers, report)
    finally:
        keeper.close()
        if options.keep:
            keeper.keep(options.keep)
        shutil.rmtree(folder)
    print(f"durability {options.durability}, seed {options.seed}, "
          f"{options.clients} clients, {time.monotonic() - begin:.0f} s:",
          report.counts())
    print("start to listening:", times(keeper.starts))
    print("start to a resumed turn's token:", times(keeper.resumed))
    print("violations:", len(report.violations))
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
