#!/usr/bin/env python3
"""The commands of the wheel become its programs, here programs that say how
they were started."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

PACKAGE = (pathlib.Path(__file__).resolve().parents[2] /
           "deploy/wheel/txl_server")
COMMANDS = {"txl-server": "txl_server", "txl": "txl", "txl-model": "txl_model"}
SAY = """#!/bin/sh
echo "$0" "$@"
grep SigIgn /proc/$$/status
cat
exit 37
"""


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = pathlib.Path(folder.name)
        shutil.copytree(PACKAGE, self.site / "txl_server")
        (self.site / "txl_server/bin").mkdir()
        (self.site / "torch/lib").mkdir(parents=True)

    def program(self, name, script):
        path = self.site / "txl_server/bin" / name
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)
        return path

    def start(self, function, *arguments, **options):
        """As the script that pip makes of an entry point."""
        return subprocess.Popen(
            [sys.executable, "-B", "-c",
             f"import sys, txl_server; sys.exit(txl_server.{function}())",
             *arguments],
            env={**os.environ, "PYTHONPATH": str(self.site)}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **options)

    def test_arguments_standard_streams_and_exit_codes_are_the_programs(self):
        for name, function in COMMANDS.items():
            path = self.program(name, SAY)
            process = self.start(function, "--prompt", "a b", "")
            out, err = process.communicate("read by it")
            self.assertEqual(process.returncode, 37)
            self.assertEqual(err, "")
            self.assertTrue(out.startswith(f"{path} --prompt a b \n"), out)
            self.assertTrue(out.endswith("\nread by it"), out)

    def test_no_signal_is_ignored_that_a_shell_would_not_ignore(self):
        self.program("txl", SAY)
        out, _ = self.start("txl").communicate("")
        ignored = int(out.split("SigIgn:")[1].split()[0], 16)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            self.assertFalse(ignored >> (number - 1) & 1, number)

    def test_signals_reach_the_program_which_is_the_same_process(self):
        self.program("txl-server", "#!/bin/sh\ntrap 'exit 5' TERM\n"
                                   "echo $$\nwhile :; do sleep 0.01; done\n")
        process = self.start("txl_server")
        self.assertEqual(int(process.stdout.readline()), process.pid)
        process.terminate()
        process.communicate()
        self.assertEqual(process.returncode, 5)

    def test_without_libtorch_beside_it_a_command_says_so(self):
        self.program("txl-model", SAY)
        (self.site / "torch/lib").rmdir()
        process = self.start("txl_model")
        out, err = process.communicate("")
        self.assertEqual((process.returncode, out), (1, ""))
        self.assertIn("txl-model: LibTorch is looked for", err)
        self.assertIn(str(self.site / "txl_server"), err)


if __name__ == "__main__":
    unittest.main()
