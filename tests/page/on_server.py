#!/usr/bin/env python3
"""Runs the page's tests against a server of its own.

Usage: on_server.py TXL_SERVER [MODEL_DIRECTORY]
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(argv):
    model = argv[2] if len(argv) > 2 else ROOT / "models/shakespeare"
    server = subprocess.Popen(
        [argv[1], "--model", str(model), "--listen", "127.0.0.1:0",
         "--http-listen", "127.0.0.1:0", "--log-level", "error"],
        stdout=subprocess.PIPE, text=True)
    try:
        address = next(line.split()[-1] for line in server.stdout
                       if line.startswith("http on "))
        return subprocess.run([ROOT / "tests/page/run.sh"],
                              env=os.environ | {"TXL_HTTP": address + "/"},
                              check=False).returncode
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
