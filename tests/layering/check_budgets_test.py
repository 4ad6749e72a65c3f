#!/usr/bin/env python3
"""check_budgets counts a file to the nearest budget and finds what is over."""

import pathlib
import tempfile
import unittest

import check_budgets

BUDGETS = {"server": {"lines": 10, "files": 1},
           "server/http": {"lines": 10, "files": 2}}


class CheckBudgets(unittest.TestCase):
    def sizes(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, lines in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text("\n" * lines, encoding="utf-8")
            return check_budgets.sizes(
                root, [pathlib.PurePosixPath(name) for name in files], BUDGETS)

    def test_a_file_counts_to_the_nearest_folder(self):
        self.assertEqual(
            {"server": [3, 1], "server/http": [9, 2]},
            self.sizes({"server/main.cc": 3, "server/http/a.h": 4,
                        "server/http/page/b.js": 5}))

    def test_budgets_are_limits(self):
        found = self.sizes({"server/main.cc": 10, "server/http/a.h": 10})
        self.assertEqual([], check_budgets.over(BUDGETS, found))
        found = self.sizes({"server/main.cc": 10, "server/b.cc": 1})
        self.assertEqual(["server: 11 lines, its budget is 10",
                          "server: 2 files, its budget is 1"],
                         check_budgets.over(BUDGETS, found))

    def test_every_folder_has_a_budget(self):
        found = self.sizes({"model/a.cc": 3})
        self.assertEqual(
            ["files outside of all folders: 3 lines and no budget"],
            check_budgets.over(BUDGETS, found))


if __name__ == "__main__":
    unittest.main()
