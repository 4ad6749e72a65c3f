#!/usr/bin/env python3
"""Damages a store of sessions and starts a txl-server on it.

Usage: damage.py [--server build/bin/txl-server] [--trials N] [--seed S]
                 [--every BYTES] [--verbose] [--keep FOLDER]

Each trial flips a byte of a copy of a small store (its database, the
database's log or an image of a session's memory) or cuts one of these files,
and starts the server on it. It has to refuse with a message that names the
file or folder, or each session has its own text and goes on with the bits that
it would have gone on with, or is DATA_LOSS, SESSION_DAMAGED. Where the log's
last transaction is hit or the log is cut, a session may be as it was before or
not found; it may be not found, too, where a page is hit that finds sessions.
Never another text; never an end by a signal. --every: instead of N trials each
BYTES-th byte of all files flipped, and each BYTES-th length. Exits 0 when all
held, 1 when not, 2 for a wrong usage.
"""

import argparse
import collections
import dataclasses
import os
import pathlib
import random
import shutil
import sys
import tempfile

import paths

import api
from keeper import Doomed, Ended
from life import event
from server import Fell

_DATA_LOSS = 15
_SESSIONS = 6
_PATIENCE = 20  # seconds for a start
_LAST_BYTES = 100_000  # of the log, more than a transaction takes


@dataclasses.dataclass(frozen=True)
class Damage:
    store: str     # "killed" or "stopped"
    file: str      # below it
    size: int      # the file's
    offset: int    # of the byte, or the length
    mask: int = 0  # what is flipped; 0: the file is cut

    def may_undo(self):
        """Sessions may be as before: the log's last transaction looks like one
        that was cut off, and so does a log that is shorter."""
        return self.file.endswith("-wal") and (
            not self.mask or self.offset > self.size - _LAST_BYTES)

    def may_hide(self):
        """Sessions may be not found: as before, or a page that finds them is
        hit."""
        return self.may_undo() or self.file.endswith(".db")

    def apply(self, store):
        path = store / self.file
        content = bytearray(path.read_bytes())
        if self.mask:
            content[self.offset] ^= self.mask
        else:
            del content[self.offset:]
        path.unlink()  # others may have a link to it
        path.write_bytes(content)

    def __str__(self):
        how = f"byte {self.offset} ^ {self.mask:#x}" if self.mask else \
            f"cut to {self.offset}"
        return f"{self.store}/{self.file} {how}"


def _copy(source, target):
    """Images are never changed in place: a link is as good."""
    if source.endswith(".txlm"):
        return os.link(source, target)
    return shutil.copy(source, target)


class Bench:
    """Starts servers on copies of a store."""

    def __init__(self, program, folder):
        self._program, self.folder = str(program), folder

    def start(self, store):
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        server = Doomed(self._program, str(paths.SHAKESPEARE),
                        ["--log-level", "warning", "--data-dir", str(store)],
                        self.folder, patience=_PATIENCE)
        if server.address is None:
            server.kill()
            raise Fell("neither starts nor ends")
        return server

    def copy(self, store, name="damaged"):
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)
        # Its 16 MiB of reserve are made anew; sockets cannot be copied.
        shutil.copytree(self.folder / store, target, copy_function=_copy,
                        ignore=shutil.ignore_patterns("reserve", "*.sock"))
        return target


def _feed(client, rng, name):
    client.call("Session.AppendTokens", {"sessionId": name, "tokens": {
        "ids": [rng.randrange(60) for _ in range(rng.randint(1, 300))]}})
    client.generate({**api.turn(rng.randint(1, 100), name, logprobs=2),
                     "requestId": f"turn{rng.getrandbits(32)}"})


def make_stores(bench, rng):
    """"killed" has sessions from an orderly stop, with images, and those of a
    killed server, one of them in a turn: most of it is in the database's log.
    "stopped" is the same after an orderly stop: all is in the database."""
    names = [f"session{i}" for i in range(_SESSIONS)]
    for part in (names[:_SESSIONS // 2], names[1:]):
        server = bench.start(bench.folder / "killed")
        try:
            with server.client() as client:
                for name in part:
                    client.try_call("Session.CreateSession",
                                    {"sessionId": name})
                    _feed(client, rng, name)
                if part[-1] != names[-1]:
                    server.stop()
                    continue
                stream = client.start("Generation.Generate", api.turn(
                    2000, names[-1], request_id="broken"))
                client.connection.wait(lambda: len(stream.messages) > 200, 30)
        finally:
            server.kill()
    server = bench.start(bench.copy("killed", "stopped"))
    with server.client() as client:
        for name in names:
            client.call("Session.GetSession", {"sessionId": name})
    server.stop()
    server.kill()
    return names


def _next(client, name):
    """(status, the events of a short turn on it)."""
    status, got = client.try_generate({
        **api.turn(3, name, ids=[1], request_id="next")})
    return status, [event(each.token) for each in got
                    if each.HasField("token")]


def truth_of(bench, names):
    """{session: (ids, next events)} of the whole stores."""
    server = bench.start(bench.copy("stopped"))
    try:
        with server.client() as client:
            ids = {name: list(client.call("Session.GetSession", {
                "sessionId": name, "includeTokens": True}).token_ids)
                for name in names}
            return {name: (ids[name], _next(client, name)[1])
                    for name in names}
    finally:
        server.kill()


class Trial:
    """One damaged store; `seen`: what became of it and its sessions."""

    def __init__(self, bench, damage, truth):
        self._bench, self._truth = bench, truth
        self._damage = damage
        self._seen = collections.Counter()

    def run(self):
        """What was seen; raises Fell."""
        store = self._bench.copy(self._damage.store)
        self._damage.apply(store)
        try:
            server = self._bench.start(store)
        except Ended as ended:
            self._expect_named(ended.status, str(ended))
            self._seen["refused"] += 1
            return self._seen
        try:
            self._look(server)
        except (OSError, TimeoutError) as error:
            if server.alive():
                raise Fell(f"no answer: {error}") from error
            self._expect_named(server.process.wait(), server.log_text())
            self._seen["gave up"] += 1
        finally:
            server.kill()
        return self._seen

    def _expect_named(self, status, log):
        if status is None or status < 0:
            raise Fell(f"it ended with {status}: {log[-300:]}")
        if str(self._bench.folder / "damaged") not in log:
            raise Fell(f"it ended with {status} without a name: {log[-300:]}")

    def _look(self, server):
        whole = []
        with server.client() as client:
            for name, (ids, _) in self._truth.items():
                status, got = client.try_call("Session.GetSession", {
                    "sessionId": name, "includeTokens": True})
                if self._judge(name, status, got and list(got.token_ids), ids):
                    whole.append(name)
            for name in whole:
                status, events = _next(client, name)
                if status.reason in ("SESSION_DAMAGED", "STORE_UNAVAILABLE"):
                    self._seen["no next turn"] += 1
                elif status.code != api.OK or events != self._truth[name][1]:
                    raise Fell(f"{name} goes on with {events} {status}")
        if self._damage.offset % 4 == 0:
            status = server.stop()
            if status < 0:
                raise Fell(f"exit {status} after SIGTERM")

    def _judge(self, name, status, found, ids):
        """Whether the session is whole."""
        if status.code == api.OK and found == ids:
            self._seen["whole"] += 1
            return True
        if status.reason == "SESSION_DAMAGED":
            self._seen["damaged"] += 1
        elif status.code == api.NOT_FOUND and self._damage.may_hide():
            self._seen["not found"] += 1
        elif (status.code == api.OK and self._damage.may_undo() and
              found == ids[:len(found)]):
            self._seen["as before"] += 1
        elif status.code == api.OK:
            what = "is as before" if found == ids[:len(found)] else \
                "has another text"
            raise Fell(f"{name} {what}: {len(found)} ids instead of {len(ids)}")
        else:
            raise Fell(f"{name}: {status}")
        return False


# How often which files are hit.
_TARGETS = [("stopped", "journal.db", 5), ("killed", "journal.db-wal", 3),
            ("killed", "journal.db", 1), ("stopped", "images", 2)]


def damages(bench, options, rng):
    targets = []
    for store, name, weight in _TARGETS:
        path = bench.folder / store / name
        files = sorted(path.rglob("*.txlm")) if path.is_dir() else [path]
        targets += [(store, str(file.relative_to(bench.folder / store)),
                     file.stat().st_size, weight / len(files))
                    for file in files]
    if options.every:
        for store, name, size, _ in targets:
            for offset in range(0, size, options.every):
                yield Damage(store, name, size, offset,
                             1 << rng.randrange(8))
                yield Damage(store, name, size, offset)
        return
    for _ in range(options.trials):
        store, name, size, _ = rng.choices(
            targets, [weight for *_, weight in targets])[0]
        yield Damage(store, name, size, rng.randrange(size),
                     rng.randint(1, 255) if rng.random() < 0.8 else 0)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--server", type=pathlib.Path, default=paths.SERVER)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="txl-damage-"))
    seen, fell, trials = collections.Counter(), 0, 0
    try:
        bench = Bench(options.server, folder)
        truth = truth_of(bench, make_stores(bench, rng))
        for damage in damages(bench, options, rng):
            trials += 1
            try:
                found = Trial(bench, damage, truth).run()
                seen += found
                if options.verbose:
                    print(damage, dict(found), flush=True)
            except (Fell, api.Failed) as error:
                fell += 1
                print(f"FELL seed {options.seed} {damage}: {error}",
                      flush=True)
                if options.keep:
                    shutil.copytree(folder, options.keep / str(trials),
                                    ignore=shutil.ignore_patterns("*.sock"),
                                    dirs_exist_ok=True)
    finally:
        shutil.rmtree(folder)
    print(f"{trials} trials, {fell} fell;",
          ", ".join(f"{what} {n}" for what, n in sorted(seen.items())))
    return 1 if fell else 0


if __name__ == "__main__":
    sys.exit(main())
