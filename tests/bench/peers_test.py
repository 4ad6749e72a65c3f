#!/usr/bin/env python3
"""peers reads the programs' lines and divides the right numbers."""

import argparse
import contextlib
import io
import subprocess
import sys
import unittest

import peers

OPTIONS = argparse.Namespace(only="")


def program(text):
    """A run that is a process of its own."""
    return lambda: peers.rates_of(subprocess.run(
        [sys.executable, "-c", text], check=True, stdout=subprocess.PIPE,
        text=True).stdout.splitlines())


def measured(name, run_it, failures):
    with contextlib.redirect_stderr(io.StringIO()):
        return peers.measure(OPTIONS, name, run_it, failures)


class Peers(unittest.TestCase):
    def test_rates_are_read_from_json_lines_only(self):
        lines = ["a warning", '{"kind": "machine"}',
                 '{"sessions": 8, "tokens_per_second": 12.5}']
        self.assertEqual(peers.rates_of(lines), {8: 12.5})

    def test_table_has_rates_and_ratios_of_the_same_count(self):
        text = peers.table([1, 8], [("peer", {1: 2.0, 8: 4.0})],
                           [("own", {1: 5.0, 8: 40.0}, [0])])
        self.assertEqual(text.splitlines(), [
            "| tokens/s | 1 | 8 |",
            "| - | - | - |",
            "| peer | 2 | 4 |",
            "| own | 5 | 40 |",
            "| own ÷ peer | 2.5 | 10 |"])

    def test_runs_that_were_left_out_have_no_row(self):
        text = peers.table([1], [("peer", None)], [("own", {1: 5.0}, [0])])
        self.assertNotIn("peer", text)
        self.assertIn("| own | 5 |", text)

    def test_missing_counts_are_dashes(self):
        text = peers.table([1, 8], [("peer", {1: 2.0})],
                           [("own", {1: 5.0, 8: 1.0}, [0])])
        self.assertIn("| peer | 2 | - |", text)
        self.assertIn("| own ÷ peer | 2.5 | - |", text)

    def test_numbers_are_as_long_as_they_mean_something(self):
        self.assertEqual(peers.number(0.7154), "0.715")
        self.assertEqual(peers.number(38.44), "38.4")
        self.assertEqual(peers.number(11385.2), "11,385")
        self.assertEqual(peers.number(None), "-")

    def test_a_run_that_dies_is_named_and_the_next_one_counts(self):
        failures = []
        self.assertIsNone(measured(
            "first", program("import os; os.kill(os.getpid(), 4)"), failures))
        self.assertIsNone(measured("second", program("exit(3)"), failures))
        self.assertEqual(failures, [("first", "died of SIGILL"),
                                    ("second", "ended with exit code 3")])
        line = '{"sessions": 1, "tokens_per_second": 2}'
        self.assertEqual(measured("third", program(f"print('{line}')"),
                                  failures), {1: 2})
        self.assertEqual(len(failures), 2)

    def test_every_own_run_is_held_against_peers_that_exist(self):
        for _, _, indices in peers.OWN_RUNS:
            for index in indices:
                self.assertLess(index, len(peers.PEER_RUNS))


if __name__ == "__main__":
    unittest.main()
