import hashlib
import math
import pickle

import pandas
import pyarrow
import pyarrow.parquet
import pytest
from server_process import model, program

from txl_client import Client, InvalidArgumentError
from txl_client import ray as txl_ray
from txl_client.batch import Connection, Place, Task, row_seed

ROWS = pandas.DataFrame({
    "id": [f"row-{n}" for n in range(12)],
    "line": ["ROMEO:", "JULIET:", "To be, or not"] * 4})
GENERATE = Task("generate", "line", "id", {"max_tokens": 6})


def test_a_seed_is_the_head_of_a_digest_of_the_key():
    assert row_seed("row-1") == int(
        hashlib.sha256(b"0/row-1").hexdigest()[:16], 16)
    assert row_seed(5, seed=3) == row_seed("5", seed=3)
    assert row_seed("a", seed=1) != row_seed("a", seed=2)
    assert len({row_seed(n) for n in range(1000)}) == 1000
    assert 0 <= row_seed("a") < 1 << 64


def test_a_row_without_a_key_has_no_seed():
    for missing in (None, math.nan, pandas.NA):
        with pytest.raises(ValueError, match="^key: "):
            row_seed(missing)
    for seed in ("0", None, 0.0, True):
        with pytest.raises(TypeError, match="^seed: "):
            row_seed("a", seed)


def test_a_place_is_an_address_or_a_model():
    for wrong in ({}, {"address": "h:1", "model": "m"}):
        with pytest.raises(ValueError, match="address, model"):
            Place(**wrong)


@pytest.mark.parametrize("error, name, wrong", [
    (ValueError, "address", {"address": ""}),
    (ValueError, "address", {"address": "http://h:1"}),
    (TypeError, "address", {"address": 5}),
    (ValueError, "model", {"model": ""}), (TypeError, "model", {"model": 5}),
    (TypeError, "program", {"model": "m", "program": None}),
    (TypeError, "arguments", {"model": "m", "arguments": "--threads 1"}),
    (TypeError, "arguments", {"model": "m", "arguments": ("--threads", 1)}),
    (ValueError, "bearer", {"address": "h:1",
                            "client_options": {"bearer": "a\nb"}}),
    (TypeError, "'tsl'", {"model": "m", "client_options": {"tsl": True}})])
def test_a_place_that_is_none_is_refused_before_workers_are(error, name,
                                                            wrong):
    with pytest.raises(error, match=name):
        Place(**wrong)


@pytest.mark.parametrize("error, options", [
    (TypeError, {"max_tokenz": 3}), (TypeError, {"max_tokens": 3.0}),
    (ValueError, {"seed": -1}), (ValueError, {"timeout": math.nan}),
    (TypeError, {"stop_texts": "a"})])
def test_options_that_are_none_are_refused_before_workers_are(error, options):
    with pytest.raises(error, match=next(iter(options))):
        Task("generate", "line", "id", options)


def test_generating_needs_a_key():
    with pytest.raises(ValueError, match="key"):
        Task("generate", "line")
    with pytest.raises(ValueError, match="key"):
        txl_ray.run(None, Place("h:1"), Task("score", "line"), output="o")


def test_tasks_travel_to_their_workers():
    for value in (GENERATE, Place(model="m", arguments=("--threads", "1"))):
        assert pickle.loads(pickle.dumps(value)) == value


def partitions(place, task, *frames):
    connection = Connection(place)
    try:
        return pandas.concat(task.run(connection.client, frame)
                             for frame in frames)
    finally:
        connection.close()


def test_rows_are_the_same_however_they_are_parted(server, client):
    place = Place(server.address)
    whole = partitions(place, GENERATE, ROWS)
    parted = pandas.concat([partitions(place, GENERATE, ROWS[8:]),
                            partitions(place, GENERATE, ROWS[:3], ROWS[3:8])])
    assert parted.sort_index().equals(whole)
    assert list(whole.columns) == [
        *ROWS.columns, "generated", "finish_reason", "generated_tokens",
        "generated_logprob"]
    # Rows of one prompt differ, for they have keys of their own.
    assert whole.generated[whole.line == "ROMEO:"].nunique() > 1
    alone = client.generate("ROMEO:", max_tokens=6, seed=row_seed("row-0"))
    assert whole.generated[0] == alone.text
    assert whole.generated_logprob[0] == alone.sum_logprob
    assert set(whole.finish_reason) == {"MAX_TOKENS"}


def test_a_worker_may_have_a_server_of_its_own(server):
    own = Place(model=model(), program=program(),
                arguments=("--log-level", "error"))
    task = Task("score", "line")
    assert partitions(own, task, ROWS).equals(
        partitions(Place(server.address), task, ROWS))


@pytest.mark.parametrize("missing", [None, math.nan, pandas.NA], ids=repr)
@pytest.mark.parametrize("task", [GENERATE, Task("score", "line", "id")])
def test_a_row_without_a_key_is_named(server, task, missing):
    rows = ROWS.astype(object)
    rows.loc[3, "id"] = missing
    with pytest.raises(ValueError, match="^id: row 3 "):
        partitions(Place(server.address), task, rows)


@pytest.mark.parametrize("missing", [None, math.nan, pandas.NA, ""], ids=repr)
def test_a_row_without_a_prompt_does_not_begin_by_itself(server, missing):
    rows = ROWS.astype(object)
    rows.loc[3, "line"] = missing
    with pytest.raises(ValueError, match="^line: row 3, id 'row-3': is empty"):
        partitions(Place(server.address), GENERATE, rows)
    scored = partitions(Place(server.address), Task("score", "line"), rows)
    assert scored.sum_logprob.isna().tolist() == [n == 3 for n in range(12)]


def test_rows_of_a_task_may_come_one_by_one(server):
    with Client(server.address) as client:
        made = GENERATE.run(client, iter(ROWS.to_dict("records")))
    assert [row["generated"] for row in made] == list(
        partitions(Place(server.address), GENERATE, ROWS).generated)


def test_a_prompt_is_text(server):
    rows = ROWS.astype(object)
    rows.loc[3, "line"] = 5
    with pytest.raises(TypeError, match="^line: row 3: "):
        partitions(Place(server.address), GENERATE, rows)


def test_a_prompt_that_the_server_refuses_is_named(server):
    place = Place(server.address)
    rows = ROWS.copy()
    rows.loc[3, "line"] = "caf\xe9"
    with pytest.raises(InvalidArgumentError) as caught:
        partitions(place, GENERATE, rows)
    assert caught.value.place == "line: row 3, id 'row-3'"
    assert str(pickle.loads(pickle.dumps(caught.value))).startswith(
        "INVALID_ARGUMENT (FIELD_INVALID): line: row 3, id 'row-3': the voc")
    options = Task("generate", "line", "id", {"max_tokens": 10**6})
    with pytest.raises(InvalidArgumentError, match="stop.max_tokens: "):
        partitions(place, options, ROWS)


def test_no_seed_of_the_run_is_its_default(server):
    place = Place(server.address)
    assert partitions(place, Task("generate", "line", "id", {
        "max_tokens": 6, "seed": None}), ROWS).equals(
            partitions(place, GENERATE, ROWS))


def test_another_seed_of_the_run_gives_other_rows(server):
    place = Place(server.address)
    one, other = (partitions(place, Task("generate", "line", "id", {
        "max_tokens": 6, "seed": seed}), ROWS) for seed in (0, 1))
    assert not one.generated.equals(other.generated)


def test_the_worker_of_ray_s_pool_does_its_task(server):
    place = Place(server.address)
    assert txl_ray.Worker(GENERATE, place)(ROWS).equals(
        partitions(place, GENERATE, ROWS))


def test_a_pool_has_workers_and_a_folder():
    for name, value, error in (
            ("workers", 0, ValueError), ("workers", 1.0, TypeError),
            ("batch_size", 0, ValueError), ("batch_size", "9", TypeError),
            ("output", "", ValueError), ("output", 5, TypeError)):
        with pytest.raises(error, match=f"^{name}: "):
            txl_ray.run(None, Place("h:1"), GENERATE, **{name: value})


def test_keys_that_are_done_are_read_and_broken_files_are_removed(tmp_path):
    assert txl_ray.done_keys(str(tmp_path / "none"), "id") == set()
    for number, keys in enumerate((["a", "b"], ["c"])):
        pyarrow.parquet.write_table(pyarrow.table({"id": keys, "x": keys}),
                                    tmp_path / f"{number}.parquet")
    whole = (tmp_path / "0.parquet").read_bytes()
    (tmp_path / "9.parquet").write_bytes(whole[:len(whole) // 2])
    assert txl_ray.done_keys(str(tmp_path), "id") == {"a", "b", "c"}
    assert not (tmp_path / "9.parquet").exists()
