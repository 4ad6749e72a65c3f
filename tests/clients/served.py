"""A server for the tests of clients, and what they look up beside the client:
everything here is the standard library's, so that each client's environment
holds the client alone."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "shakespeare"
PROGRAMS = pathlib.Path(
    os.environ.get("TXL_SERVER", ROOT / "build/bin/txl-server")).parent
# Long enough for a machine that does much else; nothing is measured by it.
PATIENCE = 60


def wait_until(done, what):
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {PATIENCE} s")
        time.sleep(0.02)


def run_program(name, *arguments):
    """Standard output of one of the server's companions."""
    return subprocess.run(
        [PROGRAMS / name, *map(str, arguments)], check=True, text=True,
        stdout=subprocess.PIPE, timeout=PATIENCE).stdout


class Server:
    """txl-server with HTTP on a free port of loopback. Ends with `close`."""

    def __init__(self, *flags, model=MODEL):
        self.folder = tempfile.mkdtemp()
        self._log = open(f"{self.folder}/log", "wb")
        self._process = subprocess.Popen(
            [PROGRAMS / "txl-server", "--model", model, "--listen",
             "127.0.0.1:0", "--http-listen", "127.0.0.1:0", *flags],
            stdout=subprocess.PIPE, stderr=self._log, text=True)
        said = {}
        for line in self._process.stdout:
            what, _, address = line.strip().rpartition(" on ")
            said[what] = address
            if what == "http":
                break
        if "http" not in said:
            raise AssertionError("no start: " + self.log())
        self.grpc, self.url = said["listening"], said["http"]
        self.v1 = self.url + "/v1"

    def log(self):
        return pathlib.Path(f"{self.folder}/log").read_text()

    def ask(self, path, body=None, method=None, headers=()):
        """(status, JSON); a POST where there is a body."""
        request = urllib.request.Request(
            self.url + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **dict(headers)})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def status(self):
        return self.ask("/v1/status")[1]

    def wait_for_turns(self, count):
        wait_until(lambda: self.status()["turns_active"] == count,
                   f"{count} turns that run")

    def make_session(self, name):
        code, answer = self.ask("/v1/sessions", {"session_id": name})
        if code != 200:
            raise AssertionError(answer)

    def position(self, session):
        return self.ask(f"/v1/sessions/{session}")[1]["session"]["position"]

    def drain(self):
        """Begins to shut down, as on SIGTERM."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self):
        self._process.kill()

    def close(self):
        self.kill()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()
        shutil.rmtree(self.folder)


class ServedTest(unittest.TestCase):
    """One server for the tests of a class, started with its `flags`."""

    flags = ()
    generation = None  # instead of the model's own generation.json

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.flags, model=cls.model_folder())
        cls.addClassCleanup(cls.server.close)

    @classmethod
    def model_folder(cls):
        if cls.generation is None:
            return MODEL
        folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, folder)
        copy = shutil.copytree(MODEL, pathlib.Path(folder) / MODEL.name)
        (copy / "generation.json").write_text(json.dumps(cls.generation))
        return copy

    def complete(self, **body):
        """The answer's JSON, without any client between."""
        code, answer = self.server.ask("/v1/completions", body)
        self.assertEqual(code, 200, answer)
        return answer
