"""What a fleet goes through: drawn, and done."""

import collections
import dataclasses
import time

from link import DOWN, UP

# How often each kind is drawn.
KINDS = {
    "kill": 6,            # kill -9 of a server, started again after a while
    "pause": 3,           # SIGSTOP of a server, longer and shorter than a lease
    "partition": 2,       # a server and the store lose each other
    "partition_up": 2,    # nothing of a server's reaches the store
    "partition_down": 2,  # nothing of the store's reaches a server
    "slow": 2,            # their wire takes its time
    "drain": 2,           # SIGTERM of a server, started again
    "rolling": 1,         # one server after the other
    "store_kill": 2,      # kill -9 of the store, started again
    "store_pause": 1,     # SIGSTOP of the store
}


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str
    server: int     # which one; kinds of the store and of all ignore it
    seconds: float  # how long it lasts, where it does


def draw(rng, count, servers, longest):
    """So many faults, each kind at least once where there are enough of them.
    `longest`: of a pause, in seconds."""
    kinds = list(KINDS)[:count]
    kinds += rng.choices(list(KINDS), list(KINDS.values()),
                         k=count - len(kinds))
    rng.shuffle(kinds)
    return [Fault(kind, rng.randrange(servers), _seconds(rng, kind, longest))
            for kind in kinds]


def _seconds(rng, kind, longest):
    """Short ones more often than long ones."""
    most = {"pause": longest, "store_pause": min(longest, 6), "kill": 1.0,
            "store_kill": 2.0, "drain": 0.5, "rolling": 0.2}.get(kind, 8.0)
    return most * rng.random()**2


def counts(faults):
    """"kill 3 pause 2"."""
    counted = collections.Counter(fault.kind for fault in faults)
    return " ".join(f"{kind} {counted[kind]}" for kind in KINDS)


def strike(fleet, fault):
    """Makes it and mends it again."""
    member = fleet.members[fault.server]
    if fault.kind == "kill":
        fleet.kill(member)
        time.sleep(fault.seconds)
        fleet.start(member)
    elif fault.kind == "pause":
        fleet.pause(member)
        time.sleep(fault.seconds)
        fleet.go_on(member)
    elif fault.kind == "drain":
        fleet.drain(member)
        time.sleep(fault.seconds)
        fleet.start(member)
    elif fault.kind == "rolling":
        for each in fleet.members:
            fleet.drain(each)
            fleet.start(each)
            time.sleep(fault.seconds)
    elif fault.kind == "store_kill":
        fleet.store.kill()
        time.sleep(fault.seconds)
        fleet.store.start()
    elif fault.kind == "store_pause":
        fleet.store.stop()
        time.sleep(fault.seconds)
        fleet.store.go_on()
    else:
        _disturb(member.link, fault)


def _disturb(link, fault):
    """The wire between a server and the store."""
    if fault.kind == "slow":
        link.set(delay=0.02 + fault.seconds / 40)
    else:
        link.set(cut={"partition": (UP, DOWN), "partition_up": (UP,),
                      "partition_down": (DOWN,)}[fault.kind])
    time.sleep(fault.seconds)
    link.set()
