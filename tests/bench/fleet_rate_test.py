#!/usr/bin/env python3
"""fleet_rate puts servers on one store, and divides the right numbers."""

import unittest

import fleet_rate
import front_bench

STATS = """\
# Commandstats\r
cmdstat_info:calls=2,usec=9,usec_per_call=4.50\r
cmdstat_fcall:calls=1234,usec=9876,usec_per_call=8.00\r
cmdstat_fcall_ro:calls=7,usec=9\r
"""

STAT = """\
cpu  100 20 80 1000 200 0 0 0 0 0
cpu0 50 10 40 500 100 0 0 0 0 0
"""


def report_of(tokens, turns, requests, statuses):
    return {"tokens_per_second": tokens, "requests_per_second": turns,
            "requests": requests, "statuses": statuses}


def options_of(*arguments):
    return fleet_rate.parse_options(["--model", "m", *arguments])


class FleetRate(unittest.TestCase):
    def test_calls_of_functions_are_counted_and_no_others(self):
        self.assertEqual(fleet_rate.calls_of(STATS), 1234)
        self.assertEqual(fleet_rate.calls_of("# Commandstats\r\n"), 0)

    def test_a_machine_that_waits_for_its_disk_is_not_busy(self):
        busy, whole = fleet_rate.machine_seconds(STAT)
        self.assertAlmostEqual(busy, 200 / front_bench.TICKS)
        self.assertAlmostEqual(whole, 1400 / front_bench.TICKS)

    def test_servers_get_the_device_and_the_store(self):
        command = fleet_rate.server_command(
            options_of("--rate", "300", "--rows", "32"), 6400)
        self.assertEqual(command[0].name, "txl-bench-front")
        for flag, value in [("--model", "m"), ("--rows", "32"),
                            ("--tokens-per-second", "300.0"),
                            ("--store", "redis://127.0.0.1:6400")]:
            self.assertEqual(command[command.index(flag) + 1], value)

    def test_each_server_s_load_has_sessions_and_draws_of_its_own(self):
        command = fleet_rate.load_command(
            options_of("--turns", "5", "--warmup", "2", "--seconds", "9"),
            "a:1", 2)
        for flag, value in [("--server", "a:1"), ("--turns", "5"),
                            ("--seed", "2"), ("--warmup", "2.0"),
                            ("--seconds", "11.0")]:
            self.assertEqual(command[command.index(flag) + 1], value)

    def test_a_line_adds_servers_up(self):
        line = fleet_rate.line_of(
            [report_of(400, 4, 60, {"OK": 60}),
             report_of(410, 4.1, 65, {"OK": 64, "X": 1})], (1000, 20), (8, 40),
            0.05)
        self.assertEqual(line["servers"], 2)
        self.assertEqual(line["tokens_per_second"], 810)
        self.assertAlmostEqual(line["turns_per_second"], 8.1)
        self.assertEqual(line["commands_per_second"], 50)
        self.assertEqual(line["commands_per_turn"], 8)
        self.assertEqual(line["machine_busy"], 0.2)
        self.assertEqual(line["redis_share_of_a_core"], 0.05)
        self.assertEqual(line["statuses"], {"OK": 124, "X": 1})

    def test_proportion_is_to_the_first_line(self):
        lines = list(fleet_rate.with_proportion(iter([
            {"servers": 1, "tokens_per_second": 400},
            {"servers": 2, "tokens_per_second": 760},
            {"servers": 3, "tokens_per_second": 1200}])))
        self.assertEqual([line["of_proportion"] for line in lines],
                         [1, 0.95, 1])


if __name__ == "__main__":
    unittest.main()
