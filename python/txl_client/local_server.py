"""A server of one's own, on a Unix socket, as long as it is wanted."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from types import TracebackType

from txl_client import checks

_READY = "listening on "

# A shell stands between, which ends the server when the pipe to it closes: so
# that none is left over where its owner is killed. It gives standard output up,
# so that its end is the server's.
_GUARD = ('"$@" < /dev/null & server=$!; exec > /dev/null; read end; '
          "kill $server 2> /dev/null; wait $server")


class LocalServer:
    """txl-server with a model directory; `address` is where it listens.

    Its log goes to standard error, or is added to the file `log`. RuntimeError
    where it does not come up.
    """

    def __init__(self, model: str | os.PathLike[str], *,
                 program: str = "txl-server", arguments: Sequence[str] = (),
                 log: str | os.PathLike[str] | None = None) -> None:
        command = [checks.path("program", program), "--model",
                   checks.path("model", model),
                   *checks.texts("arguments", arguments)]
        if log is not None:
            checks.path("log", log)
        self._folder = tempfile.TemporaryDirectory(prefix="txl-")
        self.address = f"unix:{os.path.join(self._folder.name, 'socket')}"
        command += ["--listen", self.address]
        with contextlib.ExitStack() as files:
            log_file = files.enter_context(open(log, "ab")) if log else None
            # Of its own session: an interrupt at the terminal is for its owner.
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
                           "says why")

    def close(self) -> None:
        """Lets running turns end, as the server's --drain-timeout says."""
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
