#!/usr/bin/env python3
"""New certificates under load: a server whose files are renewed again and again
while clients of gRPC and HTTP come over new connections and old ones. Nobody's
call fails, and after each renewal both listeners show the new certificate.

  rotation.py --programs build/bin --model DIR [--rotations 20]

Needs openssl. Prints what was done; exits with 1 where a call failed."""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BODY = json.dumps({"prompt": "ROMEO:", "max_tokens": 3})
HEADERS = {"content-type": "application/json"}
# Between two looks of the server at its files, and some.
SECONDS_UNTIL_NEW = 30


def renew(folder):
    subprocess.run([ROOT / "deploy/certificates.sh", folder], check=True)


def client_context(own, protocol):
    context = ssl.create_default_context(cafile=own / "ca.crt")
    context.load_cert_chain(own / "tls.crt", own / "tls.key")
    context.set_alpn_protocols([protocol])
    return context


def shown(port, own, protocol):
    """The certificate that a new connection gets."""
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        with client_context(own, protocol).wrap_socket(
                plain, server_hostname="127.0.0.1") as connection:
            return connection.getpeercert(binary_form=True)


@contextlib.contextmanager
def server(programs, model, folder):
    """Ports of gRPC and HTTP."""
    process = subprocess.Popen(
        [programs / "txl-server", "--model", model, "--threads", "1",
         "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0",
         "--log-level", "error", "--memory-limit", "1gb",
         "--tls-cert", folder / "server/tls.crt",
         "--tls-key", folder / "server/tls.key",
         "--tls-client-ca", folder / "server/ca.crt"],
        stdout=subprocess.PIPE, text=True)
    try:
        ports = []
        for begin in ("listening on 127.0.0.1:", "http on https://127.0.0.1:"):
            line = process.stdout.readline()
            assert line.startswith(begin), f"the server says {line!r}"
            ports.append(int(line.removeprefix(begin)))
        yield ports
    finally:
        process.terminate()
        assert process.wait(40) == 0, "the server did not drain"


class Load:
    """Threads that call again and again, and what became of it."""

    def __init__(self):
        self.calls = {}
        self.failures = []
        self.stop = threading.Event()
        self.threads = []

    def start(self, name, call):
        self.calls[name] = 0

        def run():
            while not self.stop.is_set():
                try:
                    call()
                    self.calls[name] += 1
                except Exception as error:  # whatever it is, it is a failure
                    self.failures.append(f"{name}: {error!r}")

        thread = threading.Thread(target=run)
        thread.start()
        self.threads.append(thread)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def grpc_call(programs, port, own):
    """A turn of a client of its own, which tries once."""
    result = subprocess.run(
        [programs / "txl", "generate", "--server", f"127.0.0.1:{port}",
         "--tls", "--ca", own / "ca.crt", "--tls-cert", own / "tls.crt",
         "--tls-key", own / "tls.key", "--prompt", "ROMEO:", "--max-tokens",
         "3", "--timeout", "60", "--attempts", "1"],
        capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(result.stderr)


def http_call(connection):
    connection.request("POST", "/v1/completions", BODY, HEADERS)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status} {text}")


def http_connection(port, own):
    return http.client.HTTPSConnection(
        "127.0.0.1", port, timeout=60, context=client_context(own, "http/1.1"))


def http_once(port, own):
    connection = http_connection(port, own)
    try:
        http_call(connection)
    finally:
        connection.close()


def run(arguments, work):
    folder, own = work / "inner", work / "client"
    renew(folder)
    shutil.copytree(folder / "proxy", own)  # clients keep theirs
    with server(arguments.programs, arguments.model, folder) as (grpc, web):
        load = Load()
        kept = http_connection(web, own)
        load.start("gRPC, new connections",
                   lambda: grpc_call(arguments.programs, grpc, own))
        load.start("HTTP, new connections", lambda: http_once(web, own))
        load.start("HTTP, one connection", lambda: http_call(kept))
        stale = 0
        try:
            for _ in range(arguments.rotations):
                before = shown(web, own, "http/1.1")
                renew(folder)
                wanted = ssl.PEM_cert_to_DER_cert(
                    (folder / "server/tls.crt").read_text())
                assert wanted != before
                deadline = time.monotonic() + SECONDS_UNTIL_NEW
                while {shown(web, own, "http/1.1"),
                       shown(grpc, own, "h2")} != {wanted}:
                    if time.monotonic() > deadline:
                        stale += 1
                        break
                    time.sleep(0.1)
        finally:
            load.end()
    for name, count in load.calls.items():
        print(f"{name}: {count} calls")
    print(f"{arguments.rotations} rotations, {stale} not seen, "
          f"{len(load.failures)} failed calls")
    for failure in load.failures[:5]:
        print(failure, file=sys.stderr)
    return 1 if load.failures or stale or 0 in load.calls.values() else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--programs", type=pathlib.Path,
                        default=ROOT / "build/bin")
    parser.add_argument("--model", type=pathlib.Path,
                        default=ROOT / "models/shakespeare")
    parser.add_argument("--rotations", type=int, default=20)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as work:
        return run(arguments, pathlib.Path(work))


if __name__ == "__main__":
    sys.exit(main())
