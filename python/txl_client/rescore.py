"""N-best lists of a recogniser, rescored by the model of a server.

The score of a hypothesis is

    recogniser's score + weight * model's log-probability + bonus * length

Log-probabilities are kept in the output folder, so that a second run, also one
with other weights, computes only those that are missing.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import pathlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from txl_client import call as calls
from txl_client import command, n_best
from txl_client._proto import token_pb2
from txl_client.call import Call
from txl_client.client import Client
from txl_client.errors import InvalidArgumentError, TxlError
from txl_client.infos import ModelInfo
from txl_client.json_lines import JsonLines, Record
from txl_client.n_best import Hypothesis, NBest, Rescored
from txl_client.scores import AlternativeScore

PROGRAM = "txl_client.rescore"
LOGPROBS = "logprobs.jsonl"  # in the output folder
_UNKNOWN = {"": token_pb2.UNKNOWN_TEXT_UNSPECIFIED,
            "skip": token_pb2.UNKNOWN_TEXT_SKIP,
            "unk": token_pb2.UNKNOWN_TEXT_SYMBOL}


@dataclass(frozen=True)
class Around:
    """What the model sees before and after each hypothesis."""

    context: str
    end: str  # its probability counts
    unknown: str = ""  # of _UNKNOWN

    def texts(self, n_best: NBest) -> list[str]:
        """The texts to score, each once; without those that are empty."""
        return list(dict.fromkeys(filter(None, (
            each.text + self.end for each in n_best.hypotheses))))

    def digest(self, n_best: NBest, model: str) -> str:
        """Names everything on which log-probabilities depend."""
        parts = [model, self.context, self.texts(n_best)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


class LogProbs:
    """Log-probabilities of the texts of lists, in a file."""

    def __init__(self, file: pathlib.Path, lists: Sequence[NBest],
                 around: Around, model: str) -> None:
        self._around = around
        self._digests = {each.name: around.digest(each, model)
                         for each in lists}
        self._known: dict[str, list[float]] = {}
        self._missing: list[NBest] = []
        self._file = JsonLines(file, '{"utterance": ', self._keep)
        self._missing = [each for each in lists
                         if each.name not in self._known]

    def _keep(self, name: str, record: Record) -> bool:
        if set(record) != {"utterance", "digest", "logprobs"}:
            raise ValueError(f"{name}: is not a line of {PROGRAM}")
        utterance = record["utterance"]
        if self._digests.get(utterance) != record["digest"]:
            return False  # of another model, text or context
        self._known[utterance] = record["logprobs"]
        return True

    def compute(self, client: Client, max_alternatives: int) -> int:
        """Computes and writes what is missing; the number of lists."""
        answers = client.many(
            call for each in self._missing
            for call in self._calls(each, max_alternatives))
        for each in self._missing:
            found: list[float] = []
            try:
                while len(found) < len(self._around.texts(each)):
                    found += [score.sum_logprob for score in next(answers)]
            except TxlError as error:
                if not error.place:
                    error.message = f"{each.name}: {error.message}"
                raise
            self._known[each.name] = found
            self._file.append({"utterance": each.name,
                               "digest": self._digests[each.name],
                               "logprobs": found})
        return len(self._missing)

    def _calls(self, n_best: NBest, most: int
               ) -> Iterator[Call[list[AlternativeScore]]]:
        texts = self._around.texts(n_best)
        # Of equals the first line counts, so it comes last.
        lines = {each.text + self._around.end: each.line
                 for each in reversed(n_best.hypotheses)}
        for start in range(0, len(texts), most):
            part = texts[start:start + most]
            call = calls.score_alternatives(
                part, self._around.context or None,
                unknown=_UNKNOWN[self._around.unknown])
            yield replace(call, places={**calls.at("--context"), **{
                f"alternatives[{index}]": f"{lines[text]}: {n_best.name}"
                for index, text in enumerate(part)}})

    def of(self, n_best: NBest) -> list[float]:
        """The log-probability of each hypothesis."""
        known = dict(zip(self._around.texts(n_best),
                         self._known[n_best.name]))
        return [known.get(each.text + self._around.end, 0.0)
                for each in n_best.hypotheses]

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def rescored(n_best: NBest, logprobs: Sequence[float], weight: float,
             bonus: float) -> Rescored:
    """A list with the sums of its hypotheses."""
    def total(each: Hypothesis, logprob: float) -> float:
        return (each.score + weight * (logprob + each.weighted)
                + bonus * each.length)

    return Rescored(n_best, logprobs, [
        total(each, logprob)
        for each, logprob in zip(n_best.hypotheses, logprobs)])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {PROGRAM}",
        description="Rescores n-best lists of a speech recogniser with the "
        "model of a server: recogniser's score + weight * log-probability + "
        f"bonus * length. OUT/{LOGPROBS} keeps log-probabilities, so a second "
        "run continues the first, and other weights need no server time.",
        epilog="Exit status: 0: success; 1: failure, the same command "
        "continues; 2: wrong command line or input; 130: Ctrl-C.")
    parser.add_argument("source", metavar="IN", type=pathlib.Path,
                        help="kaldi: folder with words_text, acwt, lmwt.nolm; "
                        "espnet: folder with 1best_recog, 2best_recog, … or "
                        "with output.1, output.2, …; nemo: .tsv file of beams")
    parser.add_argument("target", metavar="OUT", type=pathlib.Path,
                        help="folder for kaldi: lmwt.nn, score, text; espnet: "
                        "the folders of IN in the new order; nemo: beams.tsv, "
                        "text")
    parser.add_argument("--format", required=True,
                        choices=("kaldi", "espnet", "nemo"))
    parser.add_argument("--lm-weight", metavar="W", type=command.finite,
                        required=True, help="weight of the model")
    parser.add_argument("--length-bonus", metavar="B", type=command.finite,
                        default=0,
                        help="added for each word (kaldi), token (espnet) or "
                        "character (nemo) (default: 0)")
    parser.add_argument("--beam-size", metavar="N", type=command.whole,
                        help="lines of each utterance, for nemo")
    parser.add_argument("--context", metavar="TEXT", default="\n",
                        help="before each hypothesis (default: a line end); "
                        "without it the first token has no probability")
    parser.add_argument("--end", metavar="TEXT", default="\n",
                        help="scored after each hypothesis (default: a line "
                        "end)")
    parser.add_argument("--unknown", choices=("skip", "unk"), default="",
                        help="text that the vocabulary has no symbol for: "
                        "leave it out, or take the unknown symbol (default: "
                        "the symbol where the vocabulary has one, else the "
                        "run stops there)")
    command.add_server_flags(
        parser, "HOST:PORT or unix:PATH [$TXL_SERVER]",
        os.environ.get("TXL_SERVER", "127.0.0.1:50051"))
    return parser


def _read(arguments: argparse.Namespace) -> list[NBest]:
    source = arguments.source
    if arguments.format == "nemo":
        if arguments.beam_size is None or arguments.beam_size < 1:
            raise ValueError("--beam-size: nemo needs it, at least 1")
        return n_best.read_nemo(source, arguments.beam_size)
    if arguments.beam_size is not None:
        raise ValueError("--beam-size: is only for nemo")
    return (n_best.read_kaldi if arguments.format == "kaldi"
            else n_best.read_espnet)(source)


def _model(client: Client, info: ModelInfo, unknown: str) -> str:
    """Names the model, and "skip" if it computes less than the default.

    Without an unknown symbol the default refuses what it would leave out, and
    so has the same values for all other texts.
    """
    name = f"{info.fingerprint} {info.weight_dtype}"
    if not unknown:
        return name
    try:
        client.run(calls.tokenize("", unknown=_UNKNOWN["unk"]))
    except InvalidArgumentError:
        if unknown == "unk":
            raise
        return name
    return f"{name} skip" if unknown == "skip" else name


def _check_target(arguments: argparse.Namespace,
                  lists: Sequence[NBest]) -> None:
    """ValueError if a run would replace its input, or what is no run's."""
    form, target = arguments.format, arguments.target
    kept = target / LOGPROBS
    written = command.with_new(
        [kept, *n_best.files_written(form, target, lists)])
    command.refuse_inputs(
        [target, *written, *command.with_new([kept.resolve()])],
        n_best.files_read(form, arguments.source))
    if kept.exists():  # an earlier run wrote the others
        return
    for file in written:
        if file.exists():
            raise ValueError(f"{file}: is there already, but {kept} of an "
                             "earlier run is not: name another folder")


def _run(arguments: argparse.Namespace) -> int:
    write = {"kaldi": n_best.write_kaldi, "espnet": n_best.write_espnet,
             "nemo": n_best.write_nemo}[arguments.format]
    options = command.client_options(arguments)
    lists = _read(arguments)
    target = arguments.target
    _check_target(arguments, lists)
    around = Around(arguments.context, arguments.end, arguments.unknown)
    with Client(arguments.server, **options) as client:
        info = client.model()
        model = _model(client, info, around.unknown)
        target.mkdir(parents=True, exist_ok=True)
        logprobs = LogProbs(target / LOGPROBS, lists, around, model)
        try:
            computed = logprobs.compute(client, info.limits.max_alternatives)
        finally:
            logprobs.close()
    results = [rescored(each, logprobs.of(each), arguments.lm_weight,
                        arguments.length_bonus) for each in lists]
    write(target, results)
    changed = sum(result.order[0] != 0 for result in results)
    print(f"{len(lists)} utterances: {computed} scored, "
          f"{len(lists) - computed} scored before; {changed} have another "
          "first hypothesis", file=sys.stderr)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """python -m txl_client.rescore"""
    return command.run(PROGRAM, functools.partial(
        _run, _parser().parse_args(arguments)))


if __name__ == "__main__":
    raise SystemExit(main())
