"""What a fleet goes through: drawn, and done."""

import dataclasses
import time

from link import DOWN, UP
from server import wait_until

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
    "clock": 2,           # a server's wall clock jumps, and jumps back
    "images_full": 2,     # no room where servers keep state images
    "store_kill": 2,      # kill -9 of the store, started again
    "store_pause": 1,     # SIGSTOP of the store
    "store_full": 1,      # no room where the store keeps its data
}
# Those that need disks of their own.
DISKS = {"images_full", "store_full"}
LEASE = 5.0  # seconds, to which the times below belong
_MOST = {"kill": 1.0, "store_kill": 2.0, "drain": 0.5, "rolling": 0.2,
         "store_full": 2.0}
_FARTHEST = 3 * 3600  # seconds of a clock's jump
_READ = 30  # seconds in which a server has read its clock


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str
    server: int     # which one; kinds of the store and of all ignore it
    seconds: float  # how long it lasts, where it does
    jump: float     # of a clock, seconds


def draw(rng, count, options):
    """So many faults, each kind at least once where there are enough of them.
    `options`: servers, longest (of a pause, in seconds), lease (to which all
    others are in proportion), disks, only (kinds; empty: all)."""
    known = [kind for kind in options.only or KINDS
             if options.disks or kind not in DISKS]
    kinds = known[:count]
    kinds += rng.choices(known, [KINDS[kind] for kind in known],
                         k=count - len(kinds))
    rng.shuffle(kinds)
    return [Fault(kind, rng.randrange(options.servers),
                  _seconds(rng, kind, options),
                  rng.choice((-1, 1)) * _FARTHEST**rng.random())
            for kind in kinds]


def _seconds(rng, kind, options):
    """Short ones more often than long ones."""
    if kind in ("pause", "store_pause"):
        most = min(options.longest, 6 if kind == "store_pause" else 1e9)
    else:
        most = _MOST.get(kind, 8.0) * options.lease / LEASE
    return most * rng.random()**2


def strike(fleet, fault):
    """Makes it and mends it again."""
    member = fleet.members[fault.server]
    store = fleet.store
    special = {"rolling": _roll, "clock": _set_clock, "slow": _disturb,
               "partition": _disturb, "partition_up": _disturb,
               "partition_down": _disturb}
    if fault.kind in special:
        special[fault.kind](fleet, member, fault)
        return
    make, mend = {
        "kill": (lambda: fleet.kill(member), lambda: fleet.start(member)),
        "drain": (lambda: fleet.drain(member), lambda: fleet.start(member)),
        "pause": (lambda: fleet.pause(member), lambda: fleet.go_on(member)),
        "images_full": (lambda: fleet.images.fill(),
                        lambda: fleet.images.free()),
        "store_kill": (store.kill, store.start),
        "store_pause": (store.stop, store.go_on),
        "store_full": (store.fill_disk, store.start_with_room),
    }[fault.kind]
    make()
    time.sleep(fault.seconds)
    mend()


def _roll(fleet, _, fault):
    for each in fleet.members:
        fleet.drain(each)
        fleet.start(each)
        time.sleep(fault.seconds)


def _set_clock(_, member, fault):
    """It counts once the server has read it."""
    member.clock.jump(fault.jump)
    before = member.clock.readings()
    time.sleep(fault.seconds)
    wait_until(lambda: member.clock.readings() > before, _READ,
               f"server {member.number} reads its clock")
    member.clock.jump(-fault.jump)


def _disturb(_, member, fault):
    """The wire between a server and the store."""
    link = member.link
    if fault.kind == "slow":
        link.set(delay=0.02 + fault.seconds / 40)
    else:
        link.set(cut={"partition": (UP, DOWN), "partition_up": (UP,),
                      "partition_down": (DOWN,)}[fault.kind])
    time.sleep(fault.seconds)
    link.set()
