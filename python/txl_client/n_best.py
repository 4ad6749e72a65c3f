"""N-best lists in the files of Kaldi, ESPnet and NeMo.

Kaldi: the folder in which a recipe's n-best rescoring puts the results of
nbest-to-linear (steps/rnnlmrescore.sh). Costs are negated logarithms.
ESPnet: the folder of asr_inference.py, or the folder of its jobs. NeMo: the
file that eval_beamsearch_ngram_*.py writes for each beam width.

Errors are ValueErrors that begin with FILE:LINE, or with FILE.
"""

from __future__ import annotations

import contextlib
import math
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_TENSOR = re.compile(r"tensor\(([^,()]+)[^()]*\)")


@dataclass(frozen=True)
class Hypothesis:
    """One text of a list."""

    text: str
    score: float  # the recogniser's, a logarithm; higher is better
    length: int  # in the units in which the recogniser counts
    # Part of `score` to which the model's weight applies.
    weighted: float = 0.0
    # What its files have besides, as it is there.
    columns: Mapping[str, str] = field(default_factory=dict)
    row: int = 0  # its place in a file of all lists
    line: str = ""  # FILE:LINE of its text


@dataclass(frozen=True)
class NBest:
    """The hypotheses of one utterance."""

    name: str
    hypotheses: tuple[Hypothesis, ...]


@dataclass(frozen=True)
class Rescored:
    """A list with values for each of its hypotheses."""

    n_best: NBest
    logprobs: Sequence[float]  # the model's
    scores: Sequence[float]  # of all together

    @property
    def order(self) -> list[int]:
        """Hypotheses from the highest score; among equals as they were."""
        return sorted(range(len(self.scores)), key=lambda i: -self.scores[i])

    @property
    def best(self) -> Hypothesis:
        """The hypothesis with the highest score."""
        return self.n_best.hypotheses[self.order[0]]


def _lines(path: pathlib.Path) -> Iterator[tuple[str, str]]:
    """FILE:LINE, and the line, of each line of a text file.

    A byte order mark is no part of the first one.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            name = f"{path}:{number}"
            try:
                yield name, line.decode(
                    "utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise ValueError(f"{name}: is not UTF-8") from None


def _number(name: str, text: str) -> float:
    """A number, also as PyTorch prints it."""
    match = _TENSOR.fullmatch(text.strip())
    try:
        number = float(match.group(1) if match else text)
    except ValueError:
        raise ValueError(f"{name}: {text!r} is not a number") from None
    if math.isnan(number) or number == math.inf:
        raise ValueError(f"{name}: {text!r} is not a score")
    return number


Table = dict[str, tuple[str, str]]  # for each key FILE:LINE, and the value


def _table(path: pathlib.Path, texts: Table | None = None) -> Table:
    """A file of `KEY VALUE`. ValueError for a key without a text."""
    table: Table = {}
    for name, line in _lines(path):
        if not line.strip():
            continue
        key, _, value = line.lstrip().replace("\t", " ", 1).partition(" ")
        if key in table:
            raise ValueError(f"{name}: {key}: is there already, at "
                             f"{table[key][0]}")
        if texts is not None and key not in texts:
            raise ValueError(f"{name}: {key} has no text")
        table[key] = name, value
    if not table:
        raise ValueError(f"{path}: is empty")
    return table


def _value(path: pathlib.Path, table: Table, key: str) -> tuple[str, str]:
    if key not in table:
        raise ValueError(f"{path}: there is no line of {key}")
    return table[key]


def write_lines(path: pathlib.Path, lines: Iterable[str]) -> None:
    """Writes a file, which is there only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    with open(new, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)
    new.replace(path)


def read_kaldi(folder: pathlib.Path) -> list[NBest]:
    """The lists of a folder with `words_text`, of lines `UTTERANCE-N WORDS`.

    `acwt` has acoustic costs, and `lmwt.nolm` those of the graph without a
    language model. Each may be missing; then it counts as 0.
    """
    texts = _table(folder / "words_text")
    costs = {name: _table(folder / name, texts)
             for name in ("acwt", "lmwt.nolm") if (folder / name).exists()}
    lists: dict[str, list[Hypothesis]] = {}
    for row, (key, (name, text)) in enumerate(texts.items()):
        utterance, dash, number = key.rpartition("-")
        if not dash or not utterance or not number.isdecimal():
            raise ValueError(f"{name}: {key} is not UTTERANCE-N")
        acoustic, graph = (
            -_number(*_value(folder / file, costs[file], key))
            if file in costs else 0.0 for file in ("acwt", "lmwt.nolm"))
        words = text.split()
        lists.setdefault(utterance, []).append(Hypothesis(
            " ".join(words), acoustic, len(words), graph, {"key": key}, row,
            name))
    return [NBest(name, tuple(each)) for name, each in lists.items()]


def write_kaldi(folder: pathlib.Path, results: Sequence[Rescored]) -> None:
    """lmwt.nn, of the model's costs; score; text, of the best hypotheses.

    The first two have the order of words_text, since scripts paste them.
    """
    rows = sorted((each.row, each.columns["key"], logprob, score)
                  for result in results for each, logprob, score in zip(
                      result.n_best.hypotheses, result.logprobs,
                      result.scores))
    write_lines(folder / "lmwt.nn", (f"{key} {-logprob!r}"
                                     for _, key, logprob, _ in rows))
    write_lines(folder / "score", (f"{key} {score!r}"
                                   for _, key, _, score in rows))
    write_lines(folder / "text", (f"{result.n_best.name} {result.best.text}"
                                  for result in results))


# Files of ESPnet beside `text` and `score`.
_TOKENS = ("token", "token_int")
_COLUMNS = ("text", "score", *_TOKENS)
_RANK = re.compile(r"([1-9]\d*)best_recog")


def _ranks(job: pathlib.Path) -> dict[int, pathlib.Path]:
    return {int(match[1]): each for each in job.iterdir()
            if (match := _RANK.fullmatch(each.name))}


def _jobs(folder: pathlib.Path) -> list[pathlib.Path]:
    """The folders that have the ranks: `folder`, or those of jobs in it."""
    jobs = [] if _ranks(folder) else sorted(
        (each for each in folder.glob("output.*")
         if each.suffix[1:].isdecimal()),
        key=lambda each: int(each.suffix[1:]))
    return jobs or [folder]


def read_espnet(folder: pathlib.Path) -> list[NBest]:
    """The lists of the folders `1best_recog`, `2best_recog`, …

    They are in `folder`, or in its folders `output.1`, `output.2`, … of jobs.
    """
    lists: dict[str, list[Hypothesis]] = {}
    for job in _jobs(folder):
        found = _read_job(job)
        for name in lists.keys() & found.keys():
            raise ValueError(f"{job}: {name}: is also there in another job")
        lists.update(found)
    return [NBest(name, tuple(each)) for name, each in lists.items()]


def _read_job(job: pathlib.Path) -> dict[str, list[Hypothesis]]:
    lists: dict[str, list[Hypothesis]] = {}
    ranks = _ranks(job)
    missing = [f"{rank}best_recog"
               for rank in range(1, max(ranks, default=1) + 1)
               if rank not in ranks]
    if missing:
        raise ValueError(f"{job}: there is no {', '.join(missing)}")
    for rank, folder in sorted(ranks.items()):
        texts = _table(folder / "text")
        scores = _table(folder / "score", texts)
        tokens = {name: _table(folder / name, texts)
                  for name in _TOKENS if (folder / name).exists()}
        for key, (name, text) in texts.items():
            if len(lists.get(key, ())) != rank - 1:
                raise ValueError(f"{name}: {key} is not in "
                                 f"{rank - 1}best_recog")
            columns = {file: _value(folder / file, table, key)[1]
                       for file, table in tokens.items()}
            lists.setdefault(key, []).append(Hypothesis(
                text.strip(),
                _number(*_value(folder / "score", scores, key)),
                len(columns.get("token", text).split()), columns=columns,
                line=name))
    return lists


def write_espnet(folder: pathlib.Path, results: Sequence[Rescored]) -> None:
    """The same folders, in which 1best_recog has the best hypotheses.

    Files of an earlier run that had more of them are removed.
    """
    ranks = max(len(result.scores) for result in results)
    for rank in range(ranks):
        target = folder / f"{rank + 1}best_recog"
        chosen = [(result.n_best.name,
                   result.n_best.hypotheses[result.order[rank]],
                   result.scores[result.order[rank]])
                  for result in results if rank < len(result.scores)]
        write_lines(target / "text",
                    (f"{name} {each.text}" for name, each, _ in chosen))
        write_lines(target / "score",
                    (f"{name} {score!r}" for name, _, score in chosen))
        for file in _TOKENS:
            if any(file in each.columns for _, each, _ in chosen):
                write_lines(target / file, (
                    f"{name} {each.columns.get(file, '')}"
                    for name, each, _ in chosen))
            else:
                (target / file).unlink(missing_ok=True)
    for rank, stale in _ranks(folder).items():
        if rank > ranks:
            for file in _COLUMNS:
                (stale / file).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it has something else
                stale.rmdir()


def read_nemo(file: pathlib.Path, beam_size: int) -> list[NBest]:
    """The lists of a file of lines `TEXT<tab>SCORE`, `beam_size` for each."""
    found: list[Hypothesis] = []
    for name, line in _lines(file):
        text, tab, score = line.rpartition("\t")
        if not tab:
            raise ValueError(f"{name}: is not TEXT, a tab, and SCORE")
        found.append(Hypothesis(
            text.strip(), _number(name, score), len(text),
            columns={"text": text}, line=name))
    if not found:
        raise ValueError(f"{file}: is empty")
    if len(found) % beam_size:
        raise ValueError(f"{file}: {len(found)} lines are not a multiple of "
                         f"the beam size, {beam_size}")
    return [NBest(str(start // beam_size),
                  tuple(found[start:start + beam_size]))
            for start in range(0, len(found), beam_size)]


def write_nemo(folder: pathlib.Path, results: Sequence[Rescored]) -> None:
    """beams.tsv, the lines with their new scores; text, of the best ones."""
    write_lines(folder / "beams.tsv", (
        f"{each.columns['text']}\t{score!r}" for result in results
        for each, score in zip(result.n_best.hypotheses, result.scores)))
    write_lines(folder / "text", (result.best.text for result in results))


def files_read(form: str, source: pathlib.Path) -> list[pathlib.Path]:
    """`source`, and what the format's reader reads in it, if it is there."""
    if form == "kaldi":
        return [source, *(source / name
                          for name in ("words_text", "acwt", "lmwt.nolm"))]
    if form == "espnet":
        return [source, *(folder / name for job in _jobs(source)
                          for folder in _ranks(job).values()
                          for name in _COLUMNS)]
    return [source]


def files_written(form: str, folder: pathlib.Path,
                  lists: Sequence[NBest]) -> list[pathlib.Path]:
    """All that the format's writer may write or remove in `folder`."""
    if form == "kaldi":
        return [folder / name for name in ("lmwt.nn", "score", "text")]
    if form == "espnet":
        ranks = {*range(1, 1 + max(len(each.hypotheses) for each in lists)),
                 *(_ranks(folder) if folder.is_dir() else ())}
        return [folder / f"{rank}best_recog" / name
                for rank in sorted(ranks) for name in _COLUMNS]
    return [folder / name for name in ("beams.tsv", "text")]
