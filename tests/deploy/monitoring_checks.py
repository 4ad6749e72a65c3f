"""A real Prometheus with the shipped configuration has data for everything."""

import time

from deployment import expect, say, wait_for
import expressions


def check_targets(d):
    """Prometheus scrapes every server and HAProxy, found by DNS."""
    base = d.inner_url(d.prometheus, 9090)
    wanted = {f"{c.addresses['inner']}:9464" for c in d.servers}
    wanted.add(f"{d.haproxy.addresses['inner']}:8404")

    def up():
        data = expressions.ask(base, "query", query="up == 1")
        return wanted == {s["metric"]["instance"] for s in data["result"]}

    wait_for("all targets up", up)
    grafana = (expressions.MONITORING /
               "grafana/provisioning/datasources/prometheus.yaml")
    url = [line.split()[1] for line in grafana.read_text().splitlines()
           if line.strip().startswith("url:")][0]
    d.haproxy.execute(["wget", "-q", "-O", "/dev/null", f"{url}/-/ready"])


def check_expressions(d):
    """Every expression of dashboard and alert rules has data."""
    base = d.inner_url(d.prometheus, 9090)
    missing = expressions.all_expressions()
    sessions = [d.create() for _ in range(8)]

    def complete():
        nonlocal missing
        d.expect_turn(None, tokens=50)
        for session in sessions:
            d.expect_turn(session)
        missing = [e for e in missing if not expressions.has_data(base, e)]
        return not missing

    try:
        wait_for("data for every expression", complete, seconds=240)
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
