import hashlib
import pickle

import pandas
import pyarrow
import pyarrow.parquet
import pytest
from server_process import model, program

from txl_client import ray as txl_ray
from txl_client import spark as txl_spark
from txl_client.batch import Place, Task, row_seed, run_partition

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


def test_a_place_is_an_address_or_a_model():
    for wrong in ({}, {"address": "h:1", "model": "m"}):
        with pytest.raises(ValueError, match="address, model"):
            Place(**wrong)


def test_generating_needs_a_key():
    with pytest.raises(ValueError, match="key"):
        Task("generate", "line")
    with pytest.raises(ValueError, match="key"):
        txl_ray.run(None, Place("h:1"), Task("score", "line"), output="o")


def test_tasks_travel_to_their_workers():
    for value in (GENERATE, Place(model="m", arguments=("--threads", "1"))):
        assert pickle.loads(pickle.dumps(value)) == value


def partitions(place, task, *frames):
    return pandas.concat(run_partition(task, place)(iter(frames)))


def test_rows_are_the_same_however_they_are_parted(server, client):
    place = Place(server.address)
    whole = partitions(place, GENERATE, ROWS)
    parted = pandas.concat([partitions(place, GENERATE, ROWS[8:]),
                            partitions(place, GENERATE, ROWS[:3], ROWS[3:8])])
    assert parted.sort_index().equals(whole)
    assert list(whole.columns) == list(ROWS.columns) + list(GENERATE.columns)
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


def test_another_seed_of_the_run_gives_other_rows(server):
    place = Place(server.address)
    one, other = (partitions(place, Task("generate", "line", "id", {
        "max_tokens": 6, "seed": seed}), ROWS) for seed in (0, 1))
    assert not one.generated.equals(other.generated)


def test_the_worker_of_ray_s_pool_does_what_a_partition_does(server):
    place = Place(server.address)
    assert txl_ray.Worker(GENERATE, place)(ROWS).equals(
        partitions(place, GENERATE, ROWS))


def test_keys_that_are_done_are_read_and_broken_files_are_removed(tmp_path):
    assert txl_ray.done_keys(str(tmp_path / "none"), "id") == set()
    for number, keys in enumerate((["a", "b"], ["c"])):
        pyarrow.parquet.write_table(pyarrow.table({"id": keys, "x": keys}),
                                    tmp_path / f"{number}.parquet")
    whole = (tmp_path / "0.parquet").read_bytes()
    (tmp_path / "9.parquet").write_bytes(whole[:len(whole) // 2])
    assert txl_ray.done_keys(str(tmp_path), "id") == {"a", "b", "c"}
    assert not (tmp_path / "9.parquet").exists()


class Schema:
    """As much of pyspark.sql.types.StructType as is used."""

    def __init__(self, fields):
        self.fields = fields

    def add(self, name, kind):
        return Schema(self.fields + [(name, kind)])


class Frame:
    """As much of a Spark data frame: partitions that are run one by one."""

    def __init__(self, partitions_, fields):
        self.partitions = partitions_
        self.schema = Schema(fields)

    def mapInPandas(self, function, schema):  # pylint: disable=invalid-name
        return Frame([pandas.concat(function(iter([part])))
                      for part in self.partitions], schema.fields)


def test_a_spark_frame_gets_the_columns_of_its_task(server):
    fields = [("id", "string"), ("line", "string")]
    place = Place(server.address)
    made = txl_spark.generate(Frame([ROWS[:5], ROWS[5:]], fields), place,
                              prompt="line", key="id",
                              options={"max_tokens": 6})
    assert made.schema.fields == fields + [
        ("generated", "string"), ("finish_reason", "string"),
        ("generated_tokens", "long"), ("generated_logprob", "double")]
    assert pandas.concat(made.partitions).equals(
        partitions(place, GENERATE, ROWS))
    scored = txl_spark.score(Frame([ROWS], fields), place, text="line")
    assert scored.schema.fields[2:] == [
        ("sum_logprob", "double"), ("token_count", "long"),
        ("perplexity", "double")]
