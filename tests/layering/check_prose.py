#!/usr/bin/env python3
"""Fails where text for people has words that a native engineer would not write.

Checked are documents without their code, comments of the headers in HEADERS,
and the messages (string literals with a space) of the sources in MESSAGES.
A folder joins these lists once it passes.

Usage: check_prose.py ROOT
"""

import re

import check_main

# Folders whose Markdown is checked, with the files beside them.
DOCUMENTS = (".", "docs", "docs/design", "deploy/wheel", "models/shakespeare",
             "python", "tests/bench")
# Folders of headers, with the folders below them.
HEADERS = ("client", "model", "program", "server")
# Folders of sources, with the folders below them.
MESSAGES = ("client", "model", "program", "server")

# Pattern -> the better word. A pattern is searched without regard to case.
PATTERNS = {
    r"\bwhoever\b": "anyone who, or name the role: the client, the operator",
    r"\bnobody\b": "no one, or name the role: no client, no other thread",
    r"\b(?:he|him|his|himself|she|her|herself)\b": "they, or name the role",
    r"\blikewise\b": "repeat the sentence: a cell is read alone",
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more than\b|one\b)":
        "is not a",
    r"(?<!there )\b(?:is|are|was|were|makes?) none\b": "is not one",
    r"\bcontrol groups?\b": "cgroup",
    r"\bfor good\b": "permanently",
    r"\bof before\b(?! and)": "older, earlier",
    r"\bnicer than\b": "at lower priority",
    r"\b(?:take|takes|taken|took) back\b": "revoke, return, undo",
    r"(?<!would )\b(?:has|have|had) to (?:have|be)\b": "must have, must be",
    r"\bsome \d+": "about",
    r"\banew\b": "again; starts anew: restarts",
    r"\bshall\b": "must, will, should",
    r"\b(?:where|if) (?:wanted|asked to|asked for)\b":
        "say what asks for it: with --flag, if the client asks",
    r"\b(?:thereof|therein|whereof|wherein)\b": "of it, in it",
    r"\bof one's own\b": "of its own, own",
    r"(?:^|\. |\| )(?-i:W)hose\b[^?]*$": "begin with the subject",
}

COMPILED = {re.compile(pattern, re.IGNORECASE): better
            for pattern, better in PATTERNS.items()}
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def markdown_text(line):
    """A line without inline code and without the targets of links."""
    line = re.sub(r"`[^`]*`", "`", line)
    return re.sub(r"\]\([^)]*\)", "]", line)


def markdown_lines(text):
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.startswith("    "):
            yield number, markdown_text(line)


def comment_lines(text):
    for number, line in enumerate(text.split("\n"), 1):
        if "//" in line:
            yield number, line.split("//", 1)[1].strip()


def message_lines(text):
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith(("//", "#include")):
            continue
        for literal in LITERAL.findall(line):
            if " " in literal:
                yield number, literal


def faults(line):
    """What is wrong in a line: pairs of the words found and the better ones."""
    for pattern, better in COMPILED.items():
        found = pattern.search(line)
        if found:
            yield found[0].strip(" |.:;"), better


def texts(root):
    """(path, reader of its lines) of everything that is checked."""
    for folder in DOCUMENTS:
        for path in sorted((root / folder).glob("*.md")):
            yield path, markdown_lines
    for folders, suffix, reader in ((HEADERS, "*.h", comment_lines),
                                    (MESSAGES, "*.cc", message_lines)):
        for folder in folders:
            for path in sorted((root / folder).rglob(suffix)):
                yield path, reader


def check(root):
    errors = []
    for path, reader in texts(root):
        name = path.relative_to(root).as_posix()
        for number, line in reader(path.read_text(encoding="utf-8")):
            errors += [f'{name}:{number}: "{words}": better: {better}'
                       for words, better in faults(line)]
    return errors


if __name__ == "__main__":
    check_main.run(check)
