"""HTTP through HAProxy: its paths, the way of a session, and that nobody else
speaks to the servers."""

import json
import subprocess

from boundary_checks import outside
from deployment import PUBLIC, expect
import proxy_process

SERVER_HTTP = "https://txl-1:8080/health"


def here(argv):
    return subprocess.run(argv, text=True, capture_output=True)


def ask(d, path, body=None, header=None, server=PUBLIC, run=outside):
    """(status, body) of a request, from outside."""
    flags = ["--ca-certificate", d.authority.certificate, "-q", "-S", "-t",
             "1", "-T", "30", "--content-on-error", "-O", "-"]
    if header:
        flags += ["--header", header]
    if body is not None:
        flags += ["--header", "content-type: application/json",
                  "--post-data", json.dumps(body)]
    result = run(["wget", *map(str, flags), f"https://{server}{path}"])
    lines = [line.split() for line in result.stderr.splitlines()]
    status = [int(words[1]) for words in lines
              if words and words[0].startswith("HTTP/")]
    return (status or [0])[-1], result.stdout


def check_web_paths(d):
    """HTTP's paths from outside, without metrics and without what is not
    there."""
    for path, wanted in (("/health", 200), ("/v1/models", 200), ("/", 200),
                         ("/v1/status", 200), ("/metrics", 404),
                         ("/nothing", 404)):
        status, body = ask(d, path)
        expect(status == wanted, f"{path}: {status} {body[:200]}")
    status, body = ask(d, "/v1/completions",
                       {"prompt": "ROMEO:", "max_tokens": 4})
    expect(status == 200, f"a completion: {status} {body}")
    usage = json.loads(body)["usage"]
    expect(usage["prompt_tokens"] == 6 and usage["total_tokens"] == 10 and
           usage["prompt_tokens_details"]["cached_tokens"] <= 6, f"{usage}")


def check_web_sessions(d):
    """A session is found over HTTP by path, header and body, whichever protocol
    made it, and its turns land on its server."""
    for container in d.servers:
        session = d.sessions[container.name][0]
        before = d.position(container, session)
        status, body = ask(d, f"/v1/sessions/{session}")
        expect(status == 200, f"/v1/sessions/{session}: {status} {body}")
        turn = {"prompt": "A", "max_tokens": 2}
        for header, extra in ((f"x-txl-session: {session}", {}),
                              (f"x-session-id: {session}", {}),
                              (None, {"session_id": session})):
            status, body = ask(d, "/v1/completions", {**turn, **extra}, header)
            expect(status == 200, f"a turn by {header or extra}: {status} "
                   f"{body}")
        after = d.position(container, session)
        expect(after == before + 3 * (1 + 2),
               f"{session} went from {before} to {after}")
        expect(d.owners(session) == [container], f"{session} has moved")
    for number in range(4):
        name = f"web-{number}"
        status, body = ask(d, "/v1/sessions", {"session_id": name})
        expect(status == 200, f"a session over HTTP: {status} {body}")
        d.expect_turn(name)
        status, body = ask(d, f"/v1/sessions/{name}")
        expect(status == 200, f"{name} over HTTP: {status} {body}")


def check_web_limits(d):
    """Calls of HTTP are counted as gRPC's are, and what is over is told so."""
    address = f"{proxy_process.HOST}:{proxy_process.PORT}"
    with proxy_process.running(d, "web-limits", {
            "TXL_PROXY_CALLS": "5", **proxy_process.by_address(d)}):
        answers = [ask(d, "/v1/models", server=address, run=here)
                   for _ in range(7)]
    expect([status for status, _ in answers] == [200] * 5 + [429] * 2,
           f"seven requests where five may come: {answers}")
    error = json.loads(answers[-1][1])["error"]
    expect(error["code"] == "OVERLOADED", f"the refusal: {error}")


def check_inner_tls(d):
    """A server answers on its inner addresses only who shows HAProxy's
    certificate, and HAProxy's trust is in its own authority alone."""
    def fetch(url, *flags):
        return d.haproxy.execute(
            ["wget", "-q", "-t", "1", "-T", "5", "-O", "-",
             "--header=Host: localhost", *flags, url],
            check=False)

    own = ["--certificate=/inner/tls.crt", "--private-key=/inner/tls.key"]
    trust = ["--ca-certificate=/inner/ca.crt"]
    result = fetch(SERVER_HTTP, *own, *trust)
    expect('"ok"' in result.stdout, f"with its certificate: {result}")
    for flags in (trust, ["--no-check-certificate"]):
        result = fetch(SERVER_HTTP, *flags)
        expect(result.returncode != 0, f"without a certificate: {result}")
    result = fetch(SERVER_HTTP.replace("https", "http"))
    expect(result.returncode != 0, f"without TLS: {result}")
