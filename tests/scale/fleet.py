"""Servers on one store, each behind a wire of its own."""

import dataclasses
import pathlib
import random
import signal
import threading
import time

import paths  # pylint: disable=unused-import

import api
import wire
from keeper import Doomed, free_port
from link import Link
from proxy import Proxy
from redis_store import RedisStore
from server import Fell

_CONNECT = 0.5   # seconds for a connection to a server
_SEND = 20       # seconds that a write may take
_STALL = 3.0     # seconds without a word, after which clients go elsewhere
_LEASE = "5s"


@dataclasses.dataclass
class Member:
    """One server, which keeps its address."""
    number: int
    address: str
    link: Link
    folder: pathlib.Path
    server: Doomed | None = None
    down: bool = True  # nobody should try it


# Of the configuration that is shipped: all clients have one address.
_PROXY = {"TXL_PROXY_SHARED": "1", "TXL_PROXY_CONNECTIONS": "1000",
          "TXL_PROXY_RUNNING": "1000", "TXL_PROXY_CALLS": "100000",
          "TXL_PROXY_SESSIONS": "100000"}


class Fleet:
    """What clients know as the keeper of one server (tests/survival): connect
    goes to HAProxy, or without one to any server that is up. Faults are made by
    one thread."""

    stall = _STALL

    def __init__(self, program, model, options, folder, report):
        """`options`: servers, durability, flags, proxy (whether there is one)."""
        self.report = report
        self.over = threading.Event()
        self.number = 0    # of kills so far
        self.resumed = []  # seconds from a kill to a broken turn's next token
        self.store = RedisStore(folder / "redis", free_port())
        self._program, self._model = str(program), str(model)
        self._flags = [*map(str, options.flags),
                       "--durability", options.durability,
                       "--session-lease", _LEASE, "--drain-timeout", "5s"]
        self._lock = threading.Lock()
        self._killed = 0.0
        self._rng = random.Random(report.seed)
        self.members = [self._member(number, folder)
                        for number in range(options.servers)]
        self._proxy = None
        self._folder, self._proxied = folder, options.proxy

    def _member(self, number, folder):
        own = folder / f"server-{number}"
        own.mkdir()
        return Member(number, f"127.0.0.1:{free_port()}",
                      Link(("127.0.0.1", self.store.port)), own)

    def start_all(self):
        self.store.start()
        for member in self.members:
            self.start(member)
        if self._proxied:
            addresses = {f"TXL_PROXY_SERVER_{member.number + 1}":
                         member.address for member in self.members}
            self._proxy = Proxy(self._folder, self.members[0].address,
                                {**_PROXY, **addresses})

    def start(self, member):
        self._expect_down(member)
        member.server = Doomed(
            self._program, self._model,
            [*self._flags, "--store", f"redis://127.0.0.1:{member.link.port}",
             "--image-dir", str(self._folder / "images")],
            member.folder, listen=member.address)
        if member.server.address is None:
            raise Fell(f"server {member.number} does not start: "
                       + member.server.log_text()[-600:])
        member.down = False

    def kill(self, member):
        self._expect_up(member)
        with self._lock:
            self.number += 1
            self._killed = time.monotonic()
        member.down = True
        member.server.kill()

    def drain(self, member):
        self._expect_up(member)
        status = member.server.stop()
        member.down = True
        member.server.process.stdout.close()
        if status != 0:
            self.report.violation("-", f"exit {status} after SIGTERM")

    def pause(self, member):
        self._expect_up(member)
        member.server.process.send_signal(signal.SIGSTOP)

    @staticmethod
    def go_on(member):
        member.server.process.send_signal(signal.SIGCONT)

    @staticmethod
    def _expect_down(member):
        if not member.down:
            raise Fell(f"server {member.number} runs already")

    def _expect_up(self, member):
        status = member.server.process.poll()
        if status is not None:
            self.report.violation(
                "-", f"server {member.number} ended by itself: {status} "
                + member.server.log_text()[-500:])

    def note_resumed(self):
        """A turn that a kill had broken off has a token again."""
        with self._lock:
            self.resumed.append(time.monotonic() - self._killed)

    def connect(self, timeout=60):
        """A connection to a server that takes one."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                channel = self._channel()
            except OSError:
                time.sleep(0.005)
                continue
            channel.settimeout(_SEND)
            return api.Client(wire.Connection(channel))
        raise Fell(f"no server takes a connection for {timeout} s")

    def txl_flags(self):
        """By which `txl` reaches the fleet: HAProxy, or any one server, which
        comes back on its address."""
        if self._proxy is not None:
            return ["--server", f"127.0.0.1:{self._proxy.port}", "--tls",
                    "--ca", str(self._proxy.certificate)]
        with self._lock:
            return ["--server", self._rng.choice(self.members).address]

    def _channel(self):
        if self._proxy is not None:
            return self._proxy.channel("127.0.0.1")
        up = [each for each in self.members if not each.down]
        with self._lock:
            member = self._rng.choice(up or self.members)
        host, _, port = member.address.rpartition(":")
        return wire.connect_tcp(host, int(port), _CONNECT)

    def close(self):
        if self._proxy is not None:
            self._proxy.kill()
        for member in self.members:
            if member.server is not None:
                member.server.kill()
            member.link.close()
        self.store.kill()
