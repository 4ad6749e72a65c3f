#!/usr/bin/env python3
"""Fails when a folder includes what docs/ARCHITECTURE.md does not allow.

Checks every #include "..." of own code: the included file exists, the folder
may use it (RULES), and neither files nor folders form a cycle.

Usage: check_includes.py ROOT
"""

import pathlib
import re

import check_main

# Model types that carry no tensor; api and scheduler may use them.
PLAIN_MODEL = ("model/base", "model/config", "model/sampling", "model/text",
               "model/memory")

# What a serving step is made from.
STEP = PLAIN_MODEL + ("model/checkpoint", "model/reference", "model/step")

# Folder -> folders it may include besides itself. The longest matching prefix
# of a file's folder is its rule.
RULES = {
    "proto": (),
    "program": (),
    "model/base": (),
    "model/memory": ("model/base",),
    "model/sampling": ("model/base",),
    "model/text": ("model/base", "program/output_file.h"),
    "model/music": ("model/base", "model/sampling", "model/text"),
    "model/config": ("model/base", "model/sampling",
                     "program/nearest_name.h"),
    "model/checkpoint": PLAIN_MODEL + ("program/output_file.h",),
    "model/reference": PLAIN_MODEL + ("model/checkpoint",),
    "model/step": PLAIN_MODEL,
    "model/cpu": STEP,
    "model/torch": STEP,
    "model/cuda/device": ("model/base",),
    "model/cuda/kernels": ("model/base", "model/sampling",
                           "model/cuda/device"),
    "model/cuda/step": STEP + ("model/cuda",),
    "model/convert/container": ("model/base", "model/config",
                                "model/checkpoint", "txl/convert"),
    "model/convert/family": ("model/base", "model/config",
                             "model/convert/container"),
    "model/convert/vocabulary": ("model/base", "model/config", "model/text",
                                 "model/music", "model/convert/container"),
    "model/convert": PLAIN_MODEL + ("model/checkpoint",),
    "model/train": PLAIN_MODEL + ("model/checkpoint", "model/reference"),
    "model/tool": ("model", "program"),
    "server/base": ("program/output_file.h",),
    "server/trace": ("server/base",),
    "server/metrics": ("server/base",),
    "server/quota": ("model/base", "server/base",
                     "program/flag_checks.h", "program/nearest_name.h"),
    "server/session": PLAIN_MODEL + ("server/metrics", "server/base"),
    "server/store": PLAIN_MODEL + ("server/session", "server/metrics",
                                   "server/base"),
    "server/engine": ("model", "server/metrics", "server/base"),
    "server/scheduler": PLAIN_MODEL + ("server/session", "server/metrics",
                                       "server/quota", "server/base",
                                       "server/engine/step_runner.h"),
    "server/access": ("model/base", "server/base",
                      "program/nearest_name.h"),
    "server/tls": ("model/base", "server/base"),
    "server/api": PLAIN_MODEL + ("model/music", "txl/v1", "server/scheduler",
                                 "server/session", "server/metrics",
                                 "server/access", "server/quota",
                                 "server/trace", "server/base"),
    "server/rpc": ("txl/v1", "grpc", "model/base", "server/api",
                   "server/access", "server/tls", "server/metrics",
                   "server/trace", "server/base"),
    "server/http": PLAIN_MODEL + ("txl/v1", "server/api", "server/access",
                                  "server/exporter", "server/tls",
                                  "server/session", "server/metrics",
                                  "server/trace", "server/base",
                                  "program/nearest_name.h"),
    "server/exporter": ("server/metrics", "server/base"),
    "server": ("server", "model", "program"),
    "client": ("txl/v1",),
    "client/cli": ("txl/v1", "grpc", "client", "program"),
    "client/bench/plan": ("txl/v1", "client/text_check.h"),
    "client/bench/measure": (),
    "client/bench/run": ("txl/v1", "client/bench/plan",
                         "client/bench/measure", "client/call_error.h",
                         "client/canceller.h", "client/channel.h",
                         "client/client.h"),
    "client/bench/result": ("client/bench/plan", "client/bench/measure",
                            "client/bench/run", "client/text_check.h",
                            "program/output_file.h", "program/version.h"),
    "tests": ("tests", "server", "model", "client", "program", "txl/v1",
              "txl/convert", "grpc"),
}

SUFFIXES = (".h", ".cc", ".cu", ".cuh")
GENERATED = ("txl/v1/", "txl/convert/", "google/rpc/", "grpc/health/", "grpc/reflection/", "grpcpp/", "src/proto/")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def source_files(root):
    for top in ("program", "model", "server", "client", "tests"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path.relative_to(root)


def includes_of(root, path):
    return INCLUDE.findall((root / path).read_text(encoding="utf-8"))


def is_library(include):
    """Libraries that are included with quotes by their own convention."""
    return include.startswith(("absl/", "gtest/", "gmock/", "grpcpp/",
                               "google/", "src/proto/"))


def rule_for(path):
    folder = path.parent.as_posix()
    matches = [r for r in RULES if folder == r or folder.startswith(r + "/")]
    return max(matches, key=len) if matches else None


def allowed(path, include):
    rule = rule_for(path)
    if rule is None:
        return False
    if rule != "server" and include.startswith(rule + "/"):
        return True
    return any(include == item or include.startswith(item + "/")
               for item in RULES[rule])


def find_cycle(graph):
    """One cycle of a {node: set of nodes} graph as a list, or None."""
    state, stack = {}, []

    def visit(node):
        state[node] = "open"
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if state.get(target) == "open":
                return stack[stack.index(target):] + [target]
            if target not in state:
                cycle = visit(target)
                if cycle:
                    return cycle
        stack.pop()
        state[node] = "done"
        return None

    for node in sorted(graph):
        if node not in state:
            cycle = visit(node)
            if cycle:
                return cycle
    return None


def component(path):
    """A header, its source and their private x_impl.h are one component."""
    return path.with_suffix("").as_posix().removesuffix("_impl")


def check(root):
    errors, files, folders = [], {}, {}
    for path in source_files(root):
        name = path.as_posix()
        for include in includes_of(root, path):
            if is_library(include):
                continue
            if not allowed(path, include):
                errors.append(f"{name}: may not include {include}")
            if include.startswith(GENERATED):
                continue
            if not (root / include).is_file():
                errors.append(f"{name}: no such file: {include}")
                continue
            target = pathlib.PurePosixPath(include)
            if component(path) != component(target):
                files.setdefault(component(path), set()).add(
                    component(target))
            if path.parts[0] != "tests" and path.parent != target.parent:
                folders.setdefault(path.parent.as_posix(), set()).add(
                    target.parent.as_posix())
    for kind, graph in (("files", files), ("folders", folders)):
        cycle = find_cycle(graph)
        if cycle:
            errors.append(f"cycle of {kind}: " + " -> ".join(cycle))
    return errors


if __name__ == "__main__":
    check_main.run(check)
