#!/usr/bin/env python3
"""Clocks and disks of one's own do what the real ones do.

Usage: own_test.py build/tests/libtxl_moved_clock.so
"""

import errno
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time
import unittest

import paths  # pylint: disable=unused-import

import own_clock
import own_disk

_HOUR = 3600
_PATIENCE = 60
LIBRARY = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else \
    paths.CLOCK

# Says what time it is whenever it is asked.
_TELLS = """
import time
while input():
    print(time.time(), time.monotonic(), flush=True)
"""

# Waits by the C library's syscall until a time of the wall clock, as Abseil
# does; FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME.
_WAITS = """
import ctypes, errno, sys, time
libc = ctypes.CDLL(None, use_errno=True)
word = ctypes.c_int(0)
until = (ctypes.c_int64 * 2)(int(time.time()) + int(sys.argv[1]), 0)
print("waits", flush=True)
result = libc.syscall(ctypes.c_long(202), ctypes.byref(word),
                      ctypes.c_long(9 | 128 | 256), ctypes.c_long(0), until,
                      None, ctypes.c_long(0xffffffff))
print(result, errno.errorcode[ctypes.get_errno()], flush=True)
"""


class Clock(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.clock = own_clock.OwnClock(LIBRARY,
                                        pathlib.Path(folder.name) / "clock")

    def program(self, text, *arguments):
        run = subprocess.Popen(
            [sys.executable, "-c", text, *arguments], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, **self.clock.environment})
        self.addCleanup(run.communicate, timeout=_PATIENCE)
        self.addCleanup(run.kill)
        return run

    def line(self, program):
        self.assertTrue(select.select([program.stdout], [], [], _PATIENCE)[0])
        return program.stdout.readline()

    def ask(self, program):
        """(how far its wall clock is ahead, its monotonic clock)."""
        program.stdin.write("?\n")
        program.stdin.flush()
        wall, monotonic = self.line(program).split()
        return float(wall) - time.time(), float(monotonic)

    def test_a_running_program_s_wall_clock_jumps_and_the_other_does_not(self):
        program = self.program(_TELLS)
        self.assertLess(abs(self.ask(program)[0]), _HOUR / 2)
        for jump, ahead in ((_HOUR, 1), (-3 * _HOUR, -2), (2 * _HOUR, 0)):
            self.clock.jump(jump)
            before, read = time.monotonic(), self.clock.readings()
            wall, monotonic = self.ask(program)
            self.assertAlmostEqual(wall / _HOUR, ahead, delta=0.1)
            self.assertLessEqual(before, monotonic)
            self.assertLessEqual(monotonic, time.monotonic())
            self.assertGreater(self.clock.readings(), read)

    def test_a_wait_ends_when_the_clock_jumps_over_its_end(self):
        program = self.program(_WAITS, str(_HOUR))
        self.assertEqual(self.line(program), "waits\n")
        self.clock.jump(2 * _HOUR)
        self.assertEqual(self.line(program), "-1 ETIMEDOUT\n")

    def test_a_wait_until_an_earlier_time_is_none(self):
        self.clock.jump(-2 * _HOUR)
        program = self.program(_WAITS, "-1")
        self.assertEqual(self.line(program), "waits\n")
        self.assertEqual(self.line(program), "-1 ETIMEDOUT\n")


class Disk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        own_disk.own_mounts()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "disk"
        self.disk = own_disk.Disk(self.folder)
        self.addCleanup(self.disk.close)

    def test_a_full_one_takes_nothing_and_keeps_what_it_has(self):
        kept = self.folder / "kept"
        kept.write_bytes(bytes(100_000))
        for more in (self.folder / "more", self.folder / "still more"):
            self.disk.fill()
            with self.assertRaises(OSError) as caught:
                more.write_bytes(bytes(100_000))
            self.assertEqual(caught.exception.errno, errno.ENOSPC)
            with self.assertRaises(OSError), kept.open("ab") as file:
                file.write(bytes(100_000))
            self.disk.free()
            more.write_bytes(bytes(100_000))
            self.assertEqual(kept.read_bytes()[:100_000], bytes(100_000))

    def test_an_empty_one_can_be_full(self):
        self.disk.fill()
        with self.assertRaises(OSError):
            (self.folder / "more").write_bytes(bytes(100_000))

    def test_others_do_not_see_it(self):
        (self.folder / "mine").touch()
        mounts = pathlib.Path(f"/proc/{os.getppid()}/mounts").read_text()
        self.assertNotIn(str(self.folder), mounts)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
