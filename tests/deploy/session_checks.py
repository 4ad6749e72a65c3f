"""A session and its server: while all is well, through a reload and a new start
of HAProxy, and when its server drains, dies and comes back."""

import json
import signal
import subprocess
import time

from boundary_checks import outside
from deployment import PUBLIC, expect, wait_for
import proxy_limits
import proxy_process
import sandbox_network

LOST = "UNAVAILABLE: the server of this session is down or drains"


def make_sessions(d):
    """d.sessions: {name of the server: at least two sessions that it named}"""
    d.sessions = {c.name: [] for c in d.servers}

    def make():
        session = d.create()
        owners = d.owners(session)
        expect(len(owners) == 1, f"{session} is on {len(owners)} servers")
        d.sessions[owners[0].name].append(session)
        return all(len(s) >= 2 for s in d.sessions.values())

    wait_for("two sessions on each server", make)


def check_sticking(d):
    """Every turn of a session lands on the server that made it."""
    make_sessions(d)
    for _ in range(3):
        for sessions in d.sessions.values():
            for session in sessions:
                d.expect_turn(session)
    for container in d.servers:
        for session in d.sessions[container.name]:
            expect(d.owners(session) == [container], f"{session} has moved")
            # The prompt's 6 characters, once per turn, and 4 more.
            position = d.position(container, session)
            expect(position == 3 * (6 + 4),
                   f"{session} is at {position} on {container.name}")


def check_confusion(d):
    """A session named without x-txl-session gets lost on no server: the call
    may miss it, later calls with the metadata still find it."""
    for sessions in d.sessions.values():
        wait_for("a call that misses its session", lambda: (
            proxy_limits.get_session_without_metadata(d, sessions[0]) ==
            "NOT_FOUND"))
        d.expect_turn(sessions[0])


# A HAProxy 2.6 that starts anew waits so long for a predecessor that could tell
# it its table, and tells nobody its own before.
PEER_RESYNC_SECONDS = 5


def check_reload(d):
    """A reload (for a new certificate) ends no running turn, and the new
    process knows who has which session; also when the next reload follows."""
    wait_for("HAProxy tells its successor", lambda: (
        time.monotonic() - d.haproxy.started > PEER_RESYNC_SECONDS + 1))
    reload_for_certificate(d)
    reload_for_certificate(d)


def reload_for_certificate(d):
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
    output = outside(["openssl", "s_client", "-connect", PUBLIC]).stdout
    begin = output.find("-----BEGIN")
    return output[begin:output.find("-----END")]


def check_new_start(d):
    """A HAProxy that starts anew finds sessions whose names clients chose."""
    names = [d.create(f"chosen-{number}") for number in range(8)]
    owners = {n: d.owners(n)[0].name for n in names}
    expect(set(owners.values()) == {c.name for c in d.servers},
           f"not on every server: {owners}")
    status = d.sandbox.stop(d.haproxy)
    expect(status == 0, f"haproxy: exit status {status}")
    d.haproxy = d.sandbox.start("haproxy")
    d.sandbox.wait_until_healthy(d.haproxy)
    d.wait_for_proxy(len(d.servers))
    for name in sorted(names, key=owners.get):  # one server after the other
        d.expect_turn(name)
    make_sessions(d)


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
    d.stopped, d.waiting = stopped, gone[1:]


def check_return(d):
    """A server that starts again, with another address, takes new sessions; its
    old ones go on where they were."""
    server = d.start_again(d.stopped)
    wait_for("a new session on the new server",
             lambda: d.position(server, d.create()) == 0)
    for session in d.waiting:
        expect(d.owners(session) == [server], f"{session} is elsewhere")
        before = d.position(server, session)
        d.expect_turn(session)
        expect(d.position(server, session) == before + 6 + 4,
               f"{session} was at {before}, and is at "
               f"{d.position(server, session)}")


# --journal-lag: tokens that a crash may take back.
JOURNAL_LAG = 64


def check_crash(d):
    """A server that is killed: its stream ends with an error, at once, and its
    session goes on when it is back."""
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
    server = d.start_again(victim)
    tokens = sum("token" in e for e in events)
    kept = d.position(server, session)
    expect(kept is not None and kept >= 6 + tokens - JOURNAL_LAG,
           f"{session}: {tokens} tokens were seen, {kept} ids are left")
    d.expect_turn(session)


def check_processes(d):
    """The same haproxy.cfg as a process, its servers by address, and by one
    name for all of them."""
    check_process(d, "by-address", proxy_process.by_address(d))
    check_process(d, "by-name", {"TXL_PROXY_SERVERS": "txl-server:50051"})


def check_process(d, name, environment):
    with proxy_process.running(d, name, environment):
        owners = set()
        while len(owners) < len(d.servers):
            session = proxy_process.txl(d, "sessions",
                                        "create").stdout.strip()
            owner, = d.owners(session)
            owners.add(owner.name)
            for _ in range(4):
                turn = proxy_process.txl(d, "generate", "--session", session,
                                         "--max-tokens", "2", "--prompt", "A")
                expect(turn.returncode == 0, f"{name}: {turn.stderr}")
