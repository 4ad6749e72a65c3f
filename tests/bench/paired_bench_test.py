#!/usr/bin/env python3
"""paired_bench compares the right figures of the right servers."""

import unittest

import paired_bench


def measured(*values):
    return dict(zip(paired_bench.FIGURES, values))


class PairedBench(unittest.TestCase):
    def test_a_load_gives_rates_gaps_and_processor_time(self):
        report = {"tokens_per_second": 800, "tokens": 4000,
                  "inter_token_seconds": {"p50": 0.001, "p99": 0.004}}
        self.assertEqual(paired_bench.figures(report, server_seconds=2),
                         measured(800, 1, 4, 500))

    def test_a_line_has_medians_and_the_median_of_ratios(self):
        line = paired_bench.line_of(8, [
            (measured(100, 1, 4, 10), measured(90, 2, 4, 10)),
            (measured(50, 1, 4, 10), measured(50, 2, 8, 5)),
            (measured(80, 1, 4, 10), measured(76, 2, 4, 20))])
        self.assertEqual(line["streams"], 8)
        self.assertEqual(line["tokens_per_second"], [80, 76])
        self.assertEqual(line["tokens_per_second_ratio"], 0.95)
        self.assertEqual(line["p50_milliseconds_ratio"], 2)
        self.assertEqual(line["p99_milliseconds"], [4, 4])
        self.assertEqual(line["server_microseconds_per_token_ratio"], 1)

    def test_neither_server_is_always_the_first(self):
        self.assertEqual(paired_bench.in_turns(4), [True, False, True, False])

    def test_each_server_has_flags_of_its_own_and_those_of_both(self):
        options = paired_bench.parse_options(
            ["--model", "m", "--second", "--data-dir 'a b' --http-ping 0",
             "--second-server", "old/txl-server", "--", "--threads", "1"])
        self.assertEqual(options.first, [])
        self.assertEqual(options.second,
                         ["--data-dir", "a b", "--http-ping", "0"])
        self.assertIsNone(options.first_server)
        self.assertEqual(options.second_server.name, "txl-server")
        self.assertEqual(options.flags, ["--threads", "1"])


if __name__ == "__main__":
    unittest.main()
