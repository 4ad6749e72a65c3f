"""A file of requests in the format of OpenAI's batches, and their answers.

Each line has custom_id, method, url and body. Its answer has id, custom_id,
response (status_code, request_id, body) and error, which is for a request
without a response.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import http
import json
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from txl_client import command
from txl_client.bounded import as_done
from txl_client.errors import TxlError
from txl_client.json_lines import JsonLines, Record, read
from txl_client.web import Answer, NoServerError, Web

PROGRAM = "txl_client.batch"
_ID = "batch_req_"
_ANSWER_ID = re.compile(_ID + "[0-9a-f]{64}")  # of this program
_PATH = re.compile(r"/[!-~]*")
_BEGINNING = f'{{"id": "{_ID}'


@dataclass(frozen=True)
class Request:
    """A line of the input."""

    custom_id: str
    url: str  # a path of the server
    body: Record
    line: str = ""  # FILE:LINE

    @property
    def answer_id(self) -> str:
        """The id of its answer, which names all that is sent."""
        sent = json.dumps([self.custom_id, self.url, self.body],
                          sort_keys=True)
        return _ID + hashlib.sha256(sent.encode()).hexdigest()

    @property
    def repeatable(self) -> bool:
        """True: sent twice, it has the same effect as sent once."""
        return "request_id" in self.body or not (
            self.body.get("session_id") or self.url.startswith("/v1/sessions"))


def requests(path: pathlib.Path) -> Iterator[Request]:
    """The lines of a file. ValueError, with FILE:LINE, for a wrong one."""
    lines: dict[str, str] = {}
    for name, record in read(path):
        request = _request(name, record)
        if request.custom_id in lines:
            raise ValueError(f"{name}: custom_id: {request.custom_id!r} is "
                             f"that of {lines[request.custom_id]}")
        lines[request.custom_id] = name
        yield request


def _request(name: str, record: Record) -> Request:
    custom_id, url, body = (record.get(field)
                            for field in ("custom_id", "url", "body"))
    if not isinstance(custom_id, str) or not custom_id:
        raise ValueError(f"{name}: custom_id: must be a text")
    if record.get("method") != "POST":
        raise ValueError(f"{name}: method: must be POST")
    if not isinstance(url, str) or not _PATH.fullmatch(url):
        raise ValueError(f"{name}: url: must be a path such as "
                         "/v1/completions")
    if not isinstance(body, dict):
        raise ValueError(f"{name}: body: must be an object")
    if not _is_json(body):
        raise ValueError(f"{name}: body: has a number that JSON has not, "
                         "NaN or an infinite one")
    if body.get("stream"):
        raise ValueError(f"{name}: body.stream: a batch has whole answers")
    return Request(custom_id, url, body, name)


def _is_json(body: Record) -> bool:
    try:
        json.dumps(body, allow_nan=False)
    except ValueError:
        return False
    return True


class Batch:
    """The answers in a file: those that are there, and those that come.

    An answer with the status 200 stays. Others are removed, and their requests
    are sent again. `asked`: for each custom_id the id of the answer, and
    FILE:LINE of the request. ValueError for an answer to another request.
    """

    def __init__(self, target: pathlib.Path,
                 asked: Mapping[str, tuple[str, str]]) -> None:
        self._asked = asked
        self._done: set[str] = set()
        self._file = JsonLines(target, _BEGINNING, self._keep)

    def _keep(self, name: str, record: Record) -> bool:
        custom_id, response = record.get("custom_id"), record.get("response")
        if not (isinstance(custom_id, str) and "error" in record
                and (response is None or isinstance(response, dict))):
            raise ValueError(f"{name}: is not an answer of a batch")
        if response is None or response.get("status_code") != 200:
            return False
        found = str(record.get("id"))
        wanted, line = self._asked.get(custom_id, (found, ""))
        if found != wanted and _ANSWER_ID.fullmatch(found):
            raise ValueError(
                f"{name}: answers another request than {line}, with the "
                f"custom_id {custom_id!r}: remove this answer, or write to "
                "another file")
        self._done.add(custom_id)
        return True

    def missing(self, source: pathlib.Path) -> Iterator[Request]:
        """The requests of a file that have no answer."""
        return (request for request in requests(source)
                if request.custom_id not in self._done)

    def answer(self, web: Web, request: Request) -> str:
        """Sends a request and writes its answer; empty, or what went wrong.

        NoServerError if there is no server for this key.
        """
        response, error, trouble = None, None, ""
        try:
            answer = web.post(request.url, request.body, request.repeatable)
            if answer.status == http.HTTPStatus.UNAUTHORIZED:
                raise NoServerError(f"it refuses the key: {_message(answer)}")
            response = {"status_code": answer.status,
                        "request_id": answer.request_id, "body": answer.body}
            if answer.status != 200:
                trouble = f"HTTP {answer.status}: {_message(answer)}"
        except NoServerError:
            raise
        except TxlError as failed:
            error = {"code": failed.code.name, "message": failed.message}
            trouble = str(failed)
        self._file.append({"id": request.answer_id,
                           "custom_id": request.custom_id,
                           "response": response, "error": error})
        return trouble and f"{request.custom_id}: {trouble}"

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _message(answer: Answer) -> str:
    said: Any = answer.body
    param = None
    for field in ("error", "message"):
        if isinstance(said, dict):
            param, said = said.get("param"), said.get(field, said)
    return (f"{param}: {said}" if param else str(said))[:200]


def main(arguments: Sequence[str] | None = None) -> int:
    """python -m txl_client.batch"""
    parser = argparse.ArgumentParser(
        prog=f"python -m {PROGRAM}",
        description="Answers a file of requests in the format of OpenAI's "
        "batches. Answers are written as they come; custom_id tells whose they "
        "are. Run again with the same files, it sends only requests that have "
        "no answer with the status 200 in OUT.",
        epilog="Exit status: 0: every request has an answer with the status "
        "200; 1: some failed; 2: wrong command line or input, nothing was "
        "sent; 130: Ctrl-C.")
    parser.add_argument("source", metavar="IN.jsonl", type=pathlib.Path)
    parser.add_argument("target", metavar="OUT.jsonl", type=pathlib.Path)
    command.add_server_flags(parser, "http://HOST:PORT or https://HOST:PORT",
                             "http://127.0.0.1:8080")
    return command.run(PROGRAM, functools.partial(
        _run, parser.parse_args(arguments)))


def _run(arguments: argparse.Namespace) -> int:
    source, target = arguments.source, arguments.target
    web = Web(arguments.server, **command.client_options(arguments))
    # Both are read more than once, which a pipe cannot give.
    command.refuse_devices([source, target])
    asked = {request.custom_id: (request.answer_id, request.line)
             for request in requests(source)}  # any mistake is found here
    command.refuse_inputs([target, *command.with_new([target.resolve()])],
                          [source])
    batch = Batch(target, asked)
    sent = failed = 0
    try:
        for trouble in as_done(functools.partial(batch.answer, web),
                               batch.missing(source),
                               web.settings.in_flight):
            sent += 1
            failed += bool(trouble)
            if trouble:
                command.say(PROGRAM, trouble)
    except NoServerError as error:
        raise NoServerError(
            f"{arguments.server}: {error.message}; the same command "
            "continues later") from error
    finally:
        batch.close()
    print(f"{len(asked)} requests: {sent - failed} answered, {failed} failed, "
          f"{len(asked) - sent} answered before", file=sys.stderr)
    return command.FAILED if failed else 0
