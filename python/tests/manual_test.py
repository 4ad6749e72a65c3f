"""The examples of docs/python.md do what the manual says."""

import asyncio
import pathlib
import re
import textwrap

import pytest
from server_process import ROOT

from txl_client import Client

MANUAL = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
ADDRESS = "127.0.0.1:50051"


def example(chapter):
    """The code under a heading."""
    body = MANUAL.split(f"## {chapter}\n", 1)[1]
    return re.search(r"```python\n(.*?)```", body, re.DOTALL)[1]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_ten_lines_to_text(server, capsys):
    names = {}
    exec(example("Ten lines to text").replace(ADDRESS, server.address), names)
    assert names["turn"].text in capsys.readouterr().out
    assert len(names["turn"].tokens) == 100


def test_sessions_that_survive(client, capsys):
    exec(example("Sessions that survive"), {"client": client})
    assert "'elba', 'padua'" in capsys.readouterr().out
    assert pathlib.Path("verona.txls").stat().st_size > 0
    for name in ("elba", "padua"):
        client.session(name).delete()


def test_scoring(client, capsys):
    import pandas

    names = {"client": client,
             "frame": pandas.DataFrame({"line": ["To be", "or not"]})}
    exec(example("Scoring"), names)
    assert list(names["frame"].columns) == [
        "line", "sum_logprob", "token_count", "perplexity"]
    assert len(capsys.readouterr().out.split()) == 3


def test_awaiting(server, capsys):
    code = example("Awaiting").replace(ADDRESS, server.address)
    names = {}
    exec("from txl_client import AsyncClient\nasync def main():\n"
         + textwrap.indent(code + "    return turn\n", "    "), names)
    assert len(asyncio.run(names["main"]()).tokens) == 50
    with Client(server.address) as client:
        client.session("verona").delete()


def test_every_error_has_a_line():
    import txl_client

    for name in txl_client.__all__:
        if name.endswith("Error") and name != "TxlError":
            assert f"`{name}`" in MANUAL, name
