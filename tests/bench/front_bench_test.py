#!/usr/bin/env python3
"""front_bench reads /proc and divides the right seconds by the right tokens."""

import unittest

import front_bench


class FrontBench(unittest.TestCase):
    def test_seconds_are_read_behind_a_name_with_any_characters(self):
        fields = ["S"] + ["0"] * 10 + ["250", "50"] + ["0"] * 20
        line = "17 (a thread) with :) ) " + " ".join(fields)
        self.assertEqual(front_bench.seconds_of(line),
                         300 / front_bench.TICKS)

    def test_the_engine_is_the_thread_that_worked_most_since(self):
        before = {"1": 100.0, "2": 5.0}
        after = {"1": 100.5, "2": 9.0, "3": 0.25}
        self.assertEqual(front_bench.spent(before, after), (4.0, 0.75))

    def test_a_line_has_microseconds_per_token(self):
        line = front_bench.line_of(
            8, {"tokens": 1000, "tokens_per_second": 50.0}, (2.0, 0.006),
            0.004)
        self.assertEqual(line["streams"], 8)
        self.assertEqual(line["tokens_per_second"], 50.0)
        self.assertAlmostEqual(line["engine_microseconds_per_token"], 2000)
        self.assertAlmostEqual(line["server_microseconds_per_token"], 6)
        self.assertAlmostEqual(line["client_microseconds_per_token"], 4)

    def test_flags_behind_two_dashes_are_the_servers(self):
        options = front_bench.parse_options(
            ["--model", "m", "--streams", "1,4", "--", "--threads", "1"])
        self.assertEqual(options.streams, [1, 4])
        self.assertEqual(options.flags, ["--threads", "1"])


if __name__ == "__main__":
    unittest.main()
