#!/usr/bin/env python3
"""Starts a txl-server on a store with many sessions.

Usage: starts.py [--server build/bin/txl-server] [--sessions N] [--seed S]

Fills a store with N sessions and a few long ones, starts the server on it and
compares: the time to "listening on" with that of a start without a store, the
memory of its own with that on an empty store, the first token of a session that
was not used since with the one that it gives next. Exits 0 when all is within
the limits, 1 when not, 2 for a wrong usage.
"""

import argparse
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time

import paths

import api
from server import MIB, Server

_STARTS = 3        # of each kind; their median counts
_PIPELINED = 60    # calls at a time
_LONG, _LONG_IDS = 20, 2000
_MOST_SECONDS = 1.0
_MOST_BYTES = 200  # of memory for each stored session
_NOISE = 4 * MIB   # between two starts of the same
_MOST_COLD = 0.05  # seconds of a cold session's first token beyond


class Site:
    """A folder with a store, and servers on it."""

    def __init__(self, program, folder):
        self._program, self._folder = str(program), folder

    def start(self, store, *flags):
        """(server, seconds to "listening on")."""
        begin = time.monotonic()
        stored = ["--data-dir", str(self._folder / store)] if store else []
        server = Server(self._program, str(paths.SHAKESPEARE),
                        ["--log-level", "warning", "--max-sessions", "1000000",
                         *stored, *flags], self._folder)
        return server, time.monotonic() - begin

    def measure(self, store):
        """Medians of (seconds to "listening on", bytes of its own)."""
        seconds, memory = [], []
        for _ in range(_STARTS):
            server, took = self.start(store)
            seconds.append(took)
            memory.append(server.memory())
            server.kill()
        return statistics.median(seconds), statistics.median(memory)


def in_batches(client, calls):
    """Makes calls (name, fields), many at a time; all have to succeed."""
    running = []
    for name, fields in calls:
        running.append(client.start(name, fields))
        if len(running) >= _PIPELINED:
            _finish(client, running.pop(0))
    for stream in running:
        _finish(client, stream)


def _finish(client, stream):
    status = client.finish(stream, 60)
    if status.code != api.OK:
        raise api.Failed(str(status))


def fill(site, sessions, rng):
    """Sessions s0, s1, ... of a few tokens, l0, l1, ... of many; the server
    is stopped as an operator would."""
    server, _ = site.start("store")
    names = [f"s{i}" for i in range(sessions)] + [f"l{i}" for i in range(_LONG)]
    try:
        with server.client() as client:
            in_batches(client, (("Session.CreateSession", {"sessionId": name})
                                for name in names))
            in_batches(client, (("Session.AppendTokens", {
                "sessionId": name, "tokens": {"ids": _ids(name, rng)}})
                for name in names))
        return server.stop()
    finally:
        server.kill()


def _ids(name, rng):
    count = _LONG_IDS if name[0] == "l" else 8
    return [rng.randrange(60) for _ in range(count)]


def first_token(client, name):
    """Seconds to a turn's first token; the turn has no other."""
    begin = time.monotonic()
    client.generate(api.turn(1, name, ids=[1]))
    return time.monotonic() - begin


def cold_and_warm(site, names):
    """Seconds of a first token beyond one of a resident session: the medians'
    difference, and the worst of each."""
    server, _ = site.start("store")
    try:
        with server.client() as client:
            client.generate(api.turn(1))
            cold = [first_token(client, name) for name in names]
            warm = [first_token(client, name) for name in names]
    finally:
        server.kill()
    return (statistics.median(cold) - statistics.median(warm), max(cold),
            max(warm))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--server", type=pathlib.Path, default=paths.SERVER)
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="txl-starts-"))
    fell = 0

    def judge(what, value, limit, text):
        nonlocal fell
        fell += value > limit
        print("held" if value <= limit else "FELL", what, text, flush=True)

    try:
        site = Site(options.server, folder)
        begin = time.monotonic()
        status = fill(site, options.sessions, rng)
        judge("fill", status, 0, f"{options.sessions} sessions in "
              f"{time.monotonic() - begin:.0f} s, exit {status}")
        bare, _ = site.measure(None)
        _, empty = site.measure("empty")
        seconds, memory = site.measure("store")
        judge("start", seconds - bare, _MOST_SECONDS,
              f"{seconds * 1e3:.0f} ms, without a store {bare * 1e3:.0f} ms")
        growth = memory - empty
        judge("memory", growth, max(_MOST_BYTES * options.sessions, _NOISE),
              f"{growth / options.sessions:.0f} bytes a session: "
              f"{memory / MIB:.1f} MiB, empty {empty / MIB:.1f} MiB")
        short = [f"s{rng.randrange(options.sessions)}" for _ in range(_LONG)]
        for kind, names in (("short", short),
                            ("long", [f"l{i}" for i in range(_LONG)])):
            beyond, cold, warm = cold_and_warm(site, names)
            judge(f"cold-{kind}", beyond, _MOST_COLD,
                  f"{beyond * 1e3:.1f} ms beyond a resident one (medians); "
                  f"worst {cold * 1e3:.0f} and {warm * 1e3:.0f} ms")
    finally:
        shutil.rmtree(folder)
    return 1 if fell else 0


if __name__ == "__main__":
    sys.exit(main())
