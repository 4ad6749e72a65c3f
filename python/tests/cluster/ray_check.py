"""Ray Data on a local cluster; `check.sh --ray` runs it, for Ray is large."""

import os
import signal
import threading
import time

import pandas
import pytest
import ray
from server_process import model, program

from txl_client import ray as txl_ray
from txl_client.batch import Place

ROWS = 600
PLACE = Place(model=model(), program=program(), arguments=(
    "--log-level", "error", "--threads", "1", "--memory-limit", "512mb"))
TURN = {"key": "id", "prompt": "line", "options": {"max_tokens": 8},
        "batch_size": 20}


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


def frame(folder):
    return pandas.read_parquet(folder).sort_values("id").reset_index(
        drop=True)


@pytest.fixture(scope="module")
def on_one(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("one") / "rows")
    txl_ray.generate(dataset(), PLACE, output=folder, workers=1, **TURN)
    return frame(folder)


def pool_workers():
    """Process ids of the pool's actors, which Ray names after their class."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    line = file.read()
            except OSError:
                continue
            if line.startswith(b"ray::") and b"Worker" in line:
                found.append(int(entry))
    return found


def kill_one(killed, stop):
    # Only of this test's cluster: its processes are this one's descendants.
    while not stop.wait(0.05):
        workers = pool_workers()
        if len(workers) >= 3:
            time.sleep(0.3)
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])
            return


def test_three_workers_of_which_one_is_killed_give_the_rows_of_one(
        on_one, tmp_path):
    folder, killed, stop = str(tmp_path / "rows"), [], threading.Event()
    killer = threading.Thread(target=kill_one, args=(killed, stop))
    killer.start()
    txl_ray.generate(dataset(), PLACE, output=folder, workers=3, **TURN)
    stop.set()
    killer.join()
    assert killed
    assert frame(folder).equals(on_one)


def test_a_run_that_was_broken_off_goes_on(on_one, tmp_path):
    folder = str(tmp_path / "rows")
    part = dataset().filter(lambda row: row["id"] < 200)
    txl_ray.generate(part, PLACE, output=folder, **TURN)
    assert len(frame(folder)) == 200
    before = set(os.listdir(folder))
    txl_ray.generate(dataset(), PLACE, output=folder, **TURN)
    assert before < set(os.listdir(folder))
    assert frame(folder).equals(on_one)
