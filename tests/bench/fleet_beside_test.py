#!/usr/bin/env python3
"""fleet_beside asks both for the same, and reads the right times."""

import unittest

import fleet_beside
import fleet_load
from fleet_load import TurnTimes


class Scripted:
    """Turns of two tokens; `fails`: none of them."""

    def __init__(self, asked, fails=False):
        self._asked, self._fails = asked, fails

    def turn(self, session, ids, tokens, times):
        if self._fails:
            raise ValueError("broken")
        self._asked.append((session, len(ids), tokens))
        times.tokens += [times.due, times.due]

    def close(self):
        pass


def options_of(*arguments):
    return fleet_beside.parse_options(["--model", "m", *arguments])


def load_of(asked, fails=False):
    options = options_of("--conversations", "1000", "--turns", "2", "--think",
                         "0", "--prompt", "5", "--tokens", "7")
    return fleet_load.Load(lambda: Scripted(asked, fails), options, 1)


class Loads(unittest.TestCase):
    def test_a_conversation_is_turns_of_one_session_which_is_free_then(self):
        asked = []
        load = load_of(asked)
        free = set(load.sessions())
        load.run(0.05)
        self.assertEqual(load.failures, [])
        self.assertGreater(len(asked), 2)
        self.assertEqual(len(asked) % 2, 0)
        self.assertEqual({(prompt, tokens) for _, prompt, tokens in asked},
                         {(5, 7)})
        self.assertEqual(set(load.sessions()), free)
        self.assertTrue(all(turn.ended for turn in load.turns))

    def test_a_turn_that_fails_is_told(self):
        load = load_of([], fails=True)
        load.run(0.05)
        self.assertIn("broken", load.failures[0])
        self.assertIsNone(load.turns[0].ended)

    def test_a_conversation_without_a_session_is_refused(self):
        asked = []
        options = options_of("--conversations", "1000", "--sessions", "0")
        load = fleet_load.Load(lambda: Scripted(asked), options, 1)
        load.run(0.05)
        self.assertGreater(load.refused, 2)
        self.assertEqual((asked, load.failures, load.turns), ([], [], []))

    def test_a_takeover_is_from_the_kill_to_the_next_token(self):
        broken = TurnTimes(9.0, [9.5, 9.9, 11.2, 11.3], [10.1, 10.4], 12.0)
        spared = TurnTimes(9.0, [9.5, 10.2, 11.0], [], 11.0)
        later = TurnTimes(10.05, [10.9], [10.5], 11.0)  # begun behind it
        back, last = fleet_load.takeovers([broken, spared, later], [10.0])
        self.assertEqual([round(each, 6) for each in back], [1.2])
        self.assertEqual([round(each, 6) for each in last], [0.4])

    def test_figures_are_of_what_fell_between_the_two_moments(self):
        turns = [TurnTimes(1.0, [1.5, 2.5], [], 2.6),
                 TurnTimes(2.0, [2.25, 3.0, 5.0], [], 5.0)]
        self.assertEqual(fleet_load.figures(turns, 2.0, 4.0), {
            "turns_per_second": 0.5, "tokens_per_second": 1.5,
            "first_token_seconds": 0.25})


class Beside(unittest.TestCase):
    def test_the_calculation_has_the_same_fleet_load_and_failures(self):
        options = options_of("--kills", "2", "--every", "8", "--warmup", "10",
                             "--repeats", "2", "--rate", "500")
        command = fleet_beside.sim_command(options, (0.001, 2e-5, 0.25),
                                           [10.5, 18.5])
        for flag, value in [("--servers", "3"), ("--step", "1:0.002"),
                            ("--prompt-row-seconds", "0.002"),
                            ("--conversations", "1.8"), ("--turns", "4"),
                            ("--commit-seconds", "0.001"),
                            ("--command-seconds", "2e-05"),
                            ("--detect-seconds", "0.25"),
                            ("--seconds", "42.0")]:
            self.assertEqual(command[command.index(flag) + 1], value)
        fails = [command[at + 1] for at, word in enumerate(command)
                 if word == "--fail"]
        self.assertEqual(fails, ["10.500:1:2", "18.500:1:2", "36.500:1:2",
                                 "44.500:1:2"])

    def test_ratios_are_calculated_over_measured(self):
        measured = {"tokens_per_second": 400, "takeovers": 9,
                    "takeover_seconds": 0.5}
        simulated = {"tokens_per_second": 420, "takeovers": 200,
                     "takeover_seconds": 0.4}
        self.assertEqual(fleet_beside.ratios(measured, simulated),
                         {"tokens_per_second": 1.05, "takeover_seconds": 0.8})


if __name__ == "__main__":
    unittest.main()
