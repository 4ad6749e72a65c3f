import asyncio
import threading

import pytest

from txl_client.bounded import as_done, map_bounded, map_bounded_async


class Gauge:
    """How many are inside at a time."""

    def __init__(self):
        self.now = self.most = 0
        self.lock = threading.Lock()

    def __enter__(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_):
        with self.lock:
            self.now -= 1


@pytest.mark.parametrize("in_flight, error", [
    (0, ValueError), (-1, ValueError), (1.0, TypeError), ("2", TypeError),
    (True, TypeError)])
def test_at_least_one_is_in_flight(in_flight, error):
    async def run():
        return [r async for r in map_bounded_async(None, [1], in_flight)]

    with pytest.raises(error, match="^in_flight: "):
        list(map_bounded(str, [1], in_flight))
    with pytest.raises(error, match="^in_flight: "):
        list(as_done(str, [1], in_flight))
    with pytest.raises(error, match="^in_flight: "):
        asyncio.run(run())


def test_results_come_in_order_with_so_many_at_a_time():
    gauge, together = Gauge(), threading.Barrier(3)

    def work(number):
        with gauge:
            together.wait(10)  # passes only where three are inside
            return number * number

    assert list(map_bounded(work, range(30), 3)) == [
        n * n for n in range(30)]
    assert gauge.most == 3


def test_items_are_taken_as_there_is_room():
    taken = []

    def items():
        for number in range(100):
            taken.append(number)
            yield number

    results = map_bounded(lambda n: n, items(), 4)
    assert next(results) == 0
    assert len(taken) == 5
    results.close()
    assert len(taken) == 5


def test_an_error_ends_it_and_nothing_more_is_begun():
    begun = []

    def work(number):
        begun.append(number)
        if number == 2:
            raise ValueError("two")
        return number

    with pytest.raises(ValueError, match="two"):
        list(map_bounded(work, range(100), 2))
    assert max(begun) <= 4


def test_awaited_results_come_in_order_with_so_many_at_a_time():
    gauge = Gauge()

    async def work(number):
        with gauge:
            for _ in range(3):
                await asyncio.sleep(0)
            return number * number

    async def run():
        return [r async for r in map_bounded_async(work, range(30), 3)]

    assert asyncio.run(run()) == [n * n for n in range(30)]
    assert gauge.most == 3


def test_an_awaited_error_cancels_the_others():
    cancelled = []

    async def work(number):
        if number == 0:
            raise ValueError("zero")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(number)
            raise

    async def run():
        async for _ in map_bounded_async(work, range(9), 3):
            pass

    with pytest.raises(ValueError, match="zero"):
        asyncio.run(run())
    assert cancelled == [1, 2]


def test_results_come_as_calls_end():
    gauge, gates = Gauge(), [threading.Event() for _ in range(4)]

    def work(number):
        with gauge:
            gates[number].wait(10)
            return number

    results = as_done(work, range(4), 2)
    for number in (1, 2, 0, 3):
        gates[number].set()
        assert next(results) == number
    assert list(results) == []
    assert gauge.most == 2


def test_an_error_ends_calls_that_come_as_they_end():
    begun = []

    def work(number):
        begun.append(number)
        if number == 1:
            raise KeyError(number)
        return number

    with pytest.raises(KeyError):
        list(as_done(work, range(100), 1))
    assert begun == [0, 1]
