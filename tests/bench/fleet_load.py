"""Conversations with a fleet, as txl-fleet-sim has them: they begin at random
with a rate, each takes a session that no other one has, and its turns follow
each other after a pause. The Python package talks, with its own retries."""

import dataclasses
import random
import threading
import time


@dataclasses.dataclass
class TurnTimes:
    """Seconds of one clock."""
    due: float
    tokens: list = dataclasses.field(default_factory=list)
    broken: list = dataclasses.field(default_factory=list)  # failed attempts
    ended: float | None = None  # None: it did not come to its end


class Load:
    """`connect`: makes something with turn(session, prompt ids, tokens, times),
    of each conversation its own, and close(). `mix`: conversations (a second),
    turns, think, prompt, tokens, sessions."""

    def __init__(self, connect, mix, seed):
        self.turns = []
        self.failures = []
        self.refused = 0  # conversations for which no session was free
        self._connect, self._mix = connect, mix
        self._rng = random.Random(seed)
        self._free = [f"beside-{i}" for i in range(mix.sessions)]
        self._lock = threading.Lock()
        self._threads = []

    def sessions(self):
        return list(self._free)

    def run(self, seconds):
        """Conversations begin for so long; returns when all have ended."""
        due, end = time.monotonic(), time.monotonic() + seconds
        while (due := due + self._rng.expovariate(
                self._mix.conversations)) < end:
            time.sleep(max(due - time.monotonic(), 0))
            thread = threading.Thread(target=self._converse,
                                      args=(due, self._rng.getrandbits(64)))
            thread.start()
            self._threads.append(thread)
        for thread in self._threads:
            thread.join()

    def _converse(self, due, seed):
        with self._lock:
            if not self._free:
                self.refused += 1
                return
            session = self._free.pop(random.Random(seed).randrange(
                len(self._free)))
        rng = random.Random(seed)
        client = self._connect()
        try:
            for _ in range(self._mix.turns):
                time.sleep(max(due - time.monotonic(), 0))
                times = TurnTimes(due)
                with self._lock:
                    self.turns.append(times)
                ids = [rng.randrange(2, 50) for _ in range(self._mix.prompt)]
                client.turn(session, ids, self._mix.tokens, times)
                times.ended = time.monotonic()
                due = times.ended + self._mix.think
        except Exception as error:  # pylint: disable=broad-except
            self.failures.append(repr(error))
        finally:
            client.close()
        with self._lock:
            self._free.append(session)


def takeovers(turns, kills):
    """(seconds from a kill to the next token of each turn that it broke,
    seconds from kills to the last attempt that failed of these turns)."""
    back, last = [], []
    for turn in turns:
        for kill in kills:
            broken = [at for at in turn.broken if kill <= at < kill + 5]
            if turn.due >= kill or not broken:
                continue
            after = [at for at in turn.tokens if at > broken[-1]]
            if after:
                back.append(after[0] - kill)
                last.append(broken[-1] - kill)
            break
    return back, last


def figures(turns, begin, end):
    """What the turns between two moments came to, a second of them."""
    seconds = end - begin
    ended = [turn for turn in turns
             if turn.ended is not None and begin <= turn.ended < end]
    first = [turn.tokens[0] - turn.due for turn in turns
             if turn.tokens and begin <= turn.due < end]
    return {"turns_per_second": len(ended) / seconds,
            "tokens_per_second": sum(begin <= at < end for turn in turns
                                     for at in turn.tokens) / seconds,
            "first_token_seconds": sum(first) / len(first)}
