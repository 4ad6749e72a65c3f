#!/usr/bin/env python3
"""Whether the time of a refusal tells how much of a key was right, or whether
another tenant has a session.

Usage: secret_timing.py HOST:PORT KEY_FILE FOREIGN_SESSION [ROUNDS]

KEY_FILE holds a user's key, FOREIGN_SESSION is a session of another tenant.
Calls come in pairs, in random order, ROUNDS (100,000) of each kind over one
connection: keys that differ from the right one in the first and in the last
character, and the foreign session beside one that never was. Prints medians in
microseconds and Welch's t of each pair, slowest twentieth left out: |t| below
4.5 is what equal times give. Exits with 1 where it is not. Needs grpcio.
"""

import pathlib
import random
import statistics
import sys
import time

import grpc

GET_SESSION = "/txl.v1.SessionService/GetSession"
LIMIT = 4.5
KEPT = 0.95


def other(character):
    return "A" if character != "A" else "B"


def request(session):
    """GetSessionRequest{session_id: session}, a text below 128 bytes."""
    return b"\x0a" + bytes([len(session)]) + session.encode()


def welch(one, two):
    spread = statistics.variance(one) / len(one) + \
        statistics.variance(two) / len(two)
    return (statistics.fmean(one) - statistics.fmean(two)) / spread ** 0.5


class Caller:
    def __init__(self, address):
        self.call = grpc.insecure_channel(address).unary_unary(GET_SESSION)

    def microseconds(self, key, session, code):
        metadata = [("authorization", f"Bearer {key}")]
        begin = time.perf_counter_ns()
        try:
            self.call(request(session), metadata=metadata, timeout=10)
        except grpc.RpcError as error:
            took = time.perf_counter_ns() - begin
            if error.code() == code:
                return took / 1e3
            raise
        raise SystemExit("a call that has to be refused was answered")


def compare(name, kinds, rounds, caller):
    took = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in random.sample(list(kinds), len(kinds)):
            took[kind].append(caller.microseconds(*kinds[kind]))
    longest = sorted(t for times in took.values() for t in times)[
        int(KEPT * rounds * len(kinds)) - 1]
    kept = [[t for t in times if t <= longest] for times in took.values()]
    medians = ", ".join(f"{kind} {statistics.median(times):.1f}"
                        for kind, times in zip(took, kept))
    t = welch(*kept)
    print(f"{name}: {medians} us, t = {t:.2f}", flush=True)
    return abs(t) < LIMIT


def main():
    address, key_file, foreign = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 100_000
    key = pathlib.Path(key_file).read_text(encoding="ascii").strip()
    refused, unknown = (grpc.StatusCode.UNAUTHENTICATED,
                        grpc.StatusCode.NOT_FOUND)
    never = "".join(other(c) for c in foreign)
    caller = Caller(address)
    equal = [
        compare("keys", {
            "first character": (other(key[0]) + key[1:], foreign, refused),
            "last character": (key[:-1] + other(key[-1]), foreign, refused)},
            rounds, caller),
        compare("sessions", {"foreign": (key, foreign, unknown),
                             "unknown": (key, never, unknown)},
                rounds, caller)]
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
