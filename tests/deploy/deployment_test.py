#!/usr/bin/env python3
"""The compose file's parts run together and keep what docs/deploying.md says:
two txl-servers, HAProxy and Prometheus, started from deploy/compose/compose.yaml
with the shipped configuration files, in namespaces instead of containers
(compose_sandbox.py says how). Needs root, the Debian packages that
deploy/setup.sh --all installs, and txl-server and txl.

  deployment_test.py [--programs build/bin] [--results OUT.json]

--results also puts load on the servers for a while and keeps what Prometheus
gave for every expression of dashboard and alerts; draw_expressions.py makes a
picture of it."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import compose_sandbox
import expressions
import sandbox_network
from deployment import (PUBLIC, ROOT, Deployment, expect, say,
                        torch_libraries, wait_for)
import proxy_limits

LOST = "UNAVAILABLE: the server of this session is down or drains"


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
    found = subprocess.run(
        sandbox_network.inside(sandbox_network.OUTSIDE,
                               [sys.executable, "-c", scan]),
        check=True, text=True, capture_output=True).stdout.split()
    expect(found == ["8443"], f"open from outside: {found}")


def check_tls(d):
    """TLS 1.2 or later with HTTP/2, and nothing without it."""
    status, _, error = d.client("status --check")
    expect(status == 0, f"txl status --check over TLS: {error}")
    status, _, error = d.client("status --check",
                                ca=d.stranger.certificate)
    expect(status != 0 and "UNAVAILABLE" in error,
           f"another authority's certificate is accepted: {error}")
    plain = sandbox_network.inside(
        sandbox_network.OUTSIDE,
        [d.txl, "status", "--check", "--server", PUBLIC])
    expect(subprocess.run(plain, capture_output=True).returncode != 0,
           "it answers without TLS")
    for flags, agreed in ((["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], False),
                          (["-tls1_2"], True), (["-tls1_3"], True)):
        result = subprocess.run(
            sandbox_network.inside(sandbox_network.OUTSIDE,
                                   ["openssl", "s_client", "-connect", PUBLIC,
                                    "-alpn", "h2", *flags]),
            stdin=subprocess.DEVNULL, text=True, capture_output=True)
        expect(("ALPN protocol: h2" in result.stdout) == agreed,
               f"openssl s_client {flags}: {result.stdout}")


def check_sticking(d):
    """Every turn of a session lands on the server that made it."""
    by_server = {c.name: [] for c in d.servers}

    def make():
        session = d.create()  # a name that the server chooses
        owners = d.owners(session)
        expect(len(owners) == 1, f"{session} is on {len(owners)} servers")
        by_server[owners[0].name].append(session)
        return all(len(s) >= 2 for s in by_server.values())

    wait_for("two sessions on each server", make)
    for _ in range(3):
        for sessions in by_server.values():
            for session in sessions:
                d.expect_turn(session)
    for container in d.servers:
        for session in by_server[container.name]:
            expect(d.owners(session) == [container], f"{session} has moved")
            # The prompt's 6 characters, once per turn, and 4 more.
            position = d.position(container, session)
            expect(position == 3 * (6 + 4),
                   f"{session} is at {position} on {container.name}")
    d.sessions = by_server


def check_confusion(d):
    """A session named without x-txl-session gets lost on no server: the call
    may miss it, later calls with the metadata still find it."""
    for sessions in d.sessions.values():
        wait_for("a call that misses its session", lambda: (
            proxy_limits.get_session_without_metadata(d, sessions[0]) ==
            "NOT_FOUND"))
        d.expect_turn(sessions[0])


def check_reload(d):
    """A reload (for a new certificate) ends no running turn, and the new
    process knows who has which session."""
    long = start_long_turn(d, d.create())
    d.authority.issue(d.certificates, sandbox_network.HOST_ADDRESS, owner=99)
    before = served_certificate(d)
    d.haproxy.signal(signal.SIGUSR2)
    wait_for("the new certificate", lambda: served_certificate(d) != before)
    for sessions in d.sessions.values():
        for session in sessions:
            d.expect_turn(session)
    finish_long_turn(long)


def served_certificate(d):
    result = subprocess.run(
        sandbox_network.inside(sandbox_network.OUTSIDE,
                               ["openssl", "s_client", "-connect", PUBLIC]),
        stdin=subprocess.DEVNULL, text=True, capture_output=True)
    begin = result.stdout.find("-----BEGIN")
    return result.stdout[begin:result.stdout.find("-----END")]


LONG_TOKENS = 4000


def start_long_turn(d, session):
    """A turn that has begun to stream."""
    process = subprocess.Popen(
        d.client_command("generate", "--prompt", "ROMEO:", "--session",
                         session, "--max-tokens", LONG_TOKENS, "--json"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect("started" in process.stdout.readline(), "a turn does not begin")
    return process


def end_long_turn(process):
    """Its last lines as JSON and its error."""
    events = [json.loads(line) for line in process.stdout]
    error = process.stderr.read()
    process.wait(60)
    return events, error


def finish_long_turn(process):
    (*tokens, finished), error = end_long_turn(process)
    expect(process.returncode == 0, f"the long turn: {error}")
    expect(len(tokens) == LONG_TOKENS and finished["finished"]["reason"] ==
           "FINISH_REASON_MAX_TOKENS",
           f"the long turn ended after {len(tokens)} tokens: {finished}")


def check_drain(d):
    """A server that is stopped ends its running turn; its sessions get a clear
    error, new ones go elsewhere, and the other server's sessions go on."""
    stopped, other = d.servers
    gone, kept = (d.sessions[c.name] for c in (stopped, other))
    long = start_long_turn(d, gone[0])
    stopped.signal(signal.SIGTERM)
    wait_for("HAProxy sees the drain", lambda: d.servers_up() == 1)
    expect("not SERVING" in d.haproxy.output(), "not by its health")
    # Nobody loses a call to a server that drains from here on.
    for _ in range(5):
        d.expect_turn(None)
        d.expect_turn(kept[0])
        expect(d.position(other, d.create()) == 0, "it is elsewhere")
    finish_long_turn(long)
    expect(stopped.process.wait(40) == 0, "it did not exit with 0")
    d.sandbox.remove(stopped)
    d.servers.remove(stopped)
    for session in gone:
        status, _, error = d.turn(session)
        expect(status == 1 and LOST in error, f"{session}: {error!r}")
    d.create(gone[0])
    expect(d.position(other, gone[0]) == 0, "made anew, it is elsewhere")
    d.expect_turn(gone[0])
    d.stopped, d.lost = stopped, gone[1:]


def check_return(d):
    """A server that starts again takes new sessions; those that it had lost are
    a clear error."""
    server = d.start_again(d.stopped)
    wait_for("a new session on the new server",
             lambda: d.position(server, d.create()) == 0)
    for session in d.lost:
        status, _, error = d.turn(session)
        expect(status == 1 and "NOT_FOUND (SESSION_UNKNOWN)" in error,
               f"{session}: {error!r}")
        d.create(session)
        d.expect_turn(session)


def check_crash(d):
    """A server that is killed: its stream ends with an error, at once."""
    session = d.create()
    victim = d.owners(session)[0]
    long = start_long_turn(d, session)
    d.sandbox.kill(victim)
    d.servers.remove(victim)
    events, error = end_long_turn(long)
    # HTTP/2 has no way to tell why; gRPC's name for that is UNKNOWN.
    expect(long.returncode == 1 and error.startswith("txl: UN") and
           not any("finished" in e for e in events),
           f"a killed server's stream: {error!r}")
    d.wait_for_proxy(1)
    d.expect_turn(None)
    d.start_again(victim)


def check_processes(d):
    """The same haproxy.cfg as a process, its servers by address, and by one
    name for all of them as in Kubernetes."""
    by_address = {f"TXL_PROXY_SERVER_{number}":
                  f"{container.addresses['inner']}:50051"
                  for number, container in enumerate(d.servers, 1)}
    check_process(d, "by-address", by_address)
    check_process(d, "by-name", {"TXL_PROXY_SERVERS": "txl-server:50051"})


def check_process(d, name, environment):
    folder = d.work / name
    folder.mkdir()
    address = "127.0.0.1:7443"
    certificates = d.authority.issue(folder / "tls", "127.0.0.1", owner=0)
    # haproxy reads the DNS server's address from here.
    resolver = folder / "resolv.conf"
    resolver.write_text(
        f"nameserver {d.sandbox.networks['inner'].gateway}\n")
    process = subprocess.Popen(
        ["bwrap", "--dev-bind", "/", "/", "--ro-bind", resolver,
         "/etc/resolv.conf", "--die-with-parent",
         "haproxy", "-f", ROOT / "deploy/haproxy/haproxy.cfg"],
        env={"TXL_PROXY_LISTEN": address,
             "TXL_PROXY_METRICS": "127.0.0.1:7404",
             "TXL_PROXY_PEER": "127.0.0.1:7000",
             "TXL_PROXY_CERTIFICATE": str(certificates / "tls.crt"),
             "PATH": os.environ["PATH"], **environment},
        stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    flags = ["--server", address, "--tls", "--ca", d.authority.certificate]

    def txl(*command):
        return subprocess.run([d.txl, *command, *flags], text=True,
                              capture_output=True)

    try:
        wait_for("HAProxy as a process",
                 lambda: txl("status", "--check").returncode == 0)
        owners = set()
        while len(owners) < len(d.servers):
            session = txl("sessions", "create").stdout.strip()
            owner, = d.owners(session)
            owners.add(owner.name)
            for _ in range(4):
                turn = txl("generate", "--session", session, "--max-tokens",
                           "2", "--prompt", "A")
                expect(turn.returncode == 0, f"{name}: {turn.stderr}")
    finally:
        process.terminate()
        process.wait()


def check_targets(d):
    """Prometheus scrapes every server and HAProxy, found by DNS."""
    base = d.inner_url(d.prometheus, 9090)
    wanted = {f"{c.addresses['inner']}:9464" for c in d.servers}
    wanted.add(f"{d.haproxy.addresses['inner']}:8404")

    def up():
        data = expressions.ask(base, "query", query="up == 1")
        return wanted == {s["metric"]["instance"] for s in data["result"]}

    wait_for("all targets up", up, seconds=90)
    grafana = (expressions.MONITORING / "grafana/provisioning/datasources/prometheus.yaml")
    url = [line.split()[1] for line in grafana.read_text().splitlines()
           if line.strip().startswith("url:")][0]
    d.haproxy.execute(["wget", "-q", "-O", "/dev/null", f"{url}/-/ready"])


def check_expressions(d):
    """Every expression of dashboard and alert rules has data."""
    base = d.inner_url(d.prometheus, 9090)
    missing = expressions.all_expressions()

    def complete():
        nonlocal missing
        d.expect_turn(None, tokens=50)
        missing = [e for e in missing if not expressions.has_data(base, e)]
        return not missing

    try:
        wait_for("data for every expression", complete, seconds=150)
    finally:
        for expression in missing:
            say(f"no data: {expression.origin}: {expression.text}")
    rules = expressions.ask(base, "rules")["groups"]
    for rule in (rule for group in rules for rule in group["rules"]):
        expect(rule["health"] == "ok", f"{rule['name']} is not evaluated")


def watch(d, seconds):
    """Curves of every expression while clients outside use the servers."""
    begin = time.time()
    streams = 1
    while time.time() < begin + seconds:
        status, _, error = d.client("bench", "--streams", streams,
                                    "--requests", 2 * streams)
        expect(status == 0, f"txl bench: {error}")
        streams = 1 + (2 * streams) % 30
        time.sleep(2)
    results = expressions.all_curves(d.inner_url(d.prometheus, 9090), begin,
                                     time.time())
    for result in results:
        expect(result["curves"], f"no curve of {result['text']}")
    return results


CHECKS = [check_configurations, check_rights, check_ports, check_tls,
          check_sticking, check_confusion, check_reload, check_drain,
          check_return, check_crash, check_processes, proxy_limits.check_paths,
          proxy_limits.check_limits, check_targets,
          check_expressions]


def run(arguments, work):
    d = Deployment(arguments.programs.resolve(), work)
    d.start_time = time.time()
    d.up()
    for check in CHECKS:
        check(d)
        say(f"ok: {' '.join(check.__doc__.split())}")
    if arguments.results:
        arguments.results.write_text(
            json.dumps(watch(d, arguments.watch)) + "\n", encoding="utf-8")
    for container in (*d.servers, d.haproxy):
        status = d.sandbox.stop(container)
        expect(status == 0, f"{container.name}: exit status {status}")
    say("deployment_test: passed")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--programs", type=pathlib.Path,
                        default=ROOT / "build/bin")
    parser.add_argument("--work", type=pathlib.Path,
                        help="empty folder for logs; default: a temporary one")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--watch", type=float, default=180,
                        help="seconds of load for --results")
    parser.add_argument("--inside", action="store_true",
                        help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse()
    if not arguments.inside:
        compose_sandbox.enter([*sys.argv, "--inside"])
    for program in ("haproxy", "prometheus", "promtool", "dnsmasq", "bwrap",
                    "ip", "socat", "wget", "openssl", "setpriv"):
        if shutil.which(program) is None:
            say(f"{program} is missing; deploy/setup.sh --all installs it")
            return 1
    torch_libraries()
    work = arguments.work or pathlib.Path(tempfile.mkdtemp())
    work.mkdir(parents=True, exist_ok=True)
    work.chmod(0o755)
    run(arguments, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
