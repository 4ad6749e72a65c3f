"""Spark on a local cluster; `check.sh --clusters` runs it, for it needs Java and
is large."""

import os
import pathlib
import signal
import sys
from dataclasses import dataclass

import pandas
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from server_process import model, program

from txl_client import spark as txl_spark
from txl_client.batch import Place, Task

# Workers run the interpreter of these tests, which cannot import this file there.
os.environ["PYSPARK_PYTHON"] = sys.executable
cloudpickle.register_pickle_by_value(sys.modules[__name__])

ROWS = 300
PLACE = Place(model=model(), program=program(), arguments=(
    "--log-level", "error", "--threads", "1", "--memory-limit", "512mb"))
OPTIONS = {"max_tokens": 8}


@dataclass(frozen=True)
class DeadlyTask(Task):
    """Kills the executor that has this row, the first time."""

    row: int = 0
    mark: str = ""

    def run(self, client, frame):
        result = super().run(client, frame)
        if self.row in set(frame["id"]):
            try:
                pathlib.Path(self.mark).touch(exist_ok=False)
            except FileExistsError:
                return result
            os.kill(executor(), signal.SIGKILL)
        return result


def executor():
    """The Java process above this one."""
    process = os.getpid()
    while pathlib.Path(f"/proc/{process}/comm").read_text().strip() != "java":
        stat = pathlib.Path(f"/proc/{process}/stat").read_text()
        process = int(stat.rpartition(")")[2].split()[1])
    return process


def session(workers):
    return (SparkSession.builder.master(f"local-cluster[{workers},1,1024]")
            .config("spark.ui.enabled", "false")
            .config("spark.executor.memory", "512m").getOrCreate())


def frame(spark):
    lines = ["ROMEO:", "JULIET:", "To be, or not"]
    return spark.createDataFrame(pandas.DataFrame({
        "id": range(ROWS), "line": [lines[n % 3] for n in range(ROWS)]
    })).repartition(12, "id")


def rows(of):
    return sorted((row.asDict() for row in of.collect()),
                  key=lambda row: row["id"])


def generate(of):
    return txl_spark.generate(of, PLACE, key="id", prompt="line",
                              options=OPTIONS)


@pytest.fixture(scope="module")
def on_one():
    spark = session(1)
    made = rows(generate(frame(spark)))
    spark.stop()
    assert [row["id"] for row in made] == list(range(ROWS))
    assert len({row["generated"] for row in made}) > ROWS // 2
    return made


@pytest.fixture(scope="module")
def cluster(on_one):
    spark = session(3)
    yield spark
    spark.stop()


def test_three_workers_of_which_one_is_killed_give_the_rows_of_one(
        on_one, cluster, tmp_path):
    mark = str(tmp_path / "killed")
    task = DeadlyTask("generate", "line", "id", OPTIONS, row=133, mark=mark)
    made = rows(txl_spark.run(frame(cluster), PLACE, task))
    assert os.path.exists(mark)
    assert made == on_one


def test_a_run_that_was_broken_off_goes_on(on_one, cluster, tmp_path):
    folder = str(tmp_path / "rows")
    part = frame(cluster).where("id < 100")
    generate(part).write.parquet(folder)
    done = cluster.read.parquet(folder)
    rest = txl_spark.remaining(frame(cluster), done, "id")
    assert rest.count() == ROWS - 100
    generate(rest).write.mode("append").parquet(folder)
    assert rows(cluster.read.parquet(folder).select(*on_one[0])) == on_one
