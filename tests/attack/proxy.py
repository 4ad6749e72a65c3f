"""HAProxy with the configuration that is shipped, in front of one server."""

import ctypes
import os
import pathlib
import socket
import ssl
import subprocess
import time

import api

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGURATION = ROOT / "deploy/haproxy/haproxy.cfg"


# One network of a provider's customer, of which every address is this machine's
# in `own_network`.
CUSTOMER = "fd00:bad::"
_CLONE_NEWNET = 0x40000000
_IPV6_FREEBIND = 78


def own_network():
    """Moves this process into a network of its own, with loopback alone. As
    root."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "--proxy needs root: unshare")
    for command in ("link set lo up",
                    f"-6 route add local {CUSTOMER}/64 dev lo"):
        subprocess.run(["ip", *command.split()], check=True)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Proxy:
    """`settings`: of the configuration's environment, beside these."""

    def __init__(self, folder, server_address, settings=None):
        self.certificate = folder / "tls.crt"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext",
             "subjectAltName=IP:127.0.0.1", "-keyout", folder / "tls.key",
             "-out", self.certificate], check=True, capture_output=True)
        self.port = free_port()
        self.metrics_port = free_port()
        self.log = folder / "haproxy.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["haproxy", "-db", "-f", CONFIGURATION],
                stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ,
                     "TXL_PROXY_LISTEN":
                     f"127.0.0.1:{self.port},[::1]:{self.port}",
                     "TXL_PROXY_CERTIFICATE": str(self.certificate),
                     "TXL_PROXY_METRICS": f"127.0.0.1:{self.metrics_port}",
                     "TXL_PROXY_PEER": f"127.0.0.1:{free_port()}",
                     "TXL_PROXY_SERVER_1": server_address,
                     **(settings or {})})

    def kill(self):
        self.process.kill()
        self.process.wait()

    def tcp(self, source):
        six = ":" in source
        channel = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
        channel.settimeout(20)
        if six:  # an address of a network that is this machine's as a whole
            channel.setsockopt(socket.IPPROTO_IPV6, _IPV6_FREEBIND, 1)
        channel.bind((source, 0))
        channel.connect(("::1" if six else "127.0.0.1", self.port))
        return channel

    def channel(self, source):
        """A TLS connection from this address of the machine."""
        context = ssl.create_default_context(cafile=self.certificate)
        context.set_alpn_protocols(["h2"])
        return context.wrap_socket(self.tcp(source),
                                   server_hostname="127.0.0.1")

    def wait_until_serving(self, server, timeout=20):
        deadline = time.monotonic() + timeout
        while True:
            try:
                with server.client() as client:
                    client.health_seconds()
                return
            except (OSError, TimeoutError, api.Failed) as error:
                if time.monotonic() > deadline or self.process.poll():
                    raise RuntimeError(f"HAProxy does not serve: {error}\n"
                                       f"{self.log.read_text()}") from error
                time.sleep(0.05)

    def metric(self, name):
        """Sum of a metric of HAProxy itself."""
        with socket.create_connection(("127.0.0.1", self.metrics_port),
                                      5) as channel:
            channel.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b""
            while piece := channel.recv(1 << 16):
                text += piece
        return sum(float(line.rpartition(" ")[2])
                   for line in text.decode().splitlines()
                   if line.startswith(name))
