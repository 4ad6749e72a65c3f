"""python -m txl_client.batch, as OpenAI's batches and after interruptions."""

import json
import os
import re
import subprocess
import sys
import threading

import pytest
from server_process import ServerProcess
from web_server import WebServer

from txl_client.json_lines import read
from txl_client.jsonl_batch import Request, main


def line(custom_id, body, url="/v1/completions", **fields):
    return {"custom_id": custom_id, "method": "POST", "url": url,
            "body": body, **fields}


@pytest.fixture(scope="module")
def door():
    process = ServerProcess("--http-listen", "127.0.0.1:0")
    yield process.process.stdout.readline().split()[-1]
    process.close()


@pytest.fixture
def batch(tmp_path):
    """batch(url, lines) runs it; .answers() and .out are what it wrote."""
    class Batch:
        source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"

        def __call__(self, url, lines, *flags):
            self.source.write_text("".join(
                each if isinstance(each, str) else json.dumps(each) + "\n"
                for each in lines))
            return main(["--server", url, *flags, str(self.source),
                         str(self.out)])

        def answers(self):
            return {record["custom_id"]: record
                    for _, record in read(self.out)}

    return Batch()


LINES = [line("whole", {"prompt": "ROMEO:", "max_tokens": 5, "seed": 1}),
         line("list", {"prompt": ["To be", "or"], "max_tokens": 2}),
         line("score", {"text": "ROMEO:"}, "/v1/score"),
         line("ids", {"prompt": "ROMEO:"}, "/tokenize")]


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_json_has_not_is_a_mistake(batch, capsys, number):
    wrong = json.dumps(line("1", {"temperature": 0})).replace(
        '"temperature": 0', f'"temperature": {number}')
    assert batch("http://127.0.0.1:1", [wrong + "\n"]) == 2
    assert "in.jsonl:1: body: has a number" in capsys.readouterr().err


def test_a_pipe_or_a_device_is_neither_input_nor_output(tmp_path, capsys):
    source, pipe = tmp_path / "in.jsonl", tmp_path / "pipe"
    source.write_text(json.dumps(line("1", {"prompt": "x"})) + "\n")
    os.mkfifo(pipe)
    for files in ([pipe, tmp_path / "out"], [source, pipe],
                  [source, "/dev/null"]):
        assert main(["--server", "http://127.0.0.1:1",
                     *map(str, files)]) == 2
        assert "must be a regular file" in capsys.readouterr().err


def test_every_line_has_its_answer(batch, door, client, capsys):
    assert batch(door, LINES) == 0
    answers = batch.answers()
    assert set(answers) == {"whole", "list", "score", "ids"}
    for answer in answers.values():
        assert list(answer) == ["id", "custom_id", "response", "error"]
        assert answer["error"] is None
        assert list(answer["response"]) == ["status_code", "request_id",
                                            "body"]
        assert answer["response"]["status_code"] == 200
        assert answer["response"]["request_id"].startswith("req-")
    bodies = {name: answer["response"]["body"]
              for name, answer in answers.items()}
    turn = client.generate("ROMEO:", max_tokens=5, seed=1)
    assert bodies["whole"]["choices"][0]["text"] == turn.text
    assert len(bodies["list"]["choices"]) == 2
    assert bodies["score"]["sum_logprob"] == client.score(
        ["ROMEO:"])[0].sum_logprob
    assert bodies["ids"]["tokens"] == client.tokenize("ROMEO:")
    assert len({answer["id"] for answer in answers.values()}) == 4
    assert "4 answered, 0 failed, 0 answered before" in capsys.readouterr().err


def test_a_chat_is_answered_as_the_server_answers_it(batch, door):
    chat = {"messages": [{"role": "user", "content": "hi"}]}
    assert batch(door, [line("c", chat, "/v1/chat/completions")]) == 1
    response = batch.answers()["c"]["response"]
    assert response["status_code"] == 400
    assert response["body"]["error"]["code"] == "NO_CHAT_FORMAT"


def test_a_refused_line_does_not_stop_the_others(batch, door, capsys):
    wrong = line("wrong", {"prompt": "a", "max_tokens": -1})
    assert batch(door, [wrong, *LINES]) == 1
    assert batch.answers()["wrong"]["response"]["status_code"] == 400
    assert len(batch.answers()) == 5
    assert ("wrong: HTTP 400: max_tokens: must be at least 1"
            in capsys.readouterr().err)


def test_a_second_run_sends_what_has_no_answer(batch, capsys):
    def answer(number, path, body):
        return (400 if body["n"] == 2 and number < 4 else 200, {}, b"{}")

    lines = [line(f"row-{n}", {"n": n}) for n in range(4)]
    with WebServer(answer) as server:
        assert batch(server.url, lines) == 1
        first = batch.out.read_bytes()
        assert batch(server.url, lines) == 0
        assert [body["n"] for _, _, body in server.requests[4:]] == [2]
        assert batch(server.url, lines) == 0
        assert len(server.requests) == 5
    kept = [each for each in first.splitlines() if b"row-2" not in each]
    assert batch.out.read_bytes().splitlines()[:3] == kept
    assert "0 answered, 0 failed, 4 answered before" in capsys.readouterr().err


def test_the_field_that_is_refused_is_named(batch, door, capsys):
    assert batch(door, [line("n", {"prompt": "a", "n": 0})]) == 1
    assert re.match("txl_client.batch: n: HTTP 400: n: ",
                    capsys.readouterr().err)


@pytest.mark.parametrize("changed", [
    line("b", {"n": 2}), line("b", {"n": 1}, "/v1/score")])
def test_an_answer_to_a_changed_request_is_not_its_answer(batch, capsys,
                                                          changed):
    with WebServer(lambda *request: (200, {}, b"{}")) as server:
        assert batch(server.url, [line("a", {}), line("b", {"n": 1})],
                     "--in-flight", "1") == 0
        before = batch.out.read_bytes()
        capsys.readouterr()
        assert batch(server.url, [line("c", {}), line("a", {}), changed]) == 2
        assert len(server.requests) == 2
        assert capsys.readouterr().err.startswith(
            f"txl_client.batch: {batch.out}:2: answers another request than "
            f"{batch.source}:3, with the custom_id 'b'")
        assert batch.out.read_bytes() == before
        batch.out.write_bytes(before.splitlines(keepends=True)[0])
        assert batch(server.url, [line("a", {}), changed]) == 0
    assert len(server.requests) == 3


def test_the_order_of_fields_is_no_change(batch):
    with WebServer(lambda *request: (200, {}, b"{}")) as server:
        assert batch(server.url, [line("a", {"n": 1, "m": 2})]) == 0
        assert batch(server.url, [line("a", {"m": 2, "n": 1})]) == 0
    assert len(server.requests) == 1


def test_answers_of_another_program_are_taken(batch):
    batch.out.write_text(json.dumps(
        {"id": "batch_req_1", "custom_id": "a", "error": None,
         "response": {"status_code": 200, "request_id": "", "body": {}}})
        + "\n")
    assert batch("http://127.0.0.1:1", [line("a", {})]) == 0


def test_a_byte_order_mark_is_no_part_of_the_first_line(batch):
    with WebServer(lambda *request: (200, {}, b"{}")) as server:
        assert batch(server.url,
                     ["\ufeff" + json.dumps(line("a", {})) + "\n"]) == 0
    assert list(batch.answers()) == ["a"]


def test_a_key_file_may_begin_with_a_mark_and_is_utf_8(batch, tmp_path,
                                                       capsys):
    key = tmp_path / "key"
    key.write_bytes("\ufeffsecret\n".encode())
    with WebServer(lambda *request: (200, {}, b"{}")) as server:
        assert batch(server.url, [line("a", {})], "--key-file", str(key)) == 0
        assert server.requests[0][1]["Authorization"] == "Bearer secret"
    key.write_bytes("secret\n".encode("utf-16"))
    assert batch("http://127.0.0.1:1", [], "--key-file", str(key)) == 2
    assert capsys.readouterr().err.endswith(f"{key}: is not UTF-8\n")
    for text in ("", "\n", "# alice's\nsecret\n"):
        key.write_text(text)
        assert batch("http://127.0.0.1:1", [], "--key-file", str(key)) == 2
        assert capsys.readouterr().err.endswith(f"{key}: holds no key\n")


def test_a_torn_last_line_is_repaired(batch):
    with WebServer(lambda *request: (200, {}, b"{}")) as server:
        lines = [line(f"row-{n}", {}) for n in range(3)]
        assert batch(server.url, lines, "--in-flight", "1") == 0
        whole = batch.out.read_bytes()
        batch.out.write_bytes(whole[:-20])
        assert batch(server.url, lines) == 0
        assert len(server.requests) == 4
    assert list(batch.answers()) == ["row-0", "row-1", "row-2"]
    assert batch.out.read_bytes().splitlines()[:2] == whole.splitlines()[:2]


def test_without_a_server_it_stops_and_continues_later(batch, capsys):
    with WebServer(lambda *request: (200, {}, b"{}")) as server:
        assert batch(server.url, [line("a", {})]) == 0
    lines = [line("a", {}), line("b", {})]
    assert batch(server.url, lines, "--timeout", "1") == 1
    assert "refused; the same command continues" in capsys.readouterr().err
    assert list(batch.answers()) == ["a"]


def test_a_refused_key_stops_the_run(batch, capsys):
    with WebServer(lambda *request: (401, {}, b"who are you?")) as server:
        assert batch(server.url, [line(str(n), {}) for n in range(9)],
                     "--in-flight", "1") == 1
        assert len(server.requests) == 1
    assert "it refuses the key: who are you?" in capsys.readouterr().err
    assert batch.answers() == {}


def test_a_request_without_an_answer_has_an_error(batch):
    with WebServer(lambda *request: None) as server:
        assert batch(server.url, [line("a", {"session_id": "s"})]) == 1
        assert len(server.requests) == 1  # it might have had its effect
    answer = batch.answers()["a"]
    assert answer["response"] is None
    assert answer["error"]["code"] == "UNAVAILABLE"
    assert answer["error"]["message"]


def test_calls_at_a_time_are_limited(batch):
    lock, running, most = threading.Lock(), set(), []

    def answer(number, path, body):
        with lock:
            running.add(number)
            most.append(len(running))
        both.wait(60)
        with lock:
            running.discard(number)
        return 200, {}, b"{}"

    both = threading.Barrier(2)
    with WebServer(answer) as server:
        assert batch(server.url, [line(str(n), {}) for n in range(10)],
                     "--in-flight", "2") == 0
    assert max(most) == 2


@pytest.mark.parametrize("wrong, error", [
    ("{", ":2: is not JSON"), ("[]\n", ":2: must be a JSON object"),
    (line("", {}), ":2: custom_id: must be a text"),
    (line(5, {}), ":2: custom_id: must be a text"),
    (line("a", {}), ":2: custom_id: 'a' is that of .*:1"),
    (line("b", []), ":2: body: must be an object"),
    (line("b", {"stream": True}), ":2: body.stream: "),
    (line("b", {}, "v1/completions"), ":2: url: "),
    (line("b", {}, "/v1/comple tions"), ":2: url: "),
    (line("b", {}, None), ":2: url: "),
    (line("b", {}, method="GET"), ":2: method: must be POST"),
    *((json.dumps(line("b", {"n": 1})).replace(*twice) + "\n",
       f':2: "{name}" stands twice') for name, twice in (
        ("n", ('"n": 1', '"n": 1, "n": 2')),
        ("custom_id", ('"method"', '"custom_id": "c", "method"')),
        ("url", ('"body"', '"url": "/v1/score", "body"')),
        ("body", ("}}", '}, "body": {}}'))))])
def test_a_wrong_line_is_named_and_nothing_is_sent(batch, capsys, wrong,
                                                   error):
    with WebServer(lambda *request: (200, {}, b"{}")) as server:
        assert batch(server.url, [line("a", {}), wrong]) == 2
        assert server.requests == []
    assert not batch.out.exists()
    assert re.match(f"txl_client.batch: {batch.source}{error}",
                    capsys.readouterr().err)


@pytest.mark.parametrize("content", [
    '{"custom_id": "a", "method": "POST", "url": "/", "body": {}}\n',
    '{"a": 1}\n', "To be, or not to be\n", "To be"])
def test_a_file_of_something_else_is_not_overwritten(batch, content, capsys):
    batch.out.write_text(content)
    assert batch("http://127.0.0.1:1", [line("a", {})]) == 2
    assert batch.out.read_text() == content
    assert f"{batch.out}:1: " in capsys.readouterr().err


def test_the_input_is_not_the_output(batch, tmp_path, capsys):
    batch.source = batch.out
    assert batch("http://127.0.0.1:1", [line("a", {})]) == 2
    assert "is the input" in capsys.readouterr().err
    assert batch.out.read_text() == json.dumps(line("a", {})) + "\n"


def test_the_input_is_not_where_the_output_is_repaired(batch, tmp_path,
                                                       capsys):
    batch.source = tmp_path / "other.jsonl.new"
    batch.out.symlink_to(tmp_path / "other.jsonl")
    assert batch("http://127.0.0.1:1", [line("a", {})]) == 2
    assert f"{batch.source}: is the input" in capsys.readouterr().err
    assert batch.source.read_text() == json.dumps(line("a", {})) + "\n"


@pytest.mark.parametrize("flag, value, error", [
    ("--timeout", "5s", "'5s' is not a number"),
    ("--in-flight", "2.5", "'2.5' is not a whole number")])
def test_a_flag_that_is_no_number_is_named(batch, capsys, flag, value, error):
    with pytest.raises(SystemExit):
        batch("http://127.0.0.1:1", [], flag, value)
    assert f"argument {flag}: {error}\n" in capsys.readouterr().err


def test_files_and_keys_that_are_not_there(batch, tmp_path, capsys):
    missing = str(tmp_path / "missing")
    assert batch("http://127.0.0.1:1", [], "--key-file", missing) == 1
    assert main([missing, str(batch.out)]) == 1
    assert batch("127.0.0.1:80", []) == 2
    assert capsys.readouterr().err.count(missing) == 2
    assert not batch.out.exists()


def test_only_what_can_be_repeated_is():
    def repeatable(url, **body):
        return Request("a", url, body).repeatable

    assert repeatable("/v1/completions", prompt="a")
    assert repeatable("/v1/completions", session_id="s", request_id="r")
    assert not repeatable("/v1/completions", session_id="s")
    assert not repeatable("/v1/sessions/s/append", text="a")
    assert repeatable("/v1/sessions/s/append", text="a", request_id="r")


def test_a_killed_run_loses_nothing_that_was_written(batch):
    reached = threading.Event()

    def answer(number, path, body):
        if number == 6:
            reached.set()
            process.wait(60)
            return None
        return 200, {}, json.dumps(body).encode()

    lines = [line(f"row-{n}", {"n": n}) for n in range(12)]
    with WebServer(answer) as server:
        batch.source.write_text("".join(json.dumps(each) + "\n"
                                        for each in lines))
        process = subprocess.Popen(
            [sys.executable, "-m", "txl_client.batch", "--server", server.url,
             "--in-flight", "1", str(batch.source), str(batch.out)],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        assert reached.wait(60)
        process.kill()
        process.wait(60)
        assert len(batch.answers()) == 6
        assert batch(server.url, lines) == 0
        assert len(server.requests) == 7 + 6
    assert {name: answer["response"]["body"]["n"]
            for name, answer in batch.answers().items()} == {
                f"row-{n}": n for n in range(12)}
