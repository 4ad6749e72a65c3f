#!/usr/bin/env python3
"""Reads the metrics of a server that has worked with Prometheus's own promtool.

promtool's parser must take every line, and its rules for names must be content
with every metric of the server's own (those of the HTTP library are not ours).

Usage: promtool_check.py TXL_SERVER TXL
"""

import pathlib
import subprocess
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read_after(stream, prefix):
    line = stream.readline()
    assert line.startswith(prefix), f"the server said {line!r}"
    return line.removeprefix(prefix).strip()


def scrape(server, txl):
    process = subprocess.Popen(
        [server, "--model", ROOT / "models/shakespeare", "--listen",
         "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--log-level",
         "error"], stdout=subprocess.PIPE, text=True)
    try:
        address = read_after(process.stdout, "listening on ")
        url = read_after(process.stdout, "metrics on ")
        subprocess.run([txl, "generate", "--server", address, "--prompt",
                        "ROMEO:", "--max-tokens", "20"],
                       check=True, stdout=subprocess.DEVNULL)
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read()
    finally:
        process.terminate()
        process.wait()


def main(server, txl):
    text = scrape(server, txl)
    check = subprocess.run(["promtool", "check", "metrics"], input=text,
                           capture_output=True, check=False)
    lines = (check.stdout + check.stderr).decode().splitlines()
    if check.returncode != 0 or lines:
        print("\n".join(lines))
        return 1
    print(f"promtool takes {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
