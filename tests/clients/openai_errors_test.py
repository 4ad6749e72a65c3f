"""What OpenAI's client does by itself when it is refused, and what it says of
a stream that breaks off."""

import unittest

import openai

from served import Server, ServedTest, wait_until

MODEL = "shakespeare"


class Refusals(ServedTest):
    """Of a server that takes two calls at a time."""

    flags = ("--max-calls", "2")

    def setUp(self):
        self.answers = []
        self.on_answer = lambda answer: None
        http = openai.DefaultHttpxClient(event_hooks={"response": [self.note]})
        self.client = openai.OpenAI(base_url=self.server.v1, api_key="any",
                                    http_client=http, max_retries=2)
        self.addCleanup(self.client.close)
        self.addCleanup(self.server.wait_for_turns, 0)

    def note(self, answer):
        self.answers.append(answer)
        self.on_answer(answer)

    def codes(self):
        return [answer.status_code for answer in self.answers]

    def create(self, **fields):
        return self.client.completions.create(
            **{"model": MODEL, "prompt": "ROMEO:", "max_tokens": 4, **fields})

    def hold(self, **fields):
        """A turn that runs for as long as nobody reads or closes it."""
        client = openai.OpenAI(base_url=self.server.v1, api_key="any",
                               max_retries=0)
        self.addCleanup(client.close)
        stream = client.completions.create(
            model=MODEL, prompt="ROMEO:", max_tokens=4096, stream=True,
            **fields)
        self.addCleanup(stream.close)
        return stream

    def test_over_the_servers_calls_it_waits_as_told_and_comes_again(self):
        held = [self.hold(), self.hold()]
        self.on_answer = lambda _: [stream.close() for stream in held]
        answer = self.create()
        self.assertEqual(answer.usage.completion_tokens, 4)
        self.assertEqual(self.codes()[0], 429)
        self.assertEqual(self.codes()[-1], 200)
        self.assertEqual(self.answers[0].headers["retry-after-ms"], "200")

    def test_it_gives_up_after_its_retries(self):
        for _ in range(2):
            self.hold()
        with self.assertRaises(openai.RateLimitError) as raised:
            self.create()
        self.assertEqual(raised.exception.code, "OVERLOADED")
        self.assertEqual(self.codes(), [429, 429, 429])

    def test_a_busy_session_is_asked_again_and_fed_once(self):
        self.server.make_session("busy")
        held = self.hold(extra_body={"session_id": "busy"})
        self.on_answer = lambda _: held.close()
        self.create(seed=1, extra_body={"session_id": "busy",
                                        "request_id": "turn-2"})
        self.assertEqual(self.codes()[0], 409)
        self.assertEqual(self.codes()[-1], 200)
        self.assertEqual(self.answers[0].headers["x-should-retry"], "true")
        last = self.server.ask("/v1/sessions/busy")[1]["session"]["last_turn"]
        self.assertEqual((last["prompt_tokens"], last["generated_tokens"]),
                         (6, 4))

    def test_a_retry_without_a_name_is_refused_rather_than_fed_twice(self):
        self.server.make_session("unnamed")
        held = self.hold(extra_body={"session_id": "unnamed"})
        self.on_answer = lambda _: held.close()
        with self.assertRaises(openai.ConflictError) as raised:
            self.create(extra_body={"session_id": "unnamed"})
        self.assertEqual(raised.exception.code, "BLIND_REPEAT")
        self.assertEqual(raised.exception.param, "request_id")
        self.assertEqual(self.codes(), [409, 409])

    def test_a_conflict_that_time_does_not_mend_is_not_retried(self):
        self.server.make_session("here")
        with self.assertRaises(openai.ConflictError) as raised:
            self.create(extra_body={"session_id": "here",
                                    "expected_position": 3})
        self.assertEqual(raised.exception.code, "POSITION_MISMATCH")
        self.assertEqual(self.codes(), [409])

    def test_a_bad_request_is_not_retried(self):
        with self.assertRaises(openai.BadRequestError):
            self.create(temperature=-1)
        self.assertEqual(self.codes(), [400])

    def test_a_bad_request_for_a_stream_is_a_refusal_too(self):
        with self.assertRaises(openai.BadRequestError):
            self.create(temperature=-1, stream=True)


class Connections(ServedTest):
    """Of a server that takes three of an address."""

    flags = ("--http-connections-per-host", "3")

    def test_over_them_each_client_is_told_so(self):
        held = []
        for _ in range(3):
            client = openai.OpenAI(base_url=self.server.v1, api_key="any")
            self.addCleanup(client.close)
            held.append(client.completions.create(
                model=MODEL, prompt="ROMEO:", max_tokens=4096, stream=True))
            self.addCleanup(held[-1].close)
        for _ in range(30):
            with openai.OpenAI(base_url=self.server.v1, api_key="any",
                               max_retries=0) as client:
                with self.assertRaises(openai.RateLimitError) as raised:
                    client.completions.create(model=MODEL, prompt="ROMEO:")
                self.assertEqual(raised.exception.code, "OVERLOADED")
        held[0].close()
        client = openai.OpenAI(base_url=self.server.v1, api_key="any")
        self.addCleanup(client.close)
        self.assertEqual(client.models.list().data[0].id, MODEL)


class BrokenStreams(unittest.TestCase):
    """Streams that have begun end with an error that the client raises."""

    def setUp(self):
        self.server = Server("--drain-timeout", "100ms")
        self.addCleanup(self.server.close)
        self.client = openai.OpenAI(base_url=self.server.v1, api_key="any",
                                    max_retries=0)
        self.addCleanup(self.client.close)

    def error_of(self, stream):
        with self.assertRaises(openai.APIError) as raised:
            for _ in stream:
                pass
        return raised.exception

    def long_stream(self, **fields):
        stream = self.client.completions.create(
            model=MODEL, prompt="ROMEO:", max_tokens=4096, stream=True,
            **fields)
        next(stream)
        return stream

    def test_a_session_that_is_deleted_under_its_turn(self):
        self.server.make_session("gone")
        stream = self.long_stream(extra_body={"session_id": "gone"})
        code, _ = self.server.ask("/v1/sessions/gone", method="DELETE")
        self.assertEqual(code, 200)
        self.assertEqual(self.error_of(stream).code, "SESSION_DELETED")

    def test_a_server_that_shuts_down(self):
        stream = self.long_stream()
        self.server.drain()
        error = self.error_of(stream)
        self.assertEqual((error.code, error.type),
                         ("SERVER_DRAIN", "server_error"))

    def test_while_it_drains_others_are_told_to_come_later(self):
        """The listener stays open for what still runs."""
        server = Server("--drain-timeout", "1m")
        self.addCleanup(server.close)
        held = openai.OpenAI(base_url=server.v1, api_key="any")
        self.addCleanup(held.close)
        stream = held.completions.create(model=MODEL, prompt="ROMEO:",
                                         max_tokens=4096, stream=True)
        self.addCleanup(stream.close)
        server.drain()
        wait_until(lambda: server.ask("/health")[0] == 503, "the drain")
        other = openai.OpenAI(base_url=server.v1, api_key="any",
                              max_retries=0)
        self.addCleanup(other.close)
        with self.assertRaises(openai.InternalServerError) as raised:
            other.completions.create(model=MODEL, prompt="ROMEO:")
        self.assertEqual(raised.exception.status_code, 503)
        self.assertEqual(raised.exception.code, "DRAINING")

    def test_a_server_that_is_killed(self):
        stream = self.long_stream()
        self.server.kill()
        self.assertIsInstance(self.error_of(stream),
                              openai.APIConnectionError)


if __name__ == "__main__":
    unittest.main()
