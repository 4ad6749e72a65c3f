"""A server that is killed and started again, on one folder and one address."""

import random
import select
import shutil
import socket
import subprocess
import threading
import time

import paths  # pylint: disable=unused-import

import api
import wire
from server import Fell, Server

# Below the ports that the kernel gives to clients: one of them that connects
# while nobody listens there would else meet itself.
_PORTS = range(20000, 30000)
_given = set()
_SHORTEST, _LONGEST = 0.05, 2.0  # seconds between two kills


def free_port():
    """One that was not given before."""
    for port in set(random.sample(_PORTS, 100)) - _given:
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            _given.add(port)
            return port
    raise Fell("no free port")


class Ended(Fell):
    """A server that ended instead of starting; `status`: its exit's."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Doomed(Server):
    """A server whose start may be cut off, or fail. `address`: None where it
    did not listen within `patience` seconds."""

    def __init__(self, *arguments, patience=60.0, **options):
        self._patience = patience
        self.address = None
        super().__init__(*arguments, **options)

    def _read_address(self, timeout):
        # The line is the first one: nothing of it can be in Python's buffer.
        if not select.select([self.process.stdout], [], [],
                             min(self._patience, timeout))[0]:
            return None
        line = self.process.stdout.readline()
        if line.startswith("listening on "):
            return line.removeprefix("listening on ").strip()
        try:
            status = self.process.wait(10)
        except subprocess.TimeoutExpired:
            status = None
        self.kill()
        raise Ended(status, self.log_text()[-600:].strip() or "silent")


class Keeper:
    """Its threads-to-be are the clients': all but `run` may be called by any.
    `stall`: seconds without a word after which a client goes to another server;
    None: there is none."""

    stall = None

    def __init__(self, program, model, flags, folder, report):
        self.address = f"127.0.0.1:{free_port()}"
        self.report = report
        self.starts = []   # seconds to "listening on"
        self.resumed = []  # seconds to a resumed turn's first token
        self.over = threading.Event()
        self.number = 0    # of the server's run
        self._program, self._model = str(program), str(model)
        self._flags = [*map(str, flags), "--data-dir", str(folder / "store"),
                       "--drain-timeout", "1s"]
        self._folder = folder
        self._lock = threading.Lock()
        self._started, self._resumed_yet = 0.0, True
        self.server = None

    def start(self, patience=60.0):
        """False: not listening within this time."""
        with self._lock:
            self.number += 1
            self._started, self._resumed_yet = time.monotonic(), False
        begin = time.monotonic()
        self.server = Doomed(self._program, self._model, self._flags,
                             self._folder, listen=self.address,
                             patience=patience)
        if self.server.address is None:
            return False
        self.starts.append(time.monotonic() - begin)
        return True

    def kill(self):
        self._expect_alive()
        self.server.kill()
        self.report.count("kills")

    def terminate(self):
        self._expect_alive()
        status = self.server.stop()
        self.server.process.stdout.close()
        self.report.count("drains")
        if status != 0:
            self.report.violation("-", f"exit {status} after SIGTERM")

    def _expect_alive(self):
        status = self.server.process.poll()
        if status is not None:
            self.report.violation("-", f"the server ended by itself: {status} "
                                  + self.server.log_text()[-500:])

    def run(self, kills, rng):
        """Kills it so many times; it runs afterwards."""
        for _ in range(kills):
            spread = rng.uniform(0, 1)
            time.sleep(_SHORTEST * (_LONGEST / _SHORTEST)**spread)
            if rng.random() < 0.05:
                self.terminate()
                self.start()
                time.sleep(_SHORTEST)
            self.kill()
            self._start_again(rng)

    def _start_again(self, rng):
        while rng.random() < 0.05:
            if self.start(rng.uniform(0, 0.4)):
                return
            self.kill()
            self.report.count("kills_at_start")
        self.start()

    def note_resumed(self):
        """A turn that a kill had cut off has a token again."""
        with self._lock:
            if not self._resumed_yet:
                self._resumed_yet = True
                self.resumed.append(time.monotonic() - self._started)

    def connect(self, timeout=60):
        """A client's connection; waits for the server."""
        host, _, port = self.address.rpartition(":")
        end = time.monotonic() + timeout
        while True:
            try:
                return api.Client(wire.Connection(
                    wire.connect_tcp(host, int(port))))
            except OSError:
                if time.monotonic() > end:
                    raise Fell(f"no server for {timeout} s") from None
                time.sleep(0.005)

    def close(self):
        if self.server is not None:
            self.server.kill()

    def keep(self, target):
        """Copies store and log, to look at."""
        shutil.rmtree(target, ignore_errors=True)
        # Sockets cannot be copied.
        shutil.copytree(self._folder, target,
                        ignore=shutil.ignore_patterns("*.sock"))

