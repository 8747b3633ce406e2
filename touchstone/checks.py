"""Every check, declared once: its table, the tables and settings that it reads, and its function.

The Dagster asset checks and `touchstone.evaluate` are built from these declarations. The functions are defined beside
the stage that they check.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from touchstone.contracts import PAIR_SETTINGS, docstring_line


@dataclass(frozen=True)
class CheckResult:
    """The result of a check: a message and figures. `error=True` fails the run; otherwise a failed check only warns."""

    passed: bool
    message: str
    error: bool = False
    figures: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class GateResult(CheckResult):
    """The decision of the gate against the baseline, with the report in Markdown if there is a baseline."""

    report: str | None = None
    path: Path | None = None
    baseline: str | None = None
    verdicts: str = ""


@dataclass(frozen=True)
class Check:
    """A check of one table. If a `gate` fails with an error, nothing that depends on the table is made.

    `made_by` follows the same rules as in `contracts.Table`; it returns a `CheckResult`. A check with `by_model` that
    passes says the same whatever the models: two groups of models of which it says the same can be checked as one.
    """

    table: str
    made_by: str
    reads: tuple[str, ...]
    settings: tuple[str, ...] = ()
    gate: bool = False
    by_model: bool = False

    @property
    def module(self) -> str:
        """The module that defines `made_by`."""
        return self.made_by.partition(":")[0]

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.made_by.rpartition(":")[2].rpartition(".")[2]

    @property
    def full_name(self) -> str:
        """Its table and name."""
        return f"{self.table}.{self.name}"

    @property
    def description(self) -> str:
        """What holds if it passes: the first line of its function's docstring."""
        return docstring_line(self.made_by)


@dataclass(frozen=True)
class CheckOutcome:
    """A check's full name and result."""

    name: str
    passed: bool
    error: bool
    message: str

    @classmethod
    def of(cls, check: Check, result: CheckResult) -> Self:
        """The outcome of a check."""
        return cls(check.full_name, result.passed, result.error, result.message)


_INGEST, _VALIDATION, _METRICS = (f"touchstone.{stage}.checks" for stage in ("ingest", "validation", "metrics"))

CHECKS = (
    Check("attempts", f"{_INGEST}:unique_keys", ("attempts",), by_model=True),
    Check("sources", f"{_INGEST}:files_readable", ("quarantine",)),
    Check("sources", f"{_INGEST}:rows_accepted", ("sources",), gate=True),
    Check("sources", f"{_INGEST}:files_accounted_for", ("sources",)),
    Check("quarantine", f"{_INGEST}:quarantine_share", ("sources",), ("checks",)),
    Check("quarantine", f"{_INGEST}:unknown_oids", ("sources", "quarantine"), ("checks",)),
    Check("reported_figures", f"{_INGEST}:figures_reproduced", ("reported_figures",)),
    Check("validator_noise", f"{_VALIDATION}:no_flaky_tests", ("validator_noise", "problems"), ("intervals",)),
    Check("baselines", f"{_VALIDATION}:baselines_fail_as_recorded", ("baselines",), ("checks",), gate=True),
    Check("baselines", f"{_VALIDATION}:reference_fixes_pass", ("baselines",), ("checks",), gate=True),
    Check("outcomes", f"{_VALIDATION}:undecided_share", ("outcomes",), ("checks",), gate=True),
    Check("outcomes", f"{_VALIDATION}:funnel_is_monotone", ("outcomes",), gate=True),
    Check("outcomes", f"{_VALIDATION}:one_fidelity", ("outcomes",), gate=True, by_model=True),
    Check("outcomes", f"{_VALIDATION}:all_decided", ("outcomes",)),
    Check("outcomes", f"{_VALIDATION}:reports_consistent", ("outcomes",), by_model=True),
    Check("pass_at_k", f"{_METRICS}:coverage", ("pass_at_k",), ("checks",)),
    Check("pass_at_k", f"{_METRICS}:enough_samples", ("pass_at_k",)),
    Check("pass_at_k", f"{_METRICS}:within_bounds", ("pass_at_k",)),
    Check(
        "attempt_scores", f"{_METRICS}:every_model_priced", ("attempts", "attempt_scores"), ("scoring",), by_model=True
    ),
    Check("attempt_scores", f"{_METRICS}:known_classes", ("attempt_scores",), by_model=True),
    Check("attempt_scores", f"{_METRICS}:classes_match_outcomes", ("attempts", "outcomes"), by_model=True),
    Check("tiers", f"{_METRICS}:missing_scores", ("attempt_scores",), ("scoring.composite.missing",)),
    Check("suite_scores", f"{_METRICS}:classes_add_up", ("suite_scores",)),
    Check("suite_scores", f"{_METRICS}:no_empty_suite", ("problems", "suite_scores")),
    Check("slices", f"{_METRICS}:slices_add_up", ("slices", "pass_at_k")),
    Check(
        "slices",
        "touchstone.compare.slice_leaders:best_in_slices",
        ("problem_pass_at_k", "problems", "problem_slices"),
        ("slices", *PAIR_SETTINGS),
    ),
    Check(
        "regressions",
        "touchstone.compare.gate:Gate.holds_against_baseline",
        ("attempt_scores", "problems", "baseline_verdicts", "regressions", "regression_counts", "outcomes"),
        ("comparison",),
        gate=True,
    ),
)
