"""LangChain's OpenAI, as it is: plain, in batches, in a stream."""

import asyncio
import unittest

from langchain_openai import OpenAI

from served import ServedTest


class LangChain(ServedTest):

    def model(self, **fields):
        fields = {"seed": 4, "temperature": 0.6, "max_tokens": 30, **fields}
        return OpenAI(model="shakespeare", base_url=self.server.v1,
                      api_key="any", **fields)

    def text(self, prompt, seed=4):
        return self.complete(prompt=prompt, seed=seed, temperature=0.6,
                             max_tokens=30)["choices"][0]["text"]

    def test_invoke_is_the_completion(self):
        self.assertEqual(self.model().invoke("ROMEO:"), self.text("ROMEO:"))

    def test_no_prompt_is_the_models_start(self):
        """It sends a list of prompts, always."""
        session = {"extra_body": {"session_id": "empty"}}
        self.server.make_session("empty")
        self.model(**session).invoke("ROMEO:")
        self.assertEqual(len(self.model(**session).invoke("")), 30)
        self.assertEqual(self.server.position("empty"), 6 + 30 + 30)

    def test_a_stream_is_the_same_text_in_pieces(self):
        pieces = list(self.model().stream("ROMEO:"))
        self.assertGreaterEqual(len(pieces), 30)
        self.assertEqual("".join(pieces), self.text("ROMEO:"))

    def test_an_asynchronous_stream_too(self):
        async def pieces():
            return [p async for p in self.model().astream("ROMEO:")]
        self.assertEqual("".join(asyncio.run(pieces())), self.text("ROMEO:"))

    def test_a_list_of_prompts_is_answered_prompt_by_prompt(self):
        """It cuts the choices into groups by their place alone."""
        prompts = [f"Citizen {'ABCDE'[i % 5]}{'xyzwv'[i // 5]}:"
                   for i in range(25)]  # more than it sends at once
        result = self.model(n=2, best_of=2).generate(prompts)
        groups = [[g.text for g in group] for group in result.generations]
        self.assertEqual([len(group) for group in groups], [2] * 25)
        # Choice j of a prompt draws with seed + j, whatever is sent beside it.
        for place in (0, 7, 19, 24):
            self.assertEqual(groups[place],
                             [self.text(prompts[place], 4),
                              self.text(prompts[place], 5)])
        self.assertEqual(result.llm_output["token_usage"]["completion_tokens"],
                         25 * 2 * 30)

    def test_a_field_that_is_null_is_one_that_is_absent(self):
        """It sends `"seed": null, "logprobs": null`."""
        texts = {self.model(seed=None).invoke("ROMEO:") for _ in range(4)}
        self.assertGreater(len(texts), 1)  # each draws anew

    def test_stop_texts_and_logprobs_come_through(self):
        whole = self.text("ROMEO:")
        result = self.model(logprobs=2).generate(["ROMEO:"], stop=[whole[9]])
        generation = result.generations[0][0]
        self.assertEqual(generation.text, whole[:whole.index(whole[9])])
        info = generation.generation_info
        self.assertEqual(info["finish_reason"], "stop")
        self.assertEqual(len(info["logprobs"]["tokens"]),
                         len(generation.text) + 1)

    def test_a_session_goes_in_extra_body(self):
        self.server.make_session("chain")
        model = self.model(extra_body={"session_id": "chain"})
        first = model.invoke("ROMEO:")
        second = model.invoke("\n\nJULIET:")
        self.assertEqual(second, self.text(f"ROMEO:{first}\n\nJULIET:"))


if __name__ == "__main__":
    unittest.main()
