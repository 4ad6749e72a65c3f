"""Spark: data frames of texts, scored or gone on with; the extra `spark`.

    from txl_client import spark as txl_spark
    from txl_client.batch import Place

    frame = session.read.parquet("prompts")
    txl_spark.generate(frame, Place("txl.example.org:8443", client_options={
        "tls": True}), key="id", prompt="text",
        options={"max_tokens": 100}).write.parquet("generated")

Each partition has a client. A row's result depends on its key, not on its
partition, so that tasks may be run again, also speculatively.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from txl_client.batch import Place, Task, run_partition

__all__ = ["Place", "Task", "generate", "remaining", "run", "score"]


def score(frame: Any, place: Place, *, text: str) -> Any:
    """Adds sum_logprob, token_count and perplexity."""
    return run(frame, place, Task("score", text))


def generate(frame: Any, place: Place, *, prompt: str, key: str,
             options: Mapping[str, Any] | None = None) -> Any:
    """Adds generated, finish_reason and more."""
    return run(frame, place, Task("generate", prompt, key, options or {}))


def run(frame: Any, place: Place, task: Task) -> Any:
    """The data frame with the task's columns."""
    return frame.mapInPandas(run_partition(task, place),
                             schema_with(frame, task))


def remaining(frame: Any, done: Any, key: str) -> Any:
    """The rows of a data frame whose key is not in an earlier output."""
    return frame.join(done.select(key), on=key, how="left_anti")


def schema_with(frame: Any, task: Task) -> Any:
    """The schema of a data frame with the task's columns."""
    schema = type(frame.schema)(list(frame.schema.fields))
    for name, kind in task.columns.items():
        schema = schema.add(name, kind)
    return schema
