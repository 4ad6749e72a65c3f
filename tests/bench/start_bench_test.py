#!/usr/bin/env python3
"""start_bench starts a server, reads its log and divides the right numbers."""

import pathlib
import tempfile
import unittest

import start_bench

LOG = """a line that is no JSON
{"event":"self_test","fields":{"kernel":"k","refused":"x"}}
{"event":"self_test","fields":{"kernel":"k","seconds":1.5}}
{"event":"ready","fields":{"self_test":"passed","seconds":2}}"""

# Starts as a server does, and waits to be ended.
STAND_IN = f"""#!/bin/sh
cat >&2 <<'END'
{LOG}
END
echo "listening on 127.0.0.1:1"
exec sleep 60
"""


class StartBench(unittest.TestCase):
    def test_a_folder_is_read_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, size in (("a", 5), ("b", (1 << 20) + 1)):
                (pathlib.Path(folder) / name).write_bytes(bytes(size))
            seconds, size = start_bench.read_seconds(pathlib.Path(folder))
        self.assertEqual(size, (1 << 20) + 6)
        self.assertGreater(seconds, 0)

    def test_the_self_test_is_the_one_that_was_passed(self):
        self.assertEqual(start_bench.self_test_seconds(LOG), 1.5)
        self.assertEqual(start_bench.self_test_seconds("no self-test"), 0)

    def test_a_start_ends_where_the_server_listens(self):
        with tempfile.TemporaryDirectory() as folder:
            server = pathlib.Path(folder) / "server"
            server.write_text(STAND_IN, encoding="utf-8")
            server.chmod(0o755)
            seconds, self_test = start_bench.start(server, folder, [])
        self.assertLess(seconds, 60)
        self.assertEqual(self_test, 1.5)

    def test_a_server_that_does_not_start_is_an_error(self):
        with self.assertRaises(SystemExit):
            start_bench.start("false", "nowhere", [])

    def test_the_ratio_is_that_of_the_medians(self):
        line = start_bench.summary("s", 9, [(1, 9, 2), (1, 6, 2), (3, 1, 8)])
        self.assertEqual(line["ratio"], 6 / (1 + 2))
        self.assertEqual(line["runs"], 3)

    def test_flags_behind_two_dashes_are_the_servers(self):
        options = start_bench.parse_options(
            ["--shapes", "small", "--", "--slots", "2"])
        self.assertEqual(options.shapes, ["small"])
        self.assertEqual(options.flags, ["--slots", "2"])


if __name__ == "__main__":
    unittest.main()
