#!/usr/bin/env python3
"""check_sizes finds what is too long, and lets pass what is just short enough."""

import pathlib
import tempfile
import unittest

import check_sizes


def function(lines, parameters="int a"):
    body = "  ++a;\n" * (lines - 2)
    return f"int Count({parameters}) {{\n{body}}}\n"


class CheckSizes(unittest.TestCase):
    def check(self, text, name="model/text/a.cc"):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            path = root / name
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8")
            return check_sizes.check(root)

    def test_files(self):
        self.assertEqual([], self.check("\n" * 800))
        self.assertEqual(["model/text/a.cc: 801 lines, at most 800"],
                         self.check("\n" * 801))

    def test_functions(self):
        self.assertEqual([], self.check(function(60)))
        self.assertEqual(["model/text/a.cc:1: Count: 61 lines, at most 60"],
                         self.check(function(61)))

    def test_kernels_are_functions(self):
        self.assertEqual(
            ["model/cuda/kernels/a.cu:1: Count: 61 lines, at most 60"],
            self.check(function(61), "model/cuda/kernels/a.cu"))

    def test_parameters(self):
        six = ", ".join(f"int {name}" for name in "abcdef")
        self.assertEqual([], self.check(function(3, six)))
        self.assertEqual(["model/text/a.cc:1: Count: 7 parameters, at most 6"],
                         self.check(function(3, six + ", int g")))


if __name__ == "__main__":
    unittest.main()
