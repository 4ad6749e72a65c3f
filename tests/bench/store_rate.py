#!/usr/bin/env python3
"""Commands a second that one Redis takes of the functions in which servers keep
sessions: turns of many sessions at once (acquire, begin, appends, end), sent by
as many connections as there are servers, so many commands in flight.

  store_rate.py [--in-flight 1,8,64,512] [--servers 3] [--fsync always]
                [--tokens 200] [--append 32] [--seconds 3] [--json FILE]

The last line is a fit: a round of n commands takes commit + n * command
seconds; and Redis is full when its one core does nothing else. Every answer is
compared with what it has to be. Linux: processor time comes from /proc.
"""

import argparse
import contextlib
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

import bench_script
import front_bench

LIBRARY = bench_script.ROOT / "server/store/redis/txl_1.lua"
_LEASE = "5000"
_EXPIRE = "99999999999999"
_EVENT_BYTES = 5  # that a token's event takes
_HEAD_BYTES = 60


def command(*words):
    """The bytes of a command."""
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        data = word if isinstance(word, bytes) else word.encode()
        parts += [f"${len(data)}\r\n".encode(), data, b"\r\n"]
    return b"".join(parts)


def answer(*words):
    """The bytes of a list of texts."""
    return command(*words)


def create(key):
    """The bytes of a session's creation."""
    return command("FCALL", "txl_1_create", "1", key, "n0", "model", "1",
                   "h" * _HEAD_BYTES, "c0", "0", b"", _EXPIRE)


def turn(key, number, tokens, append):
    """[(bytes of a command, bytes of its answer)] of a session's turn
    `number`, the first being 0."""
    begin = number * tokens
    epoch, nonce = str(number + 1), f"n{number + 1}"

    def call(name, known, position, *words):
        return command("FCALL", f"txl_1_{name}", "1", key, *known,
                       str(position), f"c{position}", *words)

    calls = [(call("acquire", (str(number), f"n{number}"), begin, "model",
                   f"r{number}", nonce, "server", _LEASE),
              answer("SAME", epoch, nonce, "0")),
             (call("begin", (epoch, nonce), begin, "i" * _HEAD_BYTES, "1",
                   _LEASE, _EXPIRE), answer("OK"))]
    for at in range(0, tokens, append):
        count = min(append, tokens - at)
        words = [str(count), f"c{begin + at + count}", bytes(count)]
        if at + count < tokens:
            calls.append((call("append", (epoch, nonce), begin + at, *words,
                               bytes(count * _EVENT_BYTES), _LEASE),
                          answer("OK")))
        else:
            calls.append((call("end", (epoch, nonce), begin + at, *words,
                               "h" * _HEAD_BYTES,
                               bytes(tokens * _EVENT_BYTES), _EXPIRE),
                          answer("OK")))
    return calls


def fit(rounds):
    """(commit, command seconds) of [(commands of a round, its seconds)], by
    least squares of relative errors, neither below 0."""
    def error(commit, each):
        return sum(((commit + n * each) / s - 1)**2 for n, s in rounds)

    # d error / d (commit, command) = 0, with weights 1 / s².
    a = sum(1 / s**2 for _, s in rounds)
    b = sum(n / s**2 for n, s in rounds)
    c = sum(n * n / s**2 for n, s in rounds)
    d = sum(1 / s for _, s in rounds)
    e = sum(n / s for n, s in rounds)
    determinant = a * c - b * b
    candidates = [(0, e / c), (d / a, 0)]
    if determinant > 0:
        candidates.append(((d * c - e * b) / determinant,
                           (a * e - b * d) / determinant))
    return min((each for each in candidates if min(each) >= 0),
               key=lambda each: error(*each))


class Connection:
    """A server's: its sessions, whose turns go on in step."""

    def __init__(self, port, name, sessions, options):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._keys = [f"txl:{{{name}-{i}}}" for i in range(sessions)]
        self._options = options
        self.ask(b"".join(map(create, self._keys)),
                 answer("OK") * len(self._keys))

    def ask(self, request, expected):
        """Sends it whole, and reads what has to come of it."""
        self._socket.sendall(request)
        got = bytearray()
        while len(got) < len(expected):
            data = self._socket.recv(1 << 20)
            if not data:
                raise SystemExit("Redis ends the connection")
            got += data
        if got != expected:
            raise SystemExit(f"Redis answers {bytes(got[:200])}")

    def rounds(self, number):
        """[(request, answers)] of turn `number` of all its sessions."""
        turns = [turn(key, number, self._options.tokens, self._options.append)
                 for key in self._keys]
        return [tuple(map(b"".join, zip(*calls))) for calls in zip(*turns)]

    def close(self):
        self._socket.close()


@contextlib.contextmanager
def running_redis(folder, fsync):
    """(process, port) of one that has the functions."""
    port = bench_script.free_port()
    with subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1",
             "--dir", folder, "--appendonly", "yes", "--appendfsync", fsync,
             "--maxmemory-policy", "noeviction", "--save", ""],
            stdout=subprocess.DEVNULL) as redis:
        try:
            load(port)
            yield redis, port
        finally:
            redis.kill()


def load(port, patience=30):
    """The functions, once it listens."""
    end = time.monotonic() + patience
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as to:
                to.sendall(command("FUNCTION", "LOAD", LIBRARY.read_bytes()))
                got = to.recv(100)
                if not got.startswith(b"$5\r\ntxl_1"):
                    raise SystemExit(f"Redis answers {got}")
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def drive(connection, seconds, done):
    """Turn after turn; adds [(commands, seconds)] of its rounds to `done`."""
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        rounds = connection.rounds(number)  # made outside of what is timed
        for request, expected in rounds:
            begin = time.monotonic()
            connection.ask(request, expected)
            done.append(time.monotonic() - begin)
        number += 1


def measure(options, in_flight):
    """One line."""
    servers = min(options.servers, in_flight)
    with tempfile.TemporaryDirectory() as folder, \
            running_redis(folder, options.fsync) as (redis, port):
        connections = [Connection(port, name, in_flight // servers, options)
                       for name in range(servers)]
        done = [[] for _ in connections]
        threads = [threading.Thread(target=drive, args=(
            connection, options.seconds, rounds))
            for connection, rounds in zip(connections, done)]
        before = front_bench.seconds_of(
            pathlib.Path(f"/proc/{redis.pid}/stat").read_text())
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall = time.monotonic() - begin
        used = front_bench.seconds_of(
            pathlib.Path(f"/proc/{redis.pid}/stat").read_text()) - before
        for connection in connections:
            connection.close()
    each = in_flight // servers
    return line_of(options, each * servers, each, done, (wall, used))


def line_of(options, in_flight, each, done, seconds):
    """`done`: seconds of the rounds of each connection, of `each` commands;
    `seconds`: (of the clock, of Redis's processor)."""
    rounds = sum(map(len, done))
    commands = rounds * each
    # While one connection makes its next turn's bytes the others go on.
    busy = sum(map(sum, done)) / len(done)
    calls = len(turn("", 0, options.tokens, options.append))
    return {"in_flight": in_flight, "fsync": options.fsync,
            "commands_per_second": commands / busy,
            "turns_per_second": commands / busy / calls,
            "commands_per_turn": calls,
            "round_seconds": sum(map(sum, done)) / rounds,
            "redis_microseconds_per_command": 1e6 * seconds[1] / commands,
            "redis_share_of_a_core": seconds[1] / seconds[0]}


def fit_line(lines):
    commit, each = fit([(line["in_flight"], line["round_seconds"])
                        for line in lines])
    # Processor time is the same on a machine that does other things.
    busy = lines[-1]["redis_microseconds_per_command"]
    return {"commit_seconds": commit, "command_seconds": each,
            "full_at_commands_per_second": 1e6 / busy}


def parse_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--in-flight", type=bench_script.counts,
                        default="1,8,64,512")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--fsync", choices=["always", "everysec"],
                        default="always")
    parser.add_argument("--tokens", type=int, default=200, help="of a turn")
    parser.add_argument("--append", type=int, default=32,
                        help="tokens that are stored together")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--json", type=pathlib.Path,
                        help="file for all lines of the output")
    return parser.parse_args(arguments)


def lines_of(options):
    lines = []
    for count in options.in_flight:
        lines.append(measure(options, count))
        yield lines[-1]
    yield fit_line(lines)


def main():
    options = parse_options(sys.argv[1:])
    bench_script.report(lines_of(options), options.json)


if __name__ == "__main__":
    main()
