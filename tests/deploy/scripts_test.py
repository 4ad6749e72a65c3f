#!/usr/bin/env python3
"""What the shell scripts of deploy/ say of themselves and of arguments."""

import itertools
import os
import pathlib
import subprocess
import tempfile
import unittest

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"


class Help(unittest.TestCase):
    def test_help_is_the_comment_at_the_top(self):
        scripts = [script for script in DEPLOY.rglob("*.sh")
                   if "--help) sed" in script.read_text(encoding="utf-8")]
        self.assertGreater(len(scripts), 4)
        for script in scripts:
            lines = script.read_text(encoding="utf-8").splitlines()[1:]
            top = list(itertools.takewhile(lambda line: line[:1] == "#", lines))
            shown = subprocess.run(["bash", script, "--help"], check=True,
                                   capture_output=True, text=True).stdout
            self.assertEqual(shown.splitlines(), top, script)


class Certificates(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)
        self.inner = self.work / "inner"
        self.temporary = self.work / "temporary"
        self.temporary.mkdir()

    def run_script(self, *arguments):
        return subprocess.run(
            ["bash", DEPLOY / "certificates.sh", self.inner, *arguments],
            env={**os.environ, "TMPDIR": str(self.temporary)},
            capture_output=True, text=True, check=False)

    def files(self):
        return {str(path.relative_to(self.work))
                for path in self.work.rglob("*") if not path.is_dir()}

    def test_what_it_cannot_do_is_named_and_leaves_nothing(self):
        for arguments, named in ((["--names", "localhost"], "--names: localhos"),
                                 (["--names", "DNS:a,,IP:1.2.3.4"], "--names"),
                                 (["--names", "IP:1.2.3.4.5"], "1.2.3.4.5"),
                                 (["--days", "90d"], "--days: 90d"),
                                 ([self.work / "other"], "one folder only")):
            ended = self.run_script(*arguments)
            self.assertNotEqual(ended.returncode, 0, arguments)
            self.assertIn(named, ended.stderr)
            self.assertEqual(self.files(), set(), arguments)

    def test_a_second_run_keeps_the_authority(self):
        names = ["--names", "DNS:txl.example.org,IP:10.0.0.7,IP:::1"]
        self.assertEqual(self.run_script(*names).returncode, 0)
        authority = (self.inner / "ca.crt").read_bytes()
        self.assertEqual((self.inner / "ca.crt").stat().st_mode & 0o777, 0o644)
        self.assertEqual((self.inner / "ca.key").stat().st_mode & 0o777, 0o600)
        first = (self.inner / "server/tls.crt").read_bytes()
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual((self.inner / "ca.crt").read_bytes(), authority)
        self.assertNotEqual((self.inner / "server/tls.crt").read_bytes(), first)
        for pair in ("server", "proxy"):
            subprocess.run(["openssl", "verify", "-CAfile",
                            self.inner / "ca.crt", self.inner / pair / "tls.crt"],
                           check=True, capture_output=True)
        self.assertEqual(len(self.files()), 8)


if __name__ == "__main__":
    unittest.main()
