#!/usr/bin/env python3
"""Rehearses the failures of a fleet: servers on one Redis under clients.

Usage: rehearse.py [--server build/bin/txl-server] [--servers N] [--faults N]
                   [--clients C] [--programs P] [--seed S]
                   [--durability turn|token] [--longest SECONDS] [--proxy]
                   [--keep FOLDER]

Clients make, feed, continue, fork, rewind and delete sessions on any server,
send each request again until it is answered, and compare what they were told
with what the fleet says later; some are the program `txl`. Meanwhile servers are killed, stopped, drained
and cut off from the store, and the store is killed (faults.py). Then all
requests are made on one server without faults: token ids and the bits of
log-probabilities have to be the same. --proxy: clients reach the servers
through HAProxy with the configuration that is shipped.
Prints figures and each violation with seed and session. Exits 0 without
violations, 1 with, 2 for a wrong usage.
"""

import argparse
import dataclasses
import pathlib
import random
import shutil
import sys
import tempfile
import time

import paths

import faults
from fleet import Fleet
from kills import compare_lists, facts_of, replay
from program_worker import ProgramWorker
from report import Report, times
from server import Server
from worker import Worker

_LAG = 16  # --journal-lag
_PACE = 0.7  # seconds between two faults, about
_STREAMS_BACK = 5.0  # seconds after a kill, of 99 in 100


@dataclasses.dataclass
class FleetOptions:
    servers: int
    durability: str
    flags: list
    proxy: bool


def live(fleet, options, rng):
    """The clients' time; those that know the proto, and those that are `txl`."""
    with fleet.connect() as client:
        facts = facts_of(client)
    lag = 0 if options.durability == "token" else _LAG
    workers = [Worker(number, fleet, random.Random(rng.getrandbits(64)),
                      facts, lag) for number in range(options.clients)]
    programs = [ProgramWorker(number, options.server.with_name("txl"), fleet,
                              random.Random(rng.getrandbits(64)))
                for number in range(options.programs)]
    for worker in workers + programs:
        worker.thread.start()
    drawn = faults.draw(rng, options.faults, options.servers, options.longest)
    for fault in drawn:
        time.sleep(rng.uniform(0, 2 * _PACE))
        faults.strike(fleet, fault)
        fleet.report.count(fault.kind)
        if fault.kind == "kill":  # what comes next would be in the figure
            time.sleep(_STREAMS_BACK)
    fleet.over.set()
    for worker in workers + programs:
        worker.thread.join(180)
        if worker.thread.is_alive() or worker.failure:
            fleet.report.violation("-", "a client did not come to its end: "
                                   f"{worker.failure}")
    return workers, programs


def look(fleet, workers, programs):
    """What the fleet has of everything."""
    for worker in workers:
        worker.verify_all()
    with fleet.connect() as client:
        compare_lists(client, workers, fleet.report,
                      {name for each in programs for name in each.sessions})


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
    parser.add_argument("--programs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--durability", choices=["turn", "token"],
                        default="turn")
    parser.add_argument("--longest", type=float, default=10)
    parser.add_argument("--proxy", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    return parser.parse_args()


def main():
    options = parse()
    begin, report = time.monotonic(), Report(options.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="txl-rehearsal-"))
    fleet = Fleet(options.server, paths.SHAKESPEARE, FleetOptions(
        options.servers, options.durability,
        ["--journal-lag", _LAG, "--log-level", "warning", "--slots", "3",
         "--snapshot-tokens", "100"], options.proxy), folder, report)
    try:
        fleet.start_all()
        workers, programs = live(fleet, options, random.Random(options.seed))
        look(fleet, workers, programs)
        check_resumed(fleet)
        fleet.close()
        alone = Server(options.server, str(paths.SHAKESPEARE),
                       ["--log-level", "error", "--slots", "8"], folder)
        for program in programs:
            program.replay(alone.address)
        replay(alone, workers, report)
    finally:
        fleet.close()
        if options.keep:
            shutil.rmtree(options.keep, ignore_errors=True)
            shutil.copytree(folder, options.keep,
                            ignore=shutil.ignore_patterns("*.sock"))
        shutil.rmtree(folder)
    print(f"{options.servers} servers, durability {options.durability}, seed "
          f"{options.seed}, {options.clients} clients, "
          f"{time.monotonic() - begin:.0f} s:", report.counts())
    print("kill to a broken turn's next token:", times(fleet.resumed))
    print("violations:", len(report.violations))
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
