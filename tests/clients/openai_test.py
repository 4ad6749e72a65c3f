"""OpenAI's Python client, as it is: what it gets for each kind of request."""

import math
import unittest

import openai

from served import ServedTest

MODEL = "shakespeare"


class Completions(ServedTest):

    def setUp(self):
        self.client = openai.OpenAI(base_url=self.server.v1, api_key="any")
        self.addCleanup(self.client.close)

    def create(self, prompt="ROMEO:", **fields):
        fields = {"model": MODEL, "seed": 5, "max_tokens": 24, **fields}
        return self.client.completions.create(prompt=prompt, **fields)

    def test_lists_the_served_model(self):
        self.assertEqual([m.id for m in self.client.models.list()], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.models.retrieve("gpt-4")
        self.assertEqual(caught.exception.code, "model_not_found")

    def test_an_answer_has_every_member_that_the_client_types(self):
        answer = self.create()
        self.assertEqual(answer.object, "text_completion")
        self.assertEqual(answer.model, MODEL)
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(len(answer.choices[0].text), 24)  # of characters
        usage = answer.usage
        self.assertEqual((usage.prompt_tokens, usage.completion_tokens,
                          usage.total_tokens), (6, 24, 30))

    def test_sixteen_tokens_where_nothing_is_said(self):
        answer = self.client.completions.create(model=MODEL, prompt="ROMEO:")
        self.assertEqual(answer.usage.completion_tokens, 16)

    def test_a_seed_gives_the_same_text_again(self):
        texts = {self.create().choices[0].text for _ in range(3)}
        self.assertEqual(len(texts), 1)
        self.assertNotIn(self.create(seed=6).choices[0].text, texts)

    def test_the_answer_names_the_seed_that_repeats_it(self):
        raw = self.client.completions.with_raw_response.create(
            model=MODEL, prompt="ROMEO:")
        again = self.create(seed=int(raw.headers["x-txl-seed"]), max_tokens=16)
        self.assertEqual(again.choices[0].text, raw.parse().choices[0].text)

    def test_a_stream_is_the_same_text_in_pieces(self):
        chunks = list(self.create(stream=True))
        text = "".join(c.choices[0].text for c in chunks)
        self.assertEqual(text, self.create().choices[0].text)
        reasons = [c.choices[0].finish_reason for c in chunks]
        self.assertEqual(reasons, [None] * 24 + ["length"])
        self.assertEqual(len({c.id for c in chunks}), 1)

    def test_usage_comes_last_where_it_is_asked_for(self):
        *chunks, last = self.create(stream=True,
                                    stream_options={"include_usage": True})
        self.assertTrue(all(c.usage is None for c in chunks))
        self.assertEqual(last.choices, [])
        self.assertEqual(last.usage.total_tokens, 30)

    def test_prompts_of_a_list_answer_in_their_order_n_choices_each(self):
        answer = self.create(["ROMEO:", "JULIET:"], n=2, echo=True)
        self.assertEqual([c.index for c in answer.choices], [0, 1, 2, 3])
        starts = [c.text.partition(":")[0] for c in answer.choices]
        self.assertEqual(starts, ["ROMEO", "ROMEO", "JULIET", "JULIET"])
        # Choice j of a prompt draws with seed + j.
        for index, prompt, seed in ((1, "ROMEO:", 6), (2, "JULIET:", 5)):
            alone = self.create(prompt, seed=seed, echo=True)
            self.assertEqual(answer.choices[index].text, alone.choices[0].text)

    def test_streamed_choices_are_told_apart_by_their_index(self):
        texts = [""] * 3
        for chunk in self.create(n=3, stream=True):
            texts[chunk.choices[0].index] += chunk.choices[0].text
        self.assertEqual(texts, [c.text for c in self.create(n=3).choices])

    def test_a_prompt_may_be_token_ids(self):
        code, answer = self.server.ask("/tokenize", {"prompt": "ROMEO:"})
        self.assertEqual(code, 200)
        self.assertEqual(self.create(answer["tokens"]).choices[0].text,
                         self.create().choices[0].text)

    def test_a_long_prompt_is_taken_whole(self):
        prompt = "All the world's a stage. " * 300
        answer = self.create([prompt, prompt], max_tokens=1)
        self.assertEqual(answer.usage.prompt_tokens, 2 * len(prompt))

    def test_a_stop_text_ends_the_answer_and_is_no_part_of_it(self):
        whole = self.create(max_tokens=64, temperature=0).choices[0].text
        stop = whole[20:24]
        choice = self.create(max_tokens=64, temperature=0,
                             stop=[stop]).choices[0]
        self.assertEqual(choice.finish_reason, "stop")
        self.assertEqual(choice.text, whole[:whole.index(stop)])

    def test_logprobs_are_those_of_the_model_whatever_the_temperature(self):
        choice = self.create(logprobs=3, temperature=0.1).choices[0]
        lists = choice.logprobs
        self.assertEqual("".join(lists.tokens), choice.text)
        self.assertEqual(lists.text_offset, list(range(6, 30)))
        _, score = self.server.ask("/v1/score",
                                   {"text": "ROMEO:" + choice.text})
        scored = [t["logprob"] for t in score["tokens"][6:]]
        for got, want in zip(lists.token_logprobs, scored, strict=True):
            self.assertAlmostEqual(got, want, delta=1e-5)
        for token, own, top in zip(lists.tokens, lists.token_logprobs,
                                   lists.top_logprobs):
            self.assertEqual(top[token], own)
            self.assertLessEqual(sum(map(math.exp, top.values())), 1 + 1e-5)
            self.assertIn(len(top), (3, 4))

    def test_echo_scores_the_prompt_its_first_token_without_a_value(self):
        choice = self.create(echo=True, logprobs=1, max_tokens=2).choices[0]
        self.assertEqual(choice.text[:6], "ROMEO:")
        self.assertEqual(len(choice.logprobs.token_logprobs), 8)
        self.assertIsNone(choice.logprobs.token_logprobs[0])
        self.assertIsNone(choice.logprobs.top_logprobs[0])

    def test_echo_of_no_tokens_is_the_prompt_alone(self):
        answer = self.create(echo=True, max_tokens=0, logprobs=0)
        self.assertEqual(answer.choices[0].text, "ROMEO:")
        self.assertEqual(answer.usage.completion_tokens, 0)

    def test_best_of_returns_the_likeliest(self):
        best = self.create(n=1, best_of=4).choices[0].text
        each = [self.create(seed=5 + i, logprobs=0).choices[0]
                for i in range(4)]
        likeliest = max(each, key=lambda c: sum(c.logprobs.token_logprobs))
        self.assertEqual(best, likeliest.text)

    def test_a_stream_that_is_left_ends_its_turn(self):
        with self.create(max_tokens=4096, stream=True) as stream:
            next(stream)
            self.server.wait_for_turns(1)
        self.server.wait_for_turns(0)
        self.assertEqual(self.server.status()["turns_finished"]["CANCELLED"],
                         1)

    def test_chat_is_refused_with_what_to_do_instead(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "hello"}])
        self.assertEqual(raised.exception.code, "NO_CHAT_FORMAT")
        self.assertIn("/v1/completions", raised.exception.message)

    def test_errors_name_the_field(self):
        for field, value in (("temperature", 101), ("top_p", 0), ("n", 129),
                             ("max_tokens", -1), ("logprobs", 21)):
            with self.subTest(field):
                with self.assertRaises(openai.BadRequestError) as raised:
                    self.create(**{field: value})
                self.assertEqual(raised.exception.param, field)

    def test_another_model_is_not_found_and_the_right_one_is_named(self):
        with self.assertRaises(openai.NotFoundError) as raised:
            self.create(model="gpt-4o")
        self.assertEqual(raised.exception.code, "model_not_found")
        self.assertIn(MODEL, raised.exception.message)


if __name__ == "__main__":
    unittest.main()
