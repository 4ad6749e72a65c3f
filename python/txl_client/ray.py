"""Ray Data: datasets of texts, scored or continued; needs the extra `ray`.

    import ray
    from txl_client import ray as txl_ray
    from txl_client.batch import Place

    rows = ray.data.read_parquet("prompts")
    txl_ray.generate(rows, Place(model="models/shakespeare"), key="id",
                     prompt="text", options={"max_tokens": 100},
                     output="generated", workers=4)

Each worker starts its own server, or all use one address. A row's result
depends on its key, not on the worker. With `output` the rows become Parquet
files there, and rows whose key is already there are skipped, so a second run
continues one that was interrupted.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

from txl_client import checks
from txl_client.batch import Connection, Place, Task

__all__ = ["Place", "Task", "done_keys", "generate", "run", "score"]


class Worker:
    """An actor of Ray's pool: a client, and its server."""

    def __init__(self, task: Task, place: Place) -> None:
        self._task = task
        self._connection = Connection(place)

    def __call__(self, frame: Any) -> Any:
        return self._task.run(self._connection.client, frame)


def score(dataset: Any, place: Place, *, text: str, key: str = "",
          output: str | None = None, **pool: Any) -> Any:
    """Adds sum_logprob, token_count and perplexity; `pool` as run()."""
    return run(dataset, place, Task("score", text, key), output=output,
               **pool)


def generate(dataset: Any, place: Place, *, prompt: str, key: str,
             options: Mapping[str, Any] | None = None,
             output: str | None = None, **pool: Any) -> Any:
    """Adds generated, finish_reason and more; `pool` as run()."""
    return run(dataset, place, Task("generate", prompt, key, options or {}),
               output=output, **pool)


def run(dataset: Any, place: Place, task: Task, *,
        output: str | None = None, workers: int = 1,
        batch_size: int = 256) -> Any:
    """The dataset with the task's columns, also written to `output` if given.

    `workers`: actors, each with its own core, and with its own server if the
    place has a model. Without `output` nothing runs until the result is read.
    """
    checks.integer("workers", workers, 1)
    checks.integer("batch_size", batch_size, 1)
    if output is not None:
        if not task.key:
            raise ValueError("key: output needs a column that names rows")
        done = done_keys(output, task.key)
        if done:
            dataset = dataset.filter(lambda row: row[task.key] not in done)
    mapped = dataset.map_batches(
        Worker, fn_constructor_args=(task, place), batch_format="pandas",
        batch_size=batch_size, concurrency=workers, num_cpus=1)
    if output is not None:
        mapped.write_parquet(output)
    return mapped


def done_keys(output: str, key: str) -> set[Any]:
    """Keys of the rows in a folder of Parquet files.

    A file that cannot be read is an incomplete one. It is removed, and its rows
    are computed again.
    """
    import pyarrow
    import pyarrow.parquet

    keys: set[Any] = set()
    folder = pathlib.Path(checks.path("output", output))
    for file in sorted(folder.glob("*.parquet")):
        try:
            table = pyarrow.parquet.read_table(file, columns=[key])
        except pyarrow.ArrowInvalid:
            file.unlink()
            continue
        keys.update(table.column(key).to_pylist())
    return keys
