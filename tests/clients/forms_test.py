"""Forms of requests that everyday clients send without being told to: bodies
in chunks, absolute targets, connections of HTTP/1.0 that stay."""

import json
import pathlib
import re
import subprocess
import unittest

from served import PATIENCE, ServedTest

HERE = pathlib.Path(__file__).parent
BODY = {"prompt": "ROMEO:", "max_tokens": 20, "seed": 3}


class Forms(ServedTest):

    def setUp(self):
        self.text = self.complete(**BODY)["choices"][0]["text"]
        self.url = f"{self.server.v1}/completions"

    def run_client(self, *command, stdin=None):
        done = subprocess.run(command, check=True, text=True, input=stdin,
                              stdout=subprocess.PIPE, timeout=PATIENCE)
        return done.stdout

    def test_node_writes_a_body_in_parts_or_as_a_stream(self):
        printed = self.run_client("node", HERE / "chunked.mjs", self.url,
                                  json.dumps(BODY))
        self.assertEqual(printed, 2 * f"{self.text}\n")

    def test_the_jdk_sends_a_body_of_unknown_length(self):
        printed = self.run_client("java", HERE / "Chunked.java", self.url,
                                  json.dumps(BODY))
        status, answer = printed.split("\n", 1)
        self.assertEqual(status, "200")
        self.assertEqual(json.loads(answer)["choices"][0]["text"], self.text)

    def test_curl_sends_what_it_reads_as_it_comes(self):
        answer = self.run_client(
            "curl", "-sS", "-m", str(PATIENCE), "-X", "POST", "-T", "-",
            "-H", "Content-Type: application/json", self.url,
            stdin=json.dumps(BODY))
        self.assertEqual(json.loads(answer)["choices"][0]["text"], self.text)

    def test_curl_asks_through_a_proxy_that_is_the_server(self):
        """Its target is absolute then."""
        answer = self.run_client(
            "curl", "-sS", "-m", str(PATIENCE), "--noproxy", "", "--proxy",
            self.server.url, f"{self.server.url}/health")
        self.assertEqual(json.loads(answer), {"status": "ok"})

    def test_apache_bench_keeps_its_connections(self):
        printed = self.run_client("ab", "-q", "-k", "-n", "40", "-c", "4",
                                  f"{self.server.url}/health")
        figures = dict(re.findall(r"^([\w -]+):\s+(\d+)", printed, re.M))
        self.assertEqual(figures["Complete requests"], "40")
        self.assertEqual(figures["Failed requests"], "0")
        self.assertEqual(figures["Keep-Alive requests"], "40")


if __name__ == "__main__":
    unittest.main()
