"""A session of the program `txl`: the C++ library and its retries."""

import subprocess
import time

from turn_worker import PATIENCE, Failed

_ATTEMPTS = "1000"


class ProgramSession:
    """A process for each call. `door`: TurnWorker's, with rpc_address() and
    `program`."""

    KIND, APPENDS = "program", False

    def __init__(self, door, name):
        self.name = name
        self._door = door

    def create(self):
        """Made by an attempt that nobody heard of is made, too."""
        self._again(["sessions", "create", self.name, "--timeout", "5"],
                    "SESSION_EXISTS")

    def turn(self, ask):
        """The ids."""
        arguments = ["--seed", str(ask.seed), "--max-tokens", str(ask.tokens)]
        if ask.prompt:
            arguments += ["--prompt", ask.prompt]
        done = self._txl(["generate", "--session", self.name, "--print",
                          "tokens", "--attempts", _ATTEMPTS, *arguments])
        if done.returncode != 0:
            raise Failed(f"txl ended with {done.returncode}: "
                         + done.stderr[-300:].strip())
        return done.stdout

    def ids(self):
        shown = self._again(["sessions", "show", self.name, "--tokens"])
        line = next(line for line in shown.splitlines()
                    if line.startswith("tokens "))
        return [int(each) for each in line.split()[1].split(",")]

    def close(self):
        """It keeps nothing open."""

    def _again(self, arguments, good="\0"):
        """What it prints when it succeeds, or its error says `good`."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            done = self._txl(arguments)
            if done.returncode == 0 or good in done.stderr:
                return done.stdout
            time.sleep(0.05)
        raise Failed(f"txl {arguments[1]}: {done.stderr.strip()}")

    def _txl(self, arguments):
        address, certificate = self._door.rpc_address()
        flags = ["--server", address]
        if certificate is not None:
            flags += ["--tls", "--ca", str(certificate)]
        try:
            return subprocess.run(
                [self._door.program, *arguments, *flags], capture_output=True,
                text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess([], 124, "", "it hangs")
