#!/usr/bin/env python3
"""Rehearses the failures of a fleet: servers on one store under clients.

Usage: rehearse.py [--server build/bin/txl-server] [--servers N] [--faults N]
                   [--clients C] [--each E] [--seed S]
                   [--durability turn|token] [--longest SECONDS]
                   [--lease SECONDS] [--fsync always|everysec] [--proxy]
                   [--only KIND,KIND...] [--keep FOLDER]
                   [--clock build/tests/libtxl_moved_clock.so]

C clients of the proto make, feed, continue, fork, rewind and delete sessions on
any server, send each request again until it is answered, and compare what they
were told with what the fleet says later; E each go on with sessions by the
program `txl`, by the Python package and over HTTP. Meanwhile servers are
killed, stopped, drained and cut off from the store, their wall clocks jump,
their disks and the store's are full, and the store is killed (faults.py). Then
all requests are made on one server without faults: token ids and the bits of
log-probabilities have to be the same. --proxy: clients reach the servers
through HAProxy with the configuration that is shipped. Faults that are no stops
last in proportion to the lease.
Disks are of the rehearsal's own, as root or where users may have namespaces;
elsewhere they are never full, and a line says so.
Prints figures and each violation with seed and session. Exits 0 without
violations, 1 with, 2 for a wrong usage.
"""

import argparse
import dataclasses
import functools
import pathlib
import random
import shutil
import sys
import tempfile
import time

import paths

import faults
from alone import Alone
from fleet import Fleet
from kills import compare_lists, facts_of, replay
from own_disk import own_mounts
from package_session import PackageSession, unpack
from program_session import ProgramSession
from report import Report, times
from server import Fell, wait_until
from turn_worker import TurnWorker
from web_session import WebSession
from worker import Worker

_LAG = 16  # --journal-lag
_PACE = 0.7  # seconds between two faults, about
_STREAMS_BACK = 5.0  # seconds after a kill, of 99 in 100
_KINDS = (ProgramSession, PackageSession, WebSession)


@dataclasses.dataclass
class FleetOptions:
    servers: int
    durability: str
    flags: list
    lease: float
    fsync: str
    clock: pathlib.Path
    proxy: bool
    disks: bool


class Spent:
    """Where the time went."""

    def __init__(self):
        self._parts, self._begin = [], time.monotonic()

    def on(self, what):
        """The time since the last call."""
        now = time.monotonic()
        self._parts.append(f"{what} {now - self._begin:.0f} s")
        self._begin = now

    def __str__(self):
        return ", ".join(self._parts)


def live(fleet, options, rng):
    """The clients' time; those that know the proto, and the others."""
    with fleet.connect() as client:
        facts = facts_of(client)
    lag = 0 if options.durability == "token" else _LAG
    workers = [Worker(number, fleet, random.Random(rng.getrandbits(64)),
                      facts, lag) for number in range(options.clients)]
    others = [TurnWorker(number, kind, fleet,
                         random.Random(rng.getrandbits(64)))
              for kind in _KINDS for number in range(options.each)]
    for worker in workers + others:
        worker.thread.start()
    pace = _PACE * options.lease / faults.LEASE
    for fault in faults.draw(rng, options.faults, options):
        time.sleep(rng.uniform(0, 2 * pace))
        faults.strike(fleet, fault)
        fleet.report.count(fault.kind)
        if fault.kind == "kill":  # what comes next would be in the figure
            wait_until_back(fleet, workers)
    fleet.over.set()
    for worker in workers + others:
        worker.thread.join(180)
        if worker.thread.is_alive() or worker.failure:
            fleet.report.violation("-", "a client did not come to its end: "
                                   f"{worker.failure}")
    return workers, others


def wait_until_back(fleet, workers):
    """Until all clients hear from servers again, or they had their time."""
    begin = time.monotonic()
    try:
        wait_until(lambda: all(each.has_heard_since(begin)
                               for each in workers),
                   max(_STREAMS_BACK - fleet.seconds_since_kill(), 0), "back")
    except Fell:
        pass  # the figure says so


def look(fleet, workers, others):
    """What the fleet has of everything."""
    for worker in workers:
        worker.verify_all()
    for worker in others:
        worker.look()
    with fleet.connect() as client:
        compare_lists(client, workers, fleet.report,
                      set().union(*(each.names() for each in others)))


def check_resumed(fleet):
    late = [each for each in fleet.resumed if each > _STREAMS_BACK]
    if len(late) * 100 > len(fleet.resumed):
        fleet.report.violation(
            "-", f"{len(late)} of {len(fleet.resumed)} streams came back "
            f"later than {_STREAMS_BACK:g} s after a kill")


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--server", type=pathlib.Path, default=paths.SERVER)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--each", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--durability", choices=["turn", "token"],
                        default="turn")
    parser.add_argument("--longest", type=float, default=10)
    parser.add_argument("--lease", type=float, default=faults.LEASE)
    parser.add_argument("--fsync", choices=["always", "everysec"],
                        default="always")
    parser.add_argument("--only", type=kinds_of, default="")
    parser.add_argument("--clock", type=pathlib.Path, default=paths.CLOCK)
    parser.add_argument("--proxy", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    for file in (options.server, options.clock):
        if not file.exists():
            parser.error(f"{file} is not there")
    options.disks = has_disks()
    return options


def kinds_of(text):
    """"kill,pause" -> ["kill", "pause"]."""
    kinds = [kind for kind in text.split(",") if kind]
    if set(kinds) - set(faults.KINDS):
        raise ValueError(text)
    return kinds


def has_disks():
    try:
        own_mounts()
    except OSError as error:
        print("no disk of its own, which could be full:", error)
        return False
    return True


def main():
    options = parse()
    report, spent = Report(options.seed), Spent()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="txl-rehearsal-"))
    (folder / "package").mkdir()
    unpack(folder / "package")
    fleet = Fleet(options.server, paths.SHAKESPEARE, FleetOptions(
        options.servers, options.durability,
        ["--journal-lag", _LAG, "--log-level", "warning", "--slots", "3",
         "--snapshot-tokens", "100"], options.lease, options.fsync,
        options.clock, options.proxy, options.disks), folder, report)
    try:
        fleet.start_all()
        spent.on("starts")
        workers, others = live(fleet, options, random.Random(options.seed))
        spent.on("faults")
        look(fleet, workers, others)
        check_resumed(fleet)
        spent.on("a look")
        fleet.close()
        alone = Alone(options.server, folder, report)
        replay(alone.server, workers, report, [
            functools.partial(worker.replay, alone) for worker in others])
        spent.on("the same without faults")
    finally:
        fleet.close()
        if options.keep:
            shutil.rmtree(options.keep, ignore_errors=True)
            shutil.copytree(folder, options.keep,
                            ignore=shutil.ignore_patterns("*.sock"))
        fleet.forget()
        shutil.rmtree(folder)
    print(f"{options.servers} servers, durability {options.durability}, seed "
          f"{options.seed}, {options.clients} clients and {options.each} of "
          f"each other kind:", report.counts())
    print(spent)
    print("kill to a broken turn's next token:", times(fleet.resumed))
    print("violations:", len(report.violations))
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
