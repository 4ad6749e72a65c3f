"""aiperf, as it is, against completions, plain and streamed."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tokenizers
import transformers

from served import MODEL, ServedTest

REQUESTS, PROMPT, ANSWER = 20, 40, 25  # the last two in tokens


def make_tokenizer(folder):
    """The model's vocabulary as aiperf wants it: one token a character."""
    symbols = json.loads((MODEL / "vocab.json").read_text())
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(
        {symbol: i for i, symbol in enumerate(symbols)}, unk_token=" "))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = tokenizers.decoders.Fuse()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token=" ",
        clean_up_tokenization_spaces=False).save_pretrained(folder)


class Benchmark(ServedTest):

    def profile(self, *flags):
        """aiperf's figures, by their names."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        make_tokenizer(f"{folder.name}/tokenizer")
        aiperf = pathlib.Path(sys.executable).with_name("aiperf")
        done = subprocess.run(
            [aiperf, "profile", "--model", "shakespeare", "--url",
             self.server.url, "--endpoint-type", "completions", "--tokenizer",
             f"{folder.name}/tokenizer", "--isl", str(PROMPT), "--osl",
             str(ANSWER), "--concurrency", "4", "--request-count",
             str(REQUESTS), "--random-seed", "1", "--extra-inputs",
             f"max_tokens:{ANSWER}", "--use-server-token-count", "--ui",
             "none", "--output-artifact-dir", f"{folder.name}/out", *flags],
            cwd=folder.name, text=True, timeout=400, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        found = list(pathlib.Path(folder.name, "out").rglob(
            "profile_export_aiperf.json"))
        self.assertEqual(len(found), 1, done.stdout[-4000:])
        return json.loads(found[0].read_text())

    def setUp(self):
        self.delivered = self.server.status()["tokens_delivered"]

    def check(self, figures, *timed):
        self.assertEqual(figures["request_count"]["avg"], REQUESTS)
        self.assertEqual(figures.get("error_summary") or [], [])
        self.assertEqual(figures["output_sequence_length"]["avg"], ANSWER)
        for name in ("request_latency", *timed):
            self.assertGreater(figures[name]["avg"], 0, name)
        print(f"aiperf: {REQUESTS} requests, {ANSWER} tokens each, with "
              f"{', '.join(timed) or 'request_latency'}")
        self.server.wait_for_turns(0)
        self.assertEqual(self.server.status()["tokens_delivered"] -
                         self.delivered, REQUESTS * ANSWER)

    def test_streamed_every_token_has_a_time(self):
        self.check(self.profile("--streaming"), "time_to_first_token",
                   "inter_token_latency")

    def test_not_streamed(self):
        self.check(self.profile())


if __name__ == "__main__":
    unittest.main()
