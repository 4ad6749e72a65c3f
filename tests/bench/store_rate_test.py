#!/usr/bin/env python3
"""store_rate sends what servers send, and divides the right numbers."""

import tempfile
import unittest

import store_rate


def options_of(*arguments):
    return store_rate.parse_options(arguments)


class StoreRate(unittest.TestCase):
    def test_a_command_is_its_words_with_their_bytes(self):
        self.assertEqual(store_rate.command("GET", b"\r\n"),
                         b"*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\n")

    def test_a_turn_of_200_tokens_is_nine_commands(self):
        calls = store_rate.turn("k", 0, 200, 32)
        self.assertEqual(len(calls), 9)
        names = [request.split(b"\r\n")[4] for request, _ in calls]
        self.assertEqual(names, [b"txl_1_acquire", b"txl_1_begin",
                                 *[b"txl_1_append"] * 6, b"txl_1_end"])

    def test_redis_answers_every_command_of_several_turns_as_expected(self):
        options = options_of("--tokens", "10", "--append", "4")
        with tempfile.TemporaryDirectory() as folder, \
                store_rate.running_redis(folder, "everysec") as (_, port):
            connection = store_rate.Connection(port, "a", 3, options)
            self.addCleanup(connection.close)
            for number in range(3):
                for request, expected in connection.rounds(number):
                    connection.ask(request, expected)  # or it exits
            with self.assertRaises(SystemExit):  # the same turn once more
                for request, expected in connection.rounds(2):
                    connection.ask(request, expected)
            ids = store_rate.command("STRLEN", "txl:{a-0}:i")
            connection.ask(ids, b":30\r\n")

    def test_a_line_counts_commands_turns_and_processor_time(self):
        # Two connections of 4 commands a round, which take 10 ms.
        line = store_rate.line_of(options_of(), 8, 4,
                                  [[0.01] * 100, [0.01] * 100], (2.0, 0.5))
        self.assertAlmostEqual(line["commands_per_second"], 800)
        self.assertAlmostEqual(line["turns_per_second"], 800 / 9)
        self.assertAlmostEqual(line["round_seconds"], 0.01)
        self.assertAlmostEqual(line["redis_microseconds_per_command"], 625)
        self.assertAlmostEqual(line["redis_share_of_a_core"], 0.25)

    def test_a_fit_finds_the_commit_and_the_command(self):
        commit, each = store_rate.fit(
            [(n, 0.004 + n * 13e-6) for n in (1, 8, 64, 512)])
        self.assertAlmostEqual(commit, 0.004)
        self.assertAlmostEqual(each, 13e-6)

    def test_neither_of_them_is_negative(self):
        self.assertEqual(store_rate.fit([(1, 1e-5), (100, 2e-3)])[0], 0)
        self.assertEqual(store_rate.fit([(1, 0.5), (2, 0.4)])[1], 0)

    def test_redis_is_full_when_its_core_does_nothing_else(self):
        line = store_rate.fit_line([
            {"in_flight": n, "round_seconds": 0.002 + n * 1e-4,
             "redis_microseconds_per_command": 20 + 100 / n}
            for n in (1, 20)])
        self.assertAlmostEqual(line["command_seconds"], 1e-4)
        self.assertAlmostEqual(line["full_at_commands_per_second"], 40_000)


if __name__ == "__main__":
    unittest.main()
