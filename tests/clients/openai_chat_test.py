"""OpenAI's Python client in a conversation, with a model that says how it read
conversations: every answer is what /v1/completions gives for the prompt that
the format makes of the messages."""

import unittest

import openai

from served import ServedTest

MODEL = "shakespeare"
ROMEO = {"role": "user", "content": "Where is my lady?"}
NURSE = {"role": "assistant", "content": "She sleeps."}
AGAIN = {"role": "user", "content": "Wake her."}


class Chat(ServedTest):
    generation = {
        "start_tokens": [0], "temperature": 0.8,
        "chat": {"system": {"before": "", "after": "\n\n"},
                 "user": {"before": "ROMEO:\n", "after": "\n\n"},
                 "assistant": {"before": "NURSE:\n", "after": "\n\n"},
                 "stop_texts": ["\n\n"]}}

    def setUp(self):
        self.client = openai.OpenAI(base_url=self.server.v1, api_key="any")
        self.addCleanup(self.client.close)

    def chat(self, *messages, **fields):
        fields = {"model": MODEL, "seed": 5, "max_completion_tokens": 48,
                  **fields}
        return self.client.chat.completions.create(messages=messages, **fields)

    def continued(self, prompt, **fields):
        fields = {"seed": 5, "max_tokens": 48, "stop": ["\n\n"], **fields}
        return self.complete(model=MODEL, prompt=prompt, **fields)["choices"][0]

    def test_an_answer_goes_on_behind_the_conversation(self):
        answer = self.chat({"role": "system", "content": "A street."},
                           ROMEO, NURSE, AGAIN)
        choice, = answer.choices
        self.assertEqual(answer.object, "chat.completion")
        self.assertEqual(choice.message.role, "assistant")
        expected = self.continued(
            "A street.\n\nROMEO:\nWhere is my lady?\n\nNURSE:\nShe sleeps.\n\n"
            "ROMEO:\nWake her.\n\nNURSE:\n")
        self.assertEqual(choice.message.content, expected["text"])
        self.assertEqual(choice.finish_reason, expected["finish_reason"])

    def test_a_stream_has_the_same_text_in_pieces(self):
        whole = self.chat(ROMEO).choices[0]
        with self.chat(ROMEO, stream=True,
                       stream_options={"include_usage": True}) as stream:
            chunks = list(stream)
        deltas = [c.choices[0].delta for c in chunks if c.choices]
        self.assertEqual(deltas[0].role, "assistant")
        self.assertEqual("".join(d.content or "" for d in deltas),
                         whole.message.content)
        self.assertEqual(chunks[-1].usage.completion_tokens,
                         self.chat(ROMEO).usage.completion_tokens)

    def test_probabilities_are_those_of_completions(self):
        choice = self.chat(ROMEO, logprobs=True, top_logprobs=2).choices[0]
        expected = self.continued("ROMEO:\nWhere is my lady?\n\nNURSE:\n",
                                  logprobs=2)["logprobs"]
        self.assertEqual([t.logprob for t in choice.logprobs.content],
                         expected["token_logprobs"])
        self.assertEqual([len(t.top_logprobs)
                          for t in choice.logprobs.content],
                         [2] * len(choice.logprobs.content))

    def test_a_session_is_told_what_is_new_alone(self):
        self.server.ask("/v1/sessions", {"session_id": "a-chat"})
        name = {"extra_body": {"session_id": "a-chat"}}
        first = self.chat(ROMEO, **name).choices[0].message.content
        self.chat(AGAIN, **name)
        code, session = self.server.ask("/v1/sessions/a-chat")
        self.assertEqual(code, 200)
        asked = sum(len(text) for text in (
            "ROMEO:\nWhere is my lady?\n\nNURSE:\n", first,
            "ROMEO:\nWake her.\n\nNURSE:\n"))
        self.assertGreaterEqual(int(session["session"]["position"]), asked)

    def test_messages_that_the_format_lacks_are_refused_by_name(self):
        for messages in ([{"role": "tool", "content": "x",
                           "tool_call_id": "1"}], []):
            with self.subTest(messages):
                with self.assertRaises(openai.BadRequestError) as raised:
                    self.chat(*messages)
                self.assertTrue(
                    raised.exception.param.startswith("messages"))


if __name__ == "__main__":
    unittest.main()
