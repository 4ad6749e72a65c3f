"""Sessions through OpenAI's client: what the API adds goes in `extra_body`."""

import unittest

import openai

from served import ServedTest

MODEL = "shakespeare"


class Sessions(ServedTest):

    def setUp(self):
        self.client = openai.OpenAI(base_url=self.server.v1, api_key="any")
        self.addCleanup(self.client.close)
        self.session = "s" + self._testMethodName[-40:]
        self.server.make_session(self.session)

    def turn(self, prompt, headers=None, stream=False, **extra):
        extra.setdefault("session_id", self.session)
        return self.client.completions.create(
            model=MODEL, prompt=prompt, seed=3, max_tokens=20, temperature=0.7,
            stream=stream, extra_body=extra, extra_headers=headers)

    def text(self, *arguments, **fields):
        return self.turn(*arguments, **fields).choices[0].text

    def test_a_session_remembers_what_was_said(self):
        first = self.text("ROMEO:")
        second = self.text("\n\nJULIET:")
        whole = self.complete(
            prompt=f"ROMEO:{first}\n\nJULIET:", seed=3, max_tokens=20,
            temperature=0.7)
        self.assertEqual(second, whole["choices"][0]["text"])
        self.assertEqual(self.server.position(self.session),
                         len(f"ROMEO:{first}\n\nJULIET:{second}"))

    def test_an_empty_prompt_goes_on(self):
        first = self.text("ROMEO:")
        self.assertEqual(self.text(""),
                         self.complete(prompt="ROMEO:" + first, seed=3,
                                       temperature=0.7,
                                       max_tokens=20)["choices"][0]["text"])

    def test_a_header_may_name_the_session(self):
        self.turn("ROMEO:", {"x-txl-session": self.session}, session_id=None)
        self.assertEqual(self.server.position(self.session), 26)

    def test_headers_and_body_may_not_name_two(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.turn("ROMEO:", {"X-Session-ID": "another"})
        self.assertEqual(raised.exception.param, "session_id")

    def test_a_session_that_nobody_made_is_not_found(self):
        with self.assertRaises(openai.NotFoundError) as raised:
            self.turn("ROMEO:", session_id="nobodys")
        self.assertEqual(raised.exception.code, "SESSION_UNKNOWN")

    def test_a_turn_that_is_sent_again_is_the_same_and_fed_once(self):
        first = self.text("ROMEO:", request_id="one")
        self.assertEqual(self.text("ROMEO:", request_id="one"), first)
        self.assertEqual(self.server.position(self.session), 26)

    def test_sent_again_it_keeps_the_seed_that_was_drawn_first(self):
        texts, seeds = set(), set()
        for _ in range(3):
            raw = self.client.completions.with_raw_response.create(
                model=MODEL, prompt="ROMEO:",
                extra_body={"session_id": self.session, "request_id": "one"})
            texts.add(raw.parse().choices[0].text)
            seeds.add(raw.headers["x-txl-seed"])
        self.assertEqual((len(texts), len(seeds)), (1, 1))

    def test_a_stream_that_broke_off_goes_on_where_it_did(self):
        whole, had = [], []
        stream = self.turn("ROMEO:", stream=True, request_id="one")
        for chunk in stream:
            had.append(chunk.choices[0].text)
            if len(had) == 7:
                break
        stream.close()
        self.server.wait_for_turns(0)
        again = self.turn("ROMEO:", {"Last-Event-ID": "7"}, stream=True,
                          request_id="one")
        whole = had + [chunk.choices[0].text for chunk in again]
        self.assertEqual(
            "".join(whole),
            self.complete(prompt="ROMEO:", seed=3, temperature=0.7,
                          max_tokens=20)["choices"][0]["text"])
        self.assertEqual(self.server.position(self.session), 26)

    def test_a_position_that_is_not_the_sessions_is_a_conflict(self):
        self.turn("ROMEO:", expected_position=0)
        with self.assertRaises(openai.ConflictError) as raised:
            self.turn("ROMEO:", expected_position=0)
        self.assertEqual(raised.exception.code, "POSITION_MISMATCH")

    def test_a_session_goes_on_in_one_way(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.turn("ROMEO:", n=2)
        self.assertEqual(raised.exception.param, "n")


if __name__ == "__main__":
    unittest.main()
