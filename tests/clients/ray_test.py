"""Ray Data's HTTP processor, as it is: rows of a data set that are scored."""

import os
import tempfile
import unittest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray  # pylint: disable=wrong-import-position
from ray.data.llm import (  # pylint: disable=wrong-import-position
    HttpRequestProcessorConfig, build_processor)

from served import ServedTest

LINES = [f"{name}:\n{speech}"
         for name in ("ROMEO", "JULIET", "HAMLET", "First Citizen")
         for speech in ("To be, or not to be", "I am content.", "zqzqzqzq")]


class Scoring(ServedTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False,
                 logging_level="ERROR", object_store_memory=100 << 20,
                 _temp_dir=folder.name)
        cls.addClassCleanup(ray.shutdown)
        ray.data.DataContext.get_current().enable_progress_bars = False

    def test_rows_are_scored_by_echo_and_logprobs(self):
        process = build_processor(
            HttpRequestProcessorConfig(
                url=self.server.v1 + "/completions", max_retries=2,
                batch_size=4, qps=1000),
            preprocess=lambda row: {"payload": {
                "prompt": row["text"], "max_tokens": 0, "echo": True,
                "logprobs": 0}},
            postprocess=lambda row: {
                "text": row["text"],
                "values": row["http_response"]["choices"][0]["logprobs"][
                    "token_logprobs"]})
        rows = ray.data.from_items([{"text": line} for line in LINES])
        scored = {row["text"]: row["values"]
                  for row in process(rows).take_all()}
        self.assertEqual(set(scored), set(LINES))
        for line in LINES:
            _, score = self.server.ask("/v1/score", {"text": line})
            values = scored[line]
            self.assertEqual(len(values), len(line))
            self.assertAlmostEqual(sum(values[1:]),
                                   score["sum_logprob"], delta=1e-4)
        print(f"ray: {len(scored)} rows scored as /v1/score does")


if __name__ == "__main__":
    unittest.main()
