"""The real server, on a port of its own that it keeps over restarts."""

import os
import pathlib
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

_PATIENCE = ("--config", str(ROOT / "python/tests/patient.toml"))


def program() -> str:
    return os.environ.get("TXL_SERVER", str(ROOT / "build/bin/txl-server"))


def model() -> str:
    return os.environ.get("TXL_MODEL", str(ROOT / "models/shakespeare"))


class ServerProcess:
    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments
        self.address = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [program(), "--model", model(), "--listen", self.address,
             "--log-level", "error", *_PATIENCE, *self.arguments],
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line
        self.address = line.split()[-1]

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> int:
        self.process.stdout.close()
        return self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
