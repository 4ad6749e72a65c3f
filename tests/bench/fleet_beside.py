#!/usr/bin/env python3
"""txl-fleet-sim beside three real servers: devices of a programmed rate
(txl-bench-front) on one Redis behind HAProxy with the configuration that is
shipped, under conversations of the Python package. Servers are killed one after
the other. Lines of throughput, takeover and load of the store, measured and
calculated, and their ratios. Costs of the calculation are the programmed rate,
what store_rate.py measures, and when HAProxy's last attempt at a lost server
failed.

  .deps/venv/bin/python tests/bench/fleet_beside.py --model DIR [--servers 3]
      [--rate 600] [--rows 64] [--conversations 1.8] [--turns 4] [--think 1]
      [--prompt 16] [--tokens 100] [--sessions 60] [--kills 20] [--every 6]
      [--down 2] [--warmup 10] [--seed 1] [--bin build/bin] [--json FILE]
"""

import contextlib
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import bench_script
import fleet_load
import fleet_rate
import store_rate

sys.path.insert(0, str(bench_script.ROOT / "tests/scale"))

_PROXY = {"TXL_PROXY_SHARED": "1", "TXL_PROXY_CONNECTIONS": "1000",
          "TXL_PROXY_RUNNING": "1000", "TXL_PROXY_CALLS": "100000",
          "TXL_PROXY_SESSIONS": "100000"}
_APPEND = 32  # tokens, as store_rate's flag
# Of the three costs a short measurement is enough.
_STORE_SECONDS = 2


class PackageClient:
    """Turns by the package, with the times of its attempts."""

    def __init__(self, address, certificate):
        import grpc  # pylint: disable=import-outside-toplevel
        from txl_client import channel, retry  # pylint: disable=C0415
        self._settings = channel.Settings(address, ca=certificate)
        self._channel = grpc.secure_channel(
            address, self._settings.credentials(),
            options=self._settings.arguments())
        self._stubs = channel.Stubs(self._channel)
        self._policy = retry.RetryPolicy(max_failures=1000)

    def turn(self, session, ids, tokens, times):
        from txl_client import events, options, retry  # pylint: disable=C0415
        from txl_client import stream, turn  # pylint: disable=C0415

        def jitter():  # asked for after each attempt that failed
            times.broken.append(time.monotonic())
            return len(times.broken) * 0.618 % 1

        request = options.generate_request(session, ids, {
            "max_tokens": tokens, "ignore_end_token": True})
        for event in stream.turn_events(
                self._stubs.method("Generation.Generate"),
                turn.Turn(request, retry.Attempts(self._policy, None,
                                                  jitter=jitter)),
                self._settings.metadata(session)):
            if isinstance(event, events.Token):
                times.tokens.append(time.monotonic())

    def create(self, session):
        from txl_client import call  # pylint: disable=C0415
        self._stubs.method("Session.CreateSession")(
            call.create(session, None, False).request,
            metadata=self._settings.metadata(session))

    def close(self):
        self._channel.close()


class Fleet:
    """Servers that keep their addresses."""

    def __init__(self, options, port, folder):
        from keeper import free_port  # pylint: disable=import-outside-toplevel
        from proxy import Proxy  # pylint: disable=import-outside-toplevel
        self._options, self._port = options, port
        self._addresses = [f"127.0.0.1:{free_port()}"
                           for _ in range(options.servers)]
        self._servers = [None] * options.servers
        self.proxy = None
        for number in range(options.servers):
            self.start(number)
        settings = {f"TXL_PROXY_SERVER_{number}": address
                    for number, address in enumerate(self._addresses, 1)}
        self.proxy = Proxy(folder, self._addresses[0], {**_PROXY, **settings})

    def start(self, number):
        self._servers[number] = subprocess.Popen(
            [*fleet_rate.server_command(self._options, self._port),
             "--listen", self._addresses[number]], stdout=subprocess.PIPE)
        if not self._servers[number].stdout.readline():
            raise SystemExit("a server does not start")

    def kill(self, number):
        self._servers[number].send_signal(signal.SIGKILL)
        self._servers[number].wait()
        self._servers[number].stdout.close()

    def close(self):
        for server in self._servers:
            if server is not None and server.poll() is None:
                server.kill()
                server.wait()
        if self.proxy is not None:
            self.proxy.kill()


def sim_command(options, costs, kills):
    """The same fleet and load, for long enough to have many failures. `costs`:
    (commit, command, detect seconds)."""
    row = 1 / options.rate
    fails = [text for repeat in range(options.repeats)
             for at in kills
             for text in ["--fail", f"{at + repeat * seconds_of(options):.3f}"
                          f":1:{options.down:g}"]]
    return [options.bin / "txl-fleet-sim", "--json", "--servers",
            str(options.servers), "--cells", "1", "--sessions",
            str(options.sessions), "--conversations",
            str(options.conversations), "--turns", str(options.turns),
            "--think", str(options.think), "--prompt-tokens",
            str(options.prompt), "--answer-tokens", str(options.tokens),
            "--session-tokens", "0", "--warm", "0", "--zipf", "0", "--step",
            f"1:{row}", "--prompt-row-seconds", str(row), "--slots",
            str(options.rows), "--prompt-rows-per-step", str(options.rows),
            "--rebuild-rows", str(options.rebuild),
            "--local-images", "0", "--commit-seconds", str(costs[0]),
            "--command-seconds", str(costs[1]), "--append-tokens",
            str(_APPEND), "--detect-seconds", str(costs[2]), "--warmup",
            str(options.warmup), "--seconds",
            str(options.repeats * seconds_of(options) - options.warmup),
            *fails]


def seconds_of(options):
    """Of a run."""
    return options.warmup + options.kills * options.every


def store_costs(options):
    """(commit, command seconds)."""
    lines = [store_rate.measure(store_rate.parse_options(
        ["--tokens", str(options.tokens), "--append", str(_APPEND),
         "--servers", str(options.servers), "--seconds",
         str(_STORE_SECONDS)]), count) for count in (3, 48)]
    fitted = store_rate.fit_line(lines)
    return (fitted["commit_seconds"],
            1 / fitted["full_at_commands_per_second"])


def measure(options, folder):
    """(figures, moments of kills from the run's begin, detect seconds)."""
    with store_rate.running_redis(folder, "always") as (_, port):
        fleet = Fleet(options, port, pathlib.Path(folder))
        try:
            return _measure(options, fleet, port)
        finally:
            fleet.close()


def _measure(options, fleet, port):
    def connect():
        return PackageClient(f"127.0.0.1:{fleet.proxy.port}",
                             fleet.proxy.certificate)

    load = fleet_load.Load(connect, options, options.seed)
    with contextlib.closing(connect()) as client:
        for session in load.sessions():
            client.create(session)
    begin, kills = time.monotonic(), []
    running = threading.Thread(target=load.run, args=(seconds_of(options),))
    running.start()
    time.sleep(options.warmup)
    calls = fleet_rate.calls_of(fleet_rate.ask(port, "INFO", "commandstats"))
    for kill in range(options.kills):
        number = kill % options.servers
        kills.append(time.monotonic())
        fleet.kill(number)
        time.sleep(options.down)
        fleet.start(number)
        time.sleep(max(begin + options.warmup + (kill + 1) * options.every
                       - time.monotonic(), 0))
    end = time.monotonic()
    calls = fleet_rate.calls_of(fleet_rate.ask(port, "INFO", "commandstats")
                                ) - calls
    running.join()
    if load.failures:
        raise SystemExit(f"turns failed: {load.failures[:3]}")
    got = fleet_load.figures(load.turns, begin + options.warmup, end)
    back, last = fleet_load.takeovers(load.turns, kills)
    got |= {"takeovers": len(back), "refused": load.refused,
            "takeover_seconds": statistics.mean(back),
            "commands_per_second": calls / (end - begin - options.warmup)}
    return got, [at - begin for at in kills], statistics.median(last)


def calculated(report):
    """The same figures, of the simulator's JSON."""
    return {"turns_per_second": report["turns_per_second"],
            "tokens_per_second": report["tokens_per_second"],
            "first_token_seconds":
                report["time_to_first_token_seconds"]["mean"],
            "takeovers": report["takeover_seconds"]["count"],
            "refused": report["turns"]["conversations_refused"],
            "takeover_seconds": report["takeover_seconds"]["mean"],
            "commands_per_second":
                report["store"]["commands_per_second_of_a_shard"]}


def ratios(measured, simulated):
    """Calculated over measured, of all but counts."""
    return {name: simulated[name] / measured[name] for name in measured
            if name not in ("takeovers", "refused")}


def parse_options(arguments):
    parser = bench_script.new_parser(__doc__)
    for name, kind, value, text in (
            ("servers", int, 3, None),
            ("rate", float, 600, "rows a second of each device"),
            ("rows", int, 64, "of a step, and slots"),
            ("conversations", float, 1.8, "that begin in a second"),
            ("turns", int, 4, "of a conversation"),
            ("think", float, 1, "seconds between two turns"),
            ("prompt", int, 16, "tokens"),
            ("tokens", int, 100, "of an answer"),
            ("sessions", int, 60, None),
            ("rebuild", int, 256, "rows of a state, at most"),
            ("kills", int, 20, None),
            ("every", float, 6, "seconds from a kill to the next"),
            ("down", float, 2, "seconds of a server"),
            ("warmup", float, 10, None),
            ("repeats", int, 20, "of the calculation, for its means"),
            ("seed", int, 1, None)):
        parser.add_argument(f"--{name}", type=kind, default=value, help=text)
    return parser.parse_args(arguments)


def lines_of(options):
    import paths  # pylint: disable=import-outside-toplevel,unused-import
    from package_session import unpack  # pylint: disable=C0415
    commit, command = store_costs(options)
    with tempfile.TemporaryDirectory() as folder:
        package = pathlib.Path(folder) / "package"
        package.mkdir()
        unpack(package)
        measured, kills, detect = measure(options, folder)
    costs = (commit, command, detect)
    yield {"costs": {"commit_seconds": commit, "command_seconds": command,
                     "detect_seconds": detect}}
    yield {"measured": measured}
    simulated = calculated(json.loads(subprocess.run(
        sim_command(options, costs, kills), check=True, capture_output=True,
        text=True).stdout))
    yield {"calculated": simulated}
    yield {"ratios": ratios(measured, simulated)}


def main():
    options = parse_options(sys.argv[1:])
    bench_script.report(lines_of(options), options.json)


if __name__ == "__main__":
    main()
