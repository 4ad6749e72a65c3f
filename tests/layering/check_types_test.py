#!/usr/bin/env python3
"""check_types finds a type that stands twice, and no other."""

import pathlib
import tempfile
import unittest

import check_types


def header(body, namespace="txl"):
    return f"#pragma once\n\nnamespace {namespace} {{\n\n{body}\n\n}}\n"


class CheckTypes(unittest.TestCase):
    def check(self, first, second, name="server/store/b.h"):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in (("server/session/a.h", first), (name, second)):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            return check_types.check(root)

    def test_a_type_that_stands_twice(self):
        self.assertEqual(
            ["server/store/b.h: txl::Report: also in server/session/a.h"],
            self.check(header("struct Report {\n  int a;\n};"),
                       header("class Report final : public Base {\n};")))

    def test_other_namespaces(self):
        self.assertEqual([], self.check(header("struct Report {\n};"),
                                        header("struct Report {\n};",
                                               "txl::cli")))

    def test_declarations_and_nested_types(self):
        self.assertEqual([], self.check(
            header("struct Report {\n};\nstruct Kind {\n};"),
            header("struct Report;\nclass Other {\n  struct Kind {\n  };\n};")))

    def test_sources_and_tests_have_their_own(self):
        for name in ("server/store/b.cc", "tests/server/b.h"):
            self.assertEqual([], self.check(header("struct Report {\n};"),
                                            header("struct Report {\n};"),
                                            name))


if __name__ == "__main__":
    unittest.main()
