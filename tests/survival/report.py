"""What a run counted, and what it found wrong."""

import collections
import statistics
import threading


class Report:
    """Thread-safe."""

    def __init__(self, seed):
        self.seed = seed
        self.violations = []
        self._counts = collections.Counter()
        self._lock = threading.Lock()

    def count(self, what, number=1):
        with self._lock:
            self._counts[what] += number

    def counted(self, what):
        return self._counts[what]

    def violation(self, session, text):
        with self._lock:
            self.violations.append(
                f"VIOLATION seed {self.seed} session {session}: {text}")
            print(self.violations[-1], flush=True)

    def counts(self):
        return " ".join(f"{what} {number}"
                        for what, number in sorted(self._counts.items()))


def times(seconds):
    """"p50 12 ms, worst 30 ms of 9"."""
    if not seconds:
        return "none"
    return (f"p50 {statistics.median(seconds) * 1e3:.0f} ms, worst "
            f"{max(seconds) * 1e3:.0f} ms of {len(seconds)}")
