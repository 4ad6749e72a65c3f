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
import pathlib
import shutil
import sys
import tempfile

import boundary_checks
import compose_sandbox
from deployment import ROOT, Deployment, expect, say
import flood_checks
import monitoring_checks
import name_checks
import proxy_limits
import session_checks
import web_checks

PROGRAMS = ("haproxy", "prometheus", "promtool", "dnsmasq", "bwrap", "ip",
            "socat", "wget", "openssl", "setpriv")
CHECKS = [
    boundary_checks.check_configurations, boundary_checks.check_rights,
    boundary_checks.check_ports, boundary_checks.check_tls,
    session_checks.check_sticking, web_checks.check_web_paths,
    web_checks.check_web_sessions, web_checks.check_web_limits,
    web_checks.check_inner_tls,
    session_checks.check_confusion,
    session_checks.check_reload, session_checks.check_new_start,
    session_checks.check_drain, session_checks.check_return,
    session_checks.check_crash, session_checks.check_processes,
    name_checks.check_start_before_names,
    proxy_limits.check_paths, proxy_limits.check_limits,
    proxy_limits.check_running, proxy_limits.check_networks,
    proxy_limits.check_new_sessions, proxy_limits.check_unknown_sessions,
    flood_checks.check_unread_stream, flood_checks.check_unfinished_call,
    flood_checks.check_headers, flood_checks.check_frames,
    flood_checks.check_rapid_reset,
    monitoring_checks.check_targets, monitoring_checks.check_expressions]


def run(arguments, work):
    d = Deployment(arguments.programs.resolve(), work)
    d.up()
    for check in (c for c in CHECKS
                  if not arguments.only or c.__name__ in arguments.only):
        check(d)
        say(f"ok: {' '.join(check.__doc__.split())}")
    if arguments.results:
        arguments.results.write_text(
            json.dumps(monitoring_checks.watch(d, arguments.watch)) + "\n", encoding="utf-8")
    for container in (*d.servers, d.haproxy):
        status = d.sandbox.stop(container)
        expect(status == 0, f"{container.name}: exit status {status}")
    say("deployment_test: passed")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--programs", type=pathlib.Path,
                        default=ROOT / "build/bin")
    parser.add_argument("--work", type=pathlib.Path,
                        help="empty folder that keeps what the run leaves")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--watch", type=float, default=180,
                        help="seconds of load for --results")
    parser.add_argument("--only", action="append", default=[],
                        help="name of a check, as in CHECKS; repeatable")
    parser.add_argument("--inside", action="store_true",
                        help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse()
    if not arguments.inside:
        compose_sandbox.enter([*sys.argv, "--inside"])
    missing = [p for p in PROGRAMS if shutil.which(p) is None]
    if missing:
        say(f"{' '.join(missing)} missing; deploy/setup.sh --all installs all")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        work = arguments.work or pathlib.Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        work.chmod(0o755)
        run(arguments, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
