"""Rules for sending a call again."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from txl_client import checks
from txl_client.errors import DeadlineExceededError, TxlError

# Refusals after which the same request may succeed. (QUOTA is not among them:
# without a retry_after the request alone exceeds the quota.)
RETRYABLE_REASONS = frozenset({
    "SESSION_BUSY", "SESSION_MOVED", "SUPERSEDED", "STORE_UNAVAILABLE",
    "NOT_READY", "DRAINING", "SERVER_DRAIN", "QUEUE_FULL",
    "NO_SESSION_MEMORY", "OVERLOADED",
})

_MOST_DOUBLINGS = 60  # far above any delay, and far below a float's range

# A call that broke in transit has one of these codes, and no reason.
_BROKEN = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN,
           grpc.StatusCode.CANCELLED)


@dataclass(frozen=True)
class RetryPolicy:
    """How patient a client is."""

    # Failures in a row, without progress in between, after which the last one
    # is raised; >= 1. 1: nothing is sent again.
    max_failures: int = 8
    # Seconds of the first delay; each further one is twice as long.
    first_delay: float = 0.1
    # Seconds of the longest delay, unless the server asks for a longer one.
    max_delay: float = 5.0

    def __post_init__(self) -> None:
        checks.integer("max_failures", self.max_failures, 1)
        most = checks.number("max_delay", self.max_delay)
        first = checks.number("first_delay", self.first_delay)
        if not 0 <= first <= most or math.isinf(first):
            raise ValueError("first_delay: must be in [0, max_delay]")


def was_refused(error: TxlError) -> bool:
    """True if the server did not begin the call and it may be sent later."""
    return (error.reason in RETRYABLE_REASONS - {"SUPERSEDED"}
            or error.retry_after is not None)


def is_retryable(error: TxlError) -> bool:
    """True if another attempt may succeed."""
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
        # gRPC would send such a call, and the server might execute it.
        if limit is not None and limit <= 0:
            raise DeadlineExceededError(f"no time is left: timeout is {limit}")
        self._deadline = None if limit is None else clock() + limit
        self._failures = 0
        self._made = 0

    def time_left(self) -> float | None:
        """Seconds for the next attempt; None: no limit."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - self._clock())

    def made_progress(self) -> None:
        """Forgets earlier failures, because something new has arrived."""
        self._failures = 0

    def delay(self, error: TxlError, repeatable: bool = True) -> float | None:
        """Seconds to wait before the next attempt; None: do not try again.

        Not `repeatable`: the call may have been executed, so it is sent again
        only after a refusal.
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
        # Jitter keeps clients that lost one server from returning all at once.
        delay *= 1 - self._jitter() / 2
        delay = max(delay, error.retry_after or 0.0)
        left = self.time_left()
        return None if left is not None and delay >= left else delay
