"""Several at once on one output folder: two runs and the sensor's, and a reader of the warehouse."""

import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from pipelines.automation import EVALUATE
from pipelines.definitions import build_defs
from pipelines.resources import EvaluationResource
from tests.faults.conftest import Changed
from tests.faults.harness import run, seen, snapshot_ids
from tests.pipelines.test_run import start
from tests.pipelines.test_sensors_and_schedules import sensor_tick

READER = """
import duckdb, sys
with duckdb.connect(sys.argv[1], read_only=True) as warehouse:
    for _ in sys.stdin:
        print(warehouse.execute("SELECT sum(c) FROM problem_statistics").fetchone()[0], flush=True)
"""


@pytest.mark.nightly
def test_two_runs_and_a_sensor(changed: Changed, tmp_path: Path) -> None:
    folder = changed.copy()
    defs, instance = build_defs(EvaluationResource(config_file=str(folder.config))), dg.DagsterInstance.ephemeral()
    (request,) = sensor_tick(defs, instance).run_requests
    runs = [start(folder, tmp_path, stderr=subprocess.PIPE, options=("--force",)) for _ in range(2)]
    job = defs.resolve_job_def(EVALUATE)
    assert job.execute_in_process(instance=instance, tags=dict(request.tags)).success, "it waits for its turn"
    for each in runs:
        _, stderr = each.communicate()
        *_, last = stderr.decode().splitlines()
        assert each.returncode == 0 or "another run is writing here" in last, stderr
    assert seen(folder.output) == changed.after
    assert len(snapshot_ids(folder.output)) == 2


@pytest.mark.nightly
def test_a_reader_holds_the_warehouse_open(changed: Changed) -> None:
    folder = changed.copy()
    command = [sys.executable, "-c", READER, folder.output / "warehouse.duckdb"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdin is not None and reader.stdout is not None

        def asked() -> str:
            assert reader.stdin is not None and reader.stdout is not None
            reader.stdin.write("?\n")
            reader.stdin.flush()
            return reader.stdout.readline()

        before = asked()
        assert run(folder).code == 0
        assert asked() == before == "1\n", "it goes on reading what it opened"
    assert seen(folder.output) == changed.after
    done = subprocess.run(command, input="?\n", capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
