"""lm-evaluation-harness, as it is, with three tasks that need no network: its
numbers are those of the model's reference arithmetic."""

import array
import json
import os
import pathlib
import struct
import tempfile
import unittest

os.environ["HF_HUB_OFFLINE"] = "1"  # the tasks' data lie in a folder here
os.environ["TQDM_DISABLE"] = "1"

import lm_eval  # pylint: disable=wrong-import-position
import lm_eval.tasks  # pylint: disable=wrong-import-position

from served import MODEL, ServedTest, run_program

SPEECH = """ROMEO:
I dream'd a dream to-night.

MERCUTIO:
And so did I.

ROMEO:
Well, what was yours?

MERCUTIO:
That dreamers often lie.
"""
STARTS = ["KING RICHARD III:\nI will", "First Citizen:\nYou are",
          "JULIET:\nO, what", "HAMLET:\nThe king"]
UNTIL = [".", ";"]
TASKS = {
    "choice": """
task: choice
output_type: multiple_choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/choice.jsonl}}}}
test_split: test
doc_to_text: "{{{{start}}}}"
doc_to_choice: "{{{{ends}}}}"
doc_to_target: 0
target_delimiter: ""
metric_list: [{{metric: acc}}]
""",
    "rolling": """
task: rolling
output_type: loglikelihood_rolling
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/rolling.jsonl}}}}
test_split: test
doc_to_text: ""
doc_to_target: "{{{{text}}}}"
metric_list: [{{metric: byte_perplexity}}]
""",
    "generation": """
task: generation
output_type: generate_until
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/generation.jsonl}}}}
test_split: test
doc_to_text: "{{{{start}}}}"
doc_to_target: "{{{{text}}}}"
generation_kwargs: {{until: {until}, max_gen_toks: 60, temperature: 0}}
metric_list: [{{metric: exact_match}}]
""",
}


class Reference:
    """log P(token | all before it) by `txl-model logprobs`."""

    def __init__(self, folder):
        self._folder = folder
        symbols = json.loads((MODEL / "vocab.json").read_text())
        self._ids = {symbol: i for i, symbol in enumerate(symbols)}

    def rows(self, text):
        """The ids, and behind each the distribution of the next one."""
        ids = [self._ids[symbol] for symbol in text]
        tokens = pathlib.Path(self._folder, "tokens.safetensors")
        out = pathlib.Path(self._folder, "out.safetensors")
        head = json.dumps({"tokens": {
            "dtype": "I64", "shape": [len(ids)],
            "data_offsets": [0, 8 * len(ids)]}}).encode()
        tokens.write_bytes(struct.pack("<Q", len(head)) + head +
                           array.array("q", ids).tobytes())
        run_program("txl-model", "logprobs", MODEL, "--tokens", tokens,
                    "--out", out, "--feed", "stepwise", "--threads", 1)
        data = out.read_bytes()
        size = struct.unpack_from("<Q", data)[0]
        about = json.loads(data[8:8 + size])["logprobs"]
        begin, end = about["data_offsets"]
        values = array.array("d", data[8 + size + begin:8 + size + end])
        width = about["shape"][1]
        return ids, [values[i:i + width] for i in range(0, len(values), width)]

    def score(self, context, text):
        """(log-probability of the text, whether each token is the likeliest)"""
        ids, rows = self.rows(context + text)
        pairs = [(rows[i - 1], ids[i]) for i in range(len(context), len(ids))]
        return (sum(row[token] for row, token in pairs),
                all(row[token] == max(row) for row, token in pairs))


def greedy(server, start, tokens):
    return run_program("txl", "generate", "--server", server.grpc, "--prompt",
                       start, "--temperature", 0, "--max-tokens", tokens,
                       "--seed", 1).removesuffix("\n")


class Evaluation(ServedTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.reference = Reference(folder.name)
        likeliest = [greedy(cls.server, start, 12) for start in STARTS]
        rows = {
            "choice": [{"start": start, "ends": [end, " be gone", "zq!"]}
                       for start, end in zip(STARTS, likeliest)],
            "rolling": [{"text": SPEECH}, {"text": "".join(STARTS)}],
            "generation": [{"start": start, "text": ""} for start in STARTS],
        }
        for task, text in TASKS.items():
            path = pathlib.Path(folder.name, task)
            path.with_suffix(".yaml").write_text(
                text.format(folder=folder.name, until=UNTIL))
            path.with_suffix(".jsonl").write_text(
                "".join(json.dumps(row) + "\n" for row in rows[task]))
        cls.samples = lm_eval.simple_evaluate(
            model="local-completions",
            model_args={"model": "shakespeare", "num_concurrent": 2,
                        "base_url": cls.server.v1 + "/completions",
                        "max_retries": 1},
            tasks=list(TASKS), batch_size=4, bootstrap_iters=0,
            task_manager=lm_eval.tasks.TaskManager(
                include_path=folder.name, include_defaults=False),
        )["samples"]

    def test_choices_are_scored_as_by_the_reference_greedy_ones_known(self):
        worst, flags = 0, []
        for sample in self.samples["choice"]:
            doc = sample["doc"]
            for end, ((got, is_greedy),) in zip(doc["ends"], sample["resps"],
                                                strict=True):
                want, likeliest = self.reference.score(doc["start"], end)
                worst = max(worst, abs(got - want))
                self.assertLess(abs(got - want), 1e-4, (doc["start"], end))
                self.assertEqual(is_greedy, likeliest, (doc["start"], end))
                flags.append(is_greedy)
        print(f"lm_eval choice: {len(flags)} loglikelihoods, worst difference "
              f"{worst:.1e}, {sum(flags)} greedy")
        self.assertEqual(sum(flags), len(STARTS))

    def test_a_rolling_text_is_scored_from_its_first_token_on(self):
        samples = self.samples["rolling"]
        self.assertEqual(len(samples), 2)
        for sample in samples:
            text = sample["doc"]["text"]
            want, _ = self.reference.score("\n", text)
            got = sample["resps"][0][0]
            print(f"lm_eval rolling: {len(text)} tokens, {got:.6f}, reference "
                  f"{want:.6f}")
            self.assertLess(abs(got - want), 1e-4)

    def test_generation_is_greedy_decoding_up_to_a_stop_text(self):
        texts = []
        for sample in self.samples["generation"]:
            want = greedy(self.server, sample["doc"]["start"], 60)
            for stop in UNTIL:
                want = want.partition(stop)[0]
            self.assertEqual(sample["resps"], [[want]])
            texts.append(want)
        print(f"lm_eval generation: {len(texts)} texts, {texts[0]!r} ...")
        self.assertTrue(all(texts))


if __name__ == "__main__":
    unittest.main()
