"""Every check, declared once: its table, its condition, and the tables and settings that it reads.

The Dagster asset checks and `touchstone.evaluate` are built from these declarations. The functions are defined beside
the stage that they check, and imported when they are called.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Self

from touchstone.tables import PAIR_SETTINGS


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
    """A check of one table, and what holds if it passes. If a `gate` fails with an error, nothing after it is made.

    Its function, of the same name in the module `code`, takes a frame of each table in `reads`, by default its own, and
    the value of each key in `settings`, in that order. One `against_baseline` is a method of the gate, and its result
    is never reused.
    """

    table: str
    name: str
    description: str
    reads: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    gate: bool = False
    against_baseline: bool = False
    code: str = "touchstone.comparison.gate"

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", self.reads or (self.table,))

    @property
    def function(self) -> "Callable[..., CheckResult]":
        """The function, unless it is a method of the gate."""
        found: Callable[..., CheckResult] = getattr(import_module(self.code), self.name)
        return found

    @property
    def full_name(self) -> str:
        """Its table and name."""
        return f"{self.table}.{self.name}"


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


_ingest = partial(Check, code="touchstone.ingest.checks")
_validation = partial(Check, code="touchstone.validation.checks")
_metrics = partial(Check, code="touchstone.metrics.checks")

CHECKS = (
    _ingest("attempts", "unique_keys", "No two attempts share a key."),
    _ingest("sources", "files_readable", "Every fixes file could be read.", ("quarantine",)),
    _ingest("sources", "rows_accepted", "Unless there are no rows at all, at least one became an attempt.", gate=True),
    _ingest("sources", "files_accounted_for", "Every data file is evaluated, or left out by the configuration."),
    _ingest(
        "quarantine",
        "quarantine_share",
        "No file has more than the allowed share of quarantined rows.",
        ("sources",),
        ("checks",),
    ),
    _ingest(
        "quarantine",
        "unknown_oids",
        "The fixes refer to problems in the problems file.",
        ("sources", "quarantine"),
        ("checks",),
    ),
    _ingest(
        "reported_figures",
        "figures_reproduced",
        "Figures that other tools state in their files follow from the rows that were read.",
    ),
    _validation(
        "validator_noise",
        "no_flaky_tests",
        "Every repeated test and verdict gave the same result on the same files (`validation.repeat`).",
        ("validator_noise", "problems"),
        ("intervals",),
    ),
    _validation(
        "baselines",
        "baselines_fail_as_recorded",
        "The unmodified problems show their recorded errors, so that a fix can be distinguished from no fix.",
        ("baselines", "problems"),
        ("checks",),
        gate=True,
    ),
    _validation(
        "baselines",
        "reference_fixes_pass",
        "Every reference fix passes: a validator that rejects one correct fix may reject others.",
        ("baselines", "problems"),
        ("checks",),
        gate=True,
    ),
    _validation(
        "baselines",
        "baselines_within_limits",
        "No unmodified problem reaches a limit of time or memory, which may be too low for its tests.",
        ("baselines", "problems"),
    ),
    _validation(
        "outcomes",
        "undecided_share",
        "Validation decided nearly all fixes: undecided ones are not missing at random.",
        settings=("checks",),
        gate=True,
    ),
    _validation(
        "outcomes",
        "funnel_is_monotone",
        "Attempted >= applied >= compiled >= passed among the attempts that were validated here.",
        gate=True,
    ),
    _validation("outcomes", "one_fidelity", "No figure mixes verdicts of different fidelity.", gate=True),
    _validation("rulings", "rulings_applied", "Every ruling of a person is applied."),
    _validation("outcomes", "all_decided", "Every attempt has an outcome."),
    _validation("outcomes", "reports_consistent", "A validator's exit code and its report agree."),
    _metrics("pass_at_k", "coverage", "Every model and tier attempted enough of the problems.", settings=("checks",)),
    _metrics("pass_at_k", "enough_samples", "Every attempted problem has at least k decided attempts for every k."),
    _metrics("pass_at_k", "within_bounds", "Every figure is in [0, 1] and inside its confidence interval."),
    _metrics(
        "pass_at_k",
        "units_independent",
        "Problems of one folder that share no cluster do not pass more alike than chance explains (level 0.001).",
        ("problem_pass_at_k", "problems"),
        ("intervals",),
    ),
    _metrics(
        "attempt_scores",
        "every_model_priced",
        "Every attempt of a model with tokens or costs has a cost: given, or from the model's price.",
        ("attempts", "attempt_scores"),
        ("scoring",),
    ),
    _metrics("attempt_scores", "known_classes", "Every class is known; unknown classes score 0."),
    _metrics(
        "attempt_scores",
        "classes_match_outcomes",
        "If a validator decided, its outcome agrees with the class in the file.",
        ("attempts", "outcomes"),
    ),
    _metrics(
        "tiers",
        "missing_scores",
        "Attempts without a judge's score, which are not graded, do not fail more often than the others.",
        ("attempt_scores",),
        ("scoring.composite.missing",),
    ),
    _metrics("suite_scores", "classes_add_up", "The counts per class of a suite add up to its cases."),
    _metrics(
        "suite_scores",
        "no_empty_suite",
        "Every suite of the problems file has a decided case.",
        ("problems", "suite_scores"),
    ),
    _metrics(
        "slices",
        "slices_add_up",
        "The problems of a slice add up to those of the benchmark, for every model and tier.",
        ("slices", "pass_at_k"),
    ),
    Check(
        "slices",
        "best_in_slices",
        "No model is significantly better in a slice than the best model overall.",
        ("problem_pass_at_k", "problems", "problem_slices"),
        ("slices", *PAIR_SETTINGS),
        code="touchstone.comparison.slice_leaders",
    ),
    Check(
        "comparability",
        "models_comparable",
        "The models of the run agree in every dimension of `comparison.require` that their files state.",
        code="touchstone.comparison.comparability",
    ),
    Check(
        "registered_plan",
        "as_planned",
        "The run is the one that was planned (`comparison.plan`).",
        code="touchstone.comparison.registered_plan",
    ),
    Check(
        "regressions",
        "holds_against_baseline",
        "No model is shown to be worse than in the pinned baseline, nor cases; the configuration says what then.",
        (
            "attempt_scores",
            "problems",
            "baseline_verdicts",
            "regressions",
            "regression_counts",
            "outcomes",
            "comparability",
        ),
        ("comparison", *PAIR_SETTINGS),
        gate=True,
        against_baseline=True,
    ),
    Check(
        "pass_audit",
        "no_flagged_passes",
        "No pass has a flag of severity high; `audit.gate` says if that warns or fails the run.",
        ("pass_audit", "audit_flags"),
        ("audit.gate",),
        code="touchstone.audit.passes",
    ),
    Check(
        "gate_results",
        "gates_hold",
        "Every gate holds; one that is inconclusive passes, warns or fails, as the configuration says.",
        settings=("gates",),
        gate=True,
        against_baseline=True,
    ),
    Check(
        "test_strength",
        "tests_notice",
        "Tests reject at least two of three mutants of the reference fix, for every problem that could be judged.",
        code="touchstone.audit.strength",
    ),
)
