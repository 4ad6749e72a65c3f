"""What an attack is, and the place that it is made in."""

import dataclasses
import itertools
import pathlib
import shutil
import tempfile
import types
from typing import Callable

import proxy
from server import MIB, ROOT, Server, run_program

# A model so small that a step takes 50 us, and one that writes English.
TINY = ROOT / "tests/golden/kimi-char"
SHAKESPEARE = ROOT / "models/shakespeare"


@dataclasses.dataclass(frozen=True)
class Attack:
    name: str
    source: str   # row of docs/reliability.md: "T34"; "limits"
    passes: str   # what the server has to do
    run: Callable  # (Site, size) -> the figure; raises Fell
    short: dict   # size of the short form
    whole: dict   # and of the whole one
    proxied: bool = False  # also made through HAProxy
    direct: bool = True    # made without it
    # "memory" in them: the growth that is allowed to the marked server.

    def size(self, short):
        return types.SimpleNamespace(
            **{"memory": 64 * MIB, **self.short, **({} if short else
                                                    self.whole)},
            short=short)


class Site:
    """Starts servers and ends them."""

    def __init__(self, program, proxied=False, flags=()):
        self.program = str(program)
        self.flags = list(flags)
        self.proxied = proxied
        self.servers = []
        self.proxies = []
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="txl-attack-"))
        self._names = itertools.count()
        self._help = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.proxies, *self.servers]:
            process.kill()
        shutil.rmtree(self._folder)

    def folder(self):
        path = self._folder / str(next(self._names))
        path.mkdir()
        return path

    def server(self, *flags, model=TINY, **options):
        server = Server(self.program, str(model), [*map(str, flags), *self.flags],
                        self.folder(), **options)
        self.servers.append(server)
        if self.proxied:
            server.proxy = proxy.Proxy(self.folder(), server.address)
            self.proxies.append(server.proxy)
            server.proxy.wait_until_serving(server)
        return server

    def warm_server(self, slots, *flags, **options):
        """One whose slots are warm, and whose growth of memory counts."""
        server = self.server("--slots", slots, *flags, **options)
        server.warm(slots)
        server.mark()
        return server

    def has_flag(self, flag):
        """Whether the program knows it."""
        self._help = self._help or self.try_program("--help")[1]
        return f"{flag} " in self._help

    def try_program(self, *arguments, timeout=10, **options):
        """(exit status or None: it had to be killed, what it said)."""
        return run_program(self.program, [str(a) for a in arguments], timeout,
                           **options)
