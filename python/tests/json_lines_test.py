"""A file of JSON lines, after ends of its program at any moment."""

import pytest

from txl_client.json_lines import JsonLines, parse, read


def keep_all(name, record):
    return True


def opened(path, keep=keep_all):
    return JsonLines(path, '{"id": ', keep)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lines.jsonl"


def test_lines_are_appended_to_those_that_are_there(path):
    for number in range(3):
        lines = opened(path)
        lines.append({"id": number, "text": "é\ud800\u2028"})
        lines.close()
    assert [record["id"] for _, record in read(path)] == [0, 1, 2]
    assert [name for name, _ in read(path)] == [
        f"{path}:{number}" for number in (1, 2, 3)]
    assert path.read_bytes().count(b"\n") == 3


def test_a_last_line_that_is_torn_anywhere_is_removed(path):
    whole, torn = b'{"id": 1}\n', b'{"id": 2, "text": "abc"}'
    for length in range(len(torn)):
        path.write_bytes(whole + torn[:length])
        lines = opened(path)
        lines.append({"id": 3})
        lines.close()
        assert path.read_bytes() == whole + b'{"id": 3}\n'


def test_a_last_line_that_lacks_only_its_end_stays(path):
    path.write_bytes(b'{"id": 1}\n{"id": 2}')
    lines = opened(path)
    lines.append({"id": 3})
    lines.close()
    assert [record["id"] for _, record in read(path)] == [1, 2, 3]


@pytest.mark.parametrize("content, error", [
    (b"To be, or not", ":1: is not JSON"),
    (b"To be, or not\n", ":1: is not JSON"),
    (b'{"id": 1}\n{"id": \n{"id": 2}\n', ":2: is not JSON"),
    (b'{"id": 1}\n[1]\n', ":2: must be a JSON object"),
    (b'{"id": "\xff"}\n', ":1: is not UTF-8"),
    ('{"id": 1}\n'.encode("utf-16"), ":1: is not UTF-8"),
    (b"\xfe\xff" + '{"id": 1}\n'.encode("utf-16-be"), ":1: is not UTF-8"),
    (b'{"id": ' + b"[" * 100_000 + b"\n", ":1: is not JSON")])
def test_a_file_of_something_else_stays_as_it_is(path, content, error):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{path}{error}"):
        opened(path)
    assert path.read_bytes() == content


def test_lines_that_are_not_kept_are_removed(path):
    path.write_text("".join(f'{{"id": {n}}}\n' for n in range(5)))
    (path.parent / "lines.jsonl.new").write_text("of a run that was killed")
    lines = opened(path, lambda name, record: record["id"] % 2 == 0)
    lines.append({"id": 6})
    lines.close()
    assert [record["id"] for _, record in read(path)] == [0, 2, 4, 6]
    assert [each.name for each in path.parent.iterdir()] == ["lines.jsonl"]


def test_an_error_of_keep_changes_nothing(path):
    def keep(name, record):
        raise ValueError(f"{name}: of another program")

    path.write_text('{"id": 1}\n')
    with pytest.raises(ValueError, match=":1: of another program"):
        opened(path, keep)
    assert path.read_text() == '{"id": 1}\n'
    opened(path).close()  # it is not locked


def test_one_process_at_a_time(path):
    path.write_text('{"id": 1}\n{"id": 2}\n')
    lines = opened(path, lambda name, record: record["id"] == 1)
    with pytest.raises(ValueError, match="another process writes to it"):
        opened(path)
    lines.close()
    opened(path).close()


def test_after_half_a_line_none_follows(path):
    class Full:
        def __init__(self, file):
            self.file, self.closed = file, False

        def write(self, data):
            if self.file.tell():
                raise OSError("No space left on device")
            return self.file.write(data[:5])

        def close(self):
            self.closed = True
            self.file.close()

    lines = opened(path)
    lines._file = Full(lines._file)
    with pytest.raises(OSError, match="No space left"):
        lines.append({"id": 1})
    with pytest.raises(OSError, match="could not be written"):
        lines.append({"id": 2})
    assert path.read_text() == '{"id"'


@pytest.mark.parametrize("line", [
    '{"id": 1, "id": 2}', '{"id": 1, "a": [{"id": 1, "b": {}, "id": 1}]}'])
def test_a_member_that_stands_twice_is_named(path, line):
    path.write_text(f'{{"id": 1}}\n{line}')
    error = f'^{path}:2: "id" stands twice$'
    with pytest.raises(ValueError, match=error):
        list(read(path))
    with pytest.raises(ValueError, match=error):
        opened(path)
    assert path.read_text() == f'{{"id": 1}}\n{line}'


def test_parse_names_the_line():
    assert parse("a:1", b'{"b": 1}\n') == {"b": 1}
    assert parse("a:1", b'\xef\xbb\xbf{"b": 1}\n') == {"b": 1}
    with pytest.raises(ValueError, match="^a:1: must be a JSON object$"):
        parse("a:1", b"1")
