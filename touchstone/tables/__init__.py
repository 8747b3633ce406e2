"""Every table, declared once: its fields, what it reads, which settings matter, whose code makes it, and its group.

The Dagster assets and their dependencies, the fingerprints that say whether a table is current, the check on every
write, the data dictionary and the warehouse follow from these declarations. The functions that make the tables are
imported when they are called: this package stays at the bottom and loads fast. Each field is declared once in `fields`,
each check in `checks`; how tables look to people is in `presentation`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING

from touchstone.tables.fields import (
    FIELDS,
    Field,
    amount,
    ci_method,
    count,
    difference,
    figure,
    flag,
    identifier,
    interval,
    one_of,
    share,
    text,
)
from touchstone.vocabulary import (
    COMPARED,
    COST_CI_METHODS,
    DEFAULT_SUITE,
    DEFAULT_TIER,
    DIFFERENCE_CI_METHODS,
    EFFECTS,
    FILE_STATUSES,
    MEDIAN_CI_METHODS,
    PROBLEM_VERDICTS,
    RATIO_CI_METHODS,
    RULINGS,
    SHARE_CI_METHODS,
    STATUSES,
    TESTS,
    UNPAIRED_CI_METHODS,
    VERDICTS,
)

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Table:
    """One table of the output folder, with a row per `grain`.

    `key` are the fields that identify a row. That they do is not checked without `unique`: it costs seconds at millions
    of rows, and ingest refuses duplicates. `extras` says which further columns there may be.

    Its function, of the same name in the first module of `code`, takes a frame of each table in `reads` and the value
    of each key in `settings`, in that order. A table with `step` is written by a method of its stage instead; if it is
    `written_with` another one, by the same step. The rows of a table `against_baseline` depend on the pinned baseline
    too. `code` names the modules that make it and packages that these use without importing them, such as programs that
    run inside a sandbox. `in_snapshots` is false
    for tables that contain the texts of fixes and for those about other snapshots.

    `per_model` tables have a part per model. With `by_model` there is one part for all models, sorted by model, but the
    rows of a model depend only on that model's rows of what is read, so that only changed models are made again; see
    `storage.model_rows`. `further_columns` is the setting that names columns of the input which it reads of `attempts`.
    """

    name: str
    description: str
    grain: str
    fields: Mapping[str, Field]
    key: tuple[str, ...]
    group: str
    code: tuple[str, ...]
    reads: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    unique: bool = True
    extras: str | None = None
    per_model: bool = False
    by_model: bool = False
    further_columns: str | None = None
    against_baseline: bool = False
    step: bool = False
    written_with: str | None = None
    in_snapshots: bool = True

    @property
    def has_models(self) -> bool:
        """Whether it is known which model each of its rows was made for."""
        return self.per_model or self.by_model or self.written_with is not None

    @property
    def function(self) -> "Callable[..., pl.LazyFrame] | None":
        """The function that makes it from frames and settings; None if that is a method of a stage or of the gate."""
        return None if self.step else getattr(import_module(self.code[0]), self.name, None)

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """One line per column."""
        return {name: field.description for name, field in self.fields.items()}

    @cached_property
    def dtypes(self) -> "pl.Schema":
        """Column types, in order."""
        import polars as pl

        return pl.Schema({name: field.dtype for name, field in self.fields.items()})

    @cached_property
    def rules(self) -> "dict[str, pl.Expr]":
        """Conditions on every row, by name. A null condition holds."""
        import polars as pl

        rules = {
            f"{name}|{rule}": holds
            for name, field in self.fields.items()
            for rule, holds in field.rules(pl.col(name)).items()
        }
        is_checked = self.key and self.unique
        return {"primary_key": pl.struct(self.key).is_unique(), **rules} if is_checked else rules

    @cached_property
    def violation_counts(self) -> "list[pl.Expr]":
        """For each rule the number of rows in which it does not hold, under its name."""
        return [(~holds).sum().alias(rule) for rule, holds in self.rules.items()]


def conform(frame: "pl.LazyFrame", table: Table) -> "pl.LazyFrame":
    """The frame in the table's column order and types, with permitted extra columns after them.

    >>> import polars as pl
    >>> table = TABLES["problems"]
    >>> conform(pl.LazyFrame(dict.fromkeys(table.dtypes, ["a"])), table).collect_schema()["cluster"]
    String
    """
    import polars as pl

    present = frame.collect_schema().names()
    missing = [name for name in table.dtypes if name not in present]
    if missing:
        raise ValueError(f"table '{table.name}' lacks {', '.join(missing)}")
    columns = [pl.col(name).cast(dtype) for name, dtype in table.dtypes.items()]
    extras = [name for name in present if name not in table.dtypes]
    if extras and not table.extras:
        raise ValueError(f"table '{table.name}' has no column {', '.join(extras)}")
    return frame.select(*columns, *extras)


def violations(frame: "pl.LazyFrame", table: Table) -> dict[str, int]:
    """The number of rows that violate each rule of the table; empty if there are none."""
    counts = frame.select(table.violation_counts).collect()
    return {rule: rows for rule, rows in counts.row(0, named=True).items() if rows}


def _fields(names: str, interval_of: str = "", **here: str | Field) -> tuple[dict[str, Field], tuple[str, ...]]:
    """The fields of a table by name, in order, and its key: the names with a star.

    `here` describes fields that mean something else in this table. `interval_of` is the figure that `ci_low`, `ci_high`
    and `ci_method` are about.
    """
    known = FIELDS | interval(interval_of)
    for name, other in here.items():
        known[name] = replace(known[name], description=other) if isinstance(other, str) else other
    listed = names.split()
    key = tuple(name.rstrip("*") for name in listed if name.endswith("*"))
    return {name: known[name] for name in (each.rstrip("*") for each in listed)}, key


_INPUT_COLUMNS = "Further columns of the input travel along as text."

# The settings of paired tests, in the order in which they are passed.
PAIR_SETTINGS = (
    "comparison.alpha",
    "comparison.relevant",
    "comparison.power",
    "comparison.permutations",
    "intervals.seed",
    "intervals.confidence",
    "comparison.family",
    "comparison.baseline_model",
)
# The fields of a paired comparison, after those that name and measure the two sides.
_COMPARISON = (
    " difference ci_low ci_high ci_method ci_units test p_value p_adjusted correction pairs adjusted_ci_low "
    "adjusted_ci_high adjusted_ci_method adjusted_confidence wins losses ties fell rose effect_size "
    "minimum_detectable_effect detectable_on_few "
    "units_needed verdict sentence"
)
_COMPARISON_FIELDS = {
    "problems": count("Problems decided on both sides."),
    "ci_low": difference("Lower end of the confidence interval of difference, not adjusted for multiple comparisons."),
    "ci_high": difference("Upper end of the confidence interval of difference."),
    "ci_method": ci_method("difference", DIFFERENCE_CI_METHODS),
    "ci_units": count("Independent units behind the intervals and the test."),
}

_UNPAIRED_FIELDS = {
    "ci_low": difference("Lower end of the confidence interval of difference; null with fewer than 5 units on a side."),
    "ci_high": difference("Upper end of the confidence interval of difference."),
    "ci_method": ci_method("difference", UNPAIRED_CI_METHODS),
}

# Adapters are imported by name, when a file asks for them.
_ingest = partial(Table, group="ingest", code=("touchstone.ingest.stage", "touchstone.ingest.adapters"), step=True)
_with_attempts = partial(_ingest, reads=("problems", "attempts"), written_with="attempts")
_validation = partial(
    Table, group="validation", code=("touchstone.validation.stage", "touchstone.validation"), step=True
)
_metrics = partial(Table, group="metrics")
_scores = partial(Table, group="scores")
_reliability = partial(Table, group="reliability")
_economics = partial(Table, group="economics", settings=("intervals",))
_comparison = partial(Table, group="comparison")
_gate = partial(_comparison, code=("touchstone.comparison.gate",), against_baseline=True, in_snapshots=False)
_audit = partial(Table, group="audit")
_publish = partial(Table, group="publish", code=("touchstone.publish.stage",), step=True, in_snapshots=False)

_FIGURES = [
    _ingest(
        "problems",
        "The problems to be solved: the denominator of every figure.",
        "problem",
        *_fields(
            "oid* filename suite cluster only_tier excluded",
            oid="Unique identifier of the problem.",
            excluded=flag("Whether a ruling leaves the problem out of every figure.", nullable=False),
            suite=text(f"Suite of the problem; `{DEFAULT_SUITE}` if not given.", nullable=False),
        ),
        extras=_INPUT_COLUMNS,
    ),
    _ingest(
        "problem_slices",
        "The value that every problem has in each configured slice.",
        "configured slice and problem, and model if it has a cutoff",
        *_fields("slice* column* position value cutoff_model* oid*"),
        reads=("problems",),
        unique=False,
    ),
    _ingest(
        "attempts",
        "Every attempt of every model, as its fixes file states it. Refused rows go to `quarantine`.",
        "attempt, as ingested",
        *_fields(
            "model* tier* oid* iteration_id* run_id suite fix_sha passed compiled tests_passed tests_failed "
            "lint_warnings weighted_score structure_score classification input_tokens output_tokens cache_read_tokens "
            "cache_write_tokens cost_usd duration_seconds latency_ms attempted_on transcript_flags",
            model="Model that wrote the fix, from the file name.",
            tier=f"Tier of the attempt; `{DEFAULT_TIER}` if not given.",
            suite=text("Suite of the attempt if given, otherwise that of its problem.", nullable=False),
            passed=flag("Outcome stated or implied by the file; null if it has none."),
        ),
        reads=("problems",),
        unique=False,
        extras=_INPUT_COLUMNS,
        per_model=True,
        in_snapshots=False,
    ),
    _with_attempts(
        "quarantine",
        "Every refused row with its file, line and reason.",
        "refused row",
        *_fields("source_file line kind reason raw"),
        in_snapshots=False,
    ),
    _with_attempts(
        "sources",
        "One row per file and model: how many rows it had, how many became attempts, or why it was not evaluated.",
        "input file and model",
        *_fields(
            "source_file* model* status reason notes format sha256 rows accepted quarantined",
            source_file="File or folder in `fixes_dir`, by name.",
            model=text("Model whose attempts the file contains; null if it contains none or was not read."),
            status=one_of(f"How the file was handled: {', '.join(FILE_STATUSES)}; see docs/inputs.md.", FILE_STATUSES),
            reason=text("Why the file was not evaluated; null if it was."),
        ),
        unique=False,
    ),
    _with_attempts(
        "reported_figures",
        "Every figure that another tool's file states, beside the same figure from the rows that were read.",
        "figure that another tool's file states",
        *_fields(
            "source_file model suite figure reported recomputed note",
            source_file="File that states the figure.",
            model=text("Model that the figure is about.", nullable=False),
            suite=text("Suite or task that the figure is about; null for all of the file."),
        ),
        in_snapshots=False,
    ),
    _with_attempts(
        "source_settings",
        "How a model was run and judged, as the files state it; other settings are unknown.",
        "setting that a file states about a model",
        *_fields(
            "source_file model suite dimension setting value",
            source_file="File that states the setting.",
            suite=text("Suite or task that the setting is about; null for all of the file."),
            value=text("Value of the setting; the digest of a long one.", nullable=False),
        ),
    ),
    _validation(
        "validator_noise",
        "How often each test passes on the same files: problems, reference fixes and a sample of fixes, repeated.",
        "problem, repeated validation and test",
        *_fields(
            "oid* validated* model* tier* iteration_id* test* runs passes flaky ci_low ci_high excluded",
            interval_of="the probability of passing",
            model=text("Model that wrote the fix; null for baseline and reference."),
            tier=text("Tier of the fix; null for baseline and reference."),
            iteration_id=text("Attempt that the fix is from; null for baseline and reference."),
            test=text("Test; null for the verdict as a whole, which all tests decide, flaky or not."),
            ci_low=share("Lower end of the confidence interval (Wilson) of the probability of passing."),
        ),
        reads=("problems", "attempts"),
        unique=False,
    ),
    _validation(
        "baselines",
        "The problems as they came and with their reference fixes, validated: every fix is compared with these.",
        "problem with fixes to validate",
        *_fields(
            "oid* validator fidelity files_sha baseline_status baseline_errors fails_as_recorded reference_status "
            "diagnostics"
        ),
        reads=("problems", "attempts", "validator_noise"),
    ),
    _validation(
        "outcomes",
        "The verdict on every attempt: passed, failed, or not decided.",
        "attempt, validated",
        *_fields(
            "model* tier* oid* iteration_id* status passed measured ruling validator validator_version fidelity "
            "sandbox cached duration_seconds diagnostics changed_judge_files flagged_files applied fixed "
            "introduced_block introduced_file introduced_module introduced_errors block_errors module_errors "
            "consistent compiled tests_passed tests_failed controlled_tests lint_warnings",
            status=f"How validation ended, whatever a person ruled: {', '.join(STATUSES)}.",
            passed=flag(
                "The outcome that counts: the ruling of a person if there is one, else as measured; null if undecided, "
                "which counts neither as passed nor as failed."
            ),
            validator="Validator that decided; `recorded` if the outcome was in the input.",
            duration_seconds=amount("Duration of the validation in seconds."),
            diagnostics="Reason for the verdict, and the validator's messages.",
        ),
        reads=("problems", "attempts", "validator_noise", "baselines"),
        unique=False,
        per_model=True,
        in_snapshots=False,
    ),
    _validation(
        "rulings",
        "Every ruling of a person, whether it is applied, and why not; and every line that was refused.",
        "line of the rulings file and attempt that it is about",
        *_fields(
            "line* at by model* tier* oid* iteration_id* ruling reason was measured attempt_sha applied why_not",
            line=count("Line of the rulings file, counted from 1."),
            model=text("Model; null if the ruling is about a problem, or was refused."),
            tier=text("Tier; null as above."),
            oid=text("Problem; null if the line was refused."),
            iteration_id=text("Attempt; null as above."),
            ruling=one_of("What the person ruled; null if the line was refused.", RULINGS, nullable=True),
            reason=text("The person's reason."),
            applied=flag("Whether the ruling is applied.", nullable=False),
        ),
        reads=("outcomes",),
        unique=False,
        written_with="outcomes",
    ),
    _validation(
        "problem_files",
        "The files that validated problems are about, as they came: every fix was applied to these.",
        "problem with fixes to validate",
        *_fields("oid* path bytes text reference_diff"),
        reads=("baselines",),
        written_with="baselines",
        in_snapshots=False,
    ),
    _validation(
        "validated_fixes",
        "What is kept of every fix that was applied and validated: its diff, and the result of each test.",
        "attempt whose fix was applied and validated",
        *_fields("model* tier* oid* iteration_id* diff diff_characters tests tests_left_out"),
        reads=("outcomes",),
        unique=False,
        written_with="outcomes",
        in_snapshots=False,
    ),
    _metrics(
        "problem_pass_at_k",
        "pass@k and pass^k per model, tier, problem and k.",
        "model, tier, problem and k",
        *_fields("model* tier* oid* k* n c pass_at_k pass_hat_k"),
        code=("touchstone.metrics.pass_at_k",),
        reads=("outcomes",),
        settings=("k_values",),
        unique=False,
        by_model=True,
    ),
    _metrics(
        "pass_at_k",
        "pass@k with its confidence interval per model, tier and k.",
        "model, tier and k",
        *_fields(
            "model* tier* k* pass_at_k ci_low ci_high ci_method ci_units pass_at_k_all pass_hat_k problems attempted "
            "eligible",
            interval_of="pass_at_k",
            pass_at_k="Mean pass@k over the eligible problems; null if there are none.",
            pass_hat_k="Mean pass^k over the eligible problems.",
            problems="Problems in the benchmark.",
        ),
        code=("touchstone.metrics.pass_at_k",),
        reads=("problem_pass_at_k", "problems", "sources"),
        settings=("k_values", "intervals"),
        by_model=True,
    ),
    _metrics(
        "slices",
        "pass@1 with its confidence interval per model, tier and value of each configured column.",
        "model, tier and value of a column",
        *_fields(
            "model* tier* column* value* problems attempted attempts pass_at_1 ci_low ci_high ci_method ci_units",
            interval_of="pass_at_1",
            column=identifier("Column of the problems by which figures are split."),
            value="Value of the column, its bin, or its side of the cutoff; among them `(missing)` and `no date`.",
            problems="Problems of the tier with this value.",
            attempts="Decided attempts at them.",
            pass_at_1="Mean pass@1 over the attempted problems; null if there are none.",
        ),
        code=("touchstone.metrics.slices",),
        reads=("problem_pass_at_k", "problems", "problem_slices"),
        settings=("intervals",),
        by_model=True,
    ),
    _metrics(
        "failures",
        "Why attempts fail: how often each model fails at each problem in each way; empty if no reason is known.",
        "model, tier, problem and failure mode",
        *_fields("model* tier* oid* fingerprint* attempts example", attempts="Failed attempts with this reason."),
        code=("touchstone.metrics.failures",),
        reads=("outcomes",),
        unique=False,
        by_model=True,
    ),
    _metrics(
        "factors",
        "pass@1 with its confidence interval per level of each configured factor; empty if none is.",
        "model, tier and level of a factor",
        *_fields(
            "model* tier* factor* level* problems attempts pass_at_1 ci_low ci_high ci_method ci_units",
            interval_of="pass_at_1",
            level=identifier("Value of the column; `(missing)` if an attempt has none."),
            problems="Problems with a decided attempt at this level.",
            attempts="Decided attempts at this level.",
            pass_at_1="Mean over these problems of the pass rate of their attempts at this level.",
        ),
        code=("touchstone.metrics.slices",),
        reads=("attempts", "outcomes", "problems"),
        settings=("factors", "intervals"),
        further_columns="factors",
    ),
    _scores(
        "settings",
        "The settings that the figures depend on, and the evaluation's name. SQL macros take their weights from here.",
        "setting that the figures depend on",
        *_fields("key* value", value="Value as JSON."),
        code=("touchstone.publish.settings",),
        settings=(
            "name",
            "k_values",
            "problem_key",
            "cluster_columns",
            "intervals",
            "comparison",
            "scoring",
            "slices",
            "factors",
            "checks",
            "validation.success",
            "validation.test_edits",
            "validation.exclude_flaky",
            "validation.limits",
        ),
    ),
    _scores(
        "attempt_scores",
        "Composite, code score, accuracy, grade, cost and cost of pass of every attempt.",
        "attempt",
        *_fields(
            "model* tier* oid* iteration_id* run_id suite attempted_on fix_sha classification pass_rate impl_rate "
            "cost_usd priced_as duration_seconds latency_ms total_tokens cost_of_pass composite_score code_score "
            "compilation_score test_score lint_score structure_score ran_tests lint_measured accuracy grade",
            suite=text("Suite of the attempt.", nullable=False),
            fix_sha=text("First 16 digits of the SHA-256 of the fix; null if the file has none."),
            classification="Outcome class in the file; pass, timeout or fail if a validator decided otherwise.",
            pass_rate="1 if the attempt passed, 0 if it failed, null if undecided.",
            cost_usd="Cost as given, otherwise tokens times the model's price; null if neither is known.",
            duration_seconds="Duration in seconds.",
            cost_of_pass="Cost divided by pass rate; infinity if the attempt failed.",
        ),
        code=("touchstone.metrics.attempts",),
        reads=("attempts", "outcomes"),
        settings=("scoring",),
        unique=False,
        per_model=True,
    ),
    _scores(
        "problem_scores",
        "Sums of scores, costs, tokens and latencies per model, tier, run, suite and problem.",
        "model, tier, run, suite and problem",
        *_fields(
            "model* tier* run_id* suite* oid* attempts decided passes scored accuracy_sum accuracy_count "
            "compilation_sum compilation_count test_sum test_count tested_sum tested_count lint_sum lint_count "
            "code_sum code_count code_best cost_sum cost_count decided_cost_sum decided_cost_count priced_as "
            "tokens_sum tokens_count latency_sum latency_count",
            attempts="Attempts.",
            decided="Decided attempts.",
            passes=amount("Passed attempts.", nullable=False),
            scored="Attempts with an outcome and a judge's score.",
        ),
        code=("touchstone.metrics.problem_scores",),
        reads=("attempt_scores",),
        unique=False,
        by_model=True,
    ),
    _scores(
        "tier_statistics",
        "Descriptive statistics of every metric per model and tier.",
        "model, tier and metric",
        *_fields("model* tier* metric* median mean mode min max std_dev variance count"),
        code=("touchstone.metrics.tiers",),
        reads=("attempt_scores",),
        by_model=True,
    ),
    _scores(
        "tiers",
        "Median composite score, grade, pass rate, cost of pass and uplift, with intervals.",
        "model and tier",
        *_fields(
            "model* tier* attempts scored composite_median ci_low ci_high ci_method ci_units grade grade_low "
            "grade_high pass_rate pass_rate_ci_low pass_rate_ci_high pass_rate_ci_method cost_of_pass "
            "cost_of_pass_ci_low cost_of_pass_ci_high cost_of_pass_ci_method uplift uplift_ci_low uplift_ci_high "
            "uplift_ci_method cliffs_delta uplift_reason",
            interval_of="composite_median",
            scored=(
                "Decided attempts with a judge's score; composite, grade and uplift use only these unless missing "
                "counts as 0."
            ),
            ci_low=share("Lower end of the confidence interval of composite_median; 0 with fewer than six units."),
            ci_high=share("Upper end of the confidence interval of composite_median; 1 with fewer than six units."),
            ci_method=ci_method("composite_median", MEDIAN_CI_METHODS),
        ),
        code=("touchstone.metrics.tiers",),
        reads=("tier_statistics", "attempt_scores", "problem_scores", "problems"),
        settings=("scoring", "intervals"),
        by_model=True,
    ),
    _scores(
        "cross_tier",
        "Variance of pass rate, cost and score between a model's tiers, and the cheapest tier.",
        "model",
        *_fields(
            "model* tiers attempts scored pass_rate_variance pass_rate_variance_of_means cost_variance "
            "cost_variance_of_means score_variance score_variance_of_means cost_delta frontier_cost_of_pass "
            "frontier_tier",
            attempts="Decided attempts in all tiers.",
        ),
        code=("touchstone.metrics.tiers",),
        reads=("tier_statistics", "tiers"),
        by_model=True,
    ),
    _scores(
        "suite_scores",
        "Cases, passes, scores with intervals and counts per class.",
        "model, tier, run and suite",
        *_fields(
            "model* tier* run_id* suite* cases decided passed score ci_low ci_high ci_method ci_units decided_score "
            "decided_score_ci_low decided_score_ci_high decided_score_ci_method weighted_score latency_score "
            "suite_weight class_pass class_fail class_error class_refusal class_wrong_format class_policy_violation "
            "class_crash class_timeout class_other other_classes class_none",
            interval_of="score",
            weighted_score=share(
                "Mean credit by class (`scoring.suites.class_credit`); equal to score if not configured."
            ),
        ),
        code=("touchstone.metrics.suites",),
        reads=("attempt_scores", "problem_scores", "problems"),
        settings=("scoring.suites", "intervals"),
        unique=False,
        by_model=True,
    ),
    _scores(
        "run_scores",
        "The unweighted mean of the scores of a run's suites, and the pass rate over its cases.",
        "model, tier and run",
        *_fields(
            "model* tier* run_id* suites cases decided passed overall_score ci_low ci_high ci_method ci_units "
            "overall_decided_score overall_weighted_score pass_rate pass_rate_ci_low pass_rate_ci_high "
            "pass_rate_ci_method",
            interval_of="overall_score",
            ci_units="Independent units behind both intervals: problems, each cluster counted once.",
            ci_low=share("Lower end of the confidence interval of overall_score: suites fixed, problems sampled."),
            pass_rate="passed / decided, pooled over all suites.",
        ),
        code=("touchstone.metrics.suites",),
        reads=("suite_scores", "problem_scores", "problems"),
        settings=("intervals",),
        unique=False,
        by_model=True,
    ),
    _scores(
        "model_statistics",
        "pass@k, compilation, tests, lint, cost, tokens and latency per model and tier.",
        "model and tier",
        *_fields(
            "model* tier* attempts ci_low ci_high ci_method ci_units avg_compilation_rate avg_compilation_rate_ci_low "
            "avg_compilation_rate_ci_high avg_compilation_rate_ci_method avg_compilation_rate_ci_units "
            "avg_test_pass_rate avg_test_pass_rate_ci_low avg_test_pass_rate_ci_high avg_test_pass_rate_ci_method "
            "avg_test_pass_rate_ci_units avg_test_pass_rate_all tested_attempts avg_lint_score avg_lint_score_ci_low "
            "avg_lint_score_ci_high avg_lint_score_ci_method avg_lint_score_ci_units avg_code_score "
            "avg_code_score_ci_low avg_code_score_ci_high avg_code_score_ci_method avg_code_score_ci_units "
            "total_cost_usd priced_as unpriced_attempts total_tokens avg_latency_ms",
            interval_of="pass@k for the smallest k",
            ci_units="Independent units behind that interval: problems, each cluster counted once.",
            attempts="Attempts.",
            total_tokens="Total tokens of the attempts that report them.",
        ),
        code=("touchstone.metrics.aggregates",),
        reads=("problem_scores", "pass_at_k", "problems"),
        settings=("k_values", "intervals"),
        extras="Further columns `pass_at_<k>`, `pass_at_<k>_ci_low` and `pass_at_<k>_ci_high` per configured k.",
        by_model=True,
    ),
    _scores(
        "problem_statistics",
        "pass@k, code scores, cost of pass and solvers per model, tier and problem.",
        "model, tier and problem",
        *_fields("model* tier* oid* n c avg_score best_score cost_of_pass solved models_solving only_solver"),
        code=("touchstone.metrics.aggregates",),
        reads=("problem_scores", "problem_pass_at_k"),
        settings=("k_values",),
        unique=False,
        extras="One further column `pass_at_<k>` per configured k.",
    ),
    _scores(
        "problem_frontier",
        "Per problem the model and tier with the lowest finite cost of pass, if any.",
        "problem",
        *_fields(
            "oid* mean_pass_rate models_solving cost_of_pass model tier",
            cost_of_pass=amount("Lowest finite cost of pass; null if no model passes at a known cost."),
            model=text("Model with that cost of pass."),
            tier=text("Tier with that cost of pass."),
        ),
        code=("touchstone.metrics.aggregates",),
        reads=("problem_statistics",),
    ),
    _reliability(
        "variance_split",
        "The variance of pass@1 and its parts per model and tier.",
        "model and tier",
        *_fields(
            "model* tier* problems repeated units attempts samples pass_at_1 standard_error degrees_of_freedom "
            "variance_of_mean from_problems from_samples share_from_problems problem_variance sampling_variance"
        ),
        code=("touchstone.metrics.variance",),
        reads=("problem_pass_at_k", "problems"),
        by_model=True,
    ),
    _reliability(
        "next_samples",
        "The expected interval width of pass@1 under each plan, per model and tier.",
        "model, tier and plan",
        *_fields(
            "model* tier* plan* problems samples extra_attempts extra_cost_usd expected_width width_saved advised",
            problems="Problems under the plan.",
            samples="Attempts per problem under the plan.",
        ),
        code=("touchstone.metrics.variance",),
        reads=("variance_split", "problem_scores"),
        settings=("intervals",),
        by_model=True,
    ),
    _reliability(
        "validator_variance",
        "How much of the variance of attempts the validator adds, per model and tier.",
        "model and tier with fixes that were validated several times",
        *_fields(
            "model* tier* problems fixes flaky validator_variance sampling_variance share_from_validator ci_low "
            "ci_high ci_method ci_units",
            interval_of="share_from_validator",
            problems="Problems with fixes that were validated several times.",
            flaky=count("Fixes of these whose verdict was not always the same."),
            ci_method=ci_method("share_from_validator", SHARE_CI_METHODS),
        ),
        code=("touchstone.metrics.variance",),
        reads=("validator_noise", "problem_pass_at_k", "problems"),
        settings=("intervals", "validation.exclude_flaky"),
    ),
    _reliability(
        "reliability",
        "Flip rate and consistency with intervals per model and tier.",
        "model and tier",
        *_fields(
            "model* tier* problems repeated always never flipping flip_rate flip_rate_ci_low flip_rate_ci_high "
            "flip_rate_ci_method consistency consistency_ci_low consistency_ci_high consistency_ci_method ci_units",
            ci_units="Independent units behind both intervals: problems, each cluster counted once.",
        ),
        code=("touchstone.metrics.reliability",),
        reads=("problem_pass_at_k", "problems"),
        settings=("intervals",),
        by_model=True,
    ),
    _reliability(
        "reliability_curve",
        "pass@k and pass^k per model, tier and k, over problems with at least k attempts.",
        "model, tier and k",
        *_fields(
            "model* tier* k* pass_at_k pass_hat_k ci_low ci_high ci_method ci_units eligible",
            interval_of="pass_hat_k",
            pass_at_k="Probability that at least one of k attempts passes: mean over eligible problems.",
            pass_hat_k="Probability that all of k attempts pass: mean over eligible problems.",
        ),
        code=("touchstone.metrics.reliability",),
        reads=("problem_pass_at_k", "problems"),
        settings=("intervals",),
        by_model=True,
    ),
    _economics(
        "economics",
        "pass rate, cost per attempt, cost of pass with its interval, and probabilities.",
        "model and tier",
        *_fields(
            "model* tier* problems pass_rate cost_per_attempt cost_of_pass ci_low ci_high ci_method ci_units "
            "on_frontier frontier_probability pareto pareto_probability",
            interval_of="cost_of_pass",
            cost_of_pass="cost_per_attempt / pass_rate, as in tiers; infinity if nothing passes.",
            ci_low=amount("Lower end of the confidence interval of cost_of_pass."),
            ci_high=amount("Upper end of the confidence interval of cost_of_pass; may be infinity.", infinite=True),
            ci_method=ci_method("cost_of_pass", COST_CI_METHODS),
        ),
        code=("touchstone.metrics.economics",),
        reads=("problem_scores", "problems"),
    ),
    _economics(
        "prices",
        "The prices of tokens that costs were computed with; none for costs that the input states.",
        "model and price",
        *_fields(
            "model* priced_as* stated_in valid_from* input_price output_price cache_read_price cache_write_price "
            "attempts first_date last_date age_days",
            priced_as=text("Name of the price applied to the tokens.", nullable=False),
            attempts="Attempts priced by it.",
        ),
        code=("touchstone.metrics.attempts",),
        reads=("attempt_scores",),
        settings=("scoring",),
        unique=False,
    ),
    _economics(
        "budget_curves",
        "Share of problems solved within a budget of dollars, tokens or seconds.",
        "resource, model, tier and budget; none for a resource that no model and tier has for all decided attempts",
        *_fields(
            "model* tier* resource* budget* share_solved ci_low ci_high ci_method ci_units problems",
            interval_of="share_solved",
            ci_units=count(
                "Independent units behind the interval: problems, each cluster counted once.", nullable=True
            ),
            problems=count("Problems with a decided attempt.", nullable=True),
        ),
        code=("touchstone.metrics.budgets",),
        reads=("attempt_scores", "problems"),
        in_snapshots=False,
    ),
    _economics(
        "routing",
        "Per suite the cheapest model and tier, the probability that it is, and the runner-up.",
        "suite",
        *_fields(
            "suite* problems model tier pass_rate cost_of_pass probability second_model second_tier "
            "second_cost_of_pass",
            problems="Problems of the suite that the chosen model and tier attempted.",
            model=text("Model with the lowest cost of pass in the suite; null if no model passes at a known cost."),
            tier=text("Its tier."),
            pass_rate="Its mean pass rate over decided attempts in the suite.",
            cost_of_pass=amount("Its mean cost of a decided attempt in the suite divided by pass_rate."),
        ),
        code=("touchstone.metrics.routing",),
        reads=("problem_scores", "problems"),
    ),
    _economics(
        "routing_policies",
        "Cost and pass rate of one model for all, one per suite and one per problem.",
        "policy",
        *_fields(
            "policy* problems pass_rate cost_per_attempt cost_of_pass saving ci_low ci_high ci_method ci_units",
            interval_of="saving",
            problems="Problems that every model with known costs attempted at least twice.",
            pass_rate="Mean over problems of the chosen model's pass rate, on attempts not used to choose it.",
            cost_per_attempt="Mean over problems of the chosen model's cost per attempt, on the same attempts.",
            cost_of_pass="cost_per_attempt / pass_rate, with equal weight for every problem.",
            ci_low=figure("Lower end of the confidence interval of saving."),
            ci_high=figure("Upper end of the confidence interval of saving."),
            ci_method=ci_method("saving", RATIO_CI_METHODS),
        ),
        code=("touchstone.metrics.routing",),
        reads=("attempt_scores", "problem_scores", "problems"),
    ),
    _comparison(
        "model_comparison",
        "All pairs of models in a tier and of tiers of a model, compared problem by problem, with a verdict on each.",
        "pair of models of a tier, or of tiers of a model",
        *_fields(
            "kind* model_a* tier_a* model_b* tier_b* problems only_a only_b rate_a rate_b" + _COMPARISON,
            **_COMPARISON_FIELDS,
            interval_of="difference",
            kind=identifier("What is compared: models of one tier, or tiers of one model."),
            sentence=text(
                "The result as a sentence; null for pairs of more than 10,000 of which a side is not among the 30 best "
                "models and which are not next in rank."
            ),
        ),
        code=("touchstone.comparison.pairs",),
        reads=("problem_pass_at_k", "problems"),
        settings=PAIR_SETTINGS,
    ),
    _comparison(
        "factor_effects",
        "What each level of a factor changes, and how two factors interact, paired by problem; empty without factors.",
        "model, tier and effect",
        *_fields(
            "model* tier* kind factor* level* reference other_factor* other_level* other_reference problems difference "
            "ci_low ci_high ci_method ci_units test p_value p_adjusted",
            interval_of="difference",
            kind=one_of("`main`: the effect of one factor; `interaction`: how it depends on another.", EFFECTS),
            level=identifier("Level whose effect this is."),
            problems="Problems with attempts at all levels in question.",
            difference=figure(
                "main: pass@1 at level minus that at reference, within problems, other factors held equal; "
                "interaction: that at other_level minus that at other_reference. Null without such problems."
            ),
            ci_low=figure("Lower end of the confidence interval of difference, not adjusted."),
            ci_high=figure("Upper end of the confidence interval of difference."),
            ci_method=ci_method("difference", DIFFERENCE_CI_METHODS),
            test=one_of("Test of the null hypothesis of no effect, as in model_comparison.", TESTS, nullable=True),
            p_adjusted="p_value adjusted for all effects of the run (Holm).",
        ),
        code=("touchstone.comparison.factor_effects",),
        reads=("attempts", "outcomes", "problems"),
        settings=("factors", *PAIR_SETTINGS),
        unique=False,
        further_columns="factors",
    ),
    _gate(
        "baseline_verdicts",
        "Every model and tier compared with the pinned baseline; empty without one.",
        "model and tier that the pinned baseline has too",
        *_fields(
            "model* tier* baseline problems only_baseline only_current rate_baseline rate_baseline_ci_low "
            "rate_baseline_ci_high rate_current rate_current_ci_low rate_current_ci_high"
            + _COMPARISON
            + " p_changed decided_by holds_if_undecided look looks level",
            **_COMPARISON_FIELDS,
            interval_of="difference",
            difference="Mean over shared problems of this run minus the baseline.",
            p_adjusted="p_value and p_changed together, adjusted for the comparisons of all models and tiers.",
            wins="Shared problems on which this run passes more often.",
            losses="Shared problems on which this run passes less often.",
            verdict=f"Verdict on this run: {', '.join(VERDICTS)}.",
        ),
        reads=("attempt_scores", "problems"),
        settings=("comparison.looks", *PAIR_SETTINGS),
    ),
    _gate(
        "sequential_verdicts",
        "The verdicts of every run since the pinned baseline, each at the level of its look; empty without a budget.",
        "model, tier and look whose snapshot is there",
        *_fields(
            "model* tier* look* looks level baseline snapshot problems difference p_value p_changed p_adjusted verdict",
            look=count("Which run since the baseline; one that is missing left no snapshot."),
            looks=count("Looks that the budget covers."),
            snapshot=text("Snapshot of that run; null for the run that made this table."),
            problems=count("Problems decided on both sides."),
            difference="Mean over shared problems of that run minus the baseline.",
            p_adjusted="p_value and p_changed together, adjusted for the comparisons of all models and tiers.",
            verdict=f"Verdict on that run: {', '.join(VERDICTS)}.",
        ),
        reads=("baseline_verdicts",),
        settings=PAIR_SETTINGS,
    ),
    _gate(
        "comparability",
        "Whether the two sides of a comparison agree: the run and its pinned baseline, and the models of the run.",
        "kind of comparison and dimension",
        *_fields(
            "kind* dimension* agreement required value_a value_b",
            kind=one_of("What is compared: the run with its `baseline`, or the `models` of the run.", COMPARED),
        ),
        reads=("attempt_scores", "problems", "baselines", "outcomes", "source_settings", "sources", "settings"),
        settings=("comparison.require",),
    ),
    _comparison(
        "registered_plan",
        "Every item of the registered plan beside what the run did; empty without a plan.",
        "item that the plan fixes",
        *_fields("item* planned used as_planned", item=identifier("Item of the plan.")),
        code=("touchstone.comparison.registered_plan",),
        reads=("model_comparison", "problem_pass_at_k", "problems"),
        settings=("comparison",),
        in_snapshots=False,
    ),
    _gate(
        "failure_changes",
        "Every way in which attempts fail, compared with the pinned baseline; empty without one.",
        "failure mode of the run or of the pinned baseline",
        *_fields(
            "fingerprint* example baseline_attempts compared_attempts mode_change difference p_value p_adjusted",
            difference="Mean over cases of its share of attempts, this run minus the baseline; null if not tested.",
            p_value="Two-sided p-value of that difference, paired by case; null if not tested.",
            p_adjusted="p_value adjusted for all modes that were tested (Holm), at most 30: the most common.",
        ),
        reads=("attempt_scores", "problems", "failures"),
        settings=PAIR_SETTINGS,
    ),
    _gate(
        "regressions",
        "Every case that differs from the pinned baseline: worse, better, new, removed or lost; empty without one.",
        "case that differs from the pinned baseline",
        *_fields(
            "model* tier* oid* baseline_score current_score delta category kind basis fallback chance_of_regression",
            kind="regression, improvement, new, removed, lost or unscored; unchanged cases are omitted.",
        ),
        reads=("attempt_scores", "problems"),
        settings=("comparison.threshold", "comparison.score"),
    ),
    _gate(
        "regression_counts",
        "Regressed cases per model and tier, and how many to expect by chance; empty without a baseline.",
        "model and tier of the run or of the pinned baseline",
        *_fields(
            "model* tier* regressions expected_by_chance improvements unchanged new removed lost unscored "
            "compared_by_pass_rate p_regressions"
        ),
        reads=("attempt_scores", "problems"),
        settings=("comparison.threshold", "comparison.score"),
    ),
    _audit(
        "problem_audit",
        "Whether each problem can be trusted: how models fare on it, whether better ones do better, and a verdict.",
        "tier and problem with a decided attempt",
        *_fields(
            "tier* oid* models share_of_models attempts share_of_attempts solved_by_all solved_by_none discrimination "
            "p_value p_adjusted models_reranked largest_rank_change largest_pass_at_1_change same_as flaky "
            "reference_fails baseline_passes verdict",
            p_value="One-sided p-value against a negative discrimination, not adjusted.",
            p_adjusted="p_value adjusted for all problems of the tier (Benjamini-Hochberg).",
            flaky=flag("Whether a repeated test or verdict changed on the same files; null if nothing was repeated."),
            verdict=one_of(
                "; ".join(f"{verdict}: {meaning}" for verdict, meaning in PROBLEM_VERDICTS.items()) + ".",
                tuple(PROBLEM_VERDICTS),
            ),
        ),
        code=("touchstone.audit.problems",),
        reads=("problem_pass_at_k", "validator_noise", "baselines"),
        settings=("comparison.alpha",),
    ),
    _audit(
        "audited_leaderboard",
        "pass@1 and rank with and without the suspect problems, and how many verdicts on pairs depend on them.",
        "model and tier",
        *_fields(
            "model* tier* problems suspects pass_at_1 pass_at_1_without_suspects rank rank_without_suspects "
            "changed_verdicts changes"
        ),
        code=("touchstone.audit.problems",),
        reads=("problem_audit", "problem_pass_at_k", "problems", "model_comparison"),
        settings=PAIR_SETTINGS,
    ),
    _audit(
        "audit_flags",
        "What in a fix or a transcript suggests that an attempt did not earn its pass. No flag changes a verdict.",
        "attempt, rule and place",
        *_fields(
            "model* tier* oid* iteration_id* passed ruling source* rule* severity place* evidence",
            passed=flag("The verdict."),
            ruling="What a person ruled about the attempt, which then counts whatever the flag; null if nobody did.",
        ),
        code=("touchstone.audit.passes",),
        reads=("problems", "attempts", "outcomes", "problem_files"),
        settings=("audit.all_rules",),
        unique=False,
        by_model=True,
        in_snapshots=False,
    ),
    _audit(
        "pass_audit",
        "How many passes of each model and tier were audited, and how many are flagged.",
        "model and tier",
        *_fields(
            "model* tier* passes fixes_read transcripts_read not_audited flagged worth_a_look",
            passes="Attempts that passed.",
        ),
        code=("touchstone.audit.passes",),
        reads=("attempts", "outcomes", "audit_flags"),
        by_model=True,
    ),
    _audit(
        "pass_at_k_readings",
        "pass@k if outcomes are read otherwise: undecided attempts as failed or passed, without rulings, and with "
        "flagged passes as failed.",
        "model, tier and k",
        *_fields(
            "model* tier* k* pass_at_k pass_at_k_low pass_at_k_high pass_at_k_measured pass_at_k_unflagged",
            pass_at_k="pass@k as published.",
        ),
        code=("touchstone.audit.readings",),
        reads=("pass_at_k", "problem_scores", "outcomes", "problems", "audit_flags"),
        settings=("k_values",),
        by_model=True,
    ),
    _audit(
        "verdict_readings",
        "The verdict on every pair of models if outcomes are read otherwise; empty if no reading changes an outcome.",
        "reading and pair of models or tiers",
        *_fields(
            "reading* kind* model_a* tier_a* model_b* tier_b* verdict verdict_then holds difference p_adjusted",
            kind=identifier("What is compared: models of one tier, or tiers of one model."),
            difference="Mean over shared problems of b minus a in this reading.",
        ),
        code=("touchstone.audit.readings",),
        reads=("model_comparison", "problem_scores", "outcomes", "problems", "audit_flags"),
        settings=PAIR_SETTINGS,
    ),
    _audit(
        "mutants",
        "Reference fixes with one mistake each, and whether tests notice; empty unless `validation.mutants` is set.",
        "mutant of a reference fix that passes",
        *_fields(
            "oid* mutant* path line change status result diff",
            path="File that the mistake is in, relative to the problem's files.",
            line=count("Line of the mistake.", least=1),
            diff=text("Unified diff from the reference fix to the mutant.", nullable=False),
        ),
        code=("touchstone.audit.strength", "touchstone.audit.mutations", "touchstone.validation"),
        reads=("baselines", "validator_noise"),
        step=True,
        in_snapshots=False,
    ),
    _audit(
        "test_strength",
        "How many mutants of each reference fix the tests reject; empty unless `validation.mutants` is set.",
        "problem with fixes to validate",
        *_fields(
            "oid* mutants killed survived undecided kill_rate ci_low ci_high weak reason",
            interval_of="kill_rate",
            ci_low=share("Lower end of the confidence interval (Wilson) of kill_rate, over all mutants like these."),
            reason=text("Why the problem could not be judged; null if it was."),
        ),
        code=("touchstone.audit.strength",),
        reads=("mutants", "baselines"),
        settings=("validation.mutants", "intervals"),
    ),
    _audit(
        "contamination",
        "pass@1 on problems from before a model's cutoff minus that on later ones; empty without a slice by cutoff.",
        "model and tier with a cutoff, and column that is cut there",
        *_fields(
            "model* tier* column* problems_before problems_after pass_at_1_before pass_at_1_after difference ci_low "
            "ci_high ci_method p_value p_adjusted finding",
            **_UNPAIRED_FIELDS,
            interval_of="difference",
            difference="pass_at_1_before - pass_at_1_after; null if a side has no problems.",
            p_adjusted="p_value adjusted for all models, tiers and columns (Holm).",
        ),
        code=("touchstone.audit.contamination",),
        reads=("problem_pass_at_k", "problems", "problem_slices"),
        settings=("comparison.alpha", "intervals"),
    ),
    _audit(
        "reference_overlap",
        "How much of what fixes add is in the reference fix word for word: those that pass and those that fail.",
        "model and tier with fixes that were validated, of problems with a reference fix",
        *_fields(
            "model* tier* problems fixes_passed fixes_failed overlap_passed overlap_failed difference ci_low ci_high "
            "ci_method",
            **_UNPAIRED_FIELDS,
            interval_of="difference",
            problems="Problems with such fixes.",
            difference="overlap_passed - overlap_failed; null if either is.",
        ),
        code=("touchstone.audit.contamination",),
        reads=("validated_fixes", "problem_files", "outcomes", "problems"),
        settings=("intervals",),
    ),
]
# The tables with figures that a gate can name: those about results, without a row per attempt.
_FIGURE_TYPES = ("Float64", "Int64")
GATED = tuple(
    table.name
    for table in _FIGURES
    if table.group in ("metrics", "scores", "reliability", "economics", "comparison", "audit")
    and "iteration_id" not in table.key
    and any(field.type_name in _FIGURE_TYPES for name, field in table.fields.items() if name not in table.key)
)
_FIGURES.append(
    _gate(
        "gate_results",
        "Whether every gate held, failed, or could not be decided; empty without `gates`.",
        "gate, and model and tier that it applies to",
        *_fields(
            "gate* model* tier* figure low high bound answer sentence needed",
            model=text("Model; null if the figure is not about one."),
            tier=text("Tier; null likewise."),
            figure=figure("The figure; with `for all`, that of the row that decides.", infinite=True),
        ),
        group="audit",
        reads=(*GATED, "problems", "attempt_scores", "comparability"),
        settings=("gates", "intervals", "comparison.power"),
        unique=False,
    )
)
_READ = {name for table in _FIGURES for name in table.reads}
_PUBLISHED = [
    _publish(
        "history",
        "Every figure of every snapshot. Making it freezes the run as a snapshot first.",
        "snapshot and figure of a model and tier",
        *_fields(
            "snapshot* made_at table* model* tier* item* figure* value",
            figure=identifier("Column of that table, such as pass_at_k, composite_median or ci_low."),
            value=figure("Value of the figure.", infinite=True),
        ),
        reads=tuple(table.name for table in _FIGURES if table.name not in _READ),
        unique=False,
    ),
    _publish(
        "failure_modes",
        "Every way in which attempts of this run or of a snapshot fail, and how that changed since the baseline.",
        "failure mode of this run or of a snapshot",
        *_fields(
            "fingerprint* example attempts problems models mode_change first_snapshot last_snapshot",
            attempts="Failed attempts of this run with this reason.",
            problems="Problems with such an attempt.",
            models="Models with such an attempt.",
        ),
        reads=("history", "failures", "failure_changes"),
    ),
    _publish(
        "trends",
        "The headline figures of every snapshot with their intervals, as lines to draw.",
        "snapshot and headline figure of a model and tier",
        *_fields(
            "snapshot* made_at table* model* tier* item* figure* value ci_low ci_high n after_gap same_attempts level "
            "pinned_as",
            figure=identifier("Column of that table: pass_at_k, composite_median, overall_score or cost_of_pass."),
            value=figure("Value of the figure; null if it is undefined.", infinite=True),
            ci_low=figure("Lower end of the confidence interval of value.", infinite=True),
            ci_high=figure("Upper end of the confidence interval of value.", infinite=True),
            n=count("Problems behind the figure, or attempts; null if not known.", nullable=True),
            level=figure("Mean value over the snapshots between two change points."),
        ),
        code=("touchstone.publish.stage", "touchstone.trends.series"),
        reads=("history",),
        unique=False,
    ),
    _publish(
        "change_points",
        "Where a headline figure changed its level, by how much, and what else changed there.",
        "change of the level of a headline figure",
        *_fields(
            "model* tier* table* item* figure* snapshot* made_at previous_snapshot previous_made_at before after "
            "difference nights_before nights_after seen_in p_value same_attempts changed sentence",
            figure=identifier("Column of that table: pass_at_k, composite_median, overall_score or cost_of_pass."),
            snapshot=identifier("First snapshot at the new level."),
            made_at=text("When its run finished, in UTC.", nullable=False),
            difference=figure("after - before."),
            p_value=share("Bound of the p-value when it was seen; 0 if the attempts are the same."),
            sentence=text("The change in words.", nullable=False),
        ),
        code=("touchstone.publish.stage", "touchstone.trends.series"),
        reads=("trends",),
        unique=False,
    ),
    _publish(
        "problem_history",
        "Every problem's figures in every snapshot.",
        "snapshot, model, tier and problem",
        *_fields(
            "snapshot* made_at model* tier* oid* n c pass_rate avg_score best_score",
            pass_rate="c / n; null if no attempt was decided.",
        ),
        reads=("history",),
        unique=False,
    ),
    _publish(
        "run_log",
        "What each step of each run took, as far as this run has got.",
        "run and step",
        *_fields(
            "run_id* step* snapshot stage started seconds cpu_seconds rows bytes status message",
            run_id=identifier("Run; the same id as in Dagster, if it ran there."),
            snapshot=text("Snapshot of the run; null if it made none."),
            rows="Rows of the table; null if the step failed or makes no table.",
            bytes=count("Size of its Parquet files.", nullable=True),
            status=one_of("made, kept because it was current, or failed.", ("made", "kept", "failed")),
        ),
        reads=("problem_history",),
        unique=False,
        written_with="problem_history",
    ),
]

# In an order in which they can be made.
TABLES: dict[str, Table] = {table.name: table for table in [*_FIGURES, *_PUBLISHED]}
