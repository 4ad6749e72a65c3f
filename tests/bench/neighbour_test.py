#!/usr/bin/env python3
"""neighbour takes the engine's decoding lines and divides the right times."""

import unittest

import neighbour


class Neighbour(unittest.TestCase):
    def test_a_line_has_the_tail_in_medians(self):
        line = neighbour.line_of(
            2, True, {"kind": "decode", "sessions": 8,
                      "step_milliseconds_p50": 50.0,
                      "step_milliseconds_p99": 70.0})
        self.assertEqual(line["sessions"], 8)
        self.assertEqual(line["threads"], 2)
        self.assertTrue(line["neighbour"])
        self.assertEqual(line["p99_over_p50"], 1.4)

    def test_only_decoding_lines_count(self):
        output = ('{"kind": "machine"}\n'
                  '{"kind": "decode", "sessions": 1}\n'
                  '{"kind": "prompt"}\n'
                  '{"kind": "decode", "sessions": 8}\n')
        self.assertEqual([line["sessions"]
                          for line in neighbour.engine_lines(output)], [1, 8])

    def test_flags_behind_two_dashes_are_the_engines(self):
        options = neighbour.parse_options(
            ["--model", "m", "--rate", "7", "--", "--derived", "f16"])
        self.assertEqual(options.flags, ["--derived", "f16"])
        command = neighbour.load_command(options, "unix:x")
        self.assertEqual(command[command.index("--rate") + 1], "7")


if __name__ == "__main__":
    unittest.main()
