"""txl-server under attack: its start, its figures from /proc, its end."""

import contextlib
import itertools
import os
import pathlib
import resource
import select
import shutil
import signal
import subprocess
import time

import api
import own_memory
import wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIB = 1 << 20
CALLS_AT_ONCE = 50  # on a connection of a client that keeps to its limits
# Fewer arenas and threads: memory and time are the server's own doing.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1"}


class Fell(Exception):
    """The attack did what it wanted; the text is the figure."""


def expect(held, figure):
    if not held:
        raise Fell(figure)


def wait_until(done, timeout, what):
    """How long it took until `done()`."""
    begin = time.monotonic()
    while not done():
        expect(time.monotonic() - begin < timeout,
               f"{what}: not within {timeout:g} s")
        time.sleep(0.01)
    return time.monotonic() - begin


def conservation(status):
    """What the laws of GetServerStatus say against it; empty: nothing."""
    laws = {
        "turns": (status.turns_started,
                  sum(status.turns_finished.values()) + status.turns_active),
        "sessions": (status.sessions_created, status.sessions_ended +
                     status.sessions_busy + status.sessions_idle),
        "tokens": (status.tokens_sampled,
                   status.tokens_delivered + status.tokens_discarded),
    }
    return "; ".join(f"{name} {left} != {right}"
                     for name, (left, right) in laws.items() if left != right)


def memory_status(pid):
    """As own_memory reads it; "VmHWM" is the peak since `mark_peak`."""
    return own_memory.parse(pathlib.Path(f"/proc/{pid}/status").read_text())


def mark_peak(pid):
    """The peak of resident memory starts anew; `memory_status` now."""
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    return memory_status(pid)


class Server:
    """A running txl-server; its log goes to a file unless `stderr` is given."""

    def __init__(self, program, model, flags, folder, environment=None,
                 files=None, stderr=None, listen="127.0.0.1:0"):
        """`files`: the hard limit of open files."""
        def limit():
            if files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

        self.log = folder / "log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [program, "--model", model, "--listen", listen, *flags],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=stderr if stderr is not None else log, text=True,
                env={**os.environ, **_ENVIRONMENT, **(environment or {})},
                preexec_fn=limit)
        self.pid = self.process.pid
        self.address = self._read_address(60)
        self.proxy = None
        self.marked = None

    def _read_address(self, timeout):
        readable = select.select([self.process.stdout], [], [], timeout)[0]
        line = self.process.stdout.readline() if readable else ""
        if not line.startswith("listening on "):
            self.kill()
            raise Fell("the server does not start: " +
                       (self.log_text()[-300:].strip() or line or "silent"))
        return line.removeprefix("listening on ").strip()

    def log_text(self):
        return self.log.read_text(errors="replace")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self, timeout=40):
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise Fell(f"still there {timeout} s after SIGTERM") from error

    def channel(self, direct=False, hostile=False):
        """A socket to it, through the proxy where there is one: there those
        who attack have another address than those who don't."""
        if self.proxy and not direct:
            return self.proxy.channel("127.0.0.3" if hostile else "127.0.0.2")
        if self.address.startswith("unix:"):
            return wire.connect_unix(self.address.removeprefix("unix:"))
        host, _, port = self.address.rpartition(":")
        return wire.connect_tcp(host, int(port))

    def connect(self, window=wire.MAX_WINDOW, direct=False, hostile=True):
        return wire.Connection(self.channel(direct, hostile), window)

    def client(self, direct=False, hostile=False):
        return api.Client(self.connect(direct=direct, hostile=hostile))

    def alive(self):
        return self.process.poll() is None

    def expect_alive(self):
        expect(self.alive(), f"the server ended: {self.process.returncode} "
               f"{self.log_text()[-200:].strip()}")

    def memory(self):
        """Bytes of its own."""
        self.expect_alive()
        return own_memory.own(memory_status(self.pid))

    def mark(self):
        """From here on growth of memory counts."""
        self.marked = mark_peak(self.pid)
        if self.proxy:
            self.proxy.marked = mark_peak(self.proxy.process.pid)

    def growth(self):
        """Highest memory of its own since `mark` over what it was then."""
        self.expect_alive()
        return own_memory.growth(self.marked, memory_status(self.pid))

    def processor_seconds(self):
        """Of all its threads, those that have ended too."""
        self.expect_alive()
        # Linux: the clock of another process, as clock_getcpuclockid(3) says.
        return time.clock_gettime((~self.pid << 3) | 2)

    def settle(self, limit_seconds, timeout=120):
        """Waits until what was sent to it has been worked off, or has cost so
        much processor time."""
        end = time.monotonic() + timeout
        begin = before = self.processor_seconds()
        while time.monotonic() < end:
            time.sleep(0.3)
            now = self.processor_seconds()
            if now - before < 0.02 or now - begin > limit_seconds:
                return
            before = now

    def status(self):
        """One snapshot, whose laws have to hold. Never through the proxy: it
        may be another client's turn there."""
        with self.client(direct=True) as client:
            status = client.call("Model.GetServerStatus", timeout=10)
        wrong = conservation(status)
        expect(not wrong, f"conservation: {wrong}")
        return status

    def expect_quiet(self, timeout=10):
        """No turn is left; how long that took."""
        return wait_until(lambda: self.status().turns_active == 0, timeout,
                          "turns left over")

    def expect_well(self, timeout=10):
        """It is alive, answers a turn, and its counts add up."""
        self.expect_alive()
        try:
            with self.client() as client:
                got = client.generate(api.turn(3), timeout=timeout)
            expect(len(got) == 3, f"a turn of 3 tokens has {len(got)}")
            self.expect_quiet(timeout)
        except (OSError, TimeoutError, api.Failed) as error:
            self.expect_alive()
            raise Fell(f"afterwards it does not serve: {error}") from error

    def warm(self, slots=4):
        """Fills the slots, which take their memory when they are entered
        first, and what gRPC and the allocator take for as many streams. A
        connection with more of them than it may have would be cut off."""
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(self.client(direct=True))
                       for _ in range(-(-slots // CALLS_AT_ONCE))]
            calls = [(client, client.start("Generation.Generate", api.turn(64)))
                     for client, _ in zip(itertools.cycle(clients),
                                          range(slots))]
            for client, call in calls:
                client.finish(call, 60)


def run_program(program, arguments, timeout, environment=None):
    """(exit status or None when it had to be killed, what it said)."""
    try:
        done = subprocess.run(
            [program, *arguments], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=timeout,
            env={**os.environ, **_ENVIRONMENT, **(environment or {})})
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return None, ""


def copy_model(source, target):
    """A model directory's copy, to spoil."""
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.is_file() and file.name != "expected.safetensors":
            shutil.copy(file, target)
    return target
