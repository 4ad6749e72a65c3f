"""Finds the modules of tests/attack, which talk to a server by hand."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAKESPEARE = ROOT / "models/shakespeare"
SERVER = ROOT / "build/bin/txl-server"
sys.path.insert(0, str(ROOT / "tests/attack"))
