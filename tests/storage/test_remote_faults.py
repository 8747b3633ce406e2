"""Real runs in object storage on a bad day: killed at any request, racing each other, watched by the sensor."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from pipelines.definitions import build_defs
from pipelines.resources import EvaluationResource
from tests.conftest import Command
from tests.pipelines.test_sensors_and_schedules import schedule_tick, sense, sensor_tick
from tests.storage.s3 import KILLED, Server, machine, s3_server, small_evaluation
from tests.storage.test_remote_output import address, evaluate, logged, tables_of
from touchstone.storage.object_store import Bucket

pytestmark = pytest.mark.nightly

AWAY = re.compile(r"s3://\S+: the server cannot be reached; check AWS_ENDPOINT_URL and try again")
HEADER = "oid,iteration_id,plausible_fix\n"

KILLED_RUN = f"""
{KILLED}
from pathlib import Path
from touchstone.evaluation import Evaluation, run

outcome = run(Evaluation.load(Path(sys.argv[3])))
print(-left[0], outcome.failures)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with s3_server() as running:
        yield running


def run_and_kill(config: Path, moment: int, side: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", KILLED_RUN, str(moment), side, str(config)]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=dict(os.environ))


def test_a_run_killed_at_any_upload_leaves_the_last_results_and_the_next_run_repairs(
    server: Server, tmp_path: Path
) -> None:
    with machine(server, tmp_path / "cache"):
        folder = small_evaluation(server, tmp_path, "killed")
        evaluate(folder)
        published = server.assert_complete("killed/out")
        moment = 0
        while True:
            moment += 1 + moment // 3
            server.put("killed/fixes/n_fixes.csv", f"{HEADER}a,1,true\nb,1,{'true' if moment % 2 else 'false'}\n")
            side = "before" if moment % 2 else "after"
            ended = run_and_kill(folder.config, moment, side)
            if ended.returncode == 0:
                break
            assert ended.returncode == -signal.SIGKILL, ended.stderr
            found = server.assert_complete("killed/out")
            # The last moment may be after the switch.
            assert found == published or "tables/attempts/n.parquet" in found, f"killed {side} upload {moment}"
        assert moment > 10
        after = server.assert_complete("killed/out")
        assert "tables/attempts/n.parquet" in after and after != published


# From the end: the last request switches to the complete run log, the one before uploads it, the third switches.
@pytest.mark.parametrize(("from_the_end", "side"), [(2, "before"), (2, "after"), (1, "after"), (0, "before")])
def test_a_run_killed_at_a_switch(server: Server, tmp_path: Path, from_the_end: int, side: str) -> None:
    name = f"switch-{from_the_end}-{side}"
    with machine(server, tmp_path / "cache"):
        folder = small_evaluation(server, tmp_path, name)
        counted = run_and_kill(folder.config, -1, side)
        requests = int(counted.stdout.split()[0]) - 1
        assert requests > 30
        before = server.assert_complete(f"{name}/out")
        for key in server.keys(f"{name}/out"):
            server.delete(key)
        # The same run once more.
        assert run_and_kill(folder.config, requests - from_the_end, side).returncode == -signal.SIGKILL
        if (from_the_end, side) == (2, "before"):
            assert f"{name}/out/manifest.json" not in server.keys(f"{name}/out")
        else:
            assert tables_of(server.assert_complete(f"{name}/out")) == tables_of(before)
        evaluate(folder)
        assert "tables/pass_at_k/pass_at_k.parquet" in server.assert_complete(f"{name}/out")
        last = logged(server, name).filter(pl.col("run_id") == pl.col("run_id").last())
        assert last["stage"].to_list()[-1] == "warehouse"


def test_of_two_racing_runs_of_two_machines_one_publishes(server: Server, tmp_path: Path) -> None:
    program = "import sys; from pathlib import Path; from touchstone.evaluation import *; "
    program += "print(run(Evaluation.load(Path(sys.argv[1]))).failures)"
    folder = small_evaluation(server, tmp_path, "racing")
    environments = [os.environ | server.environment | {"XDG_CACHE_HOME": str(tmp_path / name)} for name in "ab"]
    command = [sys.executable, "-c", program, str(folder.config)]
    runs = [subprocess.Popen(command, env=each, stdout=subprocess.PIPE, text=True) for each in environments]
    ends = [each.communicate()[0] for each in runs]
    assert all(each.returncode == 0 for each in runs)
    # They start within the same second; if one is over before the other looks, that one starts from its results.
    lost = [end for end in ends if "another run has published here in the meantime" in end]
    assert len(lost) <= 1 and sum(end.strip() == "[]" for end in ends) == 2 - len(lost)
    server.assert_complete("racing/out")


def test_under_dagster_with_its_sensor(
    server: Server, tmp_path: Path, touchstone: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machine(server, tmp_path / "cache"), dg.DagsterInstance.ephemeral() as instance:
        folder = small_evaluation(server, tmp_path, "dagster")
        assert touchstone("run", "--config", folder.config, dagster=True).returncode == 0
        server.assert_complete("dagster/out")
        defs = build_defs(EvaluationResource(config_file=str(folder.config)))
        requests, cursor = sense(defs, instance, None)
        assert not requests, "the published run is up to date"
        downloads: list[str] = []
        download = Bucket.download
        monkeypatch.setattr(Bucket, "download", lambda *given: downloads.append(given[1].key) or download(*given))
        assert sense(defs, instance, cursor)[0] == []
        assert not downloads, "nothing changed, so the bucket is only listed"
        server.put("dagster/fixes/n_fixes.csv", HEADER + "a,1,true\n")
        requests, _ = sense(defs, instance, cursor)
        assert requests[0].tags["touchstone/new"] == "1"
        assert downloads == ["dagster/fixes/n_fixes.csv"]
        assert touchstone("sql", "SELECT 1 AS one", "--data", address("dagster")).returncode == 0


@pytest.mark.parametrize("places", [("fixes_dir", "output_dir"), ("fixes_dir",), ("output_dir",)])
def test_a_tick_is_skipped_while_the_bucket_is_away_and_the_next_one_sees_what_changed(
    server: Server, tmp_path: Path, places: tuple[str, ...]
) -> None:
    name = "away-" + "-".join(places)
    home = tmp_path / "home"
    home.mkdir()
    with machine(server, tmp_path / "cache"), dg.DagsterInstance.local_temp(str(home)) as instance:
        on_disk = {"fixes_dir": "fixes", "output_dir": "out"}
        folder = small_evaluation(server, tmp_path, name, **{key: on_disk[key] for key in on_disk if key not in places})
        defs = build_defs(EvaluationResource(config_file=str(folder.config)))
        with server.away():
            for tick in (sensor_tick(defs, instance), schedule_tick(defs, instance)):
                assert not tick.run_requests and getattr(tick, "cursor", None) is None
                assert AWAY.fullmatch(tick.skip_message), tick.skip_message
        assert len(sensor_tick(defs, instance).run_requests) == 1
        assert len(schedule_tick(defs, instance).run_requests) == 1
