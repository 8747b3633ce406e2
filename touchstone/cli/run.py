"""`touchstone run` and `touchstone ui`: the two commands that need Dagster, and so the only ones that import it."""

import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from touchstone.cli.console import print_json, print_messages, show_progress, start_logs
from touchstone.cli.options import (
    CONFIGS_OPTION,
    GATE_OPTION,
    INCONCLUSIVE_OPTION,
    JSON_OPTION,
    QUIET_OPTION,
    SCORE_OPTION,
    MultiValueCommand,
    config_or_default,
    data_option,
    input_argument,
)
from touchstone.errors import TouchstoneError, shown
from touchstone.locations import is_working_copy
from touchstone.vocabulary import VERSION

if TYPE_CHECKING:
    import polars as pl

    from touchstone.config import EvaluationConfig
    from touchstone.config.gates import OnInconclusive
    from touchstone.evaluation import Evaluation, RunOutcome
    from touchstone.publish.up_to_date import PublishedRun
    from touchstone.tables.checks import CheckOutcome

_UI_HOST = "127.0.0.1"
# A run makes many small objects that last: modules, definitions, events. Python looks for garbage every 700 of them.
_NEW_OBJECTS_PER_COLLECTION = 1_000_000

# The tables behind what `run` shows.
RUN_TABLES = ("pass_at_k", "tiers", "cross_tier", "suite_scores", "run_scores", "model_comparison", "gate_results")

commands = typer.Typer()


@commands.command(cls=MultiValueCommand)
def run(
    paths: Annotated[
        list[Path] | None, input_argument("Files and folders with results of any known format, instead of a config.")
    ] = None,
    config: Annotated[list[Path] | None, CONFIGS_OPTION] = None,
    output_dir: Annotated[Path | None, data_option("Output folder, instead of the config's output_dir.")] = None,
    score: Annotated[str | None, SCORE_OPTION] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="MODEL…", help="Re-evaluate only these models.")] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plan to hold the run to, instead of the config's; see `touchstone plan`."),
    ] = None,
    gate: Annotated[list[str] | None, GATE_OPTION] = None,
    on_inconclusive: Annotated[Literal["pass", "warn", "fail"] | None, INCONCLUSIVE_OPTION] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Publish even if a gate or the comparison with the baseline fails.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Recompute everything, validation included; keep snapshots and pins.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Run even if nothing changed since the published run; unlike --fresh, reuse what is up to date.",
        ),
    ] = False,
    metrics: Annotated[
        Path | None,
        typer.Option(metavar="FILE.prom", help="Write figures for Prometheus, instead of to the config's file."),
    ] = None,
    log_format: Annotated[
        Literal["text", "json"] | None,
        typer.Option(help="Progress and messages as text, or as one JSON object per line. [default: $TOUCHSTONE_LOG]"),
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Run a whole evaluation: ingest, validate, score, publish. If nothing changed, show the published results."""
    start_logs(log_format)
    if metrics is not None:
        from touchstone.publish.prometheus import client

        client()  # An error before the run if it is missing.
    gc.set_threshold(_NEW_OBJECTS_PER_COLLECTION, *gc.get_threshold()[1:])
    adjust = partial(_with_plan_and_gates, plan_file=plan, gates=gate or [], on_inconclusive=on_inconclusive)
    run_one = partial(
        _run, adjust=adjust, paths=paths or [], output_dir=output_dir, score=score, only=only or [], accept=accept,
        fresh=fresh, force=force, metrics=metrics, as_json=as_json, quiet=quiet,
    )  # fmt: skip
    configs: list[Path | None] = [*config] if config else [None]
    if config and len(config) > 1:
        _require_runnable_in_turn(config, is_about_one=bool(output_dir or only or metrics or as_json))
    for each in configs:
        if len(configs) > 1 and not quiet:
            print(f"touchstone run --config {each}", flush=True)
        with _kept_dagster_home():
            code = run_one(each)
        if code:
            raise typer.Exit(code)


def _with_plan_and_gates(
    config: "EvaluationConfig", plan_file: Path | None, gates: list[str], on_inconclusive: "OnInconclusive | None"
) -> "EvaluationConfig":
    """The configuration with the plan and the gates that the options hold the run to."""
    from touchstone.config import read_plan

    plan = {} if plan_file is None else {"plan": read_plan(plan_file)}
    compared = config.comparison.model_copy(update=plan)
    return config.model_copy(update={"comparison": compared, "gates": config.gates.with_more(gates, on_inconclusive)})


def _require_runnable_in_turn(configs: list[Path], is_about_one: bool) -> None:
    """Read all configurations before the first run, so that an error in the last one surfaces first."""
    from touchstone.config import load_config

    if is_about_one:
        raise TouchstoneError(
            "--output-dir, --only, --metrics and --json go with one --config; run the others separately"
        )
    for config in configs:
        load_config(config)


@contextmanager
def _kept_dagster_home() -> Iterator[None]:
    """Set DAGSTER_HOME back at the end: a run without one sets its own, which the next run must not share."""
    home = os.environ.get("DAGSTER_HOME")
    try:
        yield
    finally:
        os.environ.pop("DAGSTER_HOME", None)
        if home is not None:
            os.environ["DAGSTER_HOME"] = home


def _run(
    config: Path | None,
    *,
    adjust: "Callable[[EvaluationConfig], EvaluationConfig]",
    paths: list[Path],
    output_dir: Path | None,
    score: str | None,
    only: list[str],
    accept: bool,
    fresh: bool,
    force: bool,
    metrics: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """One evaluation; returns the exit code."""
    config, is_new = _configuration(paths, config, output_dir, score)
    may_reuse = not (only or accept or fresh or force or is_new)
    with show_progress("reading the configuration", stages=True, quiet=quiet):
        published = _find_up_to_date(config, output_dir, adjust) if may_reuse else None
        if published is None:
            from touchstone.evaluation import Evaluation
            from touchstone.ingest.implied_config import removed_on_error
            from touchstone.progress import report_step

            with removed_on_error(config) if is_new else nullcontext():
                evaluation = Evaluation.load(config, output_dir, only, accept=accept, fresh=fresh)
                evaluation.config = adjust(evaluation.config)
                report_step("looking for fixes files")
                evaluation.inputs.require_only(only, "--only")
    print_messages("note", (published[0] if published else evaluation.config).notes, quiet)
    if published is not None:
        _write_metrics(metrics, published[0], published[1].checks, succeeded=True)
        _report_published(*published, as_json, quiet)
        return 0
    if paths:
        _introduce(evaluation, config, is_new, adjust, silent=as_json or quiet)
    with show_progress("loading Dagster", stages=True, quiet=quiet):
        from pipelines.launch import run_evaluation

        # Imported modules stay: no later collection looks at them. Only once, or DuckDB would complain.
        if not gc.get_freeze_count():
            gc.freeze()
        with evaluation.store.lock():
            outcome = run_evaluation(evaluation, config)
    _write_metrics(metrics, evaluation.config, outcome.checks, outcome.exit_code == 0)
    _report(evaluation, outcome, as_json, quiet)
    print_messages("note", outcome.notes, quiet)
    return outcome.exit_code


def _write_metrics(
    file: Path | None, config: "EvaluationConfig", checks: "Sequence[CheckOutcome]", succeeded: bool
) -> None:
    """Write the file for Prometheus, if there is to be one."""
    target = file or config.publish.metrics
    if target is not None:
        from touchstone.publish.prometheus import write_metrics

        write_metrics(target, config.output_dir, checks, succeeded)


def _report(evaluation: "Evaluation", outcome: "RunOutcome", as_json: bool, quiet: bool) -> None:
    """Print the results, or with --json and --quiet what went wrong."""
    if not as_json and not quiet:
        from touchstone.cli.run_tables import show_run

        show_run(evaluation.store, outcome)
        return
    print_messages("error", outcome.failures)
    failed = (check for check in outcome.checks if check.error and not check.passed)
    print_messages("error", (f"check failed {check.name}: {check.message}" for check in failed))
    if as_json:
        facts = {"exit_code": outcome.exit_code, "published": outcome.published, "up_to_date": False}
        scan = None if outcome.failures or outcome.stopped else evaluation.store.scan
        folder = evaluation.config.output_dir
        print_json(run_document(scan, outcome.checks, folder, **facts, failures=list(outcome.failures)))


def _report_published(config: "EvaluationConfig", published: "PublishedRun", as_json: bool, quiet: bool) -> None:
    """Print the published results, which are up to date."""
    if as_json:
        from touchstone.storage.store import Store

        scan = Store(config.output_dir).scan_published
        facts = {"exit_code": 0, "published": True, "up_to_date": True, "failures": []}
        print_json(run_document(scan, published.checks, config.output_dir, **facts))
    elif not quiet:
        from touchstone.cli.run_tables import show_published
        from touchstone.storage.store import Store

        show_published(Store(config.output_dir), published)


def run_document(
    scan: "Callable[[str], pl.LazyFrame] | None", checks: "Sequence[CheckOutcome]", output_dir: Path, **facts: object
) -> dict[str, object]:
    """The result of a run: how it ended, its checks, and the rows of `RUN_TABLES`; null without `scan`."""
    tables = {name: None if scan is None else scan(name).collect().to_dicts() for name in RUN_TABLES}
    head = {"touchstone": VERSION, "output_dir": shown(str(output_dir)), **facts}
    return {**head, "checks": [asdict(check) for check in checks], **tables}


def _configuration(
    paths: "list[Path]", config: Path | None, output_dir: Path | None, score: str | None
) -> tuple[Path, bool]:
    """The configuration to run by, and whether it was written just now for the given paths."""
    if not paths:
        if score is not None:
            raise TouchstoneError("--scorer goes with PATH…; set 'score' in the config instead")
        return config_or_default(config), False
    if config is not None:
        raise TouchstoneError("give either --config FILE or the paths of results, not both")
    from touchstone.ingest.implied_config import config_with_results

    return config_with_results(paths, output_dir, score)


def _introduce(
    evaluation: "Evaluation",
    config_file: Path,
    is_new: bool,
    adjust: "Callable[[EvaluationConfig], EvaluationConfig]",
    silent: bool,
) -> None:
    """Print what was recognized; choose the k values of a new configuration by the attempts that there are."""
    from touchstone.cli.console import relative_path
    from touchstone.cli.run_tables import show_recognized
    from touchstone.cli.terminal_tables import terminal
    from touchstone.ingest.implied_config import with_fitting_k
    from touchstone.ingest.recognized import most_attempts, recognized_sources

    with show_progress("counting attempts", quiet=silent):
        found = recognized_sources(evaluation.inputs.discovery, evaluation.config)
    if not silent:
        show_recognized(terminal(), found, evaluation.inputs.discovery, with_notes=False)
    if is_new:
        fitting = with_fitting_k(config_file, most_attempts(found, evaluation.inputs.discovery))
        evaluation.config = adjust(fitting)
        if not silent:
            # The settings of a working copy are a local file, whatever its folder stands for.
            is_local = not is_working_copy(config_file.parent)
            print(f"settings: {relative_path(config_file) if is_local else config_file}; edit it to change them")


def _find_up_to_date(
    config_file: Path, output_dir: Path | None, adjust: "Callable[[EvaluationConfig], EvaluationConfig]"
) -> "tuple[EvaluationConfig, PublishedRun] | None":
    """The configuration and the published run, if running again would change nothing. Dagster is not imported."""
    from touchstone.config import load_config
    from touchstone.ingest.input_paths import fetch_inputs
    from touchstone.publish.up_to_date import up_to_date

    config = adjust(load_config(config_file, output_dir))
    fetch_inputs(config)
    published = up_to_date(config)
    return None if published is None else (config, published)


@commands.command()
def ui(
    config: Annotated[
        Path | None, typer.Option(help="Evaluation to show. [default: evaluation_config.json here, else the sample]")
    ] = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.")] = 3000,
) -> None:
    """Start the Dagster UI and its daemon. Stop them with Ctrl-C."""
    from touchstone.config import load_config
    from touchstone.publish.local_server import listen

    if config is not None:
        load_config(config)
    # Before anything slow is loaded.
    listen(_UI_HOST, port).close()
    print(f"starting the Dagster UI on http://{_UI_HOST}:{port} (stop with Ctrl-C)", file=sys.stderr, flush=True)
    from pipelines.launch import start_ui

    start_ui(config, _UI_HOST, port)
