"""curl, and what stands in the bytes that it gets."""

import json
import signal
import subprocess
import unittest

from served import PATIENCE, ServedTest


class Curl(ServedTest):

    def command(self, path, body, *flags):
        return ["curl", "-sS", "-m", str(PATIENCE), "-H",
                "Content-Type: application/json", *flags,
                self.server.url + path, "-d", json.dumps(body)]

    def curl(self, path, body, *flags):
        """(heads in lower case, body)"""
        done = subprocess.run(self.command(path, body, "-i", *flags),
                              check=True, stdout=subprocess.PIPE)
        *heads, text = done.stdout.decode().split("\r\n\r\n")
        return "\n".join(heads).lower(), text

    def test_plain(self):
        head, text = self.curl("/v1/completions", {"prompt": "ROMEO:",
                                                   "max_tokens": 7})
        self.assertIn("http/1.1 200", head)
        self.assertEqual(len(json.loads(text)["choices"][0]["text"]), 7)

    def test_a_stream_is_data_lines_and_done_nothing_else(self):
        head, text = self.curl("/v1/completions", {
            "prompt": "ROMEO:", "max_tokens": 7, "stream": True})
        self.assertIn("content-type: text/event-stream", head)
        self.assertIn("transfer-encoding: chunked", head)
        self.assertIn("x-accel-buffering: no", head)
        *events, done, rest = text.split("\n\n")
        self.assertEqual((done, rest), ("data: [DONE]", ""))
        self.assertEqual(len(events), 8)  # the last one says why it ended
        for event in events:
            self.assertRegex(event, r'^data: \{"choices":.*\}$')

    def test_events_have_ids_where_they_are_asked_for(self):
        _, text = self.curl("/v1/completions", {
            "prompt": "ROMEO:", "max_tokens": 3, "stream": True,
            "stream_options": {"event_ids": True}})
        ids = [line for line in text.splitlines() if line.startswith("id:")]
        self.assertEqual(ids, [f"id: {i}" for i in range(1, 5)])

    def test_a_body_that_waits_for_the_server_is_asked_for(self):
        prompt = "All the world. " * 8000
        head, text = self.curl(
            "/tokenize", {"prompt": prompt}, "-H", "Expect: 100-continue")
        self.assertIn("http/1.1 100", head)
        self.assertIn("http/1.1 400", head)  # over the prompt's tokens
        self.assertEqual(json.loads(text)["error"]["code"], "OVER_LIMIT")

    def test_a_connection_that_is_cut_ends_its_turn_at_a_token(self):
        self.server.make_session("cut")
        with subprocess.Popen(
                self.command("/v1/completions", {
                    "prompt": "ROMEO:", "max_tokens": 4096, "stream": True,
                    "session_id": "cut"}, "-N"),
                stdout=subprocess.PIPE) as process:
            for _ in range(20):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        self.server.wait_for_turns(0)
        position = self.server.position("cut")
        self.assertGreaterEqual(position, 6 + 10)
        self.assertLess(position, 6 + 4096)
        _, answer = self.server.ask(
            "/v1/completions", {"prompt": "", "session_id": "cut",
                                "max_tokens": 5,
                                "expected_position": position})
        self.assertEqual(answer["usage"]["completion_tokens"], 5)

    def test_an_answer_that_nobody_waits_for_is_not_generated(self):
        with subprocess.Popen(
                self.command("/v1/completions", {"prompt": "ROMEO:",
                                                 "max_tokens": 4096}),
                stdout=subprocess.PIPE) as process:
            self.server.wait_for_turns(1)
            process.send_signal(signal.SIGKILL)
        self.server.wait_for_turns(0)
        self.assertGreaterEqual(
            self.server.status()["turns_finished"]["CANCELLED"], 1)

    def test_what_no_page_can_send_is_refused(self):
        for flags, status in (
                (("-H", "Host: rebound.example"), "403"),
                (("-H", "Origin: https://elsewhere.example"), "403"),
                (("-H", "Content-Type: text/plain"), "415")):
            with self.subTest(flags[1]):
                command = self.command("/v1/completions", {"prompt": "a"},
                                       "-o", "/dev/null", "-w", "%{http_code}")
                if "Content-Type" in flags[1]:
                    command.remove("Content-Type: application/json")
                    command.remove("-H")
                done = subprocess.run([*command, *flags], check=True,
                                      stdout=subprocess.PIPE, text=True)
                self.assertEqual(done.stdout, status)


if __name__ == "__main__":
    unittest.main()
