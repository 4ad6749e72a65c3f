"""Finds the modules of tests/survival and tests/attack, which this is made of."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAKESPEARE = ROOT / "models/shakespeare"
SERVER = ROOT / "build/bin/txl-server"
for _folder in ("tests/attack", "tests/survival"):
    sys.path.insert(0, str(ROOT / _folder))
