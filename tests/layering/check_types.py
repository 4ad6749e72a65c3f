#!/usr/bin/env python3
"""Fails where two headers define types of one name in one namespace: both could
be linked into one program, which C++ does not allow (the one-definition rule),
and no compiler or linker says so.

Usage: check_types.py ROOT
"""

import re

import check_includes
import check_main

NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.MULTILINE)
# At the beginning of a line: neither nested nor only declared.
TYPE = re.compile(
    r"^(?:class|struct|enum class|enum)(?: ABSL_\w+(?:\(\w+\))?)? (\w+)"
    r"(?: final)?(?: : [^{;]+)? \{", re.MULTILINE)


def types_of(text):
    """Full names of the types that a header defines."""
    namespaces = list(NAMESPACE.finditer(text))
    for found in TYPE.finditer(text):
        around = [n[1] for n in namespaces if n.start() < found.start()]
        yield "::".join([around[-1] if around else "", found[1]])


def check(root):
    errors, homes = [], {}
    for path in check_includes.source_files(root):
        if path.suffix != ".h" or path.parts[0] == "tests":
            continue
        for name in types_of((root / path).read_text(encoding="utf-8")):
            home = homes.setdefault(name, path)
            if home != path:
                errors.append(f"{path}: {name}: also in {home}")
    return errors


if __name__ == "__main__":
    check_main.run(check)
