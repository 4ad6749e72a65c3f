#!/usr/bin/env python3
"""Sends generated requests to a txl-server and says what did not hold.

Usage: generate.py [--requests N] [--seed S] [--server build/bin/txl-server]
                   [--only N] [--method PART] [--sanitized] [--patience SECONDS]
                   [--weights DIR]

Starts a server with a store, keys, HTTP and administration, and sends every
request of the API over gRPC and HTTP with fields left out, past their ranges,
misspelt, doubled, of other types (values.py), on sessions in every state
(cases.py). What has to hold is in checks.py. Each violation is printed with its
seed and number: --seed S --only N makes that request alone. Exits 0 when all
held, 1 when not. --sanitized: a build with sanitizers, which takes longer.
--weights: a folder whose config.json and model.safetensors stand in for those of
the shipped model; with small ones a slow build computes less.
"""

import argparse
import itertools
import pathlib
import sys
import threading
import time

import paths

import cases
import checks
import doors
from fields import ID, NEW
from live import Live, Session
from server import Fell
from values import LONGEST

_CLIENTS = 6
_MOST_SHOWN = 20


class Run:
    """One server and the requests that it gets."""

    def __init__(self, options, numbers):
        self.options, self.numbers = options, numbers
        self.live = Live(options.server, options.weights)
        self.maker = cases.Maker(options.seed, self.live.limits,
                                 options.method)
        self.sent, self.violations = 0, 0
        self.under_way = {}  # thread: number
        self._lock = threading.Lock()

    def work(self, index):
        clients = {"alice": self.live.client("alice"),
                   "bob": self.live.client("bob"),
                   "admin": self.live.admin(), "http": self.live.http(),
                   "prefix": f"p{index}"}
        try:
            self.live.make_patterns(clients["alice"], clients["prefix"])
            while True:
                with self._lock:
                    number = next(self.numbers, None)
                    if number is None or self.sent >= self.options.requests:
                        return
                    case = self.maker.make(number)
                    self.sent += len(case.doors)
                    self.under_way[threading.get_ident()] = number
                self._make(case, clients)
                self.under_way.pop(threading.get_ident())
        except doors.grpc.RpcError as error:
            # An honest call of a client beside: the server, or our mistake.
            if self.live.server.alive():
                self.report(case, f"beside it {error.code()}: "
                            f"{error.details()}", {})
        finally:
            for who in ("alice", "bob", "admin", "http"):
                clients[who].close()

    def _make(self, case, clients):
        answers = {}
        for door in case.doors:
            name = f"s{case.number}{door}"
            ids = {ID: name, NEW: "n" + name,
                   LONGEST: name.ljust(len(LONGEST), "n")}
            if case.method.effect == "makes" or "chunk" in case.method.fields:
                case.fields = {p: self.live.file if p == "chunk" and v == b""
                               and "chunk" not in case.changes else v
                               for p, v in case.fields.items()}
            session = Session(self.live, clients, case.state, name)
            client = clients["http"] if door == "http" else clients[
                "admin" if case.method.admin else "alice"]
            try:
                answer = answers[door] = client.send(case, ids)
            except doors.Inexpressible:
                session.end()
                continue
            if not self.live.server.alive():
                return
            wrong = (checks.answered(case, answer, self.options.patience) or
                     checks.blames_client(case, door, answer) or
                     checks.refuses(case, door, answer) or
                     checks.keeps_session(case, answer, session.before,
                                          session.ids() if session.before
                                          is not None else None))
            session.end()
            made = {NEW, LONGEST} & {v for v in case.fields.values()
                                     if isinstance(v, str)}
            if made and answer.ok and not case.method.admin:
                clients["alice"].delete(*(ids[m] for m in made))
            if wrong:
                return self.report(case, f"{door}: {wrong}", answers)
        if len(answers) == 2 and case.alike():
            wrong = checks.alike(case, answers)
            if wrong:
                self.report(case, wrong, answers)

    def report(self, case, wrong, answers):
        with self._lock:
            self.violations += 1
            if self.violations > _MOST_SHOWN:
                return
            print(f"VIOLATION --seed {self.options.seed} --only {case.number}: "
                  f"{case.name} on {case.state}: {wrong}")
            print(f"  changed: {case.changes}")
            ids = {ID: "s", NEW: "n"}
            for door in case.doors:
                sent = (str(doors.http_request(case, ids)) if door == "http"
                        else str(case.fields))
                print(f"  {door}: {sent[:600]}\n  -> {answers.get(door)}"[:1200],
                      flush=True)

    def run(self):
        """Whether all held."""
        threads = [threading.Thread(target=self.work, args=(i,))
                   for i in range(_CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not self.live.server.alive():
            return self._died()
        try:
            wrong = self.live.stop(120 if self.options.sanitized else 40)
        except Fell as fell:
            wrong = str(fell)
        if wrong:
            print(f"VIOLATION --seed {self.options.seed}: {wrong}")
        return not wrong and not self.violations

    def _died(self):
        suspects = sorted(self.under_way.values())
        log = self.live.server.log_text()
        print(f"VIOLATION --seed {self.options.seed}: the server ended with "
              f"{self.live.server.process.wait()} under requests {suspects}: "
              f"{log[-3000:]}")
        self.live.kill()
        if len(suspects) > 1:  # which one?
            for number in suspects:
                Run(self.options, iter([number])).run()
        elif suspects:
            case = self.maker.make(suspects[0])
            self.report(case, "the server ended", {})
        return False


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", type=pathlib.Path,
                        default=paths.ROOT / "build/bin/txl-server")
    parser.add_argument("--only", type=int)
    parser.add_argument("--method", default="", help="of its name")
    parser.add_argument("--sanitized", action="store_true")
    parser.add_argument("--patience", type=float, help="seconds to an answer")
    parser.add_argument("--weights", type=pathlib.Path)
    options = parser.parse_args(arguments)
    options.patience = options.patience or (30 if options.sanitized else 2)
    return options


def main():
    options = parse(sys.argv[1:])
    begin = time.monotonic()
    numbers = itertools.count() if options.only is None else iter(
        [options.only])
    run = Run(options, numbers)
    held = run.run()
    seconds = time.monotonic() - begin
    print(f"{run.sent} requests in {seconds:.1f} s, seed {options.seed}: "
          f"{run.violations} violations")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
