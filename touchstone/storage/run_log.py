"""The run log: what each step of each run took, made and said, for operators.

It differs in every run, so it is kept beside the draft, in `.store/run_log.parquet`, and nothing is made from it. A run
publishes it as the table `run_log` and completes the published table when it ends, also if it failed. In object storage
the published table has the runs of all machines.
"""

import logging
import resource
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from touchstone.storage.files import file_key, read_kept, replacing
from touchstone.storage.store import Part, Store
from touchstone.tables import TABLES

if TYPE_CHECKING:
    import polars as pl

# The part's name says that it belongs to no model.
TABLE, PART = "run_log", "@runs"
_MAX_RUNS = 200
_MAX_MESSAGE = 500

_logger = logging.getLogger("touchstone")
# Without a handler, Python would print errors.
_logger.addHandler(logging.NullHandler())


@dataclass
class Step:
    """A step of a run; its row in the table, less run and snapshot."""

    step: int
    stage: str
    started: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    rows: int | None = None
    bytes: int | None = None
    status: str = "made"
    message: str | None = None

    def made(self, parts: Iterable[Part]) -> None:
        """Note what the step made or found current."""
        parts = list(parts)
        self.rows = sum(part.rows for part in parts)
        self.bytes = sum(part.path.stat().st_size for part in parts)
        self.status = "kept" if parts and all(part.reused for part in parts) else "made"


class RunLog:
    """The steps of one run, and those of earlier runs on disk. `run_id` is Dagster's, if it runs the steps."""

    def __init__(self, store: Store) -> None:
        self.run_id, self.snapshot = uuid.uuid4().hex, ""
        self._store = store
        self._steps: list[Step] = []

    @contextmanager
    def step(self, stage: str) -> Iterator[Step]:
        """Log a step: how long the block takes, on this process's processors and its workers', and whether it fails."""
        now = time.time()
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"
        step = Step(len(self._steps) + 1, stage, text)
        begun, used = time.monotonic(), _cpu_seconds()
        try:
            yield step
        except BaseException as error:
            step.status = "failed"
            step.message = (" ".join(str(error).split()) or type(error).__name__)[:_MAX_MESSAGE]
            raise
        finally:
            step.seconds = time.monotonic() - begun
            # The use of a worker is known once it has ended.
            step.cpu_seconds = max(_cpu_seconds() - used, 0.0)
            self._steps.append(step)
            _logger.log(
                logging.ERROR if step.status == "failed" else logging.INFO,
                step.message or f"{step.stage} {step.status}",
                extra={"event": "step", **{name: value for name, value in vars(step).items() if name != "message"}},
            )

    @property
    def failed_step(self) -> str | None:
        """The step of this run that failed last; None if none did."""
        return next((step.stage for step in reversed(self._steps) if step.status == "failed"), None)

    def figures(self, stage: str) -> dict[str, float]:
        """How long a stage took the last time in this run; empty if it has not run."""
        last = next((step for step in reversed(self._steps) if step.stage == stage), None)
        return {} if last is None else {"seconds": last.seconds, "cpu_seconds": last.cpu_seconds}

    def table(self) -> "pl.DataFrame":
        """The steps of the last runs, this one included."""
        import polars as pl

        declared = TABLES[TABLE].dtypes
        rows = [{"run_id": self.run_id, "snapshot": self.snapshot or None, **vars(step)} for step in self._steps]
        own = pl.DataFrame(rows, schema=declared)
        earlier = self._read().filter(pl.col("run_id") != self.run_id)
        runs = earlier["run_id"].unique(maintain_order=True).tail(_MAX_RUNS - 1)
        return pl.concat([earlier.filter(pl.col("run_id").is_in(runs.implode())), own])

    def _read(self) -> "pl.DataFrame":
        """The log of earlier runs of this and other machines, in the order in which they started."""
        import polars as pl

        declared = TABLES[TABLE].dtypes
        own, others = (
            found if (found := read_kept(path, declared)) is not None else pl.DataFrame(schema=declared)
            for path in (self._store.run_log, self._store.published_log)
        )
        if others.is_empty():
            return own
        begun = pl.col("started").min().over("run_id")
        return pl.concat([others, own]).unique(["run_id", "step"], keep="last").sort(begun, "run_id", "step")

    def save(self) -> None:
        """Keep the log for the next run and complete the published table. A failure here does not fail the run."""
        import polars as pl

        if not self._steps:
            return
        table, published = self.table(), self._store.current_link / "tables" / TABLE / f"{file_key(PART)}.parquet"
        with suppress(OSError, pl.exceptions.PolarsError):
            for path in (self._store.run_log, *([published] if published.is_file() else [])):
                with replacing(path) as scratch:
                    table.write_parquet(scratch)
            self._store.publish_log(self._store.run_log)


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
