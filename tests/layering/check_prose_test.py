#!/usr/bin/env python3
"""check_prose finds what its patterns are for, and lets good text pass."""

import pathlib
import tempfile
import unittest

import check_prose

# For each pattern a line that it finds, and a better one.
LINES = (
    ("Whoever reaches the port may call.",
     "Anyone who reaches the port may call."),
    ("Nobody reads it again.", "It is not read again."),
    ("as he likes", "as they like, where the cache is here"),
    ("| the queue; likewise |", "| the queue; over it 429 |"),
    ("its shape is no tuple", "there is no tuple; it is no longer so"),
    ("A name that is none of a tenant's.", "None of them is wrong."),
    ("what its control group has", "what its cgroup has"),
    ("closed for good", "closed permanently"),
    ("a store of before", "a store from before the change"),
    ("threads are nicer than others", "threads run at lower priority"),
    ("a certificate that is taken back", "a revoked certificate"),
    ("A list has to be signed.", "A list must be signed."),
    ("some 15 rows", "about 15 rows, some of 20"),
    ("It starts anew.", "It restarts with a new file."),
    ("one that is late shall not", "a late one must not"),
    ("and, where asked to, HTTP", "and HTTP where it is asked for"),
    ("parts thereof", "parts of it, therefore"),
    ("a slot of one's own", "a slot of its own"),
    ("One runs. Whose it is, Redis decides.",
     "Redis decides whose it is. Whose is it?"),
)


class CheckProse(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check_prose.check(root)

    def test_each_pattern_finds_a_bad_line_and_passes_a_good_one(self):
        tried = set()
        for bad, good in LINES:
            with self.subTest(bad):
                found = [p for p in check_prose.COMPILED if p.search(bad)]
                self.assertEqual(1, len(found), found)
                self.assertEqual([], list(check_prose.faults(good)))
                tried.update(found)
        self.assertEqual(tried, set(check_prose.COMPILED))

    def test_an_error_names_file_line_words_and_the_better_ones(self):
        errors = self.check({"docs/a.md": "# A\n\nIt takes some 15 rows.\n"})
        self.assertEqual(['docs/a.md:3: "some 15": better: about'], errors)

    def test_code_and_the_targets_of_links_are_not_prose(self):
        self.assertEqual([], self.check({
            "README.md": "`nobody` and [it](docs/nobody.md)\n"
                         "```\nnobody\n```\n\n    nobody\n",
        }))

    def test_comments_and_messages_are_read_where_folders_are_listed(self):
        header = "// Nobody.\nint nobody;\n"
        source = '// Nobody.\nFail("it is no number");\nFind("nobody");\n'
        self.assertEqual([(1, "Nobody.")],
                         list(check_prose.comment_lines(header)))
        self.assertEqual([(2, "it is no number")],
                         list(check_prose.message_lines(source)))


if __name__ == "__main__":
    unittest.main()
