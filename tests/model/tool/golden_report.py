#!/usr/bin/env python3
"""Every golden case through `txl-model logprobs`, every engine, feed and dtype.

Usage: golden_report.py TXL_MODEL [GOLDEN_FOLDER]

Prints one line per case and run with the largest difference and its bound, and
the worst of all; exits 1 when one is out of bounds.
"""

import array
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
TYPES = {"I64": "q", "F64": "d"}


def read_safetensors(path):
    """{name: (shape, flat array)} of I64 and F64 tensors."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, info in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + o for o in info["data_offsets"])
        values = array.array(TYPES[info["dtype"]])
        values.frombytes(data[begin:end])
        tensors[name] = (info["shape"], values)
    return tensors


def write_feed(path, tokens, segments):
    """A logprobs input: the tokens and the cuts to feed them in."""
    arrays = {"tokens": array.array("q", tokens),
              "segments": array.array("q", segments)}
    header, offset = {}, 0
    for name, values in arrays.items():
        size = len(values) * 8
        header[name] = {"dtype": "I64", "shape": [len(values)],
                        "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text +
                     b"".join(v.tobytes() for v in arrays.values()))


def cuts(count, size):
    return [size] * (count // size) + ([count % size] if count % size else [])


def largest_difference(expected, actual):
    assert expected[0] == actual[0], (expected[0], actual[0])
    return max(abs(a - b) for a, b in zip(expected[1], actual[1]))


def runs(tokens, segments):
    """(label, engine, feed, cuts, expected log-probs, expected memory)."""
    yield ("reference segments", "reference", "segments", segments,
           "logprobs_segmented", "memory_final")
    yield ("reference stepwise", "reference", "stepwise", segments,
           "logprobs_stepwise", "memory_final_stepwise")
    yield ("serving stepwise", "serving", "stepwise", segments,
           "logprobs_stepwise", None)
    yield ("serving as given", "serving", "segments", segments,
           "logprobs_stepwise", None)
    for size in (1, 7, 64):
        yield (f"serving cuts of {size}", "serving", "segments",
               cuts(len(tokens), size), "logprobs_stepwise", None)


def check_case(tool, case, folder):
    """Yields (label, dtype, difference, bound)."""
    expected = read_safetensors(case / "expected.safetensors")
    observed = json.loads((case / "config.json").read_text())["observed"]
    bounds = {"f64": 1e-9,
              "f32": max(2e-5, 3 * observed[
                  "original_float32_vs_float64_max_abs"])}
    tokens, segments = expected["tokens"][1], expected["segments"][1]
    for label, engine, feed, cut, values, memory in runs(tokens, segments):
        write_feed(folder / "in.safetensors", tokens, cut)
        for dtype, bound in bounds.items():
            subprocess.run(
                [tool, "logprobs", str(case), "--tokens",
                 str(folder / "in.safetensors"), "--out",
                 str(folder / "out.safetensors"), "--dtype", dtype,
                 "--engine", engine, "--feed", feed], check=True)
            out = read_safetensors(folder / "out.safetensors")
            worst = largest_difference(expected[values], out["logprobs"])
            if memory:
                worst = max(worst, largest_difference(expected[memory],
                                                      out["memory"]))
            yield label, dtype, worst, bound


def main():
    tool = sys.argv[1]
    golden = pathlib.Path(sys.argv[2] if len(sys.argv) > 2
                          else ROOT / "tests/golden")
    failed, worst = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        for case in sorted(p for p in golden.iterdir() if p.is_dir()):
            for label, dtype, difference, bound in check_case(
                    tool, case, pathlib.Path(folder)):
                ok = difference <= bound
                failed += not ok
                key = (label.split()[0], dtype)
                worst[key] = max(worst.get(key, (0, "")),
                                 (difference, case.name))
                print(f"{'ok ' if ok else 'BAD'} {case.name:24} {label:22} "
                      f"{dtype} {difference:.1e} (bound {bound:.1e})")
    for (engine, dtype), (difference, name) in sorted(worst.items()):
        print(f"worst {engine} {dtype}: {difference:.2e} ({name})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
