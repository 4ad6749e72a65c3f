#!/usr/bin/env python3
"""Every golden case through `txl-model logprobs`, every engine, feed and dtype.

Usage: golden_report.py TXL_MODEL [--native] [GOLDEN_FOLDER]

With --native every native checkpoint of the cases is converted first, with the
case's config.json as --spec; its own vocabulary is read as well.

Prints one line per case and run with the largest difference and its bound, and
the worst of all; exits 1 when one is out of bounds.
"""

import array
import json
import pathlib
import shutil
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


# A float64 run of files without usable position numbers computes them anew.
COMPUTED_POSITIONS = 5e-6


def native_checkpoints(case):
    """Files and folders that `txl-model convert` takes."""
    native = case / "native"
    for path in sorted(native.iterdir()):
        if path.suffix in (".pt", ".pth", ".bin", ".tar", ".safetensors"):
            if not path.name.startswith("vocab"):
                yield path
        elif path.is_dir():
            yield from sorted(path.iterdir())


def convert(tool, case, source, folder):
    directory = folder / "model"
    shutil.rmtree(directory, ignore_errors=True)
    subprocess.run([tool, "convert", str(source), str(directory), "--spec",
                    str(case / "config.json")], check=True,
                   stdout=subprocess.DEVNULL)
    return directory


def check_case(tool, case, model, folder):
    """Yields (label, dtype, difference, bound)."""
    expected = read_safetensors(case / "expected.safetensors")
    fields = json.loads((case / "config.json").read_text())
    observed = fields["observed"]
    recomputed = model != case and "tolerance_note" in fields
    bounds = {"f64": COMPUTED_POSITIONS if recomputed else 1e-9,
              "f32": max(2e-5, 3 * observed[
                  "original_float32_vs_float64_max_abs"])}
    tokens, segments = expected["tokens"][1], expected["segments"][1]
    for label, engine, feed, cut, values, memory in runs(tokens, segments):
        write_feed(folder / "in.safetensors", tokens, cut)
        for dtype, bound in bounds.items():
            subprocess.run(
                [tool, "logprobs", str(model), "--tokens",
                 str(folder / "in.safetensors"), "--out",
                 str(folder / "out.safetensors"), "--dtype", dtype,
                 "--engine", engine, "--feed", feed], check=True)
            out = read_safetensors(folder / "out.safetensors")
            worst = largest_difference(expected[values], out["logprobs"])
            if memory:
                worst = max(worst, largest_difference(expected[memory],
                                                      out["memory"]))
            yield label, dtype, worst, bound


def subjects(tool, cases, native, folder):
    """(name, case, model directory)."""
    for case in cases:
        if not native:
            yield case.name, case, case
            continue
        for source in native_checkpoints(case):
            name = source.relative_to(case / "native").as_posix()
            yield (f"{case.name}/{name}", case,
                   convert(tool, case, source, folder))


def main():
    arguments = [a for a in sys.argv[1:] if a != "--native"]
    native = "--native" in sys.argv
    tool = arguments[0]
    golden = pathlib.Path(arguments[1] if len(arguments) > 1
                          else ROOT / "tests/golden")
    cases = sorted(p.parent for p in golden.glob("*/expected.safetensors"))
    failed, worst, count = 0, {}, 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for subject, case, model in subjects(tool, cases, native, folder):
            count += 1
            for label, dtype, difference, bound in check_case(
                    tool, case, model, folder):
                ok = difference <= bound
                failed += not ok
                key = (label.split()[0], dtype)
                worst[key] = max(worst.get(key, (0, "")),
                                 (difference, subject))
                print(f"{'ok ' if ok else 'BAD'} {subject:40} {label:22} "
                      f"{dtype} {difference:.1e} (bound {bound:.1e})")
    for (engine, dtype), (difference, name) in sorted(worst.items()):
        print(f"worst {engine} {dtype}: {difference:.2e} ({name})")
    print(f"{count} checkpoints, {failed} runs out of bounds")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
