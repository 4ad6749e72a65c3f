"""A file of JSON lines, to which a program adds what it has finished.

A program that ends at any moment, and begins again with the same file, loses
only the line that it was writing.
"""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

Record = dict[str, Any]


def parse(name: str, line: bytes) -> Record:
    """The JSON object of a line, which errors call `name`; else ValueError.

    No object in it has a member twice, of which one would be lost.
    """
    twice: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> Record:
        found: Record = {}
        for member, value in pairs:
            if member in found:
                twice.append(member)
            found[member] = value
        return found

    try:
        record = json.loads(line.decode("utf-8-sig"),
                            object_pairs_hook=members)
    except UnicodeDecodeError:
        raise ValueError(f"{name}: is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise ValueError(f"{name}: must be a JSON object")
    if twice:
        raise ValueError(f"{name}: {json.dumps(twice[0])} stands twice")
    return record


def read(path: pathlib.Path) -> Iterator[tuple[str, Record]]:
    """The name, FILE:LINE, and the object of each line that is not empty."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield f"{path}:{number}", parse(f"{path}:{number}", line)


class JsonLines:
    """The file `path`, made if there is none. append() is for any thread.

    `keep(name, record)` sees every line, and those for which it is false are
    removed. It raises ValueError for a line of another program, and then the
    file remains as it is. `beginning`: that of every line, by which an
    incomplete last line is known and removed.

    ValueError if another process has the file.
    """

    def __init__(self, path: pathlib.Path, beginning: str,
                 keep: Callable[[str, Record], bool]) -> None:
        self._path = path.resolve()  # a link stays a link
        self._beginning = beginning.encode()
        self._keep = keep
        self._lock = threading.Lock()
        self._file = self._open(self._path)
        try:
            self._repair()
        except BaseException:
            self.close()
            raise

    def append(self, record: Record) -> None:
        """Adds a line. OSError, also for every later one, if it fails."""
        line = memoryview(json.dumps(record).encode() + b"\n")
        with self._lock:
            if self._file.closed:
                raise OSError(f"{self._path}: a line could not be written")
            try:
                while line:
                    line = line[self._file.write(line):]
            except BaseException:
                self._file.close()  # nothing follows half a line
                raise

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _open(self, path: pathlib.Path) -> Any:
        file = open(path, "a+b", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise ValueError(
                f"{self._path}: another process writes to it") from None
        return file

    def _repair(self) -> None:
        size = self._path.stat().st_size
        kept = sum(len(line) for line in self._kept())
        if kept == size:
            return
        new = self._path.with_name(self._path.name + ".new")
        new.unlink(missing_ok=True)
        file = self._open(new)
        try:
            for line in self._kept():
                file.write(line)
            os.fsync(file.fileno())
            new.replace(self._path)
        except BaseException:
            file.close()
            new.unlink(missing_ok=True)
            raise
        self._file.close()
        self._file = file

    def _kept(self) -> Iterator[bytes]:
        with open(self._path, "rb") as file:
            for number, line in enumerate(file, 1):
                name = f"{self._path}:{number}"
                if not line.endswith(b"\n") and self._is_torn(line):
                    return
                if self._keep(name, parse(name, line)):
                    yield line if line.endswith(b"\n") else line + b"\n"

    def _is_torn(self, line: bytes) -> bool:
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            return (line.startswith(self._beginning)
                    or self._beginning.startswith(line))
        return False
