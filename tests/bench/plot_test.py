#!/usr/bin/env python3
"""plot picks the right numbers out of the benchmarks' documents."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

import plot


def decode(sessions, **fields):
    return {"kind": "decode", "sessions": sessions,
            "tokens_per_second": 10.0 * sessions, **fields}


class Mistakes(unittest.TestCase):
    def said(self, kind, path):
        """What the program says of a file of numbers, and its status."""
        errors = io.StringIO()
        with unittest.mock.patch.object(
                sys, "argv", ["plot.py", kind, "/no/out.svg", str(path)]), \
                contextlib.redirect_stderr(errors):
            try:
                status = plot.main()
            except SystemExit as left:
                return str(left.code)
        self.assertEqual(status, 1)
        return errors.getvalue()

    def test_a_file_that_gives_no_numbers_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "run.json")
            self.assertIn("run.json", self.said("rates", path))
            for content, wrong in (("<svg/>", "is not JSON"),
                                   ("[1]", "is not a JSON object")):
                path.write_text(content, encoding="utf-8")
                self.assertIn(f"run.json: {wrong}", self.said("rates", path))

    def test_a_result_of_another_kind_is_named(self):
        drawn = unittest.mock.patch.object(
            plot, "draw", side_effect=lambda kind, out, runs:
            runs[0][1]["runs"])
        with tempfile.TemporaryDirectory() as folder, drawn:
            path = pathlib.Path(folder, "run.json")
            path.write_text('{"model": "m"}', encoding="utf-8")
            self.assertRegex(self.said("rates", path),
                             "run.json: no result to draw rates of: 'runs'")


class Plot(unittest.TestCase):
    def test_sessions_ascend_with_their_roofline(self):
        document = {"lines": [decode(8, roofline_tokens_per_second=100.0),
                              {"kind": "prompt"}, decode(1)]}
        self.assertEqual(plot.session_series(document),
                         [(1, 10.0, None), (8, 80.0, 100.0)])

    def test_roofline_points_are_flops_over_bytes_and_time(self):
        line = decode(4, flops_per_step=8e9, bytes_per_step=2e9,
                      step_milliseconds=100.0)
        self.assertEqual(plot.roofline_points({"lines": [line]}),
                         [(4.0, 80.0, 4)])

    def test_the_roof_has_two_sides(self):
        machine = {"fma_gigaflops": 400, "read_gigabytes_per_second": 40}
        self.assertEqual(plot.roof(machine, 2), 80)
        self.assertEqual(plot.roof(machine, 20), 400)

    def test_memory_lengths_come_from_several_runs(self):
        runs = [{"lines": [decode(1, mem_len=length,
                                  step_milliseconds_p50=length / 100)]}
                for length in (1600, 800)]
        self.assertEqual(plot.memory_series(runs),
                         {1: [(800, 8.0), (1600, 16.0)]})

    def test_windows_have_the_papers_ratio_where_there_is_one(self):
        document = {"lines": [
            {"kind": "window", "attention_length": 1000, "ratio": 500},
            {"kind": "window", "attention_length": 800, "ratio": 400,
             "paper_ratio": 363}]}
        self.assertEqual(plot.window_series(document),
                         [(800, 400, 363), (1000, 500, None)])

    def test_runs_are_labelled_by_what_is_not_f32(self):
        document = {"model": "m", "options": {"runner": {
            "weights": "int8", "memory": "f32", "derived": "f16"}}}
        self.assertEqual(plot.label_of(document), "m weights int8 derived f16")
        self.assertEqual(plot.label_of({"model": "m"}), "m f32")

    def test_the_slowest_share_is_where_its_middle_is(self):
        points = plot.latency_points([[0.001, 9], [0.002, 90], [0.5, 1]])
        self.assertEqual([round(share, 3) for share, _ in points],
                         [0.041, 2, round(plot.nines(0.995), 3)])
        self.assertEqual([time for _, time in points], [1, 2, 500])

    def test_counts_of_intervals_are_rates_in_their_middle(self):
        run = {"series": [{"start": 2, "seconds": 4, "tokens": 20},
                          {"start": 6, "seconds": 0, "tokens": 0}]}
        self.assertEqual(plot.time_points(run, "tokens"), [(4, 5)])

    def test_a_load_test_is_about_its_main_run(self):
        run = {"kind": "run"}
        self.assertEqual(plot.main_run(run), run)
        self.assertEqual(plot.main_run(
            {"kind": "sweep", "main_run": 1, "runs": [{}, run]}), run)

    def test_rates_ascend_and_have_a_latency(self):
        sweep = {"runs": [{"rate": rate, "inter_token_seconds": {"p99": time}}
                          for rate, time in ((4, 2), (1, 0.5), (8, 0))]}
        self.assertEqual(plot.rate_points(sweep, "inter_token_seconds", "p99"),
                         [(1, 500), (4, 2000)])

    def test_a_run_may_be_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "run.json"
            path.write_text(json.dumps({"model": "m"}), encoding="utf-8")
            self.assertEqual(plot.load(f"half rows={path}")[0], "half rows")
            self.assertEqual(plot.load(str(path))[0], "m f32")


if __name__ == "__main__":
    unittest.main()
