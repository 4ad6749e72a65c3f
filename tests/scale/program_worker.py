"""A client that is the program `txl`, with the C++ library's retries."""

import subprocess
import threading
import time

_PROMPTS = ["ROMEO:", "JULIET:\nWhat", " the king", "\n\n"]
_PATIENCE = 180  # seconds for one program
_ATTEMPTS = "1000"


class ProgramWorker:
    """Sessions that are gone on with, turn by turn; every turn has to succeed
    whatever happens to the fleet."""

    def __init__(self, number, program, fleet, rng):
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.failure = None
        self.sessions = []
        self._turns = []  # (session, arguments, ids)
        self._number, self._program = number, str(program)
        self._fleet, self._rng = fleet, rng

    def _run(self):
        try:
            while not self._fleet.over.is_set():
                self._live(f"program{self._number}-{len(self.sessions)}")
        except BaseException as error:  # pylint: disable=broad-except
            self.failure = error
            raise

    def _live(self, name):
        self._create(name)
        self.sessions.append(name)
        for turn in range(self._rng.randint(2, 8)):
            arguments = ["--seed", str(self._rng.getrandbits(63)),
                         "--max-tokens", str(self._rng.randint(1, 150))]
            if turn == 0 or self._rng.random() < 0.7:
                arguments += ["--prompt", self._rng.choice(_PROMPTS)]
            done = self._txl(self._fleet.txl_flags(), name, arguments)
            if done.returncode != 0:
                self._fleet.report.violation(
                    name, f"txl ended with {done.returncode}: "
                    + done.stderr[-300:].strip())
                return
            self._turns.append((name, arguments, done.stdout))
            self._fleet.report.count("program_turns")
            if self._fleet.over.is_set():
                return

    def _create(self, name):
        """Made by an attempt that nobody heard of is made, too."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            done = subprocess.run(
                [self._program, "sessions", "create", name, "--timeout", "5",
                 *self._fleet.txl_flags()], capture_output=True, text=True,
                check=False)
            if done.returncode == 0 or "SESSION_EXISTS" in done.stderr:
                return
            time.sleep(0.05)
        self._fleet.report.violation(name, f"not made: {done.stderr.strip()}")

    def _txl(self, flags, name, arguments):
        try:
            return subprocess.run(
                [self._program, "generate", "--session", name, "--print",
                 "tokens", "--attempts", _ATTEMPTS, *arguments, *flags],
                capture_output=True, text=True, timeout=_PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess([], 124, "", "it hangs")

    def replay(self, address):
        """The same turns on a server without faults give the same ids."""
        made = set()
        for name, arguments, ids in self._turns:
            flags = ["--server", address]
            if name not in made:
                made.add(name)
                subprocess.run([self._program, "sessions", "create", name,
                                *flags], capture_output=True, check=True)
            again = self._txl(flags, name, arguments)
            self._fleet.report.count("program_turns_compared")
            if again.stdout != ids:
                self._fleet.report.violation(
                    name, f"txl {arguments}: {ids[-80:]!r}, without faults "
                    f"{again.stdout[-80:]!r} {again.stderr[-200:]}")
                return
