"""The public Python API. Import it from `touchstone`, not from here.

Each function does what a command does, with Polars frames instead of files and tables on the screen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.locations import is_working_copy, output_location
from touchstone.storage.files import parquet_files, refuse_links_out

if TYPE_CHECKING:
    from touchstone.checks import CheckOutcome
    from touchstone.comparison.compare import ComparisonResult
    from touchstone.evaluation import Evaluation
    from touchstone.storage.published_objects import PathFilter

PathLike = str | Path


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """The unbiased estimate of pass@k from c passes among n attempts; None if there are fewer than k attempts.

    >>> import touchstone
    >>> touchstone.pass_at_k(n=20, c=3, k=5)
    0.6008771929824561
    >>> touchstone.pass_at_k(n=2, c=1, k=5) is None
    True
    """
    from touchstone.metrics.pass_at_k import pass_at_k_of

    return pass_at_k_of(n, c, k)


@dataclass(frozen=True, repr=False)
class Results(Mapping[str, pl.DataFrame]):
    """The published tables of an evaluation by name, read when they are asked for. Printed, it is the leaderboard.

    `checks` are those of the run that `evaluate` made; empty for results that were loaded.
    """

    folder: Path
    checks: "Sequence[CheckOutcome]" = ()
    # Downloads published files, for results in object storage.
    fetch: "Callable[[PathFilter], Path] | None" = field(default=None, repr=False, compare=False)

    def __getitem__(self, table: str) -> pl.DataFrame:
        return self.scan(table).collect()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path.name for path in self._tables.iterdir() if path.is_dir()))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def scan(self, table: str) -> pl.LazyFrame:
        """A table as a lazy frame, for those that are large."""
        if self.fetch is not None:
            self.fetch(lambda path: path.startswith(f"tables/{table}/"))
        files = parquet_files(self._tables / table)
        if not files:
            raise KeyError(table)
        return pl.concat([pl.scan_parquet(file, glob=False) for file in files], how="diagonal")

    @property
    def passed(self) -> bool:
        """Whether no check failed with an error."""
        return all(check.passed or not check.error for check in self.checks)

    @property
    def _tables(self) -> Path:
        return self.folder / "tables"

    def __repr__(self) -> str:
        from touchstone.publish.result_tables import leaderboard_of
        from touchstone.publish.table_columns import plain_text

        return f"{plain_text(leaderboard_of(self['pass_at_k']))}\nin {self.folder}: {len(self)} tables"


def evaluate(
    config: PathLike | Sequence[PathLike] | Mapping[str, object],
    *,
    output_dir: PathLike | None = None,
    only: Sequence[str] = (),
) -> Results:
    """Run a whole evaluation in this process: ingest, validate, score, publish. Unchanged input is not read again.

    `config` is a configuration file, its content as a dict (with paths relative to the current folder), a folder with
    results, or files: what `touchstone run` takes. The results of bare files go to `touchstone-results` beside them.

    Does what `touchstone run` does, without Dagster and so without a run in its UI. Raises `TouchstoneError` for wrong
    input, or if a gate stops the run.

    >>> import tempfile, touchstone
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "m_fixes.csv").write_text("oid,iteration_id,passed\\na,1,true\\na,2,false\\n")
    ...     results = touchstone.evaluate(folder)
    ...     results.passed, results["pass_at_k"]["pass_at_k"].to_list()
    (True, [0.5, 1.0])
    """
    from touchstone.evaluation import run

    outcome = run(evaluation := _evaluation(config, Path(output_dir) if output_dir is not None else None, only))
    if outcome.failures:
        raise TouchstoneError("; ".join(outcome.failures))
    if outcome.stopped:
        failed = [f"{check.name}: {check.message}" for check in outcome.checks if check.error and not check.passed]
        raise TouchstoneError(f"nothing was published: {'; '.join(failed)}")
    return replace(load_results(evaluation.config.output_dir), checks=outcome.checks)


def _evaluation(
    config: PathLike | Sequence[PathLike] | Mapping[str, object], output_dir: Path | None, only: Sequence[str]
) -> "Evaluation":
    from touchstone.evaluation import Evaluation
    from touchstone.ingest.implied_config import config_with_results, is_config_file, removed_on_error, with_fitting_k
    from touchstone.ingest.recognized import most_attempts, recognized_sources

    if isinstance(config, Mapping):
        return Evaluation.load(config, output_dir, only)
    paths = [Path(config)] if isinstance(config, str | Path) else [Path(path) for path in config]
    if len(paths) == 1 and (is_config_file(paths[0]) or not paths[0].exists()):
        return Evaluation.load(paths[0], output_dir, only)
    place, is_new = config_with_results(paths, output_dir)
    if not is_new:
        return Evaluation.load(place, only=only)
    with removed_on_error(place):
        evaluation = Evaluation.load(place, only=only)
        found = recognized_sources(evaluation.inputs.discovery, evaluation.config)
    evaluation.config = with_fitting_k(place, most_attempts(found, evaluation.inputs.discovery))
    return evaluation


def load_results(folder: PathLike) -> Results:
    """The published tables in an output folder, local or in object storage, or those of a snapshot.

    >>> import touchstone
    >>> touchstone.load_results("nowhere")
    Traceback (most recent call last):
    touchstone.errors.TouchstoneError: nowhere: no results here (no folder 'tables'); run `touchstone run` first
    """
    place = output_location(folder)
    if is_working_copy(place):
        from touchstone.storage.remote_store import View

        view = View(place)
        return Results(view.folder, fetch=view.fetch)
    found = Results(place)
    refuse_links_out(place, "tables")
    if not (found.folder / "tables").is_dir():
        raise TouchstoneError(f"{folder}: no results here (no folder 'tables'); run `touchstone run` first")
    return found


def compare(baseline: PathLike, current: PathLike, *, config: PathLike | None = None) -> "ComparisonResult":
    """Compare two evaluations, each an output folder, a snapshot's folder or a fixes file.

    `.verdicts` has the verdict per model and tier, `.report.cases` what became of every case as a Polars frame.

    >>> import tempfile, touchstone
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     old, new = (Path(folder) / name / "m_fixes.csv" for name in ("old", "new"))
    ...     for file, outcomes in ((old, ("true", "false")), (new, ("false", "false"))):
    ...         file.parent.mkdir()
    ...         _ = (file.parent / "problems.csv").write_text("oid,filename\\na,a.tf\\nb,b.tf\\n")
    ...         _ = file.write_text("oid,iteration_id,plausible_fix\\na,1,%s\\nb,1,%s\\n" % outcomes)
    ...     touchstone.compare(old, new).report.counts["regression"]
    1
    """
    from touchstone.comparison.compare import CompareOptions, configured_options
    from touchstone.comparison.compare import compare as compare_evaluations
    from touchstone.comparison.pairs import ComparisonSettings, comparison_settings

    options, settings = CompareOptions(), ComparisonSettings()
    if config is not None:
        from touchstone.config import load_config

        loaded = load_config(Path(config))
        options, settings = configured_options(loaded), comparison_settings(loaded)
    return compare_evaluations(str(baseline), str(current), options, settings)
