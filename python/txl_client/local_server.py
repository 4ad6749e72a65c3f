"""A server on a Unix socket, which ends with its owner."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from types import TracebackType

from txl_client import checks

_READY = "listening on "

# This shell ends the server when the pipe from its owner closes, also if the
# owner is killed. It closes its own standard output, so that the pipe for the
# output closes when the server ends.
_GUARD = ('"$@" < /dev/null & server=$!; exec > /dev/null; read end; '
          "kill $server 2> /dev/null; wait $server")


class LocalServer:
    """txl-server with a model directory; `address` is where it listens.

    Its log goes to standard error, or is appended to the file `log`.
    FileNotFoundError without the program, RuntimeError if it does not start.
    """

    def __init__(self, model: str | os.PathLike[str], *,
                 program: str = "txl-server", arguments: Sequence[str] = (),
                 log: str | os.PathLike[str] | None = None) -> None:
        command = [checks.path("program", program), "--model",
                   checks.path("model", model),
                   *checks.texts("arguments", arguments)]
        if log is not None:
            checks.path("log", log)
        if shutil.which(program) is None:
            raise FileNotFoundError(
                f"program: {program!r} is neither on PATH nor the path of a "
                "program")
        self._folder = tempfile.TemporaryDirectory(prefix="txl-")
        self.address = f"unix:{os.path.join(self._folder.name, 'socket')}"
        command += ["--listen", self.address]
        with contextlib.ExitStack() as files:
            log_file = files.enter_context(open(log, "ab")) if log else None
            # In its own session, so that only the owner gets an interrupt from
            # the terminal.
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "sh", *command],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log_file, text=True, start_new_session=True)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _wait(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_READY):
                return
        raise RuntimeError("the server ended before it listened; its log "
                           "has the reason")

    def close(self) -> None:
        """Ends the server after its running turns, or its --drain-timeout."""
        process = self._process
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self._folder.cleanup()

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
