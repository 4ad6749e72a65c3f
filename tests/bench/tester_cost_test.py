#!/usr/bin/env python3
"""tester_cost runs both programs alike and subtracts the right figures."""

import unittest

import tester_cost


class TesterCost(unittest.TestCase):
    def test_a_line_has_medians_and_their_difference(self):
        line = tester_cost.line_of(8, (5.0, 9.0, 6.0), (8.0, 7.5, 20.0))
        self.assertEqual(line["streams"], 8)
        self.assertEqual(line["bare_microseconds_per_token"], 6.0)
        self.assertEqual(line["tester_microseconds_per_token"], 8.0)
        self.assertEqual(line["beyond_microseconds_per_token"], 2.0)

    def test_both_programs_get_the_same_load(self):
        options = tester_cost.parse_options(
            ["--model", "m", "--turns", "3", "--tokens", "64"])
        bare, tester = tester_cost.commands_of(options, "unix:s", 8)
        self.assertEqual(bare[0].name, "txl-bench-bare-reader")
        self.assertEqual(bare[1:], tester[2:-1])
        self.assertEqual(bare[bare.index("--requests") + 1], "24")
        self.assertEqual(bare[bare.index("--max-tokens") + 1], "64")

    def test_figures_come_from_either_programs_json(self):
        self.assertEqual(tester_cost.microseconds_of(
            '{"streams": 1, "cpu_microseconds_per_token": 4.5}\n'), 4.5)
        self.assertEqual(tester_cost.microseconds_of(
            'a line\n{"tester": {"cpu_microseconds_per_token": 7.5}}\n'), 7.5)

    def test_flags_behind_two_dashes_are_the_servers(self):
        options = tester_cost.parse_options(
            ["--model", "m", "--streams", "1,4", "--", "--threads", "1"])
        self.assertEqual(options.streams, [1, 4])
        self.assertEqual(options.flags, ["--threads", "1"])


if __name__ == "__main__":
    unittest.main()
