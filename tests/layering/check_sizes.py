#!/usr/bin/env python3
"""Fails where a file or a function of own code is longer than it may be, or a
function takes too many parameters (CONTRIBUTING.md has the limits).

lizard counts: a function from its first line to its closing brace.

Usage: check_sizes.py ROOT
"""

import lizard

import check_includes
import check_main

FILE_LINES = 800
FUNCTION_LINES = 60
PARAMETERS = 6


def check(root):
    errors = []
    for path in check_includes.source_files(root):
        name = path.as_posix()
        text = (root / path).read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > FILE_LINES:
            errors.append(f"{name}: {lines} lines, at most {FILE_LINES}")
        # CUDA is C++ to lizard, which goes by the file's name.
        found = lizard.analyze_file.analyze_source_code(
            path.with_suffix(".cc").as_posix(), text).function_list
        for function in found:
            where = f"{name}:{function.start_line}: {function.name}"
            if function.length > FUNCTION_LINES:
                errors.append(f"{where}: {function.length} lines, at most "
                              f"{FUNCTION_LINES}")
            if function.parameter_count > PARAMETERS:
                errors.append(f"{where}: {function.parameter_count} "
                              f"parameters, at most {PARAMETERS}")
    return errors


if __name__ == "__main__":
    check_main.run(check)
