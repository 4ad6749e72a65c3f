"""Tables of texts: the calls that they need, and columns from the answers.

A table is a pandas data frame, or dictionaries from a list, a generator or
csv.DictReader. This module does not import pandas: it uses the methods of the
data frame.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from txl_client import call as calls
from txl_client import checks
from txl_client.call import Call
from txl_client.options import Prompt
from txl_client.scores import AlternativeScore, Score


def is_frame(table: Any) -> bool:
    """True for a data frame with the methods of pandas."""
    return checks.is_frame(table) and hasattr(table, "assign")


def rows_of(name: str, table: Any) -> Any:
    """The argument `name` as a data frame, or as a list of dictionaries.

    An iterator of rows is read here, once.
    """
    if is_frame(table):
        return table
    wanted = "a pandas data frame or a list of dictionaries"
    if checks.is_frame(table):
        library = type(table).__module__.partition(".")[0]
        raise TypeError(f"{name}: must be {wanted}, is a {library} "
                        f"{type(table).__name__}")
    rows = list(checks.listed(name, table, wanted))
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise checks.kind_error(f"{name}: row {number}", "a dictionary",
                                    row)
    return rows


def column(table: Any, name: str) -> list[Any]:
    """The values of a column; ValueError if it does not exist."""
    if is_frame(table):
        count = list(table.columns).count(name)
        if count != 1:
            raise ValueError(f"{name}: there is no such column" if not count
                             else f"{name}: {count} columns have this name")
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


def texts_of(table: Any, name: str) -> list[str]:
    """The texts of a column; empty where a value is missing."""
    return ["" if checks.is_missing(value)
            else checks.text(f"{name}: row {number}", value)
            for number, value in enumerate(column(table, name))]


def keys_of(table: Any, name: str) -> list[Any]:
    """The values of a column that distinguish rows, or groups of rows."""
    keys = column(table, name)
    for number, key in enumerate(keys):
        if checks.is_missing(key):
            raise ValueError(f"{name}: row {number} has no value")
        try:
            hash(key)
        except TypeError:
            raise checks.kind_error(f"{name}: row {number}",
                                    "a value that can be a key", key) from None
    return keys


def numbers_of(table: Any, name: str) -> list[float]:
    """The numbers of a column, also written as text; NaN for a missing one."""
    return [_number(f"{name}: row {number}", value)
            for number, value in enumerate(column(table, name))]


def _number(name: str, value: Any) -> float:
    if checks.is_missing(value):
        return math.nan
    if not isinstance(value, str):
        return checks.number(name, value)
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{name}: {value!r} is not a number") from None


class ScorePlan:
    """Scores of a column's texts."""

    def __init__(self, table: Any, text: str) -> None:
        self._table = rows_of("frame", table)
        self._column = text
        self._texts = texts_of(self._table, text)

    def calls(self) -> Iterator[Call[Score]]:
        """One for each row that has a text."""
        return (calls.score(text, name=f"{self._column}: row {number}")
                for number, text in enumerate(self._texts) if text)

    def fill(self, results: Iterable[Score]) -> Any:
        """The table with scores in the rows that have a text."""
        answers = iter(results)
        found = [next(answers) if text else None for text in self._texts]
        return with_columns(self._table, {
            "sum_logprob": [s.sum_logprob if s else math.nan for s in found],
            "token_count": [s.token_count if s else 0 for s in found],
            "perplexity": [s.perplexity if s else math.nan for s in found],
        })


@dataclass(frozen=True)
class RescoreColumns:
    """The columns of an n-best list, and the weight of the model."""

    group: str  # of hypotheses that compete
    text: str
    acoustic: str | None  # None: only the model decides
    weight: float
    context: Prompt | None  # before every hypothesis


class RescorePlan:
    """The hypotheses of each group, in as few calls as possible."""

    def __init__(self, table: Any, columns: RescoreColumns,
                 max_alternatives: int) -> None:
        self._table = rows_of("rows", table)
        self._columns = columns
        self._weight = checks.number("weight", columns.weight)
        if not math.isfinite(self._weight):
            raise ValueError(f"weight: must be finite, is {self._weight}")
        self._texts = texts_of(self._table, columns.text)
        for number, text in enumerate(self._texts):
            if not text:
                raise ValueError(
                    f"{columns.text}: row {number} has no text to score")
        self._acoustic = ([0.0] * len(self._texts) if columns.acoustic is None
                          else numbers_of(self._table, columns.acoustic))
        self._groups: dict[Any, list[int]] = {}
        for number, group in enumerate(keys_of(self._table, columns.group)):
            self._groups.setdefault(group, []).append(number)
        self._parts = [rows[start:start + max_alternatives]
                       for rows in self._groups.values()
                       for start in range(0, len(rows), max_alternatives)]

    def calls(self) -> Iterator[Call[list[AlternativeScore]]]:
        """One for each part of a group."""
        for part in self._parts:
            call = calls.score_alternatives(
                [self._texts[row] for row in part], self._columns.context)
            name = self._columns.text
            yield replace(call, places={
                "": f"{name}: the group of row {part[0]}", **call.places,
                **{f"alternatives[{index}]": f"{name}: row {row}"
                   for index, row in enumerate(part)}})

    def fill(self, results: Iterable[list[AlternativeScore]]) -> Any:
        """The table with lm_logprob, score and best."""
        logprobs = [math.nan] * len(self._texts)
        for part, answer in zip(self._parts, results):
            for row, each in zip(part, answer):
                logprobs[row] = each.sum_logprob
        scores = [heard + self._weight * logprob
                  for heard, logprob in zip(self._acoustic, logprobs)]
        best = [False] * len(scores)
        for rows in self._groups.values():
            known = [row for row in rows if not math.isnan(scores[row])]
            if known:
                best[max(known, key=scores.__getitem__)] = True
        return with_columns(self._table, {
            "lm_logprob": logprobs, "score": scores, "best": best})
