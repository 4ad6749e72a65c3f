"""What the benchmark scripts have in common: flags, flags that they hand on,
free ports, and a line of JSON for each measurement."""

import argparse
import json
import pathlib
import socket

ROOT = pathlib.Path(__file__).resolve().parents[2]


def new_parser(doc):
    """With the flags that every script has; `doc`: the script's docstring."""
    parser = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--bin", type=pathlib.Path,
                        default=ROOT / "build" / "bin")
    parser.add_argument("--json", type=pathlib.Path,
                        help="file for all lines of the output")
    return parser


def counts(text):
    """ "1,8" -> [1, 8] """
    return [int(count) for count in text.split(",")]


def parse(parser, arguments):
    """The options; what stands behind "--" is options.flags."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:end])
    options.flags = arguments[end + 1:]
    return options


def free_port():
    """That nothing listens on, for now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def report(lines, path):
    """Prints each line when it is measured; all of them to `path`, if any."""
    measured = []
    for line in lines:
        measured.append(line)
        print(json.dumps(line), flush=True)
    if path:
        path.write_text(json.dumps(measured, indent=1) + "\n",
                        encoding="utf-8")
