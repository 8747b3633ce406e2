"""An empty Dagster job: what orchestration costs before anything is computed.

    python benchmarks/empty_dagster.py HOME [--steps 28]

A chain of assets that do nothing, materialized in this process. The instance keeps its history in the folder HOME, with
Dagster's own storage; telemetry, captured output and the log on the terminal are off.
"""

import argparse
import os
from pathlib import Path

import dagster as dg

SETTINGS = """\
telemetry: {enabled: false}
compute_logs: {module: dagster._core.storage.noop_compute_log_manager, class: NoOpComputeLogManager}
"""
QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}


def main() -> None:
    """Run the job once."""
    parser = argparse.ArgumentParser(description="An empty Dagster job.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--steps", type=int, default=28)
    arguments = parser.parse_args()
    arguments.home.mkdir(parents=True, exist_ok=True)
    (arguments.home / "dagster.yaml").write_text(SETTINGS)
    os.environ["DAGSTER_HOME"] = str(arguments.home.resolve())
    job = dg.define_asset_job("empty", executor_def=dg.in_process_executor)
    defs = dg.Definitions(assets=[empty_asset(place) for place in range(arguments.steps)], jobs=[job])
    with dg.DagsterInstance.get() as instance:
        done = defs.resolve_job_def("empty").execute_in_process(instance=instance, run_config=QUIET)
    if len(done.get_asset_materialization_events()) != arguments.steps:
        raise SystemExit("not every step was materialized")


def empty_asset(place: int) -> dg.AssetsDefinition:
    """An asset that depends on the one before it."""

    @dg.asset(name=f"step_{place}", deps=[f"step_{place - 1}"] if place else [])
    def nothing() -> None:
        return None

    return nothing


if __name__ == "__main__":
    main()
