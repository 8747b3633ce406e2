"""The columns of every table, declared with `columns`: the one place where a column is defined.

The schema check on every write, the column descriptions in the Dagster UI, the data dictionary in `docs/tables.md` and
the warehouse are generated from these schemas. The tables themselves are declared in `tables`.
"""

import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from touchstone.columns import Bool, Float64, Int64, Schema, String
from touchstone.vocabulary import (
    CI_METHODS,
    CLASSES,
    COST_CI_METHODS,
    DEFAULT_SUITE,
    DEFAULT_TIER,
    DIFFERENCE_CI_METHODS,
    FILE_STATUSES,
    MAX_AMOUNT,
    MAX_ID_LENGTH,
    MEAN_CI_METHODS,
    MEDIAN_CI_METHODS,
    RATIO_CI_METHODS,
    SHARE_CI_METHODS,
    STATUSES,
    TESTS,
    VALIDATED,
    VERDICTS,
)

if TYPE_CHECKING:
    import polars as pl


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


def _id(description: str, *, key: bool = True, unique: bool = True) -> String:
    # The rule that a key is unique costs seconds at millions of rows, so the per-attempt tables mark
    # their key only as such (unique=False) and rely on ingest, which refuses duplicates.
    return String(
        primary_key=key and unique,
        min_length=1,
        # In characters, as ingest counts; `max_length` counts bytes, of which other scripts have several.
        check=lambda column: column.str.len_chars() <= MAX_ID_LENGTH,
        key=key,
        description=description,
    )


def _nullable_key(description: str) -> String:
    return String(nullable=True, key=True, description=description)


def _text(description: str) -> String:
    return String(nullable=True, description=description)


def _count(description: str, *, nullable: bool = False) -> Int64:
    return Int64(nullable=nullable, min=0, description=description)


def _share(description: str) -> Float64:
    return Float64(nullable=True, min=0, max=1, description=description)


def _amount(description: str) -> Float64:
    return Float64(nullable=True, min=0, description=description)


def _attempt_amount(description: str) -> Float64:
    # The limit keeps sums over attempts from overflowing; see `inference.exact`.
    return Float64(nullable=True, min=0, max=MAX_AMOUNT, description=description)


def _ci_method(of: str, methods: tuple[str, ...] = MEAN_CI_METHODS) -> String:
    described = "; ".join(f"`{method}`: {CI_METHODS[method]}" for method in methods)
    return String(
        nullable=True,
        check=lambda column: column.is_in(methods),
        description=f"Method of the confidence interval of {of}. {described}.",
    )


class Settings(Schema):
    key = _id("Configuration key, sections separated by dots, such as `scoring.composite.missing`.")
    value = String(description="Value as JSON.")


class Problems(Schema):
    oid = _id("Unique identifier of the problem.")
    filename = String(nullable=True, description="The file being repaired.")
    suite = String(description=f"Suite of the problem; `{DEFAULT_SUITE}` if not given.")
    cluster = _text("Group of problems that are not independent of each other; null if the problem is independent.")
    only_tier = _text("The only tier that the problem counts for; null if it counts for every tier.")


class ProblemSlices(Schema):
    slice = Int64(min=0, key=True, description="Place of the slice in the configuration, from 0.")
    column = String(key=True, description="Column of the problems by which figures are split.")
    position = _count("Place of the value among those of the slice, from 0.")
    value = String(description="The problem's value: as in the column, or its bin, or its side of the cutoff.")
    cutoff_model = _nullable_key("Model whose cutoff decides the value; null if it is the same for every model.")
    oid = _id("Problem.", unique=False)


class Attempts(Schema):
    model = _id("Model that wrote the fix, from the file name.", unique=False)
    tier = _id(f"Tier of the attempt; `{DEFAULT_TIER}` if not given.", unique=False)
    oid = _id("Problem that the fix is for.", unique=False)
    iteration_id = _id("Identifier of the attempt at the problem, as text.", unique=False)
    run_id = _text("Run that the attempt belongs to; null if the file has no runs.")
    suite = String(description="Suite of the attempt if given, otherwise that of its problem.")
    fix_sha = _text("SHA-256 of the text of the fix; null if the file has none.")
    passed = Bool(nullable=True, description="Outcome stated or implied by the file; null if it has none.")
    compiled = Bool(nullable=True, description="Whether the fixed code compiled.")
    tests_passed = _count("Tests that passed.", nullable=True)
    tests_failed = _count("Tests that failed.", nullable=True)
    lint_warnings = _count("Lint warnings.", nullable=True)
    weighted_score = Float64(nullable=True, description="The judge's weighted score, as given.")
    structure_score = _share("Share of the expected functions and types that the code has, as given.")
    classification = _text("Outcome class, as given but in lower case; known classes: " + ", ".join(CLASSES) + ".")
    input_tokens = _count("Prompt tokens.", nullable=True)
    output_tokens = _count("Completion tokens.", nullable=True)
    cache_read_tokens = _count("Tokens read from the prompt cache.", nullable=True)
    cache_write_tokens = _count("Tokens written to the prompt cache.", nullable=True)
    cost_usd = _attempt_amount("Cost of the attempt in US dollars, as given.")
    duration_seconds = _attempt_amount("Duration of the attempt in seconds, as given.")
    latency_ms = _attempt_amount("Latency of the model's response in milliseconds.")


class Quarantine(Schema):
    source_file = String(description="File that contains the row.")
    line = _count("Line at which the row starts, counted from 1; null if the whole file was refused.", nullable=True)
    kind = String(description="Category of the error: ragged, bad_boolean, unknown_oid, …")
    reason = String(description="Error message.")
    raw = _text("The row as in the file, truncated to 2,000 characters.")


class Sources(Schema):
    source_file = String(key=True, description="File or folder in `fixes_dir`, by name.")
    model = String(
        nullable=True,
        key=True,
        description="Model whose attempts the file contains; null if it contains none or was not read.",
    )
    status = String(
        check=lambda column: column.is_in(FILE_STATUSES),
        description="How the file was handled: " + ", ".join(FILE_STATUSES) + "; see docs/inputs.md.",
    )
    reason = _text("Why the file was not evaluated; null if it was.")
    notes = _text("What to know about the rows: which score was read, what was left out or counted elsewhere.")
    format = _text("File format: native, or the name of another tool's; see docs/inputs.md.")
    sha256 = _text("SHA-256 of the file; null if it was not read.")
    rows = _count("Rows in the file; null if it was not read.", nullable=True)
    accepted = _count("Rows that became attempts or problems.", nullable=True)
    quarantined = _count("Rows that were quarantined.", nullable=True)


class ReportedFigures(Schema):
    source_file = String(description="File that states the figure.")
    model = String(description="Model that the figure is about.")
    suite = _text("Suite or task that the figure is about; null for all of the file.")
    figure = String(description="Name of the figure in the tool that wrote the file.")
    reported = Float64(nullable=True, description="The figure as the file states it; null if it does not.")
    recomputed = Float64(
        nullable=True, description="The figure by the tool's own rule from the rows read; null if they do not suffice."
    )
    note = _text("Why Touchstone's own figure differs on purpose; null if it does not.")


class Outcomes(Schema):
    model = _id("Model that wrote the fix.", unique=False)
    tier = _id("Tier of the attempt.", unique=False)
    oid = _id("Problem that the fix is for.", unique=False)
    iteration_id = _id("Identifier of the attempt at the problem.", unique=False)
    status = String(
        check=lambda column: column.is_in(STATUSES),
        description="How validation ended: " + ", ".join(STATUSES) + ".",
    )
    passed = Bool(
        nullable=True, description="The verdict; null if undecided, which counts neither as passed nor as failed."
    )
    validator = _text("Validator that decided; `recorded` if the outcome was in the input.")
    validator_version = _text("Version of the validator.")
    fidelity = _text("How thorough the validation was: syntax, static, static+schema, full, or recorded.")
    sandbox = _text(
        "Sandbox that the validator ran in: bubblewrap, landlock, or `none` if `validation.unsandboxed` is set."
    )
    cached = Bool(description="Whether the verdict came from the outcome cache.")
    duration_seconds = _amount("Duration of the validation in seconds.")
    diagnostics = _text("Reason for the verdict, and the validator's messages.")
    changed_judge_files = _text(
        "Files on the judge's side that the fix changed, one a line; put back unless `validation.test_edits` allows it."
    )
    flagged_files = _text("Changed files that tests and source both reach, one a line; they count as source.")
    applied = Bool(nullable=True, description="Whether there was a fix that could be applied.")
    fixed = Bool(nullable=True, description="Whether the target errors are gone, even if new ones were introduced.")
    introduced_block = _count("New errors and warnings in the target block.", nullable=True)
    introduced_file = _count("New errors and warnings in the file.", nullable=True)
    introduced_module = _count("New errors and warnings anywhere.", nullable=True)
    introduced_errors = _count("New errors anywhere.", nullable=True)
    block_errors = _count(
        "Errors in the target block after applying the fix; null if the problem has no line numbers.",
        nullable=True,
    )
    module_errors = _count("Errors anywhere after applying the fix.", nullable=True)
    consistent = Bool(nullable=True, description="Whether the validator's exit code agrees with its report.")
    compiled = Bool(nullable=True, description="Whether the fixed code compiled.")
    tests_passed = _count("Tests that passed.", nullable=True)
    tests_failed = _count("Tests that failed.", nullable=True)
    controlled_tests = _count(
        "Passed tests that failed, as they must, once their expectations were made false; null without such controls.",
        nullable=True,
    )
    lint_warnings = _count("Lint warnings.", nullable=True)


class Baselines(Schema):
    oid = _id("Problem.")
    validator = _text("Validator of the problem's fixes; null if there is none.")
    fidelity = _text("How thorough the validation is: syntax, static, static+schema or full.")
    baseline_status = String(
        check=lambda column: column.is_in(STATUSES),
        description="How the validation of the unmodified problem ended.",
    )
    baseline_errors = _count("Errors in the unmodified problem.", nullable=True)
    fails_as_recorded = Bool(
        nullable=True, description="Whether the unmodified problem shows its recorded error; null if undecided."
    )
    reference_status = String(
        nullable=True,
        check=lambda column: column.is_in(STATUSES),
        description="How the validation of the reference fix ended; null if there is none.",
    )
    diagnostics = _text("The validator's messages on the unmodified problem.")


class ProblemFiles(Schema):
    oid = _id("Problem.")
    path = String(description="The file that the problem is about, relative to the problem's files.")
    bytes = _count("Size of the file.")
    text = _text("The file as it was validated; null if it is empty or longer than `validation.kept_characters`.")


class ValidatedFixes(Schema):
    model = _id("Model that wrote the fix.", unique=False)
    tier = _id("Tier of the attempt.", unique=False)
    oid = _id("Problem that the fix is for.", unique=False)
    iteration_id = _id("Identifier of the attempt at the problem.", unique=False)
    diff = _text("Unified diff of the applied fix; null if it is longer than `validation.kept_characters`.")
    diff_characters = _count("Length of the diff.")
    tests = _text(
        "Results by test as JSON: a list of `test`, `status` (passed, failed, skipped or no result) and `message`, "
        "those that did not pass first; null if no test ran."
    )
    tests_left_out = _count("Tests beyond the first 2,000, which are left out.")


class ValidatorNoise(Schema):
    oid = _id("Problem.", unique=False)
    validated = String(
        key=True,
        check=lambda column: column.is_in(VALIDATED),
        description="What was validated several times: `baseline` (the unmodified problem), `reference` or `fix`.",
    )
    model = _nullable_key("Model that wrote the fix; null for baseline and reference.")
    tier = _nullable_key("Tier of the fix; null for baseline and reference.")
    iteration_id = _nullable_key("Attempt that the fix is from; null for baseline and reference.")
    test = _nullable_key("Test; null for the verdict as a whole, which all tests decide, flaky or not.")
    runs = _count("Validations with a result, including the one that counts; for a test, those that ran the tests.")
    passes = _count("Those that passed.")
    flaky = Bool(description="Whether some runs on the same files passed and others did not.")
    ci_low = _share("Lower end of the confidence interval (Wilson) of the probability of passing.")
    ci_high = _share("Upper end of the confidence interval of the probability of passing.")
    excluded = Bool(description="Whether the test is left out of the verdicts on this problem's fixes.")


class ProblemPassAtK(Schema):
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    oid = _id("Problem.", unique=False)
    k = Int64(min=1, key=True, description="Number of attempts k.")
    n = _count("Decided attempts.")
    c = _count("Passed attempts.")
    pass_at_k = _share("Probability that at least one of k attempts passes (pass@k); null if n < k.")
    pass_hat_k = _share("Probability that all of k attempts pass (pass^k); null if n < k.")


class PassAtK(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    k = Int64(primary_key=True, min=1, key=True, description="Number of attempts k.")
    pass_at_k = _share("Mean pass@k over the eligible problems; null if there are none.")
    ci_low = _share("Lower end of the confidence interval of pass_at_k.")
    ci_high = _share("Upper end of the confidence interval of pass_at_k.")
    ci_method = _ci_method("pass_at_k")
    ci_units = _count("Independent units behind the interval: problems, each cluster counted once.")
    pass_at_k_all = _share("The same mean with unattempted problems counted as 0.")
    pass_hat_k = _share("Mean pass^k over the eligible problems.")
    problems = _count("Problems in the benchmark.")
    attempted = _count("Problems with at least one decided attempt.")
    eligible = _count("Problems with at least k decided attempts.")


class Slices(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    column = _id("Column of the problems by which figures are split.")
    value = String(
        primary_key=True,
        key=True,
        description="Value of the column, its bin, or its side of the cutoff; among them `(missing)` and `no date`.",
    )
    problems = _count("Problems of the tier with this value.")
    attempted = _count("Those with at least one decided attempt.")
    attempts = _count("Decided attempts at them.")
    pass_at_1 = _share("Mean pass@1 over the attempted problems; null if there are none.")
    ci_low = _share("Lower end of the confidence interval of pass_at_1.")
    ci_high = _share("Upper end of the confidence interval of pass_at_1.")
    ci_method = _ci_method("pass_at_1")
    ci_units = _count("Independent units behind the interval: problems, each cluster counted once.")


def _figure(description: str, *, infinite: bool = False) -> Float64:
    return Float64(nullable=True, allow_inf=infinite, description=description)


def _cost_of_pass(description: str) -> Float64:
    return Float64(nullable=True, min=0, allow_inf=True, description=description)


def _letter() -> String:
    return String(nullable=True, description="Letter grade of the composite score; null if there is no score.")


class AttemptScores(Schema):
    model = _id("Model that wrote the fix.", unique=False)
    tier = _id("Tier of the attempt.", unique=False)
    oid = _id("Problem that the fix is for.", unique=False)
    iteration_id = _id("Identifier of the attempt at the problem.", unique=False)
    run_id = _text("Run that the attempt belongs to; null if the file has no runs.")
    suite = String(description="Suite of the attempt.")
    classification = _text("Outcome class in the file; pass, timeout or fail if a validator decided otherwise.")
    pass_rate = _share("1 if the attempt passed, 0 if it failed, null if undecided.")
    impl_rate = _share("The judge's weighted score, clamped to [0, 1].")
    cost_usd = _attempt_amount("Cost as given, otherwise tokens times the model's price; null if neither is known.")
    priced_as = _text("Name of the price applied to the tokens; null if the cost is given or unknown.")
    duration_seconds = _attempt_amount("Duration in seconds.")
    latency_ms = _attempt_amount("Latency of the model's response in milliseconds.")
    total_tokens = _count("Total tokens of the attempt.", nullable=True)
    cost_of_pass = _cost_of_pass("Cost divided by pass rate; infinity if the attempt failed.")
    composite_score = _share("Weighted mean of pass_rate and impl_rate.")
    code_score = _share(
        "Sum of compilation_score, test_score, lint_score and structure_score, weighted by `scoring.code`; 0 if the "
        "code did not compile, null if structure counts and is unknown."
    )
    compilation_score = _share("1 if the code compiled, 0 if not, null if unknown.")
    test_score = _share("Share of tests that passed; 0 if there are none.")
    lint_score = _share("1 minus `scoring.code.per_warning` for each lint warning, at least 0; 1 if not measured.")
    structure_score = _share("Share of the expected functions and types that the code has; null if not given.")
    ran_tests = Bool(description="Whether any test ran.")
    lint_measured = Bool(description="Whether lint warnings were counted.")
    accuracy = _share("1 for the class pass, 0 for any other; the pass rate if there is no class.")
    grade = _letter()


def _sum(of: str) -> Float64:
    return Float64(nullable=True, min=0, description=f"Sum of {of} over the attempts that have one.")


def _terms(of: str) -> Int64:
    return _count(f"Number of attempts with {of}.")


class ProblemScores(Schema):
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    run_id = _nullable_key("Run; null if the file has no runs.")
    suite = _id("Suite of the attempts.", unique=False)
    oid = _id("Problem.", unique=False)
    attempts = _count("Attempts.")
    decided = _count("Decided attempts.")
    passes = Float64(min=0, description="Passed attempts.")
    scored = _count("Attempts with an outcome and a judge's score.")
    accuracy_sum = _sum("accuracy")
    accuracy_count = _terms("an accuracy")
    compilation_sum = _sum("compilation_score")
    compilation_count = _terms("a known compilation")
    test_sum = _sum("test_score, if it is known whether the code compiled,")
    test_count = _terms("a test_score and a known compilation")
    tested_sum = _sum("test_score, if any test ran,")
    tested_count = _terms("tests that ran")
    lint_sum = _sum("lint_score, if measured,")
    lint_count = _terms("a measured lint_score")
    code_sum = _sum("code_score")
    code_count = _terms("a code_score")
    code_best = _share("Best code_score.")
    cost_sum = _sum("cost_usd")
    cost_count = _terms("a known cost")
    decided_cost_sum = _sum("cost_usd, if decided,")
    decided_cost_count = _terms("an outcome and a known cost")
    priced_as = _text("Name of the price applied to the tokens; null if costs are given or unknown.")
    tokens_sum = _count("Total tokens of all attempts; null if too large.", nullable=True)
    tokens_count = _terms("known tokens")
    latency_sum = _sum("latency_ms")
    latency_count = _terms("a known latency")


class TierStatistics(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    metric = _id("Metric that is summarized.")
    median = _cost_of_pass("Median.")
    mean = _cost_of_pass("Arithmetic mean; infinite if any value is.")
    mode = _cost_of_pass("Most frequent value after rounding to 6 decimals; the smallest if there are several.")
    min = _cost_of_pass("Smallest value.")
    max = _cost_of_pass("Largest value.")
    std_dev = _amount("Population standard deviation; null if any value is infinite.")
    variance = _amount("Population variance; null if any value is infinite.")
    count = _count("Number of values that are not null.")


class Tiers(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    attempts = _count("Decided attempts.")
    scored = _count(
        "Decided attempts with a judge's score; composite, grade and uplift use only these unless missing counts as 0."
    )
    composite_median = _share("Median composite score.")
    ci_low = _share("Lower end of the confidence interval of composite_median; 0 with fewer than six units.")
    ci_high = _share("Upper end of the confidence interval of composite_median; 1 with fewer than six units.")
    ci_method = _ci_method("composite_median", MEDIAN_CI_METHODS)
    ci_units = _count("Independent units behind the interval: problems, each cluster counted once.")
    grade = _letter()
    grade_low = _text("Letter grade of ci_low.")
    grade_high = _text("Letter grade of ci_high.")
    pass_rate = _share("Mean pass rate over attempts.")
    pass_rate_ci_low = _share("Lower end of the confidence interval of pass_rate.")
    pass_rate_ci_high = _share("Upper end of the confidence interval of pass_rate.")
    pass_rate_ci_method = _ci_method("pass_rate")
    cost_of_pass = _cost_of_pass(
        "Mean cost divided by pass rate of decided attempts; infinity if none passes, null if a cost is missing."
    )
    cost_of_pass_ci_low = _amount("Lower end of the confidence interval of cost_of_pass.")
    cost_of_pass_ci_high = _cost_of_pass("Upper end of the confidence interval of cost_of_pass; may be infinity.")
    cost_of_pass_ci_method = _ci_method("cost_of_pass", COST_CI_METHODS)
    uplift = _figure("(composite_median - baseline) / baseline; null if the baseline tier's median is missing or 0.")
    uplift_ci_low = _figure(
        "Lower end of the confidence interval of uplift; null for the baseline tier or below six units on either side.",
        infinite=True,
    )
    uplift_ci_high = _figure(
        "Upper end of the confidence interval of uplift; infinity if the baseline's median may be 0.", infinite=True
    )
    uplift_ci_method = _ci_method("uplift", RATIO_CI_METHODS)
    cliffs_delta = _figure(
        "Cliff's delta of the tier's composite scores against the baseline tier's: the share of pairs of attempts in "
        "which the tier's scores higher, minus that in which it scores lower; null if either has no score."
    )
    uplift_reason = _text("Why uplift or its confidence interval is null.")


class CrossTier(Schema):
    model = _id("Model.")
    tiers = _count("Tiers of the model.")
    attempts = _count("Decided attempts in all tiers.")
    scored = _count("Decided attempts with a judge's score.")
    pass_rate_variance = _amount("Population variance of the tiers' median pass rates.")
    pass_rate_variance_of_means = _amount("Population variance of the tiers' mean pass rates.")
    cost_variance = _amount("Population variance of the tiers' median costs.")
    cost_variance_of_means = _amount("Population variance of the tiers' mean costs.")
    score_variance = _amount("Population variance of the tiers' median composite scores.")
    score_variance_of_means = _amount("Population variance of the tiers' mean composite scores.")
    cost_delta = _amount("Highest minus lowest median cost of a tier.")
    frontier_cost_of_pass = _amount("Lowest finite cost of pass of a tier; null if there is none.")
    frontier_tier = _text("Tier with that cost of pass.")


class SuiteScores(Schema):
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    run_id = String(nullable=True, key=True, description="Run; null if the file has no runs.")
    suite = _id("Suite.", unique=False)
    cases = _count("Attempts in the suite.")
    decided = _count("Attempts with a class or an outcome.")
    passed = _count("Attempts with accuracy 1.")
    score = _share("passed / cases; an attempt without a class or an outcome counts as not passed.")
    ci_low = _share("Lower end of the confidence interval of score.")
    ci_high = _share("Upper end of the confidence interval of score.")
    ci_method = _ci_method("score")
    ci_units = _count("Independent units behind the interval: problems, each cluster counted once.")
    decided_score = _share("passed / decided: mean accuracy of the decided attempts.")
    decided_score_ci_low = _share("Lower end of the confidence interval of decided_score.")
    decided_score_ci_high = _share("Upper end of the confidence interval of decided_score.")
    decided_score_ci_method = _ci_method("decided_score")
    weighted_score = _share("Mean credit by class (`scoring.suites.class_credit`); equal to score if not configured.")
    latency_score = _share("Mean latency score; null if no latency limit is configured.")
    suite_weight = _amount("Weight of the suite in the overall weighted score.")
    class_pass = _count("Attempts of class pass.")
    class_fail = _count("Attempts of class fail.")
    class_error = _count("Attempts of class error.")
    class_refusal = _count("Attempts of class refusal.")
    class_wrong_format = _count("Attempts of class wrong_format.")
    class_policy_violation = _count("Attempts of class policy_violation.")
    class_crash = _count("Attempts of class crash.")
    class_timeout = _count("Attempts of class timeout.")
    class_other = _count("Attempts of any other class; they score 0.")
    other_classes = _text("The other classes with their counts, such as `hallucination 4`; null if there are none.")
    class_none = _count("Attempts without a class.")


class RunScores(Schema):
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    run_id = String(nullable=True, key=True, description="Run; null if the file has no runs.")
    suites = _count("Suites with at least one decided attempt.")
    cases = _count("Attempts.")
    decided = _count("Attempts with a class or an outcome.")
    passed = _count("Attempts with accuracy 1.")
    overall_score = _share("Unweighted mean of the suites' scores.")
    ci_low = _share("Lower end of the confidence interval of overall_score: suites fixed, problems sampled.")
    ci_high = _share("Upper end of the confidence interval of overall_score.")
    ci_method = _ci_method("overall_score")
    ci_units = _count("Independent units behind both intervals: problems, each cluster counted once.")
    overall_decided_score = _share("Unweighted mean of the suites' decided scores.")
    overall_weighted_score = _share("Mean of the suites' weighted scores, weighted by suite_weight.")
    pass_rate = _share("passed / decided, pooled over all suites.")
    pass_rate_ci_low = _share("Lower end of the confidence interval of pass_rate.")
    pass_rate_ci_high = _share("Upper end of the confidence interval of pass_rate.")
    pass_rate_ci_method = _ci_method("pass_rate")


class ModelStatistics(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    attempts = _count("Attempts.")
    ci_low = _share("Lower end of the confidence interval of pass@k for the smallest k.")
    ci_high = _share("Upper end of the confidence interval of pass@k for the smallest k.")
    ci_method = _ci_method("pass@k for the smallest k")
    ci_units = _count("Independent units behind that interval: problems, each cluster counted once.")
    avg_compilation_rate = _share("Share of attempts that compile, among those for which it is known.")
    avg_compilation_rate_ci_low = _share("Lower end of the confidence interval of avg_compilation_rate.")
    avg_compilation_rate_ci_high = _share("Upper end of the confidence interval of avg_compilation_rate.")
    avg_compilation_rate_ci_method = _ci_method("avg_compilation_rate")
    avg_compilation_rate_ci_units = _count("Independent units behind the interval of avg_compilation_rate.")
    avg_test_pass_rate = _share("Mean share of tests passed over attempts in which tests ran.")
    avg_test_pass_rate_ci_low = _share("Lower end of the confidence interval of avg_test_pass_rate.")
    avg_test_pass_rate_ci_high = _share("Upper end of the confidence interval of avg_test_pass_rate.")
    avg_test_pass_rate_ci_method = _ci_method("avg_test_pass_rate")
    avg_test_pass_rate_ci_units = _count("Independent units behind the interval of avg_test_pass_rate.")
    avg_test_pass_rate_all = _share("The same over all attempts with a known compilation result; 0 if no test ran.")
    tested_attempts = _count("Attempts in which tests ran.")
    avg_lint_score = _share("Mean lint score over attempts with a lint measurement.")
    avg_lint_score_ci_low = _share("Lower end of the confidence interval of avg_lint_score.")
    avg_lint_score_ci_high = _share("Upper end of the confidence interval of avg_lint_score.")
    avg_lint_score_ci_method = _ci_method("avg_lint_score")
    avg_lint_score_ci_units = _count("Independent units behind the interval of avg_lint_score.")
    avg_code_score = _share("Mean code score.")
    avg_code_score_ci_low = _share("Lower end of the confidence interval of avg_code_score.")
    avg_code_score_ci_high = _share("Upper end of the confidence interval of avg_code_score.")
    avg_code_score_ci_method = _ci_method("avg_code_score")
    avg_code_score_ci_units = _count("Independent units behind the interval of avg_code_score.")
    total_cost_usd = _amount("Total cost; null if any cost is unknown.")
    priced_as = _text("Name of the price applied to tokens; null if no cost was computed from tokens.")
    unpriced_attempts = _count("Attempts without a cost.")
    total_tokens = _count("Total tokens of the attempts that report them.", nullable=True)
    avg_latency_ms = _amount("Mean latency of the model's responses in milliseconds.")


class ProblemStatistics(Schema):
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    oid = _id("Problem.", unique=False)
    n = _count("Decided attempts.")
    c = _count("Passed attempts.")
    avg_score = _share("Mean code score over the attempts.")
    best_score = _share("Best code score of the attempts.")
    cost_of_pass = _cost_of_pass(
        "Mean cost divided by pass rate of decided attempts; infinity if none passes, null if a cost is unknown."
    )
    solved = Bool(description="Whether any attempt passed.")
    models_solving = _count("Number of models that solve the problem in any tier.")
    only_solver = Bool(description="Whether this model is the only one that solves the problem.")


class ProblemFrontier(Schema):
    oid = _id("Problem.")
    mean_pass_rate = _share(
        "Mean over models and tiers of the pass rate of decided attempts; lowest for the hardest problems."
    )
    models_solving = _count("Number of models that solve the problem.")
    cost_of_pass = _amount("Lowest finite cost of pass; null if no model passes at a known cost.")
    model = _text("Model with that cost of pass.")
    tier = _text("Tier with that cost of pass.")


class VarianceSplit(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    problems = _count("Problems with at least one decided attempt.")
    repeated = _count("Problems with at least two decided attempts, which separate sampling noise from difficulty.")
    units = _count("Independent units: problems, each cluster counted once.")
    attempts = _count("Decided attempts.")
    samples = _amount("Attempts per problem: the harmonic mean, which determines the variance.")
    pass_at_1 = _share("Mean over problems of the pass rate of decided attempts.")
    standard_error = _amount("Standard error of pass_at_1.")
    degrees_of_freedom = _amount("Degrees of freedom of standard_error: units - 1, or fewer if units differ in size.")
    variance_of_mean = _figure("Square of standard_error: from_problems + from_samples.")
    from_problems = _figure("Part due to the choice of problems; an unbiased estimate, so it may be negative.")
    from_samples = _figure("Part due to the randomness of attempts; null if no problem is repeated.")
    share_from_problems = _share("from_problems / variance_of_mean, clamped to [0, 1].")
    problem_variance = _figure("Variance of the true pass rates between problems: unbiased estimate.")
    sampling_variance = _amount("Variance of one attempt at a problem: unbiased estimate of the mean of p (1 - p).")


class NextSamples(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    plan = _id("Plan for the next run: `now` (no change), samples x2, samples x4, problems x2, problems x4.")
    problems = _count("Problems under the plan.")
    samples = _amount("Attempts per problem under the plan.")
    extra_attempts = _count("Attempts in addition to the current ones.", nullable=True)
    extra_cost_usd = _amount("Cost of the extra attempts at the mean cost so far; null if any cost is unknown.")
    expected_width = _amount(
        "Expected width of the confidence interval of pass_at_1; null if the variance parts are unknown."
    )
    width_saved = _figure("Reduction of expected_width compared with `now`.")
    advised = Bool(
        nullable=True,
        description="Whether this is the best plan with as many attempts; null for `now` or if the width is unknown.",
    )


class ValidatorVariance(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    problems = _count("Problems with fixes that were validated several times.")
    fixes = _count("Fixes that were validated several times.")
    flaky = _count("Fixes of these whose verdict was not always the same.")
    validator_variance = _amount(
        "Variance of the verdict when the same fix is validated again: unbiased estimate, mean over problems."
    )
    sampling_variance = _amount("Variance of one attempt at a problem, as in `variance_split`.")
    share_from_validator = _share(
        "validator_variance / sampling_variance, at most 1; null if that is 0 or unknown, or flaky tests are excluded."
    )
    ci_low = _share("Lower end of the confidence interval of share_from_validator.")
    ci_high = _share("Upper end of the confidence interval of share_from_validator.")
    ci_method = _ci_method("share_from_validator", SHARE_CI_METHODS)
    ci_units = _count("Independent units behind validator_variance: problems, each cluster counted once.")


class Reliability(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    problems = _count("Problems with at least one decided attempt.")
    repeated = _count("Problems with at least two decided attempts; only these can flip.")
    always = _count("Repeated problems that every attempt solves.")
    never = _count("Repeated problems that no attempt solves.")
    flipping = _count("Repeated problems that some attempts solve and others do not.")
    flip_rate = _share("flipping / repeated.")
    flip_rate_ci_low = _share("Lower end of the confidence interval of flip_rate.")
    flip_rate_ci_high = _share("Upper end of the confidence interval of flip_rate.")
    flip_rate_ci_method = _ci_method("flip_rate")
    consistency = _share(
        "Probability that two attempts at a problem have the same outcome: mean over repeated problems."
    )
    consistency_ci_low = _share("Lower end of the confidence interval of consistency.")
    consistency_ci_high = _share("Upper end of the confidence interval of consistency.")
    consistency_ci_method = _ci_method("consistency")
    ci_units = _count("Independent units behind both intervals.")


class ReliabilityCurve(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    k = Int64(primary_key=True, min=1, key=True, description="Number of attempts k.")
    pass_at_k = _share("Probability that at least one of k attempts passes: mean over eligible problems.")
    pass_hat_k = _share("Probability that all of k attempts pass: mean over eligible problems.")
    ci_low = _share("Lower end of the confidence interval of pass_hat_k.")
    ci_high = _share("Upper end of the confidence interval of pass_hat_k.")
    ci_method = _ci_method("pass_hat_k")
    ci_units = _count("Independent units behind the interval.")
    eligible = _count("Problems with at least k decided attempts.")


class Economics(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    problems = _count("Problems with a decided attempt.")
    pass_rate = _share("Mean pass rate over decided attempts.")
    cost_per_attempt = _amount("Mean cost of a decided attempt; null if any cost is unknown.")
    cost_of_pass = _cost_of_pass("cost_per_attempt / pass_rate, as in tiers; infinity if nothing passes.")
    ci_low = _amount("Lower end of the confidence interval of cost_of_pass.")
    ci_high = _cost_of_pass("Upper end of the confidence interval of cost_of_pass; may be infinity.")
    ci_method = _ci_method("cost_of_pass", COST_CI_METHODS)
    ci_units = _count("Independent units behind the interval.")
    on_frontier = Bool(
        nullable=True, description="Whether it has the lowest cost of pass; null if its cost is unknown."
    )
    frontier_probability = _share(
        "Share of bootstrap replicates over problems, rescaled for few units, in which it has the lowest cost of pass; "
        "only models and tiers with at least 6 units take part."
    )
    pareto = Bool(
        nullable=True, description="Whether it is Pareto optimal in pass rate and cost; null if its cost is unknown."
    )
    pareto_probability = _share(
        "Share of bootstrap replicates over problems, rescaled for few units, in which it is Pareto optimal; only "
        "models and tiers with at least 6 units take part."
    )


class Routing(Schema):
    suite = _id("Suite.")
    problems = _count("Problems of the suite that the chosen model and tier attempted.")
    model = _text("Model with the lowest cost of pass in the suite; null if no model passes at a known cost.")
    tier = _text("Its tier.")
    pass_rate = _share("Its mean pass rate over decided attempts in the suite.")
    cost_of_pass = _amount("Its mean cost of a decided attempt in the suite divided by pass_rate.")
    probability = _share(
        "Share of bootstrap replicates over the suite's problems, rescaled for few units, in which it is the cheapest; "
        "only models and tiers with at least 6 units take part."
    )
    second_model = _text("The second cheapest model; null if there is none.")
    second_tier = _text("Its tier.")
    second_cost_of_pass = _amount("Its cost of pass.")


class RoutingPolicies(Schema):
    policy = _id(
        "single: the cheapest model for all problems; suite: the cheapest per suite; problem: the cheapest per problem."
    )
    problems = _count("Problems that every model with known costs attempted at least twice.")
    pass_rate = _share("Mean over problems of the chosen model's pass rate, on attempts not used to choose it.")
    cost_per_attempt = _amount("Mean over problems of the chosen model's cost per attempt, on the same attempts.")
    cost_of_pass = _cost_of_pass("cost_per_attempt / pass_rate, with equal weight for every problem.")
    saving = _figure("Share of the single model's cost of pass that the policy saves; negative if it costs more.")
    ci_low = _figure("Lower end of the confidence interval of saving.")
    ci_high = _figure("Upper end of the confidence interval of saving.")
    ci_method = _ci_method("saving", RATIO_CI_METHODS)
    ci_units = _count("Independent units behind the interval.")


def _verdict(of: str) -> String:
    return String(
        check=lambda column: column.is_in(VERDICTS),
        description=f"Verdict on {of}: " + ", ".join(VERDICTS) + ".",
    )


def _test() -> String:
    return String(
        nullable=True,
        check=lambda column: column.is_in(TESTS),
        description="Test of the null hypothesis of no difference: mcnemar (one attempt each), permutation (of signs), "
        "or, for unequal attempts, permutation-hypergeometric: the larger p-value of permuting signs and of permuting "
        "attempts within problems.",
    )


def _difference(description: str) -> Float64:
    return Float64(nullable=True, min=-1, max=1, description=description)


class ModelComparison(Schema):
    kind = _id("What is compared: models of one tier, or tiers of one model.")
    model_a = _id("Model of side a.")
    tier_a = _id("Tier of side a.")
    model_b = _id("Model of side b.")
    tier_b = _id("Tier of side b.")
    problems = _count("Problems decided on both sides.")
    only_a = _count("Problems decided on side a only.")
    only_b = _count("Problems decided on side b only.")
    rate_a = _share("pass@1 of side a on the shared problems.")
    rate_b = _share("pass@1 of side b on the shared problems.")
    difference = _difference("Mean over shared problems of b minus a.")
    ci_low = _difference("Lower end of the confidence interval of difference, not adjusted for multiple comparisons.")
    ci_high = _difference("Upper end of the confidence interval of difference.")
    ci_method = _ci_method("difference", DIFFERENCE_CI_METHODS)
    ci_units = _count("Independent units behind the intervals and the test.")
    test = _test()
    p_value = _share("Two-sided p-value of the test, not adjusted.")
    p_adjusted = _share("p_value adjusted for multiple comparisons.")
    correction = String(description="Adjustment method: holm, or benjamini-yekutieli (false discovery rate).")
    pairs = _count("Number of comparisons adjusted for.")
    adjusted_ci_low = _difference("Lower end of the confidence interval of difference, adjusted for these comparisons.")
    adjusted_ci_high = _difference("Upper end of the adjusted confidence interval of difference.")
    adjusted_ci_method = _ci_method("difference", DIFFERENCE_CI_METHODS)
    adjusted_confidence = _share("Confidence level of the adjusted interval considered alone.")
    wins = _count("Shared problems on which b passes more often.")
    losses = _count("Shared problems on which b passes less often.")
    ties = _count("Shared problems on which both pass equally often.")
    effect_size = _figure("difference divided by the standard deviation of the differences per problem.")
    minimum_detectable_effect = _share(
        "Smallest true difference detectable with the configured power at the adjusted significance level."
    )
    units_needed = Int64(
        nullable=True, description="Units required for any difference to be significant; null if there are enough."
    )
    verdict = _verdict("b")
    sentence = String(description="The result as a sentence.")


class BaselineVerdicts(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    baseline = String(description="Snapshot that the run is compared with.")
    problems = _count("Problems decided on both sides.")
    only_baseline = _count("Problems decided in the baseline only.")
    only_current = _count("Problems decided in this run only.")
    rate_baseline = _share("pass@1 of the baseline on the shared problems.")
    rate_baseline_ci_low = _share("Lower end of the confidence interval of rate_baseline.")
    rate_baseline_ci_high = _share("Upper end of the confidence interval of rate_baseline.")
    rate_current = _share("pass@1 of this run on the shared problems.")
    rate_current_ci_low = _share("Lower end of the confidence interval of rate_current.")
    rate_current_ci_high = _share("Upper end of the confidence interval of rate_current.")
    difference = _difference("Mean over shared problems of this run minus the baseline.")
    ci_low = _difference("Lower end of the confidence interval of difference, not adjusted for multiple comparisons.")
    ci_high = _difference("Upper end of the confidence interval of difference.")
    ci_method = _ci_method("difference", DIFFERENCE_CI_METHODS)
    ci_units = _count("Independent units behind the intervals and the test.")
    test = _test()
    p_value = _share("Two-sided p-value of the test, not adjusted.")
    p_adjusted = _share("p_value adjusted for the comparisons of all models and tiers.")
    correction = String(description="Adjustment method: holm, or benjamini-yekutieli (false discovery rate).")
    pairs = _count("Number of comparisons adjusted for.")
    adjusted_ci_low = _difference("Lower end of the confidence interval of difference, adjusted for these comparisons.")
    adjusted_ci_high = _difference("Upper end of the adjusted confidence interval of difference.")
    adjusted_ci_method = _ci_method("difference", DIFFERENCE_CI_METHODS)
    adjusted_confidence = _share("Confidence level of the adjusted interval considered alone.")
    wins = _count("Shared problems on which this run passes more often.")
    losses = _count("Shared problems on which this run passes less often.")
    ties = _count("Shared problems on which both pass equally often.")
    effect_size = _figure("difference divided by the standard deviation of the differences per problem.")
    minimum_detectable_effect = _share(
        "Smallest true difference detectable with the configured power at the adjusted significance level."
    )
    units_needed = Int64(
        nullable=True, description="Units required for any difference to be significant; null if there are enough."
    )
    verdict = _verdict("this run")
    sentence = String(description="The result as a sentence.")


class Regressions(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    oid = _id("Problem.")
    baseline_score = _share("Score of the case in the pinned baseline.")
    current_score = _share("Score of the case in this run.")
    delta = _difference("current_score minus baseline_score.")
    category = _text("What changed: compilation, tests, lint, outcome, or the score only.")
    kind = String(description="regression, improvement, new, removed, lost or unscored; unchanged cases are omitted.")
    basis = _text("Score that was compared: code_score, composite_score or pass_rate.")
    fallback = Bool(description="Whether the pass rate was compared because attempts lack the configured score.")
    chance_of_regression = _share("Probability of a regression if the attempts are assigned to the two runs at random.")


class RegressionCounts(Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    regressions = _count("Cases whose score dropped by more than the threshold.")
    expected_by_chance = _figure("Regressions expected if no case has changed: the sum of chance_of_regression.")
    improvements = _count("Cases whose score rose by more than the threshold.")
    unchanged = _count("Cases whose score changed by no more than the threshold.")
    new = _count("Cases that are not in the baseline.")
    removed = _count("Cases of the baseline that are not in this run.")
    lost = _count("Cases scored in the baseline that have no decided attempt in this run.")
    unscored = _count("Cases without a score in the baseline.")
    compared_by_pass_rate = _count("Cases compared by pass rate because attempts lack the configured score.")


class History(Schema):
    snapshot = _id("Snapshot that the figure is from.", unique=False)
    made_at = String(description="When the run finished, in UTC.")
    table = _id("Table that the figure is from.", unique=False)
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    item = String(key=True, description="Rest of the row's key: k, suite, run or metric; empty if there is none.")
    figure = _id("Column of that table, such as pass_at_k, composite_median or ci_low.", unique=False)
    value = Float64(nullable=True, allow_inf=True, description="Value of the figure.")


class ProblemHistory(Schema):
    snapshot = _id("Snapshot that the figures are from.", unique=False)
    made_at = String(description="When the run finished, in UTC.")
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    oid = _id("Problem.", unique=False)
    n = _count("Decided attempts.")
    c = _count("Passed attempts.")
    pass_rate = _share("c / n; null if no attempt was decided.")
    avg_score = _share("Mean code score over the attempts.")
    best_score = _share("Best code score of the attempts.")


class RunLog(Schema):
    run_id = _id("Run; the same id as in Dagster, if it ran there.", unique=False)
    step = Int64(min=1, key=True, description="Number of the step in its run.")
    snapshot = _text("Snapshot of the run; null if it made none.")
    stage = _id("Table that the step brought up to date, or `report` or `warehouse`.", key=False)
    started = String(description="When the step began, in UTC.")
    seconds = Float64(min=0, description="How long it took.")
    cpu_seconds = Float64(min=0, description="Processor time of the run and of the workers that ended in the step.")
    rows = _count("Rows of the table; null if the step failed or makes no table.", nullable=True)
    bytes = _count("Size of its Parquet files.", nullable=True)
    status = String(
        check=lambda column: column.is_in(("made", "kept", "failed")),
        description="made, kept because it was current, or failed.",
    )
    message = _text("Why it failed.")


@dataclass(frozen=True)
class Table:
    """One table of the output folder.

    `made_by` is `module:function`, called with a frame of each table in `reads` and the value of each key in
    `settings`, in that order, or `module:Stage.method` for a method of one of the run's stages. The method of a table
    with `step` takes no frames and writes the table itself. `made_with` names the table whose step also writes this
    one. `code` names packages that are used without being imported, such as programs that run inside a sandbox.
    `in_snapshots` is false for tables that contain the texts of fixes and for those about other snapshots.

    `per_model` tables have a part per model. With `by_model` there is one part for all models, sorted by model, but the
    rows of a model depend only on that model's rows of what is read, so that only changed models are made again. The
    function of a table with `reuses_previous` also takes `previous` and `unchanged`; see `storage.model_rows`. That of
    one with `keeps_results` takes `kept`; see `storage.kept_results`.
    """

    name: str
    schema: type[Schema]
    grain: str
    group: str
    made_by: str
    reads: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    extras: str | None = None
    per_model: bool = False
    by_model: bool = False
    reuses_previous: bool = False
    keeps_results: bool = False
    step: bool = False
    made_with: str | None = None
    code: tuple[str, ...] = ()
    in_snapshots: bool = True

    @property
    def has_models(self) -> bool:
        """Whether it is known which model each of its rows was made for."""
        return self.per_model or self.by_model or self.made_with is not None

    @cached_property
    def key(self) -> list[str]:
        """The columns that identify a row."""
        return [name for name, column in self.schema.columns().items() if column.key]

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """One line per column."""
        return {name: column.description for name, column in self.schema.columns().items()}

    @cached_property
    def dtypes(self) -> "pl.Schema":
        """Column types, in order."""
        import polars as pl

        return pl.Schema({name: column.dtype for name, column in self.schema.columns().items()})

    @cached_property
    def rules(self) -> "dict[str, pl.Expr]":
        """What must hold in every row, by name. Where it is null, it holds."""
        import polars as pl

        columns = self.schema.columns()
        rules = {
            f"{name}|{rule}": holds
            for name, column in columns.items()
            for rule, holds in column.rules(pl.col(name)).items()
        }
        key = [name for name, column in columns.items() if column.primary_key]
        return {"primary_key": pl.struct(key).is_unique(), **rules} if key else rules

    @cached_property
    def violation_counts(self) -> "list[pl.Expr]":
        """For each rule the number of rows in which it does not hold, under its name."""
        return [(~holds).sum().alias(rule) for rule, holds in self.rules.items()]

    @property
    def module(self) -> str:
        """The module that defines `made_by`."""
        return self.made_by.partition(":")[0]

    @property
    def description(self) -> str:
        """What it holds, in one line: the first line of its function's docstring."""
        line = docstring_line(self.made_by).removeprefix(f"The table `{self.name}`: ")
        return line if line.startswith("pass") else line[:1].upper() + line[1:]


def resolve(reference: str) -> Any:
    """The object that `module:name` or `module:Class.method` refers to.

    >>> resolve("math:sqrt")(4)
    2.0
    """
    module, _, path = reference.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def docstring_line(reference: str) -> str:
    """The first line of a function's docstring, read from the source: importing everything that makes a table is slow.

    >>> docstring_line("touchstone.contracts:Table.module")
    'The module that defines `made_by`.'
    """
    module, _, path = reference.partition(":")
    owner, _, name = path.rpartition(".")
    source = _source(module)
    start = source.index(f"\nclass {owner}") if owner else 0
    found = re.compile(rf'^ *def {name}\(.*?:\n +"""(.*?)(?:"""|$)', re.MULTILINE | re.DOTALL).search(source, start)
    return found[1].splitlines()[0] if found else ""


@cache
def _source(module: str) -> str:
    return Path(__file__).parents[1].joinpath(*module.split(".")).with_suffix(".py").read_text()


def conform(frame: "pl.LazyFrame", table: Table) -> "pl.LazyFrame":
    """The frame in the contract's column order and types, with permitted extra columns after them.

    >>> import polars as pl
    >>> table = Table("problems", Problems, "problem", "ingest", "module:function")
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
    """The number of rows that violate each rule of the contract; empty if there are none."""
    counts = frame.select(table.violation_counts).collect()
    return {rule: rows for rule, rows in counts.row(0, named=True).items() if rows}
