"""Tables of texts: which calls they need, and what is made of the answers.

A table is a pandas data frame or a list of dictionaries. Nothing here imports
pandas: a data frame brings its own methods along.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from txl_client import call as calls
from txl_client.call import Call
from txl_client.options import Prompt
from txl_client.scores import AlternativeScore, Score

Texts = TypeVar("Texts", bound="Iterable[Prompt]")


def check_texts(texts: Texts) -> Texts:
    """`texts`; TypeError for a single one, whose letters were meant together.
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts: must be a list of texts, not one text")
    return texts


def is_frame(table: Any) -> bool:
    """True: a data frame."""
    return hasattr(table, "assign") and hasattr(table, "columns")


def column(table: Any, name: str) -> list[Any]:
    """The values of a column; ValueError where there is none."""
    if is_frame(table):
        if name not in table.columns:
            raise ValueError(f"{name}: there is no such column")
        return list(table[name])
    for number, row in enumerate(table):
        if name not in row:
            raise ValueError(f"{name}: row {number} has no such field")
    return [row[name] for row in table]


def with_columns(table: Any, columns: Mapping[str, list[Any]]) -> Any:
    """A copy of the table with more columns."""
    if is_frame(table):
        return table.assign(**columns)
    return [{**row, **{name: values[number]
                       for name, values in columns.items()}}
            for number, row in enumerate(table)]


def has_text(value: Any) -> bool:
    """False for what has nothing to score: empty, None, NaN."""
    return isinstance(value, str) and value != ""


class ScorePlan:
    """Scores of a column's texts."""

    def __init__(self, texts: Sequence[Any]) -> None:
        self._texts = texts

    def calls(self) -> Iterator[Call[Score]]:
        """One for each row that has a text."""
        return (calls.score(text) for text in self._texts if has_text(text))

    def fill(self, table: Any, results: Iterable[Score]) -> Any:
        """The table with the scores in the rows that have a text."""
        answers = iter(results)
        found = [next(answers) if has_text(text) else None
                 for text in self._texts]
        return with_columns(table, {
            "sum_logprob": [s.sum_logprob if s else math.nan for s in found],
            "token_count": [s.token_count if s else 0 for s in found],
            "perplexity": [s.perplexity if s else math.nan for s in found],
        })


@dataclass(frozen=True)
class RescoreColumns:
    """Where an n-best list has what, and how much the model counts."""

    group: str  # hypotheses of one group compete
    text: str
    acoustic: str | None  # None: the model alone decides
    weight: float
    context: Prompt | None  # stands before every hypothesis


class RescorePlan:
    """The hypotheses of each group, as few calls as their number allows."""

    def __init__(self, table: Any, columns: RescoreColumns,
                 max_alternatives: int) -> None:
        self._table = table if is_frame(table) else list(table)
        self._columns = columns
        self._texts = column(self._table, columns.text)
        for number, text in enumerate(self._texts):
            if not has_text(text):
                raise ValueError(
                    f"{columns.text}: row {number} has no text to score")
        self._groups: dict[Any, list[int]] = {}
        for number, group in enumerate(column(self._table, columns.group)):
            self._groups.setdefault(group, []).append(number)
        self._parts = [rows[start:start + max_alternatives]
                       for rows in self._groups.values()
                       for start in range(0, len(rows), max_alternatives)]

    def calls(self) -> Iterator[Call[list[AlternativeScore]]]:
        """One for each part of a group."""
        return (calls.score_alternatives([self._texts[row] for row in part],
                                         self._columns.context)
                for part in self._parts)

    def fill(self, results: Iterable[list[AlternativeScore]]) -> Any:
        """The table with lm_logprob, score and best."""
        logprobs = [math.nan] * len(self._texts)
        for part, answer in zip(self._parts, results):
            for row, each in zip(part, answer):
                logprobs[row] = each.sum_logprob
        acoustic = self._acoustic()
        scores = [heard + self._columns.weight * logprob
                  for heard, logprob in zip(acoustic, logprobs)]
        best = [False] * len(scores)
        for rows in self._groups.values():
            best[_best(rows, scores)] = True
        return with_columns(self._table, {
            "lm_logprob": logprobs, "score": scores, "best": best})

    def _acoustic(self) -> list[float]:
        if self._columns.acoustic is None:
            return [0.0] * len(self._texts)
        return [float(value)
                for value in column(self._table, self._columns.acoustic)]


def _best(rows: Sequence[int], scores: Sequence[float]) -> int:
    """The first row of the highest score; one that is NaN loses."""
    return max(rows, key=lambda row: (-math.inf if math.isnan(scores[row])
                                      else scores[row]))
