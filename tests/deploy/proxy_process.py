"""The same haproxy.cfg as a process, with an environment of its own."""

import contextlib
import os
import subprocess
import urllib.request

from deployment import ROOT, wait_for

HOST, PORT = "127.0.0.1", 7443
METRICS = "127.0.0.1:7404"


def by_address(d):
    """Where the servers are, in HAProxy's environment."""
    return {f"TXL_PROXY_{kind}_{number}":
            f"{container.addresses['inner']}:{port}"
            for number, container in enumerate(d.servers, 1)
            for kind, port in (("SERVER", 50051), ("HTTP", 8080))}


@contextlib.contextmanager
def running(d, name, environment):
    """While it runs, with a server that is up; its clients want the test's
    authority."""
    folder = d.work / name
    folder.mkdir()
    certificates = d.authority.issue(folder / "tls", HOST, owner=0)
    # haproxy reads the DNS server's address from here.
    resolver = folder / "resolv.conf"
    resolver.write_text(
        f"nameserver {d.sandbox.networks['inner'].gateway}\n")
    process = subprocess.Popen(
        ["bwrap", "--dev-bind", "/", "/", "--ro-bind", resolver,
         "/etc/resolv.conf", "--die-with-parent",
         "haproxy", "-f", ROOT / "deploy/haproxy/haproxy.cfg"],
        env={"TXL_PROXY_LISTEN": f"{HOST}:{PORT}",
             "TXL_PROXY_METRICS": METRICS,
             "TXL_PROXY_PEER": "127.0.0.1:7000",
             "TXL_PROXY_CERTIFICATE": str(certificates / "tls.crt"),
             "TXL_PROXY_INNER_CERTIFICATE": str(d.inner / "proxy/tls.crt"),
             "TXL_PROXY_INNER_CA": str(d.inner / "proxy/ca.crt"),
             "PATH": os.environ["PATH"], **environment},
        stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_for("HAProxy as a process", is_healthy)
        yield
    finally:
        process.terminate()
        process.wait()


def page(path):
    with urllib.request.urlopen(f"http://{METRICS}{path}",
                                timeout=5) as answer:
        return answer.read().decode()


def is_healthy():
    try:
        page("/health")
        return True
    except OSError:
        return False


def remembered_sessions():
    """Entries of the table that says where sessions are."""
    line, = (line for line in page("/metrics").splitlines() if
             line.startswith('haproxy_sticktable_used{name="servers"'))
    return int(line.split()[-1])


def txl(d, *command):
    """txl on this machine, through it."""
    return subprocess.run(
        [d.txl, *command, "--server", f"{HOST}:{PORT}", "--tls", "--ca",
         d.authority.certificate], text=True, capture_output=True)
