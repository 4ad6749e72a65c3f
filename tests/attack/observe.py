"""Honest clients that look on from processes of their own, and processes that
make a load: Python's one lock would make them wait for each other."""

import multiprocessing
import os
import statistics
import time

import api
import wire
from server import Fell

_FORK = multiprocessing.get_context("fork")


class Child:
    """A function in a process of its own."""

    def __init__(self, function, *arguments, nice=0):
        self._pipe, other = _FORK.Pipe()

        def run():
            os.nice(nice)
            try:
                other.send((function(*arguments), None))
            except BaseException as error:  # pylint: disable=broad-except
                other.send((None, f"{type(error).__name__}: {error}"))

        self.process = _FORK.Process(target=run, daemon=True)
        self.process.start()

    def result(self, timeout=60):
        """What the function returned; raises Fell where it raised."""
        if not self._pipe.poll(timeout):
            self.kill()
            raise Fell(f"a client had no answer for {timeout:g} s")
        result, error = self._pipe.recv()
        self.process.join()
        if error:
            raise Fell(error)
        return result

    def kill(self):
        self.process.kill()
        self.process.join()


def attack(function, *arguments):
    """A load in a process that gives way to the server, as one on another
    machine would."""
    return Child(function, *arguments, nice=10)


_WINDOW_SECONDS = 0.25


def pace(server, seconds, max_tokens=4096, timeout=30):
    """Tokens per second that one client gets, turn after turn: the median over
    short windows, as others may use the machine too; and the longest that it
    waited for the next."""
    begin = last = time.monotonic()
    end = begin + seconds
    counts = [0] * max(int(seconds / _WINDOW_SECONDS), 1)
    longest = 0.0
    with server.client() as client:
        stream = None
        while last < end:
            if stream is None or stream.ended:
                if stream and api.Status(stream).code != api.OK:
                    raise api.Failed(f"Generate: {api.Status(stream)}")
                stream = client.start("Generation.Generate",
                                      api.turn(max_tokens))
            if not client.connection.wait(
                    lambda: stream.messages or stream.ended, timeout):
                raise TimeoutError(f"no token for {timeout} s")
            now = time.monotonic()
            longest = max(longest, now - last)
            last = now
            window = int((now - begin) / _WINDOW_SECONDS)
            if window < len(counts):
                counts[window] += len(stream.messages)
            stream.messages.clear()
    return statistics.median(counts) / _WINDOW_SECONDS, longest


def health(server, count, pause=0.02):
    """Median seconds of `count` health checks, one after the other."""
    times = []
    with server.client() as client:
        for _ in range(count):
            try:
                times.append(client.health_seconds(timeout=5))
            except TimeoutError as error:
                raise Fell(f"health after {len(times)} checks: {error}"
                           ) from error
            time.sleep(pause)
    return statistics.median(times), max(times)


def first_token(server, timeout=30):
    """Seconds from the request to a session-less turn's first token."""
    with server.client() as client:
        begin = time.monotonic()
        stream = client.start("Generation.Generate", api.turn(1))
        status = client.finish(stream, timeout)
        if status.code != api.OK:
            raise api.Failed(f"Generate: {status}")
        return time.monotonic() - begin


def closed(connection, timeout):
    """Whether the peer ends the connection within this time."""
    try:
        connection.wait(lambda: False, timeout)
    except wire.Closed:
        return True
    return False
