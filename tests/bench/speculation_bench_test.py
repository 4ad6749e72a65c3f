#!/usr/bin/env python3
"""speculation_bench reads the right counters and makes the right ratios."""

import os
import unittest

import speculation_bench


def values(guessed, accepted, rows):
    return dict(zip(speculation_bench.GUESSES, (guessed, accepted, rows)))


class SpeculationBench(unittest.TestCase):
    def test_a_scrape_gives_the_counters_of_guesses(self):
        text = ("# TYPE txl_tokens_guessed_total counter\n"
                "txl_tokens_guessed_total 40\n"
                "txl_guesses_accepted_total 30\n"
                "txl_rows_total{kind=\"prefill\"} 9\n"
                "txl_rows_total{kind=\"decode\"} 100\n")
        self.assertEqual(speculation_bench.counters(text), values(40, 30, 100))

    def test_a_line_has_medians_of_ratios_and_what_guesses_were(self):
        line = speculation_bench.line_of(
            {"streams": 1}, [((100, 8), (150, 4)), ((50, 8), (100, 2)),
                             ((80, 8), (240, 6))],
            values(10, 10, 20), values(50, 40, 100))
        self.assertEqual(line["streams"], 1)
        self.assertEqual(line["ratio"], 2)
        self.assertEqual(line["processor_ratio"], 0.5)
        self.assertEqual(line["tokens_per_second_off"], 80)
        self.assertEqual(line["tokens_per_second_auto"], 150)
        self.assertEqual(line["guesses_accepted"], 0.75)
        # 40 rows of the streams' own tokens gave 70 tokens.
        self.assertEqual(line["tokens_per_row_of_a_stream"], 1.75)

    def test_without_guesses_nothing_is_divided_by_nothing(self):
        line = speculation_bench.line_of({}, [((1, 1), (1, 1))], values(0, 0, 0),
                                         values(0, 0, 0))
        self.assertEqual(line["guesses_accepted"], 0)

    def test_a_process_has_used_processor_time(self):
        used = os.times()
        self.assertAlmostEqual(speculation_bench.process_seconds(os.getpid()),
                               used.user + used.system, delta=0.1)

    def test_flags_behind_two_dashes_are_the_servers(self):
        options = speculation_bench.parse_options(
            ["--model", "m", "--temperature", "0,1", "--", "--threads", "1"])
        self.assertEqual(options.temperature, [0, 1])
        self.assertEqual(options.streams, [1, 32])
        self.assertEqual(options.flags, ["--threads", "1"])


if __name__ == "__main__":
    unittest.main()
