"""Many calls, a limited number at a time."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import (AsyncIterator, Awaitable, Callable, Iterable,
                             Iterator)
from concurrent import futures
from typing import TypeVar

from txl_client import checks

T = TypeVar("T")
R = TypeVar("R")


def map_bounded(function: Callable[[T], R], items: Iterable[T],
                in_flight: int) -> Iterator[R]:
    """function(item) of each in order, on `in_flight` threads.

    Items are taken only when there is room, so there may be any number of them.
    After an error no further call begins.
    """
    checks.integer("in_flight", in_flight, 1)
    waiting: collections.deque[futures.Future[R]] = collections.deque()
    pool = futures.ThreadPoolExecutor(in_flight)
    try:
        for item in items:
            if len(waiting) == in_flight:
                yield waiting.popleft().result()
            waiting.append(pool.submit(function, item))
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def as_done(function: Callable[[T], R], items: Iterable[T],
            in_flight: int) -> Iterator[R]:
    """As map_bounded, but results come in the order in which calls end."""
    checks.integer("in_flight", in_flight, 1)
    running: set[futures.Future[R]] = set()
    pool = futures.ThreadPoolExecutor(in_flight)
    try:
        for item in items:
            if len(running) == in_flight:
                done, running = futures.wait(
                    running, return_when=futures.FIRST_COMPLETED)
                for each in done:
                    yield each.result()
            running.add(pool.submit(function, item))
        for each in futures.as_completed(running):
            yield each.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


async def map_bounded_async(function: Callable[[T], Awaitable[R]],
                            items: Iterable[T],
                            in_flight: int) -> AsyncIterator[R]:
    """await function(item) of each, as map_bounded."""
    checks.integer("in_flight", in_flight, 1)
    waiting: collections.deque[asyncio.Future[R]] = collections.deque()
    try:
        for item in items:
            if len(waiting) == in_flight:
                yield await waiting.popleft()
            waiting.append(asyncio.ensure_future(function(item)))
        while waiting:
            yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
