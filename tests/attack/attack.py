#!/usr/bin/env python3
"""Attacks a running txl-server and says what held.

Usage: attack.py [--server build/bin/txl-server] [--short] [--proxy]
                 [--flags="SERVER FLAGS"] [NAME...]
       attack.py --list

Starts a server for every attack (all of them without a NAME; a NAME may end in
"*") and prints "held NAME figure" or "FELL NAME figure" for each. --short takes
seconds for each; --proxy makes those that a proxy can meet through HAProxy (as
root: in a network of its own).
Loopback only. Exits 0 when all held, 1 when one fell, 2 for a wrong usage.
"""

import argparse
import fnmatch
import pathlib
import sys
import time

import connections
import floods
import headers
import memory
import process
import prompts
import proxy
import readers
import requests
import sessions
import streams
import texts
import webattacks
from case import MIB, ROOT, Site
from own_memory import growth
from server import Fell, memory_status

FAMILIES = {"texts": texts, "requests": requests, "readers": readers,
            "streams": streams, "sessions": sessions, "headers": headers,
            "floods": floods, "connections": connections, "process": process,
            "memory": memory, "prompts": prompts, "web": webattacks}
ATTACKS = [attack for family in FAMILIES.values() for attack in family.ATTACKS]


def select(names):
    if not names:
        return ATTACKS
    chosen = [a for a in ATTACKS
              if any(fnmatch.fnmatch(a.name, n) for n in names)]
    chosen += [a for n in names if n in FAMILIES for a in FAMILIES[n].ATTACKS]
    for name in names:
        if not fnmatch.filter([a.name for a in ATTACKS],
                              name) and name not in FAMILIES:
            raise SystemExit(f"attack.py: no attack {name}; --list has them")
    return chosen


def make(attack, options):
    """(whether it held, the figure)."""
    size = attack.size(options.short)
    with Site(options.server.resolve(), options.proxy,
              options.flags.split()) as site:
        try:
            figure = attack.run(site, size)
            marked = next((s for s in site.servers if s.marked is not None),
                          None)
            if marked is None:
                return True, figure
            growths = {"": marked.growth()}
            if marked.proxy:
                growths["HAProxy "] = growth(
                    marked.proxy.marked,
                    memory_status(marked.proxy.process.pid))
            figure += "".join(f", {who}{grown / MIB:+.1f} MiB"
                              for who, grown in growths.items())
            return max(growths.values()) <= size.memory, figure
        except Fell as fell:
            return False, str(fell)
        except Exception as error:  # pylint: disable=broad-except
            # An honest client that got no answer, and our own mistakes.
            dead = "".join(f"; the server ended: {s.process.poll()}"
                           for s in site.servers
                           if s.process.poll() is not None)
            return False, f"{type(error).__name__}: {error}{dead}"


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--server", type=pathlib.Path,
                        default=ROOT / "build/bin/txl-server")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--proxy", action="store_true")
    parser.add_argument("--flags", default="", help="more of the server's")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    chosen = select(options.names)
    chosen = [a for a in chosen
              if (a.proxied if options.proxy else a.direct)]
    if options.list:
        for attack in ATTACKS:
            print(f"{attack.name:22} {attack.source:12} {attack.passes}")
        return 0
    if options.proxy:
        proxy.own_network()
    fell = 0
    for attack in chosen:
        begin = time.monotonic()
        held, figure = make(attack, options)
        fell += not held
        leg = "proxy/" if options.proxy else ""
        print("held" if held else "FELL", leg + attack.name,
              " ".join(figure.split()), f"[{attack.source}; "
              f"{time.monotonic() - begin:.1f} s]", flush=True)
    print(f"{len(chosen) - fell} held, {fell} fell", flush=True)
    return 1 if fell else 0


if __name__ == "__main__":
    sys.exit(main())
