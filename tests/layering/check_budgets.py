#!/usr/bin/env python3
"""Fails where a folder has more lines or files than its budget, budgets.toml.

Lines are those of production code: everything under version control with one of
KINDS, without tests. A file counts to the longest folder that has a budget.
--write sets every budget to what is there now.

Usage: check_budgets.py ROOT [--write]
"""

import pathlib
import subprocess
import sys
import tomllib

import check_main

KINDS = (".cc", ".h", ".cu", ".proto", ".py", ".sh", ".js", ".css", ".html",
         ".lua")
BUDGETS = "tests/layering/budgets.toml"


def tracked_files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    for line in listed.splitlines():
        path = pathlib.PurePosixPath(line)
        if (path.suffix in KINDS and "tests" not in path.parts
                and (root / path).is_file()):
            yield path


def sizes(root, files, folders):
    """{folder: [lines, files]}; what lies in none of `folders` counts to ""."""
    found = {folder: [0, 0] for folder in folders}
    for path in files:
        around = [parent.as_posix() for parent in path.parents]
        folder = next((f for f in around if f in found), "")
        of_folder = found.setdefault(folder, [0, 0])
        of_folder[0] += (root / path).read_text(encoding="utf-8").count("\n")
        of_folder[1] += 1
    return found


def over(budgets, found):
    errors = []
    for folder, (lines, files) in sorted(found.items()):
        if folder not in budgets:
            errors.append(f"{folder or 'files outside of all folders'}: "
                          f"{lines} lines and no budget")
            continue
        for name, size in (("lines", lines), ("files", files)):
            budget = budgets[folder][name]
            if size > budget:
                errors.append(f"{folder}: {size} {name}, its budget is "
                              f"{budget}")
    return errors


def read_budgets(root):
    return tomllib.loads((root / BUDGETS).read_text(encoding="utf-8"))


def check(root):
    budgets = read_budgets(root)
    return over(budgets, sizes(root, tracked_files(root), budgets))


def write(root):
    text = (root / BUDGETS).read_text(encoding="utf-8")
    comment = text[:text.index('["')]
    found = sizes(root, tracked_files(root), read_budgets(root))
    tables = [f'["{folder}"]\nlines = {lines}\nfiles = {files}\n'
              for folder, (lines, files) in sorted(found.items())]
    (root / BUDGETS).write_text(comment + "\n".join(tables), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[2:] == ["--write"]:
        write(pathlib.Path(sys.argv[1]))
    else:
        check_main.run(check)
