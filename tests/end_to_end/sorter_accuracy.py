#!/usr/bin/env python3
"""The share of random sequences of digits that a served sorter sorts right.

Usage: sorter_accuracy.py TXL_SERVER MODEL_DIRECTORY [SEQUENCES [LENGTH]]

Starts the server, gives every sequence as a prompt of token ids to a session of
its own, and compares the digits that follow greedily with the sorted ones.
Prints the share as JSON.
"""

import concurrent.futures
import json
import random
import subprocess
import sys

from reflection_client import Api, generate

CLIENTS = 32


def is_sorted(api, digits):
    request = {"tokens": {"ids": digits}, "sampling": {"temperature": 0},
               "stop": {"maxTokens": len(digits)}}
    return generate(api, request) == sorted(digits)


def main():
    server, model = sys.argv[1:3]
    sequences = int(sys.argv[3]) if len(sys.argv) > 3 else 5000
    length = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    source = random.Random(7)
    work = [[source.randrange(10) for _ in range(length)]
            for _ in range(sequences)]
    process = subprocess.Popen(
        [server, "--model", model, "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = process.stdout.readline().split()[-1]
        api = Api(address)
        is_sorted(api, work[0])  # resolves the descriptors once
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            right = sum(pool.map(lambda digits: is_sorted(api, digits), work))
    finally:
        process.terminate()
        process.wait()
    print(json.dumps({"sequences": sequences, "length": length,
                      "sorted_right": right / sequences}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
