"""The compose file's deployment in a sandbox, and its clients outside."""

import json
import pathlib
import subprocess
import sys
import time

import certificates
import compose_file
import compose_sandbox
import sandbox_network

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "deploy/compose/compose.yaml"
PUBLIC = f"{sandbox_network.HOST_ADDRESS}:8443"
# Of txl in a server's container, as the compose file's health check has it.
INNER_TLS = ["--tls", "--ca", "/certs/ca.crt", "--tls-cert", "/certs/tls.crt",
             "--tls-key", "/certs/tls.key"]
# From the Dockerfile's last stage.
TXL_ENVIRONMENT = {"PATH": "/opt/txl/bin:/usr/bin:/bin",
                   "LD_LIBRARY_PATH": "/opt/txl/lib", "OMP_NUM_THREADS": "1"}


class Failure(Exception):
    """What was expected and what came instead."""


def expect(holds, text):
    if not holds:
        raise Failure(text)


def wait_for(what, condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        expect(time.monotonic() < deadline, f"not within {seconds} s: {what}")
        time.sleep(0.1)
    return value


def torch_libraries():
    return next((ROOT / ".deps/venv/lib").glob("python3*/site-packages/torch"
                                               "/lib"))


class Deployment:
    def __init__(self, programs, work):
        self.work = pathlib.Path(work)
        self.txl = pathlib.Path(programs) / "txl"
        self.authority = certificates.Authority(self.work / "ca", "Test CA")
        self.stranger = certificates.Authority(self.work / "other", "Other CA")
        self.certificates = self.authority.issue(
            self.work / "certificates", sandbox_network.HOST_ADDRESS, owner=99)
        self.inner = self.work / "inner"
        subprocess.run([ROOT / "deploy/certificates.sh", self.inner],
                       check=True)
        services, networks = compose_file.load(
            COMPOSE, {"TXL_CERTIFICATES": str(self.certificates),
                      "TXL_INNER_CERTIFICATES": str(self.inner),
                      "TXL_PUBLIC_NAMES": sandbox_network.HOST_ADDRESS})
        self.sandbox = compose_sandbox.Sandbox(
            services, networks, self.images(programs), self.work)
        self.servers = []

    def images(self, programs):
        image = compose_sandbox.Image
        return {"txl": image(["txl-server"], TXL_ENVIRONMENT,
                             {"/opt/txl/bin": programs,
                              "/opt/txl/lib": torch_libraries()}),
                "haproxy": image([]),
                "prom/prometheus": image(["prometheus"])}

    def up(self):
        self.servers = [self.sandbox.start(name)
                        for name, service in self.sandbox.services.items()
                        if service.image == "txl"]
        self.haproxy = self.sandbox.start("haproxy")
        self.prometheus = self.sandbox.start("prometheus")
        for container in self.containers():
            self.sandbox.wait_until_healthy(container)
        self.wait_for_proxy(len(self.servers))

    def start_again(self, container):
        """A new container of a service whose old one has ended."""
        replacement = self.sandbox.start(container.service.name)
        self.servers.append(replacement)
        self.sandbox.wait_until_healthy(replacement)
        self.wait_for_proxy(len(self.servers))
        return replacement

    def containers(self):
        return [*self.servers, self.haproxy, self.prometheus]

    def inner_url(self, container, port):
        return f"http://{container.addresses['inner']}:{port}"

    def proxy_metrics(self):
        return self.haproxy.execute(
            ["wget", "-q", "-O", "-", "http://127.0.0.1:8404/metrics"]).stdout

    def servers_up(self):
        return sum(line.endswith("} 1") for line in
                   self.proxy_metrics().splitlines()
                   if line.startswith('haproxy_server_status{proxy="servers"')
                   and 'state="UP"' in line)

    def wait_for_proxy(self, count):
        wait_for(f"{count} servers up for HAProxy",
                 lambda: self.servers_up() == count)

    def client_command(self, command, *flags, server=PUBLIC, ca=None):
        return sandbox_network.inside(
            sandbox_network.OUTSIDE,
            [self.txl, *command.split(), "--server", server, "--tls", "--ca",
             ca or self.authority.certificate, *flags])

    def client(self, command, *flags, **where):
        """(exit status, standard output, standard error) of txl outside."""
        result = subprocess.run(
            self.client_command(command, *flags, **where), text=True,
            capture_output=True, timeout=60)
        return result.returncode, result.stdout, result.stderr.strip()

    def turn(self, session, tokens=4):
        flags = ["--session", session] if session else []
        return self.client("generate", "--prompt", "ROMEO:", "--max-tokens",
                           tokens, "--timeout", 30, *flags)

    def expect_turn(self, session, tokens=4):
        status, _, error = self.turn(session, tokens)
        expect(status == 0, f"a turn of session {session!r}: {error}")

    def create(self, session=None):
        status, output, error = self.client(
            "sessions create", *([session] if session else []))
        expect(status == 0, f"sessions create: {error}")
        return output.strip()

    def position(self, container, session):
        """Of a session, asked of a server itself; None: it does not know it."""
        result = container.execute(
            ["txl", "sessions", "show", "--json", session, *INNER_TLS],
            check=False)
        if result.returncode == 0:
            return int(json.loads(result.stdout)["session"]["position"])
        expect("NOT_FOUND" in result.stderr, f"{container.name}, asked for "
               f"{session}: {result.stdout}{result.stderr}")
        return None

    def owners(self, session):
        return [c for c in self.servers
                if self.position(c, session) is not None]


def say(text):
    print(text, file=sys.stderr, flush=True)
