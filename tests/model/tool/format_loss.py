#!/usr/bin/env python3
"""What number formats cost: nats per token of a text, against float32.

Usage: format_loss.py TXL_MODEL SHIPPED_TEXT [--model DIR TEXT FLAGS]...

Evaluates models/shakespeare on the held-out tenth of SHIPPED_TEXT (the text it
was trained on, see its README) and every other model directory on its TEXT,
FLAGS being further ones of `txl-model eval` in one string; all on the server's
step. Prints each format's loss against float32 and its bound; exits 1 when one
is above.
"""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Nats per token that a format may lose: weights, then stored (memory) and
# derived rows, both forms of attention, alone and together; last all of int8
# with integer products, with weights of 8 and of 4 bits.
WEIGHT_BOUNDS = {"f16": 0.001, "bf16": 0.005, "int8": 0.01, "int4": 0.05}
ROW_BOUNDS = {"f16": 0.001, "bf16": 0.005, "int8": 0.01}
INTEGER_BOUNDS = {"int8": 0.01, "int4": 0.05}
ROWS = (("--memory",), ("--derived",), ("--memory", "--derived"))
FORMS = ("projected", "absorbed")


def settings():
    """(flags, bound) of every run against float32."""
    for name, bound in WEIGHT_BOUNDS.items():
        yield ["--weights", name], bound
    for name, bound in ROW_BOUNDS.items():
        for form in FORMS:
            for rows in ROWS:
                flags = [part for flag in rows for part in (flag, name)]
                yield ["--form", form] + flags, bound
    for name, bound in INTEGER_BOUNDS.items():
        integers = ["--weights", name, "--products", "int8"]
        yield integers, bound
        for form in FORMS:
            yield (["--form", form, "--memory", "int8", "--derived", "int8"]
                   + integers), bound


def evaluate(tool, model, text, flags):
    """Nats per token and tokens."""
    run = subprocess.run(
        [tool, "eval", str(model), "--text", str(text), "--engine", "serving",
         "--json"] + flags,
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    result = json.loads(run.stdout)
    return result["nats_per_token"], result["tokens"]


def check_model(tool, model, text, flags):
    """Prints a line per format; returns how many are out of bounds."""
    plain, tokens = evaluate(tool, model, text, flags)
    print(f"{pathlib.Path(model).name}: {plain:.6f} nats per token in f32, "
          f"{tokens} tokens", flush=True)
    failed = 0
    for setting, bound in settings():
        loss = evaluate(tool, model, text, flags + setting)[0] - plain
        # A format that runs away gives NaN, which no bound holds.
        ok = loss <= bound
        failed += not ok
        print(f"  {'ok ' if ok else 'BAD'} {' '.join(setting):92} "
              f"{loss:+.6f} (bound {bound})", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tool", metavar="TXL_MODEL")
    parser.add_argument("shipped_text", metavar="SHIPPED_TEXT")
    parser.add_argument("--model", nargs=3, action="append", default=[],
                        metavar=("DIR", "TEXT", "FLAGS"))
    arguments = parser.parse_args()
    failed = check_model(arguments.tool, ROOT / "models/shakespeare",
                         arguments.shipped_text, ["--held-out", "0.1"])
    for model, text, flags in arguments.model:
        failed += check_model(arguments.tool, model, text, shlex.split(flags))
    print(f"{failed} formats out of bounds")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
