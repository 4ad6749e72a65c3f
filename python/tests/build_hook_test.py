"""What the build hook makes of the .proto files; hatchling must be there."""

import importlib.util
import pathlib

import pytest
from server_process import ROOT

import txl_client
import txl_client._proto


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location(
        "hatch_build", ROOT / "python" / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_imports_of_neighbours_are_rewritten_and_nothing_else(hook):
    assert hook.rewrite(
        "from google.protobuf import x\n"
        "from txl.v1 import token_pb2 as t\n"
        "  # from txl.v1 import is text\n") == (
        "from google.protobuf import x\n"
        "from txl_client._proto import token_pb2 as t\n"
        "  # from txl.v1 import is text\n")


def test_the_installed_stubs_are_those_of_the_repository_s_protos(
        hook, tmp_path):
    hook.generate(ROOT / "proto", tmp_path / "made")
    installed = pathlib.Path(txl_client._proto.__file__).parent
    made = {file.name: file.read_text()
            for file in (tmp_path / "made").iterdir()}
    assert made == {file.name: file.read_text()
                    for file in installed.iterdir() if file.is_file()}


def build(hook, root):
    made = hook.ProtoHook(str(root), {}, None, None, str(root), "wheel")
    made.initialize("standard", {})


def test_a_source_distribution_keeps_the_stubs_that_it_has(hook, tmp_path):
    stubs = tmp_path / "txl_client" / "_proto"
    stubs.mkdir(parents=True)
    (stubs / "token_pb2.py").write_text("kept")
    build(hook, tmp_path)
    assert (stubs / "token_pb2.py").read_text() == "kept"


def test_without_protos_and_stubs_nothing_is_built(hook, tmp_path):
    with pytest.raises(RuntimeError, match="neither"):
        build(hook, tmp_path / "nowhere")


def test_a_missing_protoc_is_named(hook, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="protobuf-compiler"):
        hook.generate(ROOT / "proto", tmp_path / "made")


def test_what_is_awaited_becomes_what_waits(hook):
    assert hook.waiting(
        "import asyncio\n"
        "from txl_client.async_stream import AsyncTurnStream\n"
        "async def __anext__(self) -> AsyncTurnStream:\n"
        "    async for each in map_bounded_async(self.run, calls):\n"
        "        await asyncio.sleep(await self.delay())\n"
        "    await self.events.aclose()\n") == (
        "import time\n"
        "from txl_client.stream import TurnStream\n"
        "def __next__(self) -> TurnStream:\n"
        "    for each in map_bounded(self.run, calls):\n"
        "        time.sleep(self.delay())\n"
        "    self.events.close()\n")


def test_every_awaited_module_has_one_that_waits(hook):
    package = pathlib.Path(txl_client.__file__).parent
    names = [file.name for file in package.glob(hook.AWAITED)]
    assert len(names) == 4
    for name in names:
        text = (package / name.removeprefix("async_")).read_text()
        first, _, rest = text.partition("\n")
        assert name in first
        assert "async" not in rest.lower() and "await" not in rest
