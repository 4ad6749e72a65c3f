import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from server_process import model, program

from txl_client import Client
from txl_client.local_server import LocalServer

ARGUMENTS = ("--log-level", "error", "--drain-timeout", "100ms")


def listens(address):
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(address.removeprefix("unix:"))
        except OSError:
            return False
    return True


def test_a_server_is_there_as_long_as_it_is_wanted():
    with LocalServer(model(), program=program(),
                     arguments=ARGUMENTS) as server:
        with Client(server.address) as client:
            assert client.status().state == "READY"
    assert not listens(server.address)
    assert not os.path.exists(server.address.removeprefix("unix:"))
    server.close()


def test_a_server_that_does_not_come_up_is_an_error(tmp_path):
    log = tmp_path / "log"
    with pytest.raises(RuntimeError, match="before it listened"):
        LocalServer(tmp_path, program=program(), log=log)
    assert log.read_text()


@pytest.mark.parametrize("name, value, error", [
    ("model", None, TypeError), ("model", b"m", TypeError),
    ("model", "", ValueError), ("program", 5, TypeError),
    ("arguments", "--threads 1", TypeError),
    ("arguments", ["--threads", 1], TypeError), ("log", 5, TypeError)])
def test_what_starts_no_server_is_named(name, value, error):
    with pytest.raises(error, match=f"^{name}"):
        LocalServer(**{"model": model(), "program": program(), name: value})


@pytest.mark.parametrize("missing", ["no-txl-server", "/no/txl-server"])
def test_a_program_that_is_not_there_is_named(missing):
    with pytest.raises(FileNotFoundError, match=f"^program: '{missing}'"):
        LocalServer(model(), program=missing)


def test_no_server_is_left_where_its_owner_is_killed():
    owner = subprocess.Popen(
        [sys.executable, "-c",
         "import sys, time\n"
         "from txl_client.local_server import LocalServer\n"
         "server = LocalServer(sys.argv[1], program=sys.argv[2],\n"
         "                     arguments=sys.argv[3:])\n"
         "print(server.address, flush=True)\n"
         "time.sleep(600)\n", model(), program(), *ARGUMENTS],
        stdout=subprocess.PIPE, text=True)
    address = owner.stdout.readline().strip()
    assert listens(address)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    deadline = time.monotonic() + 20
    while listens(address) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not listens(address)
