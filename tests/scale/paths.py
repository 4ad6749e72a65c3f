"""Finds modules of other folders."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAKESPEARE = ROOT / "models/shakespeare"
SERVER = ROOT / "build/bin/txl-server"
CLOCK = ROOT / "build/tests/libtxl_moved_clock.so"
for _folder in ("tests/attack", "tests/survival", "tests/client/package"):
    sys.path.insert(0, str(ROOT / _folder))
