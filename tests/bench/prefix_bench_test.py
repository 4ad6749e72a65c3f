#!/usr/bin/env python3
"""prefix_bench asks for the right prompts and compares the right figures."""

import json
import pathlib
import tempfile
import unittest

import prefix_bench


def answer(cached, logprob=-0.5):
    """Of one choice, to a prompt of 100 tokens."""
    return {"id": "cmpl-1", "created": 1, "choices": [
        {"index": 0, "text": "a", "finish_reason": "length",
         "logprobs": {"token_logprobs": [None, logprob]}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 1,
                  "prompt_tokens_details": {"cached_tokens": cached}}}


class FakeSide:
    """Answers in turn with what it was given, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def ask(self, path, body):
        self.asked.append((path, body))
        return self.answers.pop(0)

    def first_token(self, **body):
        self.asked.append(("/v1/completions", body))
        return self.answers.pop(0)


class PrefixBench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = folder.name
        pathlib.Path(folder.name, "config.json").write_text(
            json.dumps({"vocab_size": 50}), "utf-8")

    def options(self, *arguments):
        return prefix_bench.parse_options(["--model", self.model, *arguments])

    def ids(self, seed=1):
        return prefix_bench.Ids(self.model, seed)

    def test_ids_are_the_vocabularys_and_the_same_for_the_same_seed(self):
        drawn = self.ids().draw(1000)
        self.assertEqual(set(drawn), set(range(50)))
        self.assertEqual(drawn, self.ids().draw(1000))
        self.assertNotEqual(drawn, self.ids(2).draw(1000))

    def test_prompts_share_shots_and_those_of_a_document_its_question(self):
        documents = prefix_bench.few_shot_prompts(self.options(
            "--documents", "3", "--choices", "2", "--shots", "4",
            "--shot-tokens", "10", "--question-tokens", "20",
            "--choice-tokens", "5"), self.ids())
        self.assertEqual([len(prompts) for prompts in documents], [2, 2, 2])
        every = [prompt for prompts in documents for prompt in prompts]
        self.assertEqual({len(prompt) for prompt in every}, {65})
        self.assertEqual(len({tuple(prompt[:40]) for prompt in every}), 1)
        self.assertEqual(len({tuple(prompt[:60]) for prompt in every}), 3)
        self.assertEqual(len({tuple(prompt) for prompt in every}), 6)

    def test_documents_are_asked_for_as_the_harness_does(self):
        who = FakeSide(answer(0), answer(75))
        rate, figures, share = prefix_bench.score_documents(
            who, [[[1, 2], [1, 3]]])
        self.assertEqual([body["prompt"] for _, body in who.asked],
                         [[[1, 2]], [[1, 3]]])
        self.assertEqual({path for path, _ in who.asked}, {"/v1/completions"})
        body = who.asked[0][1]
        self.assertTrue(body["echo"])
        self.assertEqual((body["max_tokens"], body["logprobs"]), (1, 1))
        self.assertGreater(rate, 0)
        self.assertEqual(share, 75 / 200)
        self.assertEqual(figures[0][0]["logprobs"],
                         {"token_logprobs": [None, -0.5]})

    def test_figures_differ_where_a_bit_of_a_logprob_does(self):
        one = prefix_bench.figures_of(answer(0))
        self.assertEqual(one, prefix_bench.figures_of(answer(75)))
        self.assertNotEqual(one, prefix_bench.figures_of(
            answer(0, -0.5000000000000001)))

    def test_neither_server_is_always_the_first(self):
        order = []

        def measure(who, number):
            order.append(who)
            return who, number

        pairs = prefix_bench.in_turns(3, "off", "on", measure)
        self.assertEqual(order, ["off", "on", "on", "off", "off", "on"])
        self.assertEqual(pairs, [[("off", n), ("on", n)] for n in range(3)])

    def test_a_ratio_is_the_median_of_the_rounds_ratios(self):
        self.assertEqual(
            prefix_bench.medians([(1, 2), (2, 10), (4, 12)], "rate"),
            {"rate_off": 2, "rate_on": 10, "rate_ratio": 3})

    def test_a_few_shot_line_says_whether_all_figures_are_the_same(self):
        options = self.options("--documents", "1", "--choices", "1",
                               "--rounds", "1")
        for logprob, same in ((-0.5, True), (-0.25, False)):
            line, = prefix_bench.few_shot(
                options, FakeSide(answer(0)), FakeSide(answer(50, logprob)))
            self.assertEqual(line["same_figures"], same)
            self.assertEqual(line["cached_share"], 0.5)

    def test_a_second_prompt_has_the_preamble_of_the_first(self):
        who = FakeSide(3.0, 1.0, {}, {}, {}, 0.5)
        figures = prefix_bench.behind_preamble(
            self.options("--preamble", "30", "--question-tokens", "5"), who, 7)
        (_, first), (_, second), _, append, fork, (_, on_fork) = who.asked
        self.assertEqual(first["prompt"][:30], second["prompt"][:30])
        self.assertNotEqual(first["prompt"][30:], second["prompt"][30:])
        # The session's own is one that no prompt has shown to the cache.
        self.assertEqual(len(append[1]["tokens"]), 30)
        self.assertNotEqual(append[1]["tokens"], first["prompt"][:30])
        self.assertEqual(on_fork["session_id"], fork[1]["new_session_id"])
        self.assertEqual(len(on_fork["prompt"]), 5)
        del figures["forking"]
        self.assertEqual(figures, {"first": 3.0, "second": 1.0, "on_fork": 0.5})

    def test_clients_together_have_one_preamble_that_the_lone_one_has_not(self):
        who = FakeSide(1.0, 2.0, 4.0, 3.0)
        took = prefix_bench.together_and_alone(
            self.options("--preamble", "30", "--clients", "3"), who, 7)
        self.assertEqual(took, (4.0, 1.0))
        alone, *all_ = [body["prompt"] for _, body in who.asked]
        self.assertEqual(len({tuple(prompt[:30]) for prompt in all_}), 1)
        self.assertEqual(len({tuple(prompt) for prompt in all_}), 3)
        self.assertNotEqual(alone[:30], all_[0][:30])

    def test_the_harness_gets_its_documents_and_shots(self):
        options = self.options("--documents", "3", "--shots", "2")
        prefix_bench.write_task(options, self.model, 1)
        rows = {name: [json.loads(line) for line in pathlib.Path(
            self.model, f"{name}.jsonl").read_text("utf-8").splitlines()]
                for name in ("test", "train")}
        self.assertEqual((len(rows["test"]), len(rows["train"])), (3, 2))
        self.assertEqual({len(row["choices"]) for row in rows["test"]}, {4})
        task = pathlib.Path(self.model, "few_shot.yaml").read_text("utf-8")
        self.assertIn("num_fewshot: 2", task)
        self.assertIn('doc_to_text: "{{question}}"', task)


if __name__ == "__main__":
    unittest.main()
