#!/usr/bin/env python3
"""What counts as a process's own memory."""

import mmap
import os
import pathlib
import tempfile
import unittest

import own_memory

_MIB = 1 << 20


def _status(anon=0, swap=0, file=0, shmem=0, peak=0):
    return own_memory.parse("".join(f"{name}:\t{kib:8} kB\n" for name, kib in (
        ("VmHWM", peak), ("RssAnon", anon), ("RssFile", file),
        ("RssShmem", shmem), ("VmSwap", swap))))


def _of_this_process():
    return own_memory.parse(pathlib.Path("/proc/self/status").read_text())


class OwnMemoryTest(unittest.TestCase):
    def test_sizes_are_bytes_and_other_fields_are_left_out(self):
        self.assertEqual(
            own_memory.parse("Name:\tkB\nThreads:\t7\nRssAnon:\t 12 kB\n"
                             "SigQ:\t1/2\nGroups:\t \n"),
            {"RssAnon": 12 * 1024})

    def test_own_is_what_no_file_holds_in_memory_or_swapped_out(self):
        status = _status(anon=3, swap=4, file=50, shmem=60, peak=700)
        self.assertEqual(own_memory.own(status), 7 * 1024)

    def test_pages_of_files_are_no_growth(self):
        before = _status(anon=100, file=10, peak=110)
        now = _status(anon=100, file=90, peak=190)
        self.assertEqual(own_memory.growth(before, now), 0)

    def test_pages_of_files_that_the_kernel_took_back_are_no_growth(self):
        before = _status(anon=100, file=90, peak=190)
        now = _status(anon=100, file=10, peak=190)
        self.assertEqual(own_memory.growth(before, now), 0)

    def test_a_peak_that_is_over_is_growth(self):
        before = _status(anon=100, file=10, shmem=5, peak=115)
        now = _status(anon=101, file=12, shmem=5, peak=167)
        self.assertEqual(own_memory.growth(before, now), 50 * 1024)

    def test_what_was_swapped_out_is_growth(self):
        before = _status(anon=100, peak=100)
        now = _status(anon=20, swap=130, peak=100)
        self.assertEqual(own_memory.growth(before, now), 50 * 1024)

    def test_a_process_that_reads_a_file_does_not_grow_by_it(self):
        with tempfile.TemporaryFile() as file:
            file.write(os.urandom(16 * _MIB))
            file.flush()
            before = _of_this_process()
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                self.assertEqual(len(mapped[::4096]), 4096)
                now = _of_this_process()
            self.assertGreaterEqual(now["VmRSS"] - before["VmRSS"], 8 * _MIB)
            self.assertLess(own_memory.own(now) - own_memory.own(before), _MIB)

    def test_a_process_grows_by_what_it_fills(self):
        before = _of_this_process()
        filled = bytearray(os.urandom(16 * _MIB))
        grown = own_memory.own(_of_this_process()) - own_memory.own(before)
        self.assertGreaterEqual(grown, len(filled) - _MIB)


if __name__ == "__main__":
    unittest.main()
