"""Every field once: its type, its description and what must hold in it. A table lists its fields in `tables`.

The schema check on every write, the columns in the Dagster UI, the data dictionary and the warehouse follow from here.
Nothing imports Polars before a table is read or written: Dagster's definitions load without it. The few rules that are
used are written as dataframely writes them, which a test holds equal to dataframely's own; importing dataframely costs
a short run more than all its checks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from touchstone.vocabulary import (
    AGREEMENTS,
    AUDITED,
    CI_METHODS,
    CLASSES,
    COST_CI_METHODS,
    CUTOFF_FINDINGS,
    DIFFERENCE_CI_METHODS,
    DIMENSIONS,
    GATE_ANSWERS,
    MAX_AMOUNT,
    MAX_ID_LENGTH,
    MEAN_CI_METHODS,
    MEDIAN_CI_METHODS,
    MODE_CHANGES,
    RATIO_CI_METHODS,
    RESOURCES,
    RULINGS,
    SEVERITIES,
    STATUSES,
    TESTS,
    VALIDATED,
    VERDICTS,
)

if TYPE_CHECKING:
    import polars as pl

# The tests of values, by the name of dataframely's argument.
_TESTS: "dict[str, Callable[[pl.Expr, Any], pl.Expr]]" = {
    "check": lambda values, holds: holds(values),
    "min": lambda values, least: values >= least,
    "max": lambda values, most: values <= most,
    "min_length": lambda values, least: values.str.len_bytes() >= least,
}


@dataclass(frozen=True)
class Field:
    """A column: its type by Polars' name, a line that describes it, and what must hold in it.

    `bounds` are arguments of dataframely's column of that type: `min`, `max`, `min_length` and `check`.
    """

    type_name: str
    description: str
    nullable: bool = True
    infinite: bool = False
    bounds: Mapping[str, Any] = field(default_factory=dict)

    def rules(self, values: "pl.Expr") -> "dict[str, pl.Expr]":
        """Conditions on every value, by name. A null condition holds."""
        rules = {} if self.nullable else {"nullability": values.is_not_null()}
        rules |= {name: _TESTS[name](values, bound) for name, bound in self.bounds.items()}
        if self.type_name == "Float64":
            rules |= ({} if self.infinite else {"inf": ~values.is_infinite()}) | {"nan": ~values.is_nan()}
        return rules

    @property
    def dtype(self) -> "pl.DataType":
        """The type in Polars."""
        import polars as pl

        made: pl.DataType = getattr(pl, self.type_name)()
        return made


def identifier(description: str) -> Field:
    """Text that identifies something: never empty, and of bounded length."""
    # In characters, as ingest counts; dataframely's `max_length` counts bytes, of which other scripts have several.
    bounds = {"min_length": 1, "check": lambda values: values.str.len_chars() <= MAX_ID_LENGTH}
    return Field("String", description, nullable=False, bounds=bounds)


def text(description: str, *, nullable: bool = True) -> Field:
    """Any text."""
    return Field("String", description, nullable)


def one_of(description: str, words: tuple[str, ...], *, nullable: bool = False) -> Field:
    """One of a few words."""
    return Field("String", description, nullable, bounds={"check": lambda values: values.is_in(words)})


def flag(description: str, *, nullable: bool = True) -> Field:
    """True or false."""
    return Field("Boolean", description, nullable)


def count(description: str, *, nullable: bool = False, least: int = 0) -> Field:
    """A whole number from `least` on."""
    return Field("Int64", description, nullable, bounds={"min": least})


def figure(description: str, *, infinite: bool = False) -> Field:
    """Any number; never NaN."""
    return Field("Float64", description, infinite=infinite)


def amount(description: str, *, nullable: bool = True, infinite: bool = False) -> Field:
    """A number that is not negative."""
    return Field("Float64", description, nullable, infinite, {"min": 0})


def attempt_amount(description: str) -> Field:
    """An amount of one attempt. The limit keeps sums over attempts from overflowing; see `inference.exact`."""
    return Field("Float64", description, bounds={"min": 0, "max": MAX_AMOUNT})


def share(description: str) -> Field:
    """A number from 0 to 1."""
    return Field("Float64", description, bounds={"min": 0, "max": 1})


def difference(description: str) -> Field:
    """A difference of two shares."""
    return Field("Float64", description, bounds={"min": -1, "max": 1})


def ci_method(of: str, methods: tuple[str, ...] = MEAN_CI_METHODS) -> Field:
    """The method of a confidence interval."""
    described = "; ".join(f"`{method}`: {CI_METHODS[method]}" for method in methods)
    return one_of(f"Method of the confidence interval of {of}. {described}.", methods, nullable=True)


def interval(of: str, prefix: str = "") -> dict[str, Field]:
    """The fields of the confidence interval of a share, as `ci_low` or, with a prefix, `<prefix>_ci_low`, and so on."""
    name = f"{prefix}_ci" if prefix else "ci"
    return {
        f"{name}_low": share(f"Lower end of the confidence interval of {of}."),
        f"{name}_high": share(f"Upper end of the confidence interval of {of}."),
        f"{name}_method": ci_method(of),
    }


def _own_interval(figure: str) -> dict[str, Field]:
    units = count(f"Independent units behind the interval of {figure}.")
    return interval(figure, figure) | {f"{figure}_ci_units": units}


def _sum(of: str) -> Field:
    return amount(f"Sum of {of} over the attempts that have one.")


def _terms(of: str) -> Field:
    return count(f"Number of attempts with {of}.")


# In the order in which tables first have them. A table describes a field that means something else there.
FIELDS: dict[str, Field] = {
    # ingest
    "oid": identifier("Problem."),
    "filename": text("The file being repaired."),
    "suite": identifier("Suite."),
    "cluster": text("Group of problems that are not independent of each other; null if the problem is independent."),
    "only_tier": text("The only tier that the problem counts for; null if it counts for every tier."),
    "slice": count("Place of the slice in the configuration, from 0."),
    "column": text("Column of the problems by which figures are split.", nullable=False),
    "position": count("Place of the value among those of the slice, from 0."),
    "value": text("The problem's value: as in the column, or its bin, or its side of the cutoff.", nullable=False),
    "cutoff_model": text("Model whose cutoff decides the value; null if it is the same for every model."),
    "model": identifier("Model."),
    "tier": identifier("Tier."),
    "iteration_id": identifier("Identifier of the attempt at the problem, as text."),
    "run_id": text("Run; null if the file has no runs."),
    "fix_sha": text("SHA-256 of the text of the fix; null if the file has none."),
    "passed": count("Attempts with accuracy 1."),
    "measured": flag("The outcome before any ruling; null if undecided."),
    "ruling": one_of("What a person ruled; null if nobody did.", RULINGS, nullable=True),
    "at": text("When the ruling was made, in UTC."),
    "by": text("Who made it."),
    "was": text("The outcome that the person saw: passed, failed or undecided."),
    "attempt_sha": text("Hash of the attempt that the ruling is about; null if it is about whatever the attempt is."),
    "why_not": text("Why the ruling is not applied; null if it is."),
    "compiled": flag("Whether the fixed code compiled."),
    "tests_passed": count("Tests that passed.", nullable=True),
    "tests_failed": count("Tests that failed.", nullable=True),
    "lint_warnings": count("Lint warnings.", nullable=True),
    "weighted_score": figure("The judge's weighted score, as given."),
    "structure_score": share("Share of the expected functions and types that the code has; null if not given."),
    "classification": text(f"Outcome class, as given but in lower case; known classes: {', '.join(CLASSES)}."),
    "input_tokens": count("Prompt tokens.", nullable=True),
    "output_tokens": count("Completion tokens.", nullable=True),
    "cache_read_tokens": count("Tokens read from the prompt cache.", nullable=True),
    "cache_write_tokens": count("Tokens written to the prompt cache.", nullable=True),
    "cost_usd": attempt_amount("Cost of the attempt in US dollars, as given."),
    "duration_seconds": attempt_amount("Duration of the attempt in seconds, as given."),
    "latency_ms": attempt_amount("Latency of the model's response in milliseconds."),
    "source_file": text("File that contains the row.", nullable=False),
    "line": count("Line at which the row starts, counted from 1; null if the whole file was refused.", nullable=True),
    "kind": text("Category of the error: ragged, bad_boolean, unknown_oid, …", nullable=False),
    "reason": text("Error message.", nullable=False),
    "raw": text("The row as in the file, truncated to 2,000 characters."),
    "status": one_of(f"How validation ended: {', '.join(STATUSES)}.", STATUSES),
    "notes": text("Notes on the rows: which score was read, what was left out or counted elsewhere."),
    "format": text("File format: native, or the name of another tool's; see docs/inputs.md."),
    "sha256": text("SHA-256 of the file; null if it was not read."),
    "rows": count("Rows in the file; null if it was not read.", nullable=True),
    "accepted": count("Rows that became attempts or problems.", nullable=True),
    "quarantined": count("Rows that were quarantined.", nullable=True),
    "figure": text("Name of the figure in the tool that wrote the file.", nullable=False),
    "reported": figure("The figure as the file states it; null if it does not."),
    "recomputed": figure("The figure by the tool's own rule from the rows read; null if they do not suffice."),
    "note": text("Why Touchstone's own figure differs on purpose; null if it does not."),
    # validation
    "validated": one_of(
        "What was validated several times: `baseline` (the unmodified problem), `reference` or `fix`.", VALIDATED
    ),
    "test": one_of(
        "Test of the null hypothesis of no difference: mcnemar (one attempt each), permutation "
        "(of signs), or, for unequal attempts, permutation-hypergeometric: the larger p-value of"
        " permuting signs and of permuting attempts within problems.",
        TESTS,
        nullable=True,
    ),
    "runs": count("Validations with a result, including the one that counts; for a test, those that ran the tests."),
    "passes": count("Those that passed."),
    "flaky": flag("Whether some runs on the same files passed and others did not.", nullable=False),
    "excluded": flag("Whether the test is left out of the verdicts on this problem's fixes.", nullable=False),
    "validator": text("Validator of the problem's fixes; null if there is none."),
    "fidelity": text("How thorough the validation was: syntax, static, static+schema, full, or recorded."),
    "baseline_status": one_of("How the validation of the unmodified problem ended.", STATUSES),
    "files_sha": text("Digest of the unmodified files of the problem, tests included; null if they were not found."),
    "baseline_errors": count("Errors in the unmodified problem.", nullable=True),
    "fails_as_recorded": flag("Whether the unmodified problem shows its recorded error; null if undecided."),
    "reference_status": one_of(
        "How the validation of the reference fix ended; null if there is none.", STATUSES, nullable=True
    ),
    "diagnostics": text("The validator's messages on the unmodified problem."),
    "validator_version": text("Version of the validator."),
    "sandbox": text(
        "Sandbox that the validator ran in: bubblewrap, landlock, or `none` if `validation.unsandboxed` is set."
    ),
    "cached": flag("Whether the verdict came from the outcome cache.", nullable=False),
    "changed_judge_files": text(
        "Files on the judge's side that the fix changed, one a line; put back unless `validation.test_edits` allows it."
    ),
    "flagged_files": text("Changed files that tests and source both reach, one a line; they count as source."),
    "applied": flag("Whether there was a fix that could be applied."),
    "fixed": flag("Whether the target errors are gone, even if new ones were introduced."),
    "introduced_block": count("New errors and warnings in the target block.", nullable=True),
    "introduced_file": count("New errors and warnings in the file.", nullable=True),
    "introduced_module": count("New errors and warnings anywhere.", nullable=True),
    "introduced_errors": count("New errors anywhere.", nullable=True),
    "block_errors": count(
        "Errors in the target block after applying the fix; null if the problem has no line numbers.", nullable=True
    ),
    "module_errors": count("Errors anywhere after applying the fix.", nullable=True),
    "consistent": flag("Whether the validator's exit code agrees with its report."),
    "controlled_tests": count(
        "Passed tests that failed, as they must, once their expectations were made false; null without such controls.",
        nullable=True,
    ),
    "path": text("The file that the problem is about, relative to the problem's files.", nullable=False),
    "bytes": count("Size of the file."),
    "text": text("The file as it was validated; null if it is empty or longer than `validation.kept_characters`."),
    "reference_diff": text("Unified diff of the reference fix; null if there is none, or it is longer than that."),
    "diff": text("Unified diff of the applied fix; null if it is longer than `validation.kept_characters`."),
    "diff_characters": count("Length of the diff."),
    "tests": text(
        "Results by test as JSON: a list of `test`, `status` (passed, failed, skipped or no result) and `message`, "
        "those that did not pass first; null if no test ran."
    ),
    "tests_left_out": count("Tests beyond the first 2,000, which are left out."),
    # metrics
    "k": count("Number of attempts k.", least=1),
    "n": count("Decided attempts."),
    "c": count("Passed attempts."),
    "pass_at_k": share("Probability that at least one of k attempts passes (pass@k); null if n < k."),
    "pass_hat_k": share("Probability that all of k attempts pass (pass^k); null if n < k."),
    "ci_units": count("Independent units behind the interval: problems, each cluster counted once."),
    "pass_at_k_all": share("The same mean with unattempted problems counted as 0."),
    "problems": count("Problems with at least one decided attempt."),
    "attempted": count("Problems with at least one decided attempt."),
    "eligible": count("Problems with at least k decided attempts."),
    "attempts": count("Decided attempts."),
    "pass_at_1": share("Mean over problems of the pass rate of decided attempts."),
    # scores
    "key": identifier("Configuration key, sections separated by dots, such as `scoring.composite.missing`."),
    "pass_rate": share("Mean pass rate over decided attempts."),
    "impl_rate": share("The judge's weighted score, clamped to [0, 1]."),
    "attempted_on": text("Day of the attempt in UTC (ISO 8601), by which it is priced; null if the file states none."),
    "priced_as": text("Name of the price applied to the tokens; null if no cost was computed from tokens."),
    "total_tokens": count("Total tokens of the attempt.", nullable=True),
    "cost_of_pass": amount(
        "Mean cost divided by pass rate of decided attempts; infinity if none passes, null if a cost is unknown.",
        infinite=True,
    ),
    "composite_score": share("Weighted mean of pass_rate and impl_rate."),
    "code_score": share(
        "Sum of compilation_score, test_score, lint_score and structure_score, weighted by `scoring.code`; 0 if the "
        "code did not compile, null if structure counts and is unknown."
    ),
    "compilation_score": share("1 if the code compiled, 0 if not, null if unknown."),
    "test_score": share("Share of tests that passed; 0 if there are none."),
    "lint_score": share("1 minus `scoring.code.per_warning` for each lint warning, at least 0; 1 if not measured."),
    "ran_tests": flag("Whether any test ran.", nullable=False),
    "lint_measured": flag("Whether lint warnings were counted.", nullable=False),
    "accuracy": share("1 for the class pass, 0 for any other; the pass rate if there is no class."),
    "grade": text("Letter grade of the composite score; null if there is no score."),
    "decided": count("Attempts with a class or an outcome."),
    "scored": count("Decided attempts with a judge's score."),
    "accuracy_sum": _sum("accuracy"),
    "accuracy_count": _terms("an accuracy"),
    "compilation_sum": _sum("compilation_score"),
    "compilation_count": _terms("a known compilation"),
    "test_sum": _sum("test_score, if it is known whether the code compiled,"),
    "test_count": _terms("a test_score and a known compilation"),
    "tested_sum": _sum("test_score, if any test ran,"),
    "tested_count": _terms("tests that ran"),
    "lint_sum": _sum("lint_score, if measured,"),
    "lint_count": _terms("a measured lint_score"),
    "code_sum": _sum("code_score"),
    "code_count": _terms("a code_score"),
    "code_best": share("Best code_score."),
    "cost_sum": _sum("cost_usd"),
    "cost_count": _terms("a known cost"),
    "decided_cost_sum": _sum("cost_usd, if decided,"),
    "decided_cost_count": _terms("an outcome and a known cost"),
    "tokens_sum": count("Total tokens of all attempts; null if too large.", nullable=True),
    "tokens_count": _terms("known tokens"),
    "latency_sum": _sum("latency_ms"),
    "latency_count": _terms("a known latency"),
    "metric": identifier("Metric that is summarized."),
    "median": amount("Median.", infinite=True),
    "mean": amount("Arithmetic mean; infinite if any value is.", infinite=True),
    "mode": amount(
        "Most frequent value after rounding to 6 decimals; the smallest if there are several.", infinite=True
    ),
    "min": amount("Smallest value.", infinite=True),
    "max": amount("Largest value.", infinite=True),
    "std_dev": amount("Population standard deviation; null if any value is infinite."),
    "variance": amount("Population variance; null if any value is infinite."),
    "count": count("Number of values that are not null."),
    "composite_median": share("Median composite score."),
    "grade_low": text("Letter grade of ci_low."),
    "grade_high": text("Letter grade of ci_high."),
    **_own_interval("pass_rate"),
    **_own_interval("cost_of_pass"),
    "cost_of_pass_ci_method": ci_method("cost_of_pass", COST_CI_METHODS),
    "cost_of_pass_ci_low": amount("Lower end of the confidence interval of cost_of_pass."),
    "cost_of_pass_ci_high": amount(
        "Upper end of the confidence interval of cost_of_pass; may be infinity.", infinite=True
    ),
    "uplift": figure("(composite_median - baseline) / baseline; null if the baseline tier's median is missing or 0."),
    **_own_interval("uplift"),
    "uplift_ci_method": ci_method("uplift", (*RATIO_CI_METHODS, *MEDIAN_CI_METHODS)),
    "uplift_ci_low": figure(
        "Lower end of the confidence interval of uplift; null for the baseline tier or below six units on either side.",
        infinite=True,
    ),
    "uplift_ci_high": figure(
        "Upper end of the confidence interval of uplift; infinity if the baseline's median may be 0.", infinite=True
    ),
    "cliffs_delta": figure(
        "Cliff's delta of the tier's composite scores against the baseline tier's: the share of pairs of attempts in "
        "which the tier's scores higher, minus that in which it scores lower; null if either has no score."
    ),
    "uplift_reason": text("Why uplift or its confidence interval is null."),
    "tiers": count("Tiers of the model."),
    "pass_rate_variance": amount("Population variance of the tiers' median pass rates."),
    "pass_rate_variance_of_means": amount("Population variance of the tiers' mean pass rates."),
    "cost_variance": amount("Population variance of the tiers' median costs."),
    "cost_variance_of_means": amount("Population variance of the tiers' mean costs."),
    "score_variance": amount("Population variance of the tiers' median composite scores."),
    "score_variance_of_means": amount("Population variance of the tiers' mean composite scores."),
    "cost_delta": amount("Highest minus lowest median cost of a tier."),
    "frontier_cost_of_pass": amount("Lowest finite cost of pass of a tier; null if there is none."),
    "frontier_tier": text("Tier with that cost of pass."),
    "cases": count("Attempts."),
    "score": share("passed / cases; an attempt without a class or an outcome counts as not passed."),
    "decided_score": share("passed / decided: mean accuracy of the decided attempts."),
    **_own_interval("decided_score"),
    "latency_score": share("Mean latency score; null if no latency limit is configured."),
    "suite_weight": amount("Weight of the suite in the overall weighted score."),
    **{f"class_{name}": count(f"Attempts of class {name}.") for name in CLASSES},
    "class_other": count("Attempts of any other class; they score 0."),
    "other_classes": text("The other classes with their counts, such as `hallucination 4`; null if there are none."),
    "class_none": count("Attempts without a class."),
    "suites": count("Suites with at least one decided attempt."),
    "overall_score": share("Unweighted mean of the suites' scores."),
    "overall_decided_score": share("Unweighted mean of the suites' decided scores."),
    "overall_weighted_score": share("Mean of the suites' weighted scores, weighted by suite_weight."),
    "avg_compilation_rate": share("Share of attempts that compile, among those for which it is known."),
    **_own_interval("avg_compilation_rate"),
    "avg_test_pass_rate": share("Mean share of tests passed over attempts in which tests ran."),
    **_own_interval("avg_test_pass_rate"),
    "avg_test_pass_rate_all": share("The same over all attempts with a known compilation result; 0 if no test ran."),
    "tested_attempts": count("Attempts in which tests ran."),
    "avg_lint_score": share("Mean lint score over attempts with a lint measurement."),
    **_own_interval("avg_lint_score"),
    "avg_code_score": share("Mean code score."),
    **_own_interval("avg_code_score"),
    "total_cost_usd": amount("Total cost; null if any cost is unknown."),
    "unpriced_attempts": count("Attempts without a cost."),
    "avg_latency_ms": amount("Mean latency of the model's responses in milliseconds."),
    "avg_score": share("Mean code score over the attempts."),
    "best_score": share("Best code score of the attempts."),
    "solved": flag("Whether any attempt passed.", nullable=False),
    "models_solving": count("Number of models that solve the problem in any tier."),
    "only_solver": flag("Whether this model is the only one that solves the problem.", nullable=False),
    "mean_pass_rate": share(
        "Mean over models and tiers of the pass rate of decided attempts; lowest for the hardest problems."
    ),
    # reliability
    "repeated": count(
        "Problems with at least two decided attempts; only these separate sampling noise from difficulty, and can flip."
    ),
    "units": count("Independent units: problems, each cluster counted once."),
    "samples": amount("Attempts per problem: the harmonic mean, which determines the variance."),
    "standard_error": amount("Standard error of pass_at_1."),
    "degrees_of_freedom": amount("Degrees of freedom of standard_error: units - 1, or fewer if units differ in size."),
    "variance_of_mean": figure("Square of standard_error: from_problems + from_samples."),
    "from_problems": figure("Part due to the choice of problems; an unbiased estimate, so it may be negative."),
    "from_samples": figure("Part due to the randomness of attempts; null if no problem is repeated."),
    "share_from_problems": share("from_problems / variance_of_mean, clamped to [0, 1]."),
    "problem_variance": figure("Variance of the true pass rates between problems: unbiased estimate."),
    "sampling_variance": amount("Variance of one attempt at a problem: unbiased estimate of the mean of p (1 - p)."),
    "plan": identifier("Plan for the next run: `now` (no change), samples x2, samples x4, problems x2, problems x4."),
    "extra_attempts": count("Attempts in addition to the current ones.", nullable=True),
    "extra_cost_usd": amount("Cost of the extra attempts at the mean cost so far; null if any cost is unknown."),
    "expected_width": amount(
        "Expected width of the confidence interval of pass_at_1; null if the variance parts are unknown."
    ),
    "width_saved": figure("Reduction of expected_width compared with `now`."),
    "advised": flag("Whether this is the best plan with as many attempts; null for `now` or if the width is unknown."),
    "fixes": count("Fixes that were validated several times."),
    "validator_variance": amount(
        "Variance of the verdict when the same fix is validated again: unbiased estimate, mean over problems."
    ),
    "share_from_validator": share(
        "validator_variance / sampling_variance, at most 1; null if that is 0 or unknown, or flaky tests are excluded."
    ),
    "always": count("Repeated problems that every attempt solves."),
    "never": count("Repeated problems that no attempt solves."),
    "flipping": count("Repeated problems that some attempts solve and others do not."),
    "flip_rate": share("flipping / repeated."),
    **_own_interval("flip_rate"),
    "consistency": share(
        "Probability that two attempts at a problem have the same outcome: mean over repeated problems."
    ),
    **_own_interval("consistency"),
    # economics
    "stated_in": text(
        "What states the price: `configuration`, the name of the price file, or `default`.", nullable=False
    ),
    "valid_from": text("First day on which the price is valid; null if it has no date."),
    "input_price": amount("US dollars per million input tokens.", nullable=False),
    "output_price": amount("US dollars per million output tokens.", nullable=False),
    "cache_read_price": amount("US dollars per million tokens read from the cache; null if not stated."),
    "cache_write_price": amount("US dollars per million tokens written to the cache.", nullable=False),
    "first_date": text("First day of these attempts; null if none has a date."),
    "last_date": text("Last day of these attempts; null if none has a date."),
    "age_days": count("Days from valid_from to last_date; null if either is.", nullable=True),
    "cost_per_attempt": amount("Mean cost of a decided attempt; null if any cost is unknown."),
    "on_frontier": flag("Whether it has the lowest cost of pass; null if its cost is unknown."),
    "frontier_probability": share(
        "Share of bootstrap replicates over problems, rescaled for few units, in which it has the lowest cost of pass;"
        " only models and tiers with at least 6 units take part."
    ),
    "pareto": flag("Whether it is Pareto optimal in pass rate and cost; null if its cost is unknown."),
    "pareto_probability": share(
        "Share of bootstrap replicates over problems, rescaled for few units, in which it is Pareto optimal; only "
        "models and tiers with at least 6 units take part."
    ),
    "probability": share(
        "Share of bootstrap replicates over the suite's problems, rescaled for few units, in which it is the cheapest;"
        " only models and tiers with at least 6 units take part."
    ),
    "resource": one_of(f"What the budget limits: {', '.join(RESOURCES)}.", tuple(RESOURCES)),
    "budget": amount("Budget per problem.", nullable=False),
    "share_solved": share(
        "Share of problems solved within the budget if attempts are tried one after the other until one passes; null if"
        " what a decided attempt used is unknown."
    ),
    "second_model": text("The second cheapest model; null if there is none."),
    "second_tier": text("Its tier."),
    "second_cost_of_pass": amount("Its cost of pass."),
    "policy": identifier(
        "single: the cheapest model for all problems; suite: the cheapest per suite; problem: the cheapest per problem."
    ),
    "saving": figure("Share of the single model's cost of pass that the policy saves; negative if it costs more."),
    # comparison
    "dimension": one_of("In what two sides may differ besides the model.", DIMENSIONS),
    "agreement": one_of(
        "Whether both sides agree in it; unknown if not both of them state it, which is not a difference.", AGREEMENTS
    ),
    "required": flag("Whether they must agree in it (`comparison.require`).", nullable=False),
    "value_a": text("What is known about the baseline, or about most models.", nullable=False),
    "value_b": text("What is known about this run, or about the other models.", nullable=False),
    "planned": text("As planned.", nullable=False),
    "used": text("As done.", nullable=False),
    "as_planned": flag("Whether the two are the same.", nullable=False),
    "setting": identifier("Setting, under the name that it has in the file."),
    "model_a": identifier("Model of side a."),
    "tier_a": identifier("Tier of side a."),
    "model_b": identifier("Model of side b."),
    "tier_b": identifier("Tier of side b."),
    "only_a": count("Problems decided on side a only."),
    "only_b": count("Problems decided on side b only."),
    "rate_a": share("pass@1 of side a on the shared problems."),
    "rate_b": share("pass@1 of side b on the shared problems."),
    "difference": difference("Mean over shared problems of b minus a."),
    "p_value": share("Two-sided p-value of the test, not adjusted."),
    "p_adjusted": share("p_value adjusted for multiple comparisons."),
    "look": count("Which run since the baseline this is; null without a budget of looks.", nullable=True),
    "looks": count("Looks that the budget covers; null without one.", nullable=True),
    "level": share("p_adjusted up to this is `better` or `worse`: the part of comparison.alpha for this look."),
    "correction": text("Adjustment method: holm, or benjamini-yekutieli (false discovery rate).", nullable=False),
    "pairs": count("Number of comparisons adjusted for."),
    "adjusted_ci_low": difference(
        "Lower end of the confidence interval of difference, adjusted for these comparisons."
    ),
    "adjusted_ci_high": difference("Upper end of the adjusted confidence interval of difference."),
    "adjusted_ci_method": ci_method("difference", DIFFERENCE_CI_METHODS),
    "adjusted_confidence": share("Confidence level of the adjusted interval considered alone."),
    "wins": count("Shared problems on which b passes more often."),
    "losses": count("Shared problems on which b passes less often."),
    "ties": count("Shared problems on which both pass equally often."),
    "fell": count("Shared problems on which b passes less often beyond chance: Fisher's exact test, p ≤ 0.01."),
    "rose": count("Shared problems on which b passes more often beyond chance, likewise."),
    "p_changed": share(
        "p-value of so many fallen (or risen) problems if none changed; null if no problem has enough attempts."
    ),
    "decided_by": text("Test that found a difference: of the mean, or of the problems that changed; null if none did."),
    "effect_size": figure("difference divided by the standard deviation of the differences per problem."),
    "minimum_detectable_effect": share(
        "Smallest true difference, spread evenly over problems, found with the configured power at the adjusted level."
    ),
    "detectable_on_few": share("The same for a difference on few problems, each of which changes entirely."),
    "units_needed": Field("Int64", "Units required for any difference to be significant; null if there are enough."),
    "verdict": one_of(f"Verdict on b: {', '.join(VERDICTS)}.", VERDICTS),
    "sentence": text("The result as a sentence.", nullable=False),
    "baseline": text("Snapshot that the run is compared with.", nullable=False),
    "only_baseline": count("Problems decided in the baseline only."),
    "only_current": count("Problems decided in this run only."),
    "rate_baseline": share("pass@1 of the baseline on the shared problems."),
    **_own_interval("rate_baseline"),
    "rate_current": share("pass@1 of this run on the shared problems."),
    **_own_interval("rate_current"),
    "baseline_score": share("Score of the case in the pinned baseline."),
    "current_score": share("Score of the case in this run."),
    "delta": difference("current_score minus baseline_score."),
    "category": text("What changed: compilation, tests, lint, outcome, or the score only."),
    "basis": text("Score that was compared: code_score, composite_score or pass_rate."),
    "fallback": flag("Whether the pass rate was compared because attempts lack the configured score.", nullable=False),
    "chance_of_regression": share(
        "Probability of a regression if the attempts are assigned to the two runs at random."
    ),
    "regressions": count("Cases whose score dropped by more than the threshold."),
    "expected_by_chance": figure("Regressions expected if no case has changed: the sum of chance_of_regression."),
    "p_regressions": share("Probability of as many regressions or more if no case has changed."),
    "improvements": count("Cases whose score rose by more than the threshold."),
    "unchanged": count("Cases whose score changed by no more than the threshold."),
    "new": count("Cases that are not in the baseline."),
    "removed": count("Cases of the baseline that are not in this run."),
    "lost": count("Cases scored in the baseline that have no decided attempt in this run."),
    "unscored": count("Cases without a score in the baseline."),
    "compared_by_pass_rate": count("Cases compared by pass rate because attempts lack the configured score."),
    "holds_if_undecided": flag(
        "Whether the verdict concludes the same if undecided attempts passed on one side and failed on the other, both "
        "ways; null if there are none."
    ),
    "gate": identifier("Gate, as configured or given with `--gate`."),
    "low": figure("Lower end of what the figure may be: of its confidence interval, if it has one.", infinite=True),
    "high": figure("Upper end of it.", infinite=True),
    "bound": figure("The number that the figure is compared with."),
    "answer": one_of(
        "held: proven, so every value from low to high holds; failed: none does; inconclusive: some do, or nothing is "
        "known.",
        GATE_ANSWERS,
    ),
    "needed": text("Attempts per problem, or problems, that would settle an inconclusive gate; null if not known."),
    # audit
    "pass_at_k_low": share("pass@k if every undecided attempt had failed: mean over the problems with k attempts."),
    "pass_at_k_high": share("pass@k if every undecided attempt had passed."),
    "pass_at_k_measured": share("pass@k as measured, without the rulings of people."),
    "pass_at_k_unflagged": share(
        "pass@k if every pass with a flag of severity high, and without a ruling, had failed."
    ),
    "transcript_flags": text("What the audit found in the transcript, as JSON; null if there was none to read."),
    "source": one_of("Where the evidence is: the fix, the files it changes, or the transcript.", AUDITED),
    "rule": identifier("Rule that found it; see docs/defending.md."),
    "severity": one_of("high: left out of `pass_at_k_unflagged`; low: worth a look.", SEVERITIES),
    "place": text("File and line, or step of the transcript.", nullable=False),
    "evidence": text("The line, quoted, or what was found there.", nullable=False),
    "fixes_read": count("Passes whose fix was audited."),
    "transcripts_read": count("Passes whose transcript was audited."),
    "not_audited": count("Passes with neither a fix nor a transcript to audit."),
    "flagged": count(
        "Passes with a flag of severity high, on which nobody has ruled; null if none was audited.", nullable=True
    ),
    "worth_a_look": count("Passes with flags of severity low only; null if none was audited.", nullable=True),
    "reading": identifier("How outcomes are read; see docs/defending.md."),
    "verdict_then": one_of("Verdict on b in this reading.", VERDICTS, nullable=True),
    "holds": flag("Whether the verdict concludes the same in this reading."),
    "mutant": count("Number of the mutant among those of the problem.", least=1),
    "change": text("The mistake: what was changed to what.", nullable=False),
    "result": one_of("killed (the tests reject it), survived or undecided.", ("killed", "survived", "undecided")),
    "mutants": count("Mutants of the reference fix that were validated."),
    "killed": count("Mutants that the tests reject."),
    "survived": count("Mutants that pass; some may mean the same as the reference fix, which cannot be decided."),
    "undecided": count("Mutants that could not be validated."),
    "kill_rate": share("killed / (killed + survived); null if no mutant was decided."),
    "weak": flag("Whether more than a third of the decided mutants survive; null if none was decided."),
    "problems_before": count("Attempted problems dated up to the model's cutoff."),
    "problems_after": count("Attempted problems dated later."),
    "pass_at_1_before": share("Mean pass@1 over the problems before the cutoff."),
    "pass_at_1_after": share("Mean pass@1 over the problems after it."),
    "finding": one_of(f"What p_adjusted says: {', '.join(CUTOFF_FINDINGS)}.", CUTOFF_FINDINGS),
    "fixes_passed": count("Fixes that pass and add at least one 5-gram."),
    "fixes_failed": count("Fixes that fail and add at least one 5-gram."),
    "overlap_passed": share(
        "Share of the 5-grams that passing fixes add which the reference fix adds too: mean over problems."
    ),
    "overlap_failed": share("The same of failing fixes."),
    "models": count("Models with a decided attempt at the problem in the tier."),
    "share_of_models": share("Share of these models with a passed attempt."),
    "share_of_attempts": share("Share of the decided attempts that passed."),
    "solved_by_all": flag("Whether every decided attempt of every model passed.", nullable=False),
    "solved_by_none": flag("Whether no attempt of any model passed.", nullable=False),
    "discrimination": difference(
        "Kendall's tau-b between the problem's pass rate per model and the models' pass@1 on all other problems; null "
        "with fewer than six models, and if all have the same pass rate."
    ),
    "models_reranked": count("Models whose rank by pass@1 changes without the problem.", nullable=True),
    "largest_rank_change": count("Largest number of ranks that a model moves without the problem.", nullable=True),
    "largest_pass_at_1_change": share("Largest amount by which the pass@1 of a model changes without the problem."),
    "same_as": text("First problem with the same pass rate of every model; null if this is it, and if all are 0 or 1."),
    "reference_fails": flag("Whether validation rejects the reference fix; null if it was not validated."),
    "baseline_passes": flag("Whether the unmodified problem does not show its error; null if it was not validated."),
    "suspects": count("Those of them that the audit calls suspect."),
    "pass_at_1_without_suspects": share("pass@1 without the suspect problems."),
    "rank": count("Rank of the model in its tier by pass@1; equal models share the best rank.", nullable=True, least=1),
    "rank_without_suspects": count("Rank without the suspect problems.", nullable=True, least=1),
    "changed_verdicts": count("Verdicts on pairs with this model and tier that are other ones without the suspects."),
    "changes": text("The first of these verdicts: the other side, the verdict on this one before and after."),
    # failures
    "fingerprint": identifier("The reason of a failure without what varies between failures of one kind: its mode."),
    "example": text("One such reason as it came, shortened.", nullable=False),
    "baseline_attempts": count("Such failures in the pinned baseline, at cases that both decided."),
    "compared_attempts": count("Such failures in this run at the same cases."),
    "mode_change": one_of(
        "new or gone: none of these attempts of the baseline, or of this run, fails so; grown or shrunk: p_adjusted is "
        "at most alpha; null if it was not compared.",
        MODE_CHANGES,
        nullable=True,
    ),
    "first_snapshot": text("First snapshot with such a failure."),
    "last_snapshot": text("Last snapshot with such a failure."),
    # factors
    "factor": identifier("Column of the attempts."),
    "reference": identifier("First level of the factor, which the level is compared with."),
    "other_factor": text("Second factor of an interaction."),
    "other_level": text("Level of the second factor."),
    "other_reference": text("First level of the second factor."),
    # publish
    "snapshot": identifier("Snapshot that the figures are from."),
    "made_at": text("When the run finished, in UTC.", nullable=False),
    "table": identifier("Table that the figure is from."),
    "item": text("Rest of the row's key: k, suite, run or metric; empty if there is none.", nullable=False),
    "after_gap": flag(
        "Whether runs are missing before: more than twice the usual time without any, or some without it."
    ),
    "same_attempts": flag("Whether the files of the model are those of the snapshot before; null if not known."),
    "pinned_as": text("Names that the snapshot was pinned as; null if none."),
    "previous_snapshot": identifier("Last snapshot at the level before."),
    "previous_made_at": text("When that run finished, in UTC.", nullable=False),
    "before": figure("Mean value of the snapshots at the level before."),
    "after": figure("Mean value of the snapshots at the new level."),
    "nights_before": count("Snapshots at the level before.", least=1),
    "nights_after": count("Snapshots at the new level.", least=1),
    "seen_in": identifier("Snapshot in which the change was first seen."),
    "changed": text("What else changed with that snapshot, by the manifests of both.", nullable=False),
    "step": count("Number of the step in its run.", least=1),
    "stage": identifier("Table that the step brought up to date, or `report` or `warehouse`."),
    "started": text("When the step began, in UTC.", nullable=False),
    "seconds": amount("How long it took.", nullable=False),
    "cpu_seconds": amount("Processor time of the run and of the workers that ended in the step.", nullable=False),
    "message": text("Why it failed."),
}
