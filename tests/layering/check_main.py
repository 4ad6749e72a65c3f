"""The main function of a check: prints its errors; the exit status says whether
there are any."""

import pathlib
import sys


def run(check):
    """`check(root)` returns errors, a line each. ROOT is the only argument."""
    errors = check(pathlib.Path(sys.argv[1]))
    for error in errors:
        print(error)
    sys.exit(1 if errors else 0)
