#!/usr/bin/env python3
"""front_rate asks for the right load and divides the right numbers."""

import unittest

import front_rate

METRICS = """\
# HELP txl_stream_queue_tokens tokens that wait
# TYPE txl_stream_queue_tokens gauge
txl_stream_queue_tokens 17
txl_stream_queue_tokens_more 99
txl_tokens{kind="x"} 3
"""

REPORT = {
    "tokens": 1000,
    "tokens_per_second": 450.0,
    "inter_token_seconds": {"p50": 0.002, "p90": 0.003, "p99": 0.004,
                            "p999": 0.005, "max": 0.25, "mean": 0.002},
    "statuses": {"OK": 7},
}


def options_of(*arguments):
    return front_rate.parse_options(["--model", "m", *arguments])


class FrontRate(unittest.TestCase):
    def test_a_gauge_is_read_among_others(self):
        self.assertEqual(
            front_rate.gauge_of(METRICS, "txl_stream_queue_tokens"), 17)
        with self.assertRaises(ValueError):
            front_rate.gauge_of(METRICS, "txl_stream_queue")

    def test_a_line_has_shares_and_microseconds_per_token(self):
        line = front_rate.line_of(options_of("--rate", "600", "--batch", "4"),
                                  32, REPORT, (0.006, 0.004), [0, 9, 3])
        self.assertEqual(line["streams"], 32)
        self.assertEqual(line["tokens_per_message"], 4)
        self.assertEqual(line["device_tokens_per_second"], 600)
        self.assertEqual(line["tokens_per_second"], 450)
        self.assertEqual(line["share_of_device"], 0.75)
        self.assertAlmostEqual(line["server_microseconds_per_token"], 6)
        self.assertAlmostEqual(line["client_microseconds_per_token"], 4)
        self.assertEqual(line["longest_queue_tokens"], 9)
        self.assertEqual(line["mean_queue_tokens"], 4)
        self.assertEqual(line["statuses"], {"OK": 7})

    def test_gaps_between_tokens_are_in_milliseconds(self):
        gaps = front_rate.line_of(options_of(), 1, REPORT, (1, 1),
                                  [0])["inter_token_milliseconds"]
        self.assertEqual(sorted(gaps), ["max", "p50", "p90", "p99", "p999"])
        self.assertAlmostEqual(gaps["p99"], 4)
        self.assertAlmostEqual(gaps["max"], 250)

    def test_the_server_gets_the_device(self):
        command = front_rate.server_command(
            options_of("--rate", "1000", "--rows", "64"), "unix:/s")
        self.assertEqual(command[0].name, "txl-bench-front")
        for flag, value in [("--model", "m"), ("--listen", "unix:/s"),
                            ("--rows", "64"),
                            ("--tokens-per-second", "1000.0")]:
            self.assertEqual(command[command.index(flag) + 1], value)

    def test_the_load_runs_as_long_as_is_measured_and_the_warm_up_before(self):
        command = front_rate.load_command(
            options_of("--warmup", "3", "--seconds", "9", "--connections",
                       "5", "--batch", "8"), "unix:/s", 64)
        self.assertEqual(command[0].name, "txl")
        for flag, value in [("--server", "unix:/s"), ("--streams", "64"),
                            ("--connections", "5"), ("--warmup", "3.0"),
                            ("--seconds", "12.0"),
                            ("--tokens-per-message", "8"),
                            ("--max-tokens", "uniform:256:768")]:
            self.assertEqual(command[command.index(flag) + 1], value)

    def test_streams_are_a_list_of_counts(self):
        self.assertEqual(options_of("--streams", "1,64").streams, [1, 64])


if __name__ == "__main__":
    unittest.main()
