"""Makes the parts of txl_client that are not written by hand.

txl_client/_proto has the stubs of proto/txl/v1. They are those of protoc 3.21,
because code of a newer protoc needs a runtime that is as new. A source
distribution holds them, so that a wheel can be built from it without protoc.

Each txl_client/async_NAME.py, whose calls are awaited, becomes NAME.py, whose
calls wait.
"""

import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROTOC = "protoc"
GRPC_PLUGIN = "grpc_python_plugin"
PACKAGE = "txl_client._proto"
IMPORT = re.compile(r"^from txl\.v1 import ", re.MULTILINE)


# What is written in async_NAME.py, and what stands for it in NAME.py. The words
# of documentation are among them.
AWAITED = "async_*.py"
WAITING = tuple((re.compile(awaited), waiting) for awaited, waiting in (
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_(?=[a-z])|_async\b", ""),
    (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\.aclose\(", ".close("),
    (r"\basyncio\b", "time"),
    (r"\bgrpc\.aio\b", "grpc"),
    (r"\bGenerator\[(\w+), None\]", r"Generator[\1, None, None]"),
    (r"\bare awaited\b", "wait"),
    (r"\btasks may use it, all of one event loop\b", "threads may use it"),
    (r"\bits `with` block ends\b", r"\g<0>, or nothing refers to it"),
))


def rewrite(text: str) -> str:
    """Generated code that imports its neighbours from their new package."""
    return IMPORT.sub(f"from {PACKAGE} import ", text)


def generate(protos: pathlib.Path, target: pathlib.Path) -> None:
    """Writes the stubs of `protos`/txl/v1 into the folder `target`."""
    plugin = shutil.which(GRPC_PLUGIN)
    if shutil.which(PROTOC) is None or plugin is None:
        raise RuntimeError(
            f"{PROTOC} and {GRPC_PLUGIN} are needed to build from the "
            "repository (Debian: protobuf-compiler, protobuf-compiler-grpc)")
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        subprocess.run(
            [PROTOC, f"-I{protos}", f"--plugin=protoc-gen-grpc={plugin}",
             f"--python_out={out}", f"--pyi_out={out}", f"--grpc_out={out}",
             *sorted(str(file) for file in protos.glob("txl/v1/*.proto"))],
            check=True)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        (target / "__init__.py").write_text(
            '"""Stubs of proto/txl/v1, generated."""\n', encoding="utf-8")
        for file in sorted((out / "txl" / "v1").iterdir()):
            (target / file.name).write_text(
                rewrite(file.read_text(encoding="utf-8")), encoding="utf-8")


def waiting(text: str) -> str:
    """The code whose calls wait, of the code whose calls are awaited."""
    for awaited, instead in WAITING:
        text = awaited.sub(instead, text)
    return text


def write_waiting(package: pathlib.Path) -> None:
    """Writes NAME.py of each async_NAME.py in the folder `package`."""
    for source in package.glob(AWAITED):
        target = package / source.name.removeprefix("async_")
        target.write_text(
            f"# Generated from {source.name} by hatch_build.py.\n"
            + waiting(source.read_text(encoding="utf-8")), encoding="utf-8")


class ProtoHook(BuildHookInterface[Any]):
    """Runs before a wheel or a source distribution is put together."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = pathlib.Path(self.root)
        write_waiting(root / "txl_client")
        protos, target = root.parent / "proto", root / "txl_client" / "_proto"
        if (protos / "txl" / "v1").is_dir():
            generate(protos, target)
        elif not target.is_dir():
            raise RuntimeError(f"neither {protos} nor {target} is there")
