"""A Redis server that is killed and started again on its own data."""

import signal
import socket
import subprocess
import time

from server import Fell

_NOTICED = 30  # seconds, in which it has to write something


class RedisStore:
    """Keeps what it acknowledged in `folder`, synced as `fsync` says. `disk`:
    the folder's own, or None."""

    def __init__(self, folder, port, disk=None, fsync="always"):
        self.port = port
        self._folder, self._disk, self._fsync = folder, disk, fsync
        self._folder.mkdir(parents=True, exist_ok=True)
        self._process = None

    def start(self, timeout=30):
        """Seconds until it answers; it may have to read its data first."""
        begin = time.monotonic()
        path = self._folder.with_suffix(".log")
        with path.open("ab") as log:
            self._process = subprocess.Popen(
                ["redis-server", "--port", str(self.port),
                 "--bind", "127.0.0.1", "--dir", str(self._folder),
                 "--appendonly", "yes", "--appendfsync", self._fsync,
                 "--maxmemory-policy", "noeviction", "--save", ""],
                stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT)
        while not self._answers():
            if self._process.poll() is not None or \
                    time.monotonic() - begin > timeout:
                raise Fell(f"Redis does not start: {path}")
            time.sleep(0.01)
        return time.monotonic() - begin

    def _answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as to:
                to.sendall(b"PING\r\n")
                return to.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def fill_disk(self):
        """Its disk takes nothing more until start_with_room. A Redis that
        cannot write what it has to sync ends."""
        self._disk.fill()
        try:
            self._process.wait(_NOTICED)
        except subprocess.TimeoutExpired:
            raise Fell("Redis goes on with a full disk") from None

    def start_with_room(self):
        self._disk.free()
        self.start()

    def stop(self):
        """It stands still, its connections stay."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def kill(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
