"""Prompts by which a cache of their beginnings would grow."""

import contextlib
import random

import api
from case import Attack
from server import CALLS_AT_ONCE, MIB, expect, memory_status

_BUDGET = 16 * MIB
_FLAGS = ["--slots", "16", "--log-level", "error", "--prefix-cache", _BUDGET]
_ROUNDS = 10  # with a look at the server between them


def _ask(clients, calls, at_once, give):
    """So many calls of what `give(i)` says, as (name, fields); how many were
    served."""
    running, served = [], 0
    for i in range(calls):
        if len(running) == at_once:
            served += _served(*running.pop(0))
        client = clients[i % len(clients)]
        running.append((client, client.start(*give(i))))
    return served + sum(_served(*each) for each in running)


def _served(client, stream):
    status = client.finish(stream, 120)
    expect(status.code in (api.OK, api.RESOURCE_EXHAUSTED), str(status))
    return status.code == api.OK


def _expect_within(server):
    status = server.status()
    expect(status.prefix_bytes <= _BUDGET,
           f"{status.prefix_bytes} bytes with a budget of {_BUDGET}")
    return status


def _ask_all(site, size, give):
    """The figure of all calls. The server is marked once a part of them has
    filled what it keeps."""
    calls, served = size.prompts, 0
    server = site.server(*_FLAGS)
    server.warm(16)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.client())
                   for _ in range(-(-size.at_once // CALLS_AT_ONCE))]
        for number in range(_ROUNDS):
            begin = number * calls // _ROUNDS
            served += _ask(
                clients, (number + 1) * calls // _ROUNDS - begin,
                size.at_once, lambda i, begin=begin: give(begin + i))
            _expect_within(server)
            if server.marked is None:
                server.mark()
    expect(2 * served > calls, f"{served} of {calls} prompts served")
    server.expect_well()
    status = _expect_within(server)
    return (f"{served} of {calls} prompts served, {status.tokens_cached} "
            f"tokens cached, {status.prefix_images} images of "
            f"{status.prefix_bytes / MIB:.1f} MiB, {status.prefix_evictions} "
            f"given up, {server.marked['VmRSS'] / MIB:.0f} MiB resident, then "
            f"{memory_status(server.pid)['VmRSS'] / MIB:.0f}")


def many_prompts(site, size):
    draw = random.Random(1)
    return _ask_all(site, size, lambda _: (
        "Generation.Generate",
        api.turn(1, ids=[draw.randrange(60) for _ in range(40)])))


def parting_prompts(site, size):
    """Scored with as many alternatives as there may be, which are kept too."""
    draw = random.Random(1)
    trunk = [draw.randrange(60) for _ in range(size.tokens)]

    def give(i):
        # One position after the other, far from each other.
        at = i * 4801 % size.tokens
        rest = [draw.randrange(60) for _ in range(size.tokens - at)]
        return "Generation.Score", {"tokens": {"ids": trunk[:at] + rest},
                                    "logprobs": 20}

    return _ask_all(site, size, give)


ATTACKS = [
    Attack("many-prompts", "limits",
           "kept prompts stay within --prefix-cache, memory flat",
           many_prompts, {"prompts": 6000, "at_once": 2 * CALLS_AT_ONCE},
           {"prompts": 100_000}),
    Attack("parting-prompts", "limits",
           "kept prompts stay within --prefix-cache, memory flat",
           parting_prompts, {"prompts": 100, "tokens": 1000, "at_once": 20},
           {"prompts": 1000, "tokens": 8000}),
]
