#!/usr/bin/env python3
"""Two servers on one Redis change the same sessions against each other.

Usage: conflicts.py [--server build/bin/txl-server] [--commits N] [--clients C]
                    [--sessions N] [--seed S]

Clients append to the same sessions, each by a server of its own, half of them
only where the session is at the position that they saw last. Every append that
was acknowledged has to be there, once, where the answer says; nothing else may
be. Prints figures and each violation. Exits 0 without violations, 1 with.
"""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

import paths

import api
from alone import Alone
from keeper import free_port
from redis_store import RedisStore
from report import Report

_IDS = 60  # of the model's vocabulary
# Another client was first: what a conflict may end with.
_LATE = {"POSITION_MISMATCH", "SESSION_BUSY", "SESSION_MOVED"}
_PAUSE = 0.01  # seconds at most, until it tries again
_PATIENCE = 60  # seconds for one append


class Writer:
    """A client on one server's connection; `done`: [(session, position before,
    ids)] that were acknowledged."""

    def __init__(self, number, server, options, report):
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.done = []
        self.failure = None
        self._server, self._options, self._report = server, options, report
        self._rng = random.Random(options.seed * 1000 + number)
        self._number = number

    def _run(self):
        try:
            with self._server.client() as client:
                for turn in range(self._options.commits
                                  // self._options.clients):
                    self._append(client, f"c{self._number}-{turn}")
        except BaseException as error:  # pylint: disable=broad-except
            self.failure = error
            raise

    def _append(self, client, name):
        session = f"s{self._rng.randrange(self._options.sessions)}"
        ids = [self._rng.randrange(_IDS)
               for _ in range(self._rng.randint(1, 8))]
        careful = self._rng.random() < 0.5
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            fields = {"sessionId": session, "requestId": name,
                      "tokens": {"ids": ids}}
            if careful:
                position = client.call("Session.GetSession", {
                    "sessionId": session}).session.position
                fields["expectedPosition"] = str(position)
            status, got = client.try_call("Session.AppendTokens", fields)
            if status.code == api.OK:
                self.done.append((session, got.position - len(ids), ids))
                self._report.count("commits")
                return
            if status.reason not in _LATE:
                break
            self._report.count(status.reason.lower())
            time.sleep(self._rng.uniform(0, _PAUSE))
        self._report.violation(session, f"append {name}: {status}")


def check(client, writers, options, report):
    """What the sessions hold is what was acknowledged."""
    expected = {f"s{i}": {} for i in range(options.sessions)}
    for writer in writers:
        for session, position, ids in writer.done:
            if position in expected[session]:
                report.violation(session, f"two appends at {position}")
            expected[session][position] = ids
    for session, appends in expected.items():
        ids = [i for position in sorted(appends) for i in appends[position]]
        held = held_ids(client, session)
        if held != ids:
            report.violation(session, f"{len(held)} ids, acknowledged "
                             f"{len(ids)}, or others")
        report.count("ids", len(held))


def held_ids(client, session):
    ids, token = [], ""
    while True:
        page = client.call("Session.GetSession", {
            "sessionId": session, "includeTokens": True, "pageToken": token})
        ids += page.token_ids
        token = page.next_page_token
        if not token:
            return ids


def run(options, folder, report):
    store = RedisStore(folder / "redis", free_port())
    store.start()
    servers = []
    try:
        for number in range(2):
            own = folder / f"server-{number}"
            own.mkdir()
            servers.append(Alone(options.server, own, report, [
                "--store", f"redis://127.0.0.1:{store.port}"]).server)
        with servers[0].client() as client:
            for i in range(options.sessions):
                client.call("Session.CreateSession", {"sessionId": f"s{i}"})
        writers = [Writer(number, servers[number % 2], options, report)
                   for number in range(options.clients)]
        for writer in writers:
            writer.thread.start()
        for writer in writers:
            writer.thread.join()
            if writer.failure:
                report.violation("-", f"a client failed: {writer.failure!r}")
        for server in servers:
            with server.client() as client:
                check(client, writers, options, report)
    finally:
        for server in servers:
            server.kill()
        store.kill()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--server", type=pathlib.Path, default=paths.SERVER)
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--sessions", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    report = Report(options.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="txl-conflicts-"))
    try:
        run(options, folder, report)
    finally:
        shutil.rmtree(folder)
    print(f"two servers, {options.clients} clients, {options.sessions} "
          f"sessions, seed {options.seed}:", report.counts())
    conflicts = sum(report.counted(reason.lower()) for reason in _LATE)
    if conflicts == 0:
        report.violation("-", "nobody was in anybody's way")
    print("violations:", len(report.violations))
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
