"""The programs of txl-server: each command becomes its program."""

import os
import signal
import sys

_HERE = os.path.dirname(os.path.realpath(__file__))


def _become(program):
    """Replaces this process, so that exit codes, signals and standard streams
    are the program's own."""
    if not os.path.isdir(os.path.join(_HERE, "../torch/lib")):
        sys.exit(f"{program}: LibTorch is looked for in the package torch beside"
                 f" {_HERE}, which is not there: install both into one folder")
    # Python ignores these two, and an ignored signal stays ignored.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execv(os.path.join(_HERE, "bin", program), [program, *sys.argv[1:]])


def txl_server():
    _become("txl-server")


def txl():
    _become("txl")


def txl_model():
    _become("txl-model")
