#!/usr/bin/env python3
"""Every hostile file of tests/hostile through `txl-model convert`.

Usage: hostile_report.py TXL_MODEL

What must be refused: exit code 1, one line on standard error, nothing written,
nothing executed, at most 200 MB beyond the file, under 5 s. What must be
accepted: converts. Prints a line per file and exits 1 when one is wrong.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
HOSTILE = ROOT / "tests/hostile"
LIMIT_BYTES = 200 << 20
LIMIT_SECONDS = 5


def size_of(path):
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(f.stat().st_size for f in files if f.is_file())


def run(tool, arguments, folder):
    """(exit code, standard error, peak bytes, processor seconds)."""
    with open(folder / "stderr", "w+", encoding="utf-8",
              errors="replace") as error:
        pid = os.fork()
        if pid == 0:
            os.chdir(folder / "work")
            os.dup2(error.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.execv(tool, [tool, *arguments])
        _, status, usage = os.wait4(pid, 0)
        error.seek(0)
        return (os.waitstatus_to_exitcode(status), error.read(),
                usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)


def problems(case, code, error, peak, seconds, written):
    if case["expect"] == "accept":
        return [] if code == 0 and written == ["out"] else [f"refused: {error}"]
    found = []
    if code != 1:
        found.append(f"exit code {code}")
    if error.count("\n") != 1 or len(error) < 10:
        found.append(f"not one line: {error!r}")
    if written:
        found.append(f"wrote {written}")
    if peak > LIMIT_BYTES:
        found.append(f"{peak >> 20} MB")
    if seconds > LIMIT_SECONDS:
        found.append(f"{seconds:.1f} s")
    return found


def check(tool, case, idle_peak):
    source = HOSTILE / case["path"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "work").mkdir()
        arguments = ["convert", str(source), str(folder / "work/out")]
        if case["kind"] == "torch":
            arguments += ["--spec", str(HOSTILE / "benign_kimi/model.json")]
        code, error, peak, seconds = run(tool, arguments, folder)
        written = sorted(p.name for p in (folder / "work").iterdir())
        peak = max(0, peak - idle_peak - size_of(source))
        bad = problems(case, code, error, peak, seconds, written)
    print(f"{'BAD' if bad else 'ok '} {case['path']:36} "
          f"{peak / 1e6:6.1f} MB {seconds:5.2f} s  "
          f"{'; '.join(bad) or error.strip()[:160]}")
    return not bad


def main():
    tool = os.path.abspath(sys.argv[1])
    # What the program takes before it looks at any file (LibTorch's pages).
    subprocess.run([tool, "--help"], check=True, stdout=subprocess.DEVNULL)
    idle = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    cases = json.loads((HOSTILE / "hostile.json").read_text())["files"]
    good = [check(tool, case, idle) for case in cases]
    print(f"{sum(good)} of {len(good)} as they should be")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
