#!/usr/bin/env python3
"""bench_script parses what all scripts take and writes what they measure."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import bench_script


def parse(*arguments):
    parser = bench_script.new_parser("What it does.\n\nHow.")
    parser.add_argument("--streams", type=bench_script.counts, default="1,8")
    return bench_script.parse(parser, list(arguments))


class BenchScript(unittest.TestCase):
    def test_the_programs_are_those_of_the_build_folder(self):
        options = parse("--model", "m")
        self.assertEqual(options.bin, bench_script.ROOT / "build" / "bin")
        self.assertTrue((bench_script.ROOT / "CMakeLists.txt").exists())

    def test_counts_are_numbers_with_commas(self):
        self.assertEqual(parse("--model", "m").streams, [1, 8])
        self.assertEqual(parse("--model", "m", "--streams", "4").streams, [4])

    def test_a_count_that_is_none_is_refused(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            with self.assertRaises(SystemExit):
                parse("--model", "m", "--streams", "1,few")
        self.assertIn("--streams", said.getvalue())

    def test_a_model_is_asked_for(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            with self.assertRaises(SystemExit):
                parse()
        self.assertIn("--model", said.getvalue())

    def test_flags_behind_two_dashes_are_handed_on(self):
        self.assertEqual(parse("--model", "m").flags, [])
        self.assertEqual(parse("--model", "m", "--").flags, [])
        self.assertEqual(
            parse("--model", "m", "--", "--model", "n").flags,
            ["--model", "n"])

    def test_lines_are_printed_when_they_are_measured(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            def lines():
                yield {"streams": 1}
                self.assertEqual(out.getvalue(), '{"streams": 1}\n')
                yield {"streams": 8}
            bench_script.report(lines(), None)
        self.assertEqual(len(out.getvalue().splitlines()), 2)

    def test_all_lines_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lines.json"
            with contextlib.redirect_stdout(io.StringIO()):
                bench_script.report(iter([{"a": 1}, {"a": 2}]), path)
            self.assertEqual(json.loads(path.read_text(encoding="utf-8")),
                             [{"a": 1}, {"a": 2}])


if __name__ == "__main__":
    unittest.main()
