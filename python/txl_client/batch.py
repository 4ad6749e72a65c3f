"""Millions of rows: the work of a worker on a batch of them.

Ray runs this part on its workers. A row's result depends only on the row and
its key, so a batch that runs again, on any worker and with any other rows,
gives the same rows.

As a program, python -m txl_client.batch, it answers the requests of a file
(jsonl_batch.py).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from txl_client import checks, tables
from txl_client.bounded import map_bounded
from txl_client.call import alone_at
from txl_client.channel import Settings
from txl_client.client import Client
from txl_client.errors import TxlError
from txl_client.events import Generation
from txl_client.local_server import LocalServer
from txl_client.options import TurnOptions, generate_request


def row_seed(key: Any, seed: int = 0) -> int:
    """The seed of a row, from its key and the `seed` of the whole run."""
    if checks.is_missing(key):
        raise ValueError("key: a row without a key has no seed")
    seed = checks.integer("seed", seed, 0)
    digest = hashlib.sha256(f"{seed}/{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


@dataclass(frozen=True)
class Place:
    """The target of a worker's calls: a server or proxy, or its own server."""

    address: str | None = None
    model: str | None = None  # directory; each worker starts a server
    program: str = "txl-server"
    arguments: tuple[str, ...] = ()
    client_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.address is None) == (self.model is None):
            raise ValueError("address, model: one of them must be given")
        if self.model is not None:
            checks.path("model", self.model)
        checks.path("program", self.program)
        checks.texts("arguments", self.arguments)
        # Wrong options are reported here, and not by every worker.
        address = "unix:socket" if self.address is None else self.address
        Settings(address, **self.client_options)


class Connection:
    """A client at a place, with the server that it started for itself."""

    def __init__(self, place: Place) -> None:
        self._server = None
        address = place.address
        if address is None:
            assert place.model is not None
            self._server = LocalServer(place.model, program=place.program,
                                       arguments=place.arguments)
            address = self._server.address
        self.client = Client(address, **place.client_options)

    def close(self) -> None:
        """Closes the client, and ends the server."""
        self.client.close()
        if self._server is not None:
            self._server.close()


@dataclass(frozen=True)
class Task:
    """The work on each row."""

    kind: Literal["score", "generate"]
    text: str  # column that is scored, or of prompts
    key: str = ""  # column that names the row; for generate
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind == "generate" and not self.key:
            raise ValueError("key: generating needs a column that names rows")
        generate_request("", None, self.options)

    def run(self, client: Client, frame: Any) -> Any:
        """A copy of a data frame, with the results in new columns."""
        frame = tables.rows_of("frame", frame)
        keys = tables.keys_of(frame, self.key) if self.key else []
        if self.kind == "score":
            return client.score_frame(frame, self.text)
        prompts = tables.texts_of(frame, self.text)
        for number, prompt in enumerate(prompts):
            if not prompt:
                raise ValueError(
                    f"{self._place(number, keys[number])}: is empty")
        turns = list(map_bounded(self._turn(client),
                                 zip(itertools.count(), keys, prompts),
                                 client.settings.in_flight))
        return tables.with_columns(frame, {
            "generated": [turn.text for turn in turns],
            "finish_reason": [turn.finish_reason.value if turn.finish_reason
                              else "" for turn in turns],
            "generated_tokens": [len(turn.tokens) for turn in turns],
            "generated_logprob": [turn.sum_logprob for turn in turns],
        })

    def _place(self, number: int, key: Any) -> str:
        return f"{self.text}: row {number}, {self.key} {key!r}"

    def _turn(self, client: Client) -> Callable[[tuple[int, Any, str]],
                                                Generation]:
        options = dict(self.options)
        seed = options.pop("seed", None) or 0

        def run(row: tuple[int, Any, str]) -> Generation:
            number, key, prompt = row
            seeded = {**options, "seed": row_seed(key, seed)}
            try:
                return client.start_turn(
                    "", prompt, cast(TurnOptions, seeded)).result()
            except TxlError as error:
                error.name(alone_at(self._place(number, key)))
                raise

        return run


if __name__ == "__main__":
    from txl_client.jsonl_batch import main

    raise SystemExit(main())
