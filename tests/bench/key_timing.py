#!/usr/bin/env python3
"""Whether the time of a refusal tells how much of a key was right.

Usage: key_timing.py http://HOST:PORT KEY_FILE [ROUNDS]

Sends keys that differ from the right one in the first or in the last character,
or in all, in random order, each ROUNDS times (2,000), over one connection each
(a refusal ends it), and prints the quartiles of each in microseconds. The
medians differ by less than their quartiles do where the time tells nothing.
"""

import http.client
import pathlib
import random
import statistics
import sys
import time
import urllib.parse


def other(character):
    return "A" if character != "A" else "B"


def seconds(address, key):
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.connect()
    begin = time.perf_counter()
    connection.request("GET", "/v1/models",
                       headers={"Authorization": f"Bearer {key}"})
    status = connection.getresponse().status
    took = time.perf_counter() - begin
    connection.close()
    if status != 401:
        raise SystemExit(f"status {status}, not 401")
    return took


def main():
    address = urllib.parse.urlsplit(sys.argv[1]).netloc
    key = pathlib.Path(sys.argv[2]).read_text(encoding="ascii").strip()
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    keys = {"first character": other(key[0]) + key[1:],
            "last character": key[:-1] + other(key[-1]),
            "all": "".join(other(c) for c in key)}
    took = {name: [] for name in keys}
    order = list(keys) * rounds
    random.shuffle(order)
    for name in order:
        took[name].append(seconds(address, keys[name]) * 1e6)
    for name, values in took.items():
        low, middle, high = statistics.quantiles(values, n=4)
        print(f"{name:16} {low:8.1f} {middle:8.1f} {high:8.1f}")


if __name__ == "__main__":
    main()
