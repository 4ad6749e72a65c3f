"""Ray Data on a local cluster; `check.sh --cluster` runs it, for Ray is large."""

import os
import pathlib
import signal
import sys
from dataclasses import dataclass

import pandas
import pyarrow.parquet
import pytest
import ray
from server_process import model, program

from txl_client import ray as txl_ray
from txl_client.batch import Place, Task

# The workers cannot import this file.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

ROWS = 600
PLACE = Place(model=model(), program=program(), arguments=(
    "--log-level", "error", "--threads", "1", "--memory-limit", "512mb"))
OPTIONS = {"max_tokens": 8}
TURN = {"key": "id", "prompt": "line", "options": OPTIONS, "batch_size": 20}


@dataclass(frozen=True)
class DeadlyTask(Task):
    """Kills the worker that has the batch with this row, the first time."""

    row: int = 0
    mark: str = ""

    def run(self, client, frame):
        result = super().run(client, frame)
        if self.row in set(frame["id"]):
            try:
                pathlib.Path(self.mark).touch(exist_ok=False)
            except FileExistsError:
                return result
            os.kill(os.getpid(), signal.SIGKILL)
        return result


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def dataset():
    lines = ["ROMEO:", "JULIET:", "To be, or not"]
    return ray.data.from_pandas(pandas.DataFrame({
        "id": range(ROWS), "line": [lines[n % 3] for n in range(ROWS)]
    })).repartition(30)


def rows(folder):
    """Of all files in it, as dictionaries, by their ids."""
    return sorted(pyarrow.parquet.read_table(folder).to_pylist(),
                  key=lambda row: row["id"])


@pytest.fixture(scope="module")
def on_one(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("one") / "rows")
    txl_ray.generate(dataset(), PLACE, output=folder, workers=1, **TURN)
    made = rows(folder)
    assert [row["id"] for row in made] == list(range(ROWS))
    assert len({row["generated"] for row in made}) > ROWS // 2
    return made


def test_three_workers_of_which_one_is_killed_give_the_rows_of_one(
        on_one, tmp_path):
    folder, mark = str(tmp_path / "rows"), str(tmp_path / "killed")
    task = DeadlyTask("generate", "line", "id", OPTIONS, row=333, mark=mark)
    txl_ray.run(dataset(), PLACE, task, output=folder, workers=3,
                batch_size=20)
    assert os.path.exists(mark)
    assert rows(folder) == on_one


def test_a_run_that_was_broken_off_goes_on(on_one, tmp_path):
    folder = str(tmp_path / "rows")
    part = dataset().filter(lambda row: row["id"] < 200)
    txl_ray.generate(part, PLACE, output=folder, **TURN)
    assert len(rows(folder)) == 200
    before = set(os.listdir(folder))
    txl_ray.generate(dataset(), PLACE, output=folder, **TURN)
    assert before < set(os.listdir(folder))
    assert rows(folder) == on_one
