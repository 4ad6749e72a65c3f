"""When a call is sent again, and when not."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from txl_client import checks
from txl_client.errors import DeadlineExceededError, TxlError

# Refusals that say: the same request may come again. (Of a QUOTA only its
# retry_after says so: without one the request alone is over it.)
RETRYABLE_REASONS = frozenset({
    "SESSION_BUSY", "SESSION_MOVED", "SUPERSEDED", "STORE_UNAVAILABLE",
    "NOT_READY", "DRAINING", "SERVER_DRAIN", "QUEUE_FULL",
    "NO_SESSION_MEMORY", "OVERLOADED",
})

_MOST_DOUBLINGS = 60  # far above any wait, and far from a float's end

# A call that broke on the way has one of these, and no reason of the server's.
_BROKEN = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN,
           grpc.StatusCode.CANCELLED)


@dataclass(frozen=True)
class RetryPolicy:
    """How patient a client is."""

    # Failures in a row, without anything new in between, after which the last
    # one is raised; >= 1. 1: nothing is sent again.
    max_failures: int = 8
    # Seconds of the first wait; each further one is twice as long.
    first_delay: float = 0.1
    # Seconds of the longest wait, but for what the server asks for.
    max_delay: float = 5.0

    def __post_init__(self) -> None:
        checks.integer("max_failures", self.max_failures, 1)
        most = checks.number("max_delay", self.max_delay)
        first = checks.number("first_delay", self.first_delay)
        if not 0 <= first <= most or math.isinf(first):
            raise ValueError("first_delay: must be in [0, max_delay]")


def was_refused(error: TxlError) -> bool:
    """True: the server did not begin with the call, and says: later."""
    return (error.reason in RETRYABLE_REASONS - {"SUPERSEDED"}
            or error.retry_after is not None)


def is_retryable(error: TxlError) -> bool:
    """True for errors that another attempt may not meet."""
    if error.lasting:
        return False
    if was_refused(error) or error.reason in RETRYABLE_REASONS:
        return True
    if error.code == grpc.StatusCode.UNAVAILABLE:
        return True
    return error.code in _BROKEN and not error.reason


class Attempts:
    """The attempts of one call, which share its timeout."""

    def __init__(self, policy: RetryPolicy, timeout: checks.Seconds | None,
                 clock: Callable[[], float] = time.monotonic,
                 jitter: Callable[[], float] = random.random) -> None:
        self._policy = policy
        self._clock = clock
        self._jitter = jitter
        limit = checks.timeout("timeout", timeout)
        # gRPC would send such a call, and the server might carry it out.
        if limit is not None and limit <= 0:
            raise DeadlineExceededError(f"no time is left: timeout is {limit}")
        self._deadline = None if limit is None else clock() + limit
        self._failures = 0
        self._made = 0

    def time_left(self) -> float | None:
        """Seconds for the next attempt; None: any time."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - self._clock())

    def made_progress(self) -> None:
        """Something new came: failures before it count no more."""
        self._failures = 0

    def delay(self, error: TxlError, repeatable: bool = True) -> float | None:
        """Seconds to wait before the next attempt; None: there is to be none.

        Not `repeatable`: the call may have been carried out, so that only a
        refusal lets it be sent again.
        """
        self._failures += 1
        self._made += 1
        error.attempts = self._made
        retry = is_retryable(error) if repeatable else was_refused(error)
        if not retry or self._failures >= self._policy.max_failures:
            return None
        doublings = min(self._failures - 1, _MOST_DOUBLINGS)
        delay = min(self._policy.first_delay * 2.0 ** doublings,
                    self._policy.max_delay)
        # Many clients that lost one server do not come back at once.
        delay *= 1 - self._jitter() / 2
        delay = max(delay, error.retry_after or 0.0)
        left = self.time_left()
        return None if left is not None and delay >= left else delay
