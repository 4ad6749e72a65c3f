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
from own_clock import OwnClock
from own_disk import Disk
from proxy import Proxy
from redis_store import RedisStore
from server import Fell

_CONNECT = 0.5   # seconds for a connection to a server
_SEND = 20       # seconds that a write may take
_STALL = 3.0     # seconds without a word, after which clients go elsewhere


@dataclasses.dataclass
class Member:
    """One server, which keeps its address."""
    number: int
    address: str
    web: int  # its port for HTTP
    link: Link  # its wire to the store
    folder: pathlib.Path
    clock: OwnClock
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
        """`options`: servers, durability, flags, lease (seconds),
        fsync (of Redis), clock (the library of its servers' clocks),
        whether there are a proxy and disks of their own."""
        self.report = report
        self.over = threading.Event()
        self.number = 0    # of kills so far
        self.resumed = []  # seconds from a kill to a broken turn's next token
        self.program = program.with_name("txl")
        self._options, self._folder = options, folder
        self._disks = []
        self.store = RedisStore(folder / "redis", free_port(),
                                self._disk(folder / "redis"), options.fsync)
        # Of all servers, where they have state images.
        self.images = self._disk(folder / "images")
        self._server, self._model = str(program), str(model)
        self._flags = [*map(str, options.flags),
                       "--durability", options.durability,
                       "--session-lease", f"{options.lease:g}s",
                       "--drain-timeout", "10s"]
        self._lock = threading.Lock()
        self._killed = 0.0
        self._rng = random.Random(report.seed)
        self.members = [self._member(number, folder)
                        for number in range(options.servers)]
        self._proxy = None

    def _disk(self, folder):
        """None: it is not to be of its own."""
        if not self._options.disks:
            return None
        self._disks.append(Disk(folder))
        return self._disks[-1]

    def _member(self, number, folder):
        own = folder / f"server-{number}"
        own.mkdir()
        return Member(number, f"127.0.0.1:{free_port()}", free_port(),
                      Link(("127.0.0.1", self.store.port)), own,
                      OwnClock(self._options.clock, own / "clock"))

    def start_all(self):
        self.store.start()
        for member in self.members:
            self.start(member)
        if self._options.proxy:
            settings = dict(_PROXY)
            for number, member in enumerate(self.members, 1):
                settings[f"TXL_PROXY_SERVER_{number}"] = member.address
                settings[f"TXL_PROXY_HTTP_{number}"] = f"127.0.0.1:{member.web}"
            self._proxy = Proxy(self._folder, self.members[0].address,
                                settings)

    def start(self, member):
        self._expect_down(member)
        member.server = Doomed(
            self._server, self._model,
            [*self._flags,
             "--store", f"redis://127.0.0.1:{member.link.port}",
             "--image-dir", str(self._folder / "images"),
             "--http-listen", f"127.0.0.1:{member.web}"],
            member.folder, listen=member.address,
            environment=member.clock.environment)
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

    def seconds_since_kill(self):
        with self._lock:
            return time.monotonic() - self._killed

    def note_resumed(self):
        """A turn that a kill had broken off has a token again."""
        seconds = self.seconds_since_kill()
        with self._lock:
            self.resumed.append(seconds)

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

    def rpc_address(self):
        """(address, file of the certificate to trust or None) of HAProxy, or
        of any server, which comes back there."""
        if self._proxy is not None:
            return f"127.0.0.1:{self._proxy.port}", self._proxy.certificate
        with self._lock:
            return self._rng.choice(self.members).address, None

    def web_address(self):
        """(host, port, certificate or None) of HAProxy, or of any server that
        is up."""
        if self._proxy is not None:
            return "127.0.0.1", self._proxy.port, self._proxy.certificate
        return "127.0.0.1", self._any_up().web, None

    def _any_up(self):
        up = [each for each in self.members if not each.down]
        with self._lock:
            return self._rng.choice(up or self.members)

    def _channel(self):
        if self._proxy is not None:
            return self._proxy.channel("127.0.0.1")
        host, _, port = self._any_up().address.rpartition(":")
        return wire.connect_tcp(host, int(port), _CONNECT)

    def close(self):
        if self._proxy is not None:
            self._proxy.kill()
        for member in self.members:
            if member.server is not None:
                member.server.kill()
            member.link.close()
        self.store.kill()

    def forget(self):
        """What lies on its disks is gone. After close()."""
        for disk in self._disks:
            disk.close()
