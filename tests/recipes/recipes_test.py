"""The recipes of docs/recipes.md do what the page says.

Usage: recipes_test.py TXL TXL_MODEL TXL_SERVER [TEST...]
"""

import json
import pathlib
import sys
import tempfile
import unittest

import mido

from kitchen import ROOT, Kitchen
from recipe_page import recipes

PAGE = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
PROGRAMS = []


class PageTest(unittest.TestCase):
    def test_code_becomes_one_script(self):
        page = ("# T\n```\nnot me\n```\n## A b\ntext\n```\none &\ntwo\n```\n"
                "more\n```python\nthree\n```\n## C\n")
        first, second = recipes(page)
        self.assertEqual("A b", first.title)
        self.assertEqual(
            "one &\nserver_is_up\ntwo\n"
            "python - <<'END_OF_PYTHON'\nthree\nEND_OF_PYTHON\n", first.script)
        self.assertEqual(("C", ""), (second.title, second.script))

    def test_other_languages_are_refused(self):
        with self.assertRaisesRegex(ValueError, "a block of lua"):
            recipes("## A\n```lua\n```\n")

    def test_the_list_has_every_recipe(self):
        listed = [line[3:].split("](")[0] for line in PAGE.splitlines()
                  if line.startswith("- [")]
        self.assertEqual([each.title for each in recipes(PAGE)], listed)


class RecipesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="txl-recipes-")
        cls.addClassCleanup(cls._folder.cleanup)
        cls.kitchen = Kitchen(pathlib.Path(cls._folder.name), PROGRAMS)

    def cook(self, words):
        """The folder and the output of the recipe with `words` in its title."""
        found = [each for each in recipes(PAGE) if words in each.title]
        self.assertEqual(1, len(found), words)
        return self.kitchen.run(found[0], words.split()[0])

    def test_every_recipe_has_a_test(self):
        tests = [name for name in dir(self) if name.startswith("test_")]
        self.assertEqual(len(recipes(PAGE)), len(tests) - 1)

    def test_generate_text(self):
        place, said = self.cook("Generate text")
        self.assertTrue((place / "my-model/model.safetensors").exists())
        answer = json.loads(said[said.index('{"created"'):])
        self.assertEqual("my-model", answer["model"])
        self.assertEqual(50, answer["usage"]["completion_tokens"])

    def test_perplexity(self):
        _, said = self.cook("Perplexity")
        self.assertEqual(3, said.count("perplexity "))
        rows = [line.split() for line in said.splitlines()[-2:]]
        self.assertLess(float(rows[0][0]), float(rows[1][0]))
        self.assertEqual(["19", "17"], [row[2] for row in rows])

    def test_fine_tune(self):
        place, said = self.cook("Fine-tune")
        self.assertTrue((place / "my-shakespeare/losses.svg").exists())
        self.assertEqual(100 + len("\n"), len(said), said)

    def test_continue_a_midi_file(self):
        place, said = self.cook("Continue a MIDI file")
        notes = [[each.note for each in mido.MidiFile(place / name)
                  if each.type == "note_on" and each.velocity]
                 for name in ("song.mid", "longer.mid")]
        self.assertEqual(notes[0], notes[1][:len(notes[0])])
        self.assertTrue(said.split("\n", 3)[-1].strip())

    def test_from_a_folder_of_midi_files(self):
        place, said = self.cook("From a folder")
        self.assertTrue((place / "my-music/losses.svg").exists())
        events = said.split("\nhttp on ")[1].split("\n", 1)[1].split()
        self.assertEqual(200, len(events))
        # --follow-kinds: a note is three events.
        for before, event in zip(events, events[1:]):
            for first, second in (("Note_Pitch_", "Note_Velocity_"),
                                  ("Note_Velocity_", "Note_Duration_")):
                self.assertEqual(before.startswith(first),
                                 event.startswith(second), (before, event))

    def test_rescore(self):
        place, _ = self.cook("Rescore")
        for text in ("kaldi-out/text", "espnet-out/1best_recog/text",
                     "nemo-out/text"):
            self.assertTrue((place / text).read_text().endswith(
                "to be or not\n"), text)
        self.assertEqual(4, len((place / "kaldi-out/lmwt.nn").read_text()
                                .splitlines()))

    def test_batch(self):
        place, _ = self.cook("JSONL batch")
        answers = [json.loads(line) for line in
                   (place / "answers.jsonl").read_text().splitlines()]
        self.assertEqual({"1": 200, "2": 200}, {
            each["custom_id"]: each["response"]["status_code"]
            for each in answers})


if __name__ == "__main__":
    PROGRAMS[:] = map(pathlib.Path, sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main()
