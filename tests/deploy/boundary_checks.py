"""The files are accepted, the containers have no rights, and strangers reach
HAProxy's TLS port alone."""

import subprocess
import sys

from deployment import PUBLIC, ROOT, expect
import sandbox_network


def outside(argv):
    return subprocess.run(
        sandbox_network.inside(sandbox_network.OUTSIDE, argv),
        stdin=subprocess.DEVNULL, text=True, capture_output=True)


def check_configurations(d):
    """haproxy -c and promtool accept the files as the containers see them."""
    d.haproxy.execute(["haproxy", "-c", "-f", "/etc/haproxy/haproxy.cfg"])
    d.prometheus.execute(["promtool", "check", "config",
                          "/etc/prometheus/prometheus.yml"])
    result = subprocess.run(
        ["promtool", "test", "rules", "alerts_test.yml"], text=True,
        cwd=ROOT / "tests/deploy", capture_output=True)
    expect(result.returncode == 0, f"alerts_test.yml: {result.stdout}")


def check_rights(d):
    """No root, no capability, no writable root."""
    for container in d.containers():
        status, name = container.status(), container.name
        expect("0" not in status["Uid"].split(), f"{name} runs as root")
        for field in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
            expect(int(status[field], 16) == 0, f"{name}: {field}")
        expect(status["NoNewPrivs"] == "1", f"{name} may gain privileges")
        expect(container.root_is_read_only(), f"{name}: root is writable")
        expect(container.execute(["touch", "/x"], check=False).returncode != 0,
               f"{name} wrote into its root")


def check_ports(d):
    """From outside, HAProxy's port and no other one."""
    scan = ("import socket\n"
            "for port in range(1, 65536):\n"
            "    with socket.socket() as s:\n"
            "        s.settimeout(5)\n"
            f"        if s.connect_ex(('{sandbox_network.HOST_ADDRESS}', port))"
            " == 0: print(port)\n")
    found = outside([sys.executable, "-c", scan]).stdout.split()
    expect(found == ["8443"], f"open from outside: {found}")


def check_tls(d):
    """TLS 1.2 or later with HTTP/2, and nothing without it."""
    status, _, error = d.client("status --check")
    expect(status == 0, f"txl status --check over TLS: {error}")
    status, _, error = d.client("status --check",
                                ca=d.stranger.certificate)
    expect(status != 0 and "UNAVAILABLE" in error,
           f"another authority's certificate is accepted: {error}")
    plain = outside([d.txl, "status", "--check", "--server", PUBLIC])
    expect(plain.returncode != 0, "it answers without TLS")
    for flags, agreed in ((["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], False),
                          (["-tls1_2"], True), (["-tls1_3"], True)):
        result = outside(["openssl", "s_client", "-connect", PUBLIC,
                          "-alpn", "h2", *flags])
        expect(("ALPN protocol: h2" in result.stdout) == agreed,
               f"openssl s_client {flags}: {result.stdout}")
