"""The columns of every table, as dataframely schemas: the one place where a column is defined.

The schema check on every write, the column descriptions in the Dagster UI, the data dictionary in `docs/tables.md` and
the warehouse are made from these schemas. The tables themselves are declared in `tables`.
"""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import dataframely as dy
import polars as pl

from touchstone.vocabulary import (
    CI_METHODS,
    CLASSES,
    DEFAULT_SUITE,
    DEFAULT_TIER,
    FILE_STATUSES,
    MAX_AMOUNT,
    MAX_ID_LENGTH,
    STATUSES,
    TESTS,
    VERDICTS,
)


def _id(description: str, *, key: bool = True, unique: bool = True) -> dy.String:
    # dataframely's primary-key rule costs seconds at millions of rows, so the per-attempt tables mark
    # their key in metadata only (unique=False) and rely on ingest, which refuses duplicates.
    return dy.String(
        primary_key=key and unique,
        min_length=1,
        max_length=MAX_ID_LENGTH,
        metadata={"key": True} if key else None,
        description=description,
    )


def _text(description: str) -> dy.String:
    return dy.String(nullable=True, description=description)


def _count(description: str, *, nullable: bool = False) -> dy.Int64:
    return dy.Int64(nullable=nullable, min=0, description=description)


def _share(description: str) -> dy.Float64:
    return dy.Float64(nullable=True, min=0, max=1, description=description)


def _amount(description: str) -> dy.Float64:
    return dy.Float64(nullable=True, min=0, description=description)


def _attempt_amount(description: str) -> dy.Float64:
    # The limit is what keeps sums over attempts from overflowing; see `inference.exact`.
    return dy.Float64(nullable=True, min=0, max=MAX_AMOUNT, description=description)


def _ci_method(of: str) -> dy.String:
    return dy.String(
        nullable=True,
        check=lambda column: column.is_in(CI_METHODS),
        description=f"How the interval of {of} was made: " + ", ".join(CI_METHODS) + ".",
    )


class Settings(dy.Schema):
    key = _id("Key of the configuration, with dots between sections, such as `scoring.composite.missing`.")
    value = dy.String(description="Its value as JSON.")


class Problems(dy.Schema):
    oid = _id("Unique identifier of the problem.")
    filename = dy.String(nullable=True, description="The file being repaired.")
    suite = dy.String(description=f"Suite the problem belongs to; `{DEFAULT_SUITE}` where the file names none.")
    cluster = _text("Group of problems that are not independent of each other; null: the problem stands alone.")
    only_tier = _text("Tier that the problem belongs to, as a configuration does; null: every tier attempts it.")


class Attempts(dy.Schema):
    model = _id("Model that wrote the fix, from the file's name.", unique=False)
    tier = _id(f"Tier of the attempt; `{DEFAULT_TIER}` where the file names none.", unique=False)
    oid = _id("Problem that the fix is for.", unique=False)
    iteration_id = _id("Which attempt at the problem this is, as text.", unique=False)
    run_id = _text("Run the attempt belongs to; null unless the file has runs.")
    suite = dy.String(description="Suite: the attempt's own, else its problem's.")
    fix_sha = _text("SHA-256 of the fix's text; null where the file brings none.")
    passed = dy.Bool(nullable=True, description="The outcome that the file states or implies; null: none yet.")
    compiled = dy.Bool(nullable=True, description="Whether the fixed code compiled.")
    tests_passed = _count("Tests that passed.", nullable=True)
    tests_failed = _count("Tests that failed.", nullable=True)
    lint_warnings = _count("Lint warnings.", nullable=True)
    weighted_score = dy.Float64(nullable=True, description="Judge's weighted score, as given.")
    classification = _text("Outcome class, as given and in lower case; known classes: " + ", ".join(CLASSES) + ".")
    input_tokens = _count("Prompt tokens.", nullable=True)
    output_tokens = _count("Completion tokens.", nullable=True)
    cache_read_tokens = _count("Tokens read from the prompt cache.", nullable=True)
    cache_write_tokens = _count("Tokens written to the prompt cache.", nullable=True)
    cost_usd = _attempt_amount("Cost of the attempt in US dollars, as given.")
    duration_seconds = _attempt_amount("Duration of the attempt in seconds, as given.")
    latency_ms = _attempt_amount("Latency of the model's answer in milliseconds.")


class Quarantine(dy.Schema):
    source_file = dy.String(description="File that the row stood in.")
    line = _count("Line at which the row starts, from 1; null where the whole file was refused.", nullable=True)
    kind = dy.String(description="Kind of trouble, to group by: ragged, bad_boolean, unknown_oid, …")
    reason = dy.String(description="What is wrong, in words.")
    raw = _text("The row as it stood in the file, cut at 2,000 characters.")


class Sources(dy.Schema):
    source_file = dy.String(metadata={"key": True}, description="File or folder in `fixes_dir`, by name.")
    model = dy.String(
        nullable=True,
        metadata={"key": True},
        description="Model that the file speaks for; null where it speaks for none, or was not looked into.",
    )
    status = dy.String(
        check=lambda column: column.is_in(FILE_STATUSES),
        description="What became of it: " + ", ".join(FILE_STATUSES) + "; see docs/inputs.md.",
    )
    reason = _text("Why it was not evaluated; null: it was.")
    format = _text("native, forgetest, scylla or failproof.")
    sha256 = _text("SHA-256 of the file's bytes, where they were read.")
    rows = _count("Rows in the file; null where they were not read.", nullable=True)
    accepted = _count("Rows that became attempts or problems.", nullable=True)
    quarantined = _count("Rows that were refused.", nullable=True)


class Outcomes(dy.Schema):
    model = _id("Model that wrote the fix.", unique=False)
    tier = _id("Tier of the attempt.", unique=False)
    oid = _id("Problem that the fix is for.", unique=False)
    iteration_id = _id("Which attempt at the problem this is.", unique=False)
    status = dy.String(
        check=lambda column: column.is_in(STATUSES),
        description="How validation ended: " + ", ".join(STATUSES) + ".",
    )
    passed = dy.Bool(nullable=True, description="The verdict; null: not decided, counted neither way.")
    validator = _text("What decided: `recorded` is the input's own outcome.")
    validator_version = _text("Version of the validator.")
    fidelity = _text("How much the verdict means: syntax, static, static+schema, full, or recorded.")
    sandbox = _text(
        "Sandbox that the validator ran in: bubblewrap, landlock, or `none` where the config says unsandboxed."
    )
    cached = dy.Bool(description="Whether the verdict came from the outcome cache.")
    duration_seconds = _amount("How long validation took.")
    diagnostics = _text("Why, and what the validator said.")
    applied = dy.Bool(nullable=True, description="Whether there was a fix that could be put in place.")
    fixed = dy.Bool(nullable=True, description="Whether the problem's own errors are gone, whatever came instead.")
    introduced_block = _count("New errors and warnings in the block that was to be fixed.", nullable=True)
    introduced_file = _count("New errors and warnings in the file.", nullable=True)
    introduced_module = _count("New errors and warnings anywhere.", nullable=True)
    introduced_errors = _count("New errors anywhere.", nullable=True)
    block_errors = _count(
        "Errors in the block that was to be fixed, with the fix in place; null: the problem has no lines.",
        nullable=True,
    )
    module_errors = _count("Errors anywhere, with the fix in place.", nullable=True)
    consistent = dy.Bool(nullable=True, description="Whether the validator's exit code and its report agree.")
    compiled = dy.Bool(nullable=True, description="Whether the fixed code compiled.")
    tests_passed = _count("Tests that passed.", nullable=True)
    tests_failed = _count("Tests that failed.", nullable=True)
    lint_warnings = _count("Lint warnings.", nullable=True)


class Baselines(dy.Schema):
    oid = _id("Problem.")
    validator = _text("Validator of its fixes; null where there is none.")
    fidelity = _text("How much a verdict means: syntax, static, static+schema or full.")
    baseline_status = dy.String(
        check=lambda column: column.is_in(STATUSES),
        description="How the validation of the unmodified problem ended.",
    )
    baseline_errors = _count("Errors in the unmodified problem.", nullable=True)
    fails_as_recorded = dy.Bool(
        nullable=True, description="Whether the unmodified problem has the error that it is about; null: not decided."
    )
    reference_status = dy.String(
        nullable=True,
        check=lambda column: column.is_in(STATUSES),
        description="How the validation of the reference fix ended; null where there is none.",
    )
    diagnostics = _text("What the validator said of the unmodified problem.")


class ProblemPassAtK(dy.Schema):
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    oid = _id("Problem.", unique=False)
    k = dy.Int64(min=1, metadata={"key": True}, description="Budget of attempts.")
    n = _count("Decided attempts.")
    c = _count("Passed attempts.")
    pass_at_k = _share("Chance that at least one of k attempts passes; null where n < k.")
    pass_hat_k = _share("Chance that all of k attempts pass (pass^k); null where n < k.")


class PassAtK(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    k = dy.Int64(primary_key=True, min=1, metadata={"key": True}, description="Budget of attempts.")
    pass_at_k = _share("Mean over the eligible problems; null where there are none.")
    ci_low = _share("Lower end of the confidence interval of pass_at_k.")
    ci_high = _share("Upper end of the confidence interval of pass_at_k.")
    ci_method = _ci_method("pass_at_k")
    ci_units = _count("Independent units behind the interval: problems, or clusters where problems share one.")
    pass_at_k_all = _share("The same mean with every unattempted problem counted as 0.")
    pass_hat_k = _share("Mean pass^k over the eligible problems.")
    problems = _count("Problems in the benchmark.")
    attempted = _count("Problems with at least one decided attempt.")
    eligible = _count("Problems with at least k decided attempts.")


def _figure(description: str, *, infinite: bool = False) -> dy.Float64:
    return dy.Float64(nullable=True, allow_inf=infinite, description=description)


def _cost_of_pass(description: str) -> dy.Float64:
    return dy.Float64(nullable=True, min=0, allow_inf=True, description=description)


def _letter() -> dy.String:
    return dy.String(nullable=True, description="Letter grade of the composite score; null where there is none.")


class AttemptScores(dy.Schema):
    model = _id("Model that wrote the fix.", unique=False)
    tier = _id("Tier of the attempt.", unique=False)
    oid = _id("Problem that the fix is for.", unique=False)
    iteration_id = _id("Which attempt at the problem this is.", unique=False)
    run_id = _text("Run the attempt belongs to; null unless the file has runs.")
    suite = dy.String(description="Suite of the attempt.")
    classification = _text("Outcome class of the file, or pass, timeout or fail where a validator decided otherwise.")
    pass_rate = _share("1 where it passed, 0 where it failed, null where nobody decided.")
    impl_rate = _share("The judge's weighted score, clamped to [0, 1].")
    cost_usd = _attempt_amount("Cost as given, else tokens times the model's price; null where there is no price.")
    priced_as = _text("Name of the price that the tokens were counted at; null where the cost is given or unknown.")
    duration_seconds = _attempt_amount("Duration in seconds.")
    latency_ms = _attempt_amount("Latency of the model's answer in milliseconds.")
    total_tokens = _count("All tokens of the attempt.", nullable=True)
    cost_of_pass = _cost_of_pass("Cost by pass rate: infinity where it failed.")
    composite_score = _share("Weighted mean of pass_rate and impl_rate.")
    code_score = _share("0 where it does not compile, else the weighted sum of the three parts.")
    compilation_score = _share("1 where it compiled, 0 where not.")
    test_score = _share("Share of tests that pass; 0 where there are none.")
    lint_score = _share("1 less a tenth per lint warning; 1 where not measured.")
    ran_tests = dy.Bool(description="Whether any test ran.")
    lint_measured = dy.Bool(description="Whether lint warnings were counted.")
    accuracy = _share("1 for the class pass, 0 for any other; without a class, the pass rate.")
    grade = _letter()


class TierStatistics(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    metric = _id("Metric that is described.")
    median = _cost_of_pass("Middle value.")
    mean = _cost_of_pass("Arithmetic mean; infinite where a value is.")
    mode = _cost_of_pass("Most frequent value, rounded to 6 places; the smallest of several.")
    min = _cost_of_pass("Smallest value.")
    max = _cost_of_pass("Largest value.")
    std_dev = _amount("Population standard deviation; null where a value is infinite.")
    variance = _amount("Population variance; null where a value is infinite.")
    count = _count("Values that are not null.")


class Tiers(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    attempts = _count("Decided attempts.")
    scored = _count("Those with a judge's score. Composite, grade and uplift are of these, unless missing counts as 0.")
    composite_median = _share("Median composite score.")
    ci_low = _share("Lower end of the confidence interval of composite_median; 0 with less than six units.")
    ci_high = _share("Upper end of the confidence interval of composite_median; 1 with less than six units.")
    ci_method = _ci_method("composite_median")
    ci_units = _count("Independent units behind the interval: problems, or clusters where problems share one.")
    grade = _letter()
    grade_low = _text("Letter grade of ci_low: the grade may be as low as this.")
    grade_high = _text("Letter grade of ci_high: the grade may be as high as this.")
    pass_rate = _share("Mean pass rate over attempts.")
    pass_rate_ci_low = _share("Lower end of the confidence interval of pass_rate.")
    pass_rate_ci_high = _share("Upper end of the confidence interval of pass_rate.")
    pass_rate_ci_method = _ci_method("pass_rate")
    cost_of_pass = _cost_of_pass(
        "Mean cost by mean pass rate of decided attempts: infinity where nothing passes, null where a cost is missing."
    )
    cost_of_pass_ci_low = _amount("Lower end of the confidence interval of cost_of_pass.")
    cost_of_pass_ci_high = _cost_of_pass("Upper end of the interval of cost_of_pass; infinity where none may pass.")
    cost_of_pass_ci_method = _ci_method("cost_of_pass")
    uplift = _figure("(composite_median - baseline) / baseline; null where the baseline is missing or 0.")
    uplift_ci_low = _figure(
        "Lower end of the confidence interval of uplift; null for the baseline itself, and below six units on a side.",
        infinite=True,
    )
    uplift_ci_high = _figure(
        "Upper end of the confidence interval of uplift; infinity where the baseline's median may be 0.", infinite=True
    )
    uplift_ci_method = _ci_method("uplift")
    uplift_reason = _text("Why there is no uplift, or no interval of it.")


class CrossTier(dy.Schema):
    model = _id("Model.")
    tiers = _count("Tiers of the model.")
    attempts = _count("Decided attempts in all tiers.")
    scored = _count("Those with a judge's score.")
    pass_rate_variance = _amount("Population variance of the tiers' median pass rates.")
    pass_rate_variance_of_means = _amount("The same over the tiers' means.")
    cost_variance = _amount("Population variance of the tiers' median costs.")
    cost_variance_of_means = _amount("The same over the tiers' means.")
    score_variance = _amount("Population variance of the tiers' median composite scores.")
    score_variance_of_means = _amount("The same over the tiers' means.")
    cost_delta = _amount("Dearest less cheapest tier by median cost.")
    frontier_cost_of_pass = _amount("Lowest finite cost of pass among the tiers; null where no tier passes.")
    frontier_tier = _text("The tier of that cost of pass.")


class SuiteScores(dy.Schema):
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    run_id = dy.String(nullable=True, metadata={"key": True}, description="Run; null unless the file has runs.")
    suite = _id("Suite.", unique=False)
    cases = _count("Attempts in the suite.")
    decided = _count("Attempts with a class or an outcome.")
    passed = _count("Attempts with accuracy 1.")
    score = _share("Passed by cases: an attempt without a class or outcome counts as not passed.")
    ci_low = _share("Lower end of the confidence interval of score.")
    ci_high = _share("Upper end of the confidence interval of score.")
    ci_method = _ci_method("score")
    ci_units = _count("Independent units behind the interval: problems, or clusters where problems share one.")
    decided_score = _share("Passed by decided: the mean accuracy of the attempts that have one.")
    decided_score_ci_low = _share("Lower end of the confidence interval of decided_score.")
    decided_score_ci_high = _share("Upper end of the confidence interval of decided_score.")
    decided_score_ci_method = _ci_method("decided_score")
    weighted_score = _share("Mean credit by class as configured; equal to score without a configuration.")
    latency_score = _share("Mean latency score; null unless a limit is configured.")
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
    other_classes = _text("Those classes with their counts, such as `hallucination 4`; null where there are none.")
    class_none = _count("Attempts without a class.")


class RunScores(dy.Schema):
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    run_id = dy.String(nullable=True, metadata={"key": True}, description="Run; null unless the file has runs.")
    suites = _count("Suites with at least one decided attempt.")
    cases = _count("Attempts.")
    decided = _count("Attempts with a class or an outcome.")
    passed = _count("Attempts with accuracy 1.")
    overall_score = _share("Plain mean of the suites' scores.")
    ci_low = _share("Lower end of the confidence interval of overall_score, for other problems in the same suites.")
    ci_high = _share("Upper end of the confidence interval of overall_score.")
    ci_method = _ci_method("overall_score")
    ci_units = _count("Independent units behind both intervals: problems, or clusters where problems share one.")
    overall_decided_score = _share("Plain mean of the suites' decided scores.")
    overall_weighted_score = _share("Mean of the suites' weighted scores by their weights.")
    pass_rate = _share("Passed by decided, over all suites together.")
    pass_rate_ci_low = _share("Lower end of the confidence interval of pass_rate.")
    pass_rate_ci_high = _share("Upper end of the confidence interval of pass_rate.")
    pass_rate_ci_method = _ci_method("pass_rate")


class ModelStatistics(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    attempts = _count("Attempts.")
    ci_low = _share("Lower end of the confidence interval of pass@k for the smallest k.")
    ci_high = _share("Upper end of the confidence interval of pass@k for the smallest k.")
    ci_method = _ci_method("pass@k for the smallest k")
    ci_units = _count("Independent units behind that interval: problems, or clusters where problems share one.")
    avg_compilation_rate = _share("Share of attempts that compile, where that is known.")
    avg_compilation_rate_ci_low = _share("Lower end of the confidence interval of avg_compilation_rate.")
    avg_compilation_rate_ci_high = _share("Upper end of the confidence interval of avg_compilation_rate.")
    avg_compilation_rate_ci_method = _ci_method("avg_compilation_rate")
    avg_compilation_rate_ci_units = _count("Independent units behind the interval of avg_compilation_rate.")
    avg_test_pass_rate = _share("Mean share of tests passed, over attempts in which tests ran.")
    avg_test_pass_rate_ci_low = _share("Lower end of the confidence interval of avg_test_pass_rate.")
    avg_test_pass_rate_ci_high = _share("Upper end of the confidence interval of avg_test_pass_rate.")
    avg_test_pass_rate_ci_method = _ci_method("avg_test_pass_rate")
    avg_test_pass_rate_ci_units = _count("Independent units behind the interval of avg_test_pass_rate.")
    avg_test_pass_rate_all = _share("The same over all attempts with a known compilation; 0 where no test ran.")
    tested_attempts = _count("Attempts in which tests ran.")
    avg_lint_score = _share("Mean lint score, over attempts where lint was measured.")
    avg_lint_score_ci_low = _share("Lower end of the confidence interval of avg_lint_score.")
    avg_lint_score_ci_high = _share("Upper end of the confidence interval of avg_lint_score.")
    avg_lint_score_ci_method = _ci_method("avg_lint_score")
    avg_lint_score_ci_units = _count("Independent units behind the interval of avg_lint_score.")
    avg_code_score = _share("Mean code score.")
    avg_code_score_ci_low = _share("Lower end of the confidence interval of avg_code_score.")
    avg_code_score_ci_high = _share("Upper end of the confidence interval of avg_code_score.")
    avg_code_score_ci_method = _ci_method("avg_code_score")
    avg_code_score_ci_units = _count("Independent units behind the interval of avg_code_score.")
    total_cost_usd = _amount("Sum of costs; null where one is unknown.")
    priced_as = _text("Name of the price that tokens were counted at; null where no cost comes from tokens.")
    unpriced_attempts = _count("Attempts without a cost.")
    total_tokens = _count("Sum of tokens, where given.", nullable=True)
    avg_latency_ms = _amount("Mean latency of the model's answers.")


class ProblemStatistics(dy.Schema):
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    oid = _id("Problem.", unique=False)
    n = _count("Decided attempts.")
    c = _count("Passed attempts.")
    avg_score = _share("Mean code score over the attempts.")
    best_score = _share("Best code score of the attempts.")
    cost_of_pass = _cost_of_pass(
        "Mean cost by pass rate of decided attempts: infinity where none passes, null where a cost is unknown."
    )
    solved = dy.Bool(description="Whether any attempt passed.")
    models_solving = _count("How many models solve the problem in some tier.")
    only_solver = dy.Bool(description="Whether this model solves it and no other does.")


class ProblemFrontier(dy.Schema):
    oid = _id("Problem.")
    mean_pass_rate = _share(
        "Mean over models and tiers of passed by decided attempts: the hardest problems are lowest."
    )
    models_solving = _count("How many models solve it.")
    cost_of_pass = _amount("Lowest finite cost of pass; null where nobody passes at a known cost.")
    model = _text("The model of that cost.")
    tier = _text("The tier of that cost.")


class VarianceSplit(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    problems = _count("Problems with at least one decided attempt.")
    repeated = _count("Problems with at least two, which tell luck from difficulty.")
    units = _count("Independent units: problems, or clusters where problems share one.")
    attempts = _count("Decided attempts.")
    samples = _amount("Attempts per problem: the harmonic mean, which is what counts for the variance.")
    pass_at_1 = _share("Mean over problems of passed by decided attempts.")
    standard_error = _amount("Standard error of pass_at_1.")
    degrees_of_freedom = _amount("Of that error: one less than units, fewer where units differ in size.")
    variance_of_mean = _figure("Its square: the sum of the two parts that follow.")
    from_problems = _figure("The part that comes from which problems there are; an unbiased estimate may be negative.")
    from_samples = _figure("The part that comes from which attempts there are; null without a repeated problem.")
    share_from_problems = _share("from_problems by variance_of_mean, kept within [0, 1].")
    problem_variance = _figure("Variance between problems of their true pass rates, without bias for few attempts.")
    sampling_variance = _amount("Variance of one attempt at a problem: the mean of p (1 - p), without bias.")


class NextSamples(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    plan = _id("What is done next: now, samples x2, samples x4, problems x2, problems x4.")
    problems = _count("Problems then.")
    samples = _amount("Attempts per problem then.")
    extra_attempts = _count("Attempts more than now.", nullable=True)
    extra_cost_usd = _amount("What they cost at the mean cost of an attempt so far; null where a cost is unknown.")
    expected_width = _amount("Expected width of the confidence interval of pass_at_1; null where parts are unknown.")
    width_saved = _figure("How much narrower than now.")
    advised = dy.Bool(
        nullable=True,
        description="Whether this is the better of the plans with as many more attempts; null: now, or parts unknown.",
    )


class Reliability(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    problems = _count("Problems with at least one decided attempt.")
    repeated = _count("Problems with at least two: only these can flip.")
    always = _count("Repeated problems that every attempt solves.")
    never = _count("Repeated problems that no attempt solves.")
    flipping = _count("Repeated problems that are solved sometimes.")
    flip_rate = _share("flipping by repeated.")
    flip_rate_ci_low = _share("Lower end of its confidence interval.")
    flip_rate_ci_high = _share("Upper end of its confidence interval.")
    flip_rate_ci_method = _ci_method("flip_rate")
    consistency = _share("Chance that two attempts at the same problem end alike: mean over repeated problems.")
    consistency_ci_low = _share("Lower end of its confidence interval.")
    consistency_ci_high = _share("Upper end of its confidence interval.")
    consistency_ci_method = _ci_method("consistency")
    ci_units = _count("Independent units behind both intervals.")


class ReliabilityCurve(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    k = dy.Int64(primary_key=True, min=1, metadata={"key": True}, description="Budget of attempts.")
    pass_at_k = _share("Chance that at least one of k attempts passes: mean over eligible problems.")
    pass_hat_k = _share("Chance that all of k attempts pass: mean over eligible problems.")
    ci_low = _share("Lower end of the confidence interval of pass_hat_k.")
    ci_high = _share("Upper end of the confidence interval of pass_hat_k.")
    ci_method = _ci_method("pass_hat_k")
    ci_units = _count("Independent units behind the interval.")
    eligible = _count("Problems with at least k decided attempts.")


class Economics(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    problems = _count("Problems with a decided attempt.")
    pass_rate = _share("Mean pass rate over decided attempts.")
    cost_per_attempt = _amount("Mean cost of a decided attempt; null where a cost is unknown.")
    cost_of_pass = _cost_of_pass("cost_per_attempt by pass_rate, as in tiers: infinity where nothing passes.")
    ci_low = _amount("Lower end of the confidence interval of cost_of_pass.")
    ci_high = _cost_of_pass("Upper end of the confidence interval of cost_of_pass; may be infinity.")
    ci_method = _ci_method("cost_of_pass")
    ci_units = _count("Independent units behind the interval.")
    on_frontier = dy.Bool(
        nullable=True, description="Whether its cost of pass is the lowest of all; null: unknown cost."
    )
    frontier_probability = _share(
        "How often it is the lowest when problems are drawn again, widened for few problems, among those with 6 units."
    )
    pareto = dy.Bool(nullable=True, description="Whether no other is at least as good and as cheap, and better in one.")
    pareto_probability = _share(
        "How often that holds when problems are drawn again, widened for few problems, among those with 6 units."
    )


class Routing(dy.Schema):
    suite = _id("Suite.")
    problems = _count("Problems of the suite that the chosen model and tier attempted.")
    model = _text("Model with the lowest cost of pass in the suite; null where nobody passes at a known cost.")
    tier = _text("Its tier.")
    pass_rate = _share("Its mean pass rate over decided attempts in the suite.")
    cost_of_pass = _amount("Its mean cost of a decided attempt in the suite by pass_rate.")
    probability = _share(
        "How often it is the cheapest when the suite's problems are drawn again, widened for few problems, among those "
        "with 6 units."
    )
    second_model = _text("The next cheapest model; null where there is none.")
    second_tier = _text("Its tier.")
    second_cost_of_pass = _amount("Its cost of pass.")


class RoutingPolicies(dy.Schema):
    policy = _id(
        "single: the cheapest model for all; suite: the cheapest per suite; problem: the cheapest per problem."
    )
    problems = _count("Problems that every model with known costs attempted at least twice.")
    pass_rate = _share("Mean over problems of the chosen model's pass rate, on attempts that did not choose it.")
    cost_per_attempt = _amount("Mean over problems of the chosen model's cost of an attempt, on the same attempts.")
    cost_of_pass = _cost_of_pass("cost_per_attempt by pass_rate, in which every problem counts the same.")
    saving = _figure("Share of the single model's cost of pass that the policy saves; negative where it costs more.")
    ci_low = _figure("Lower end of the confidence interval of saving.")
    ci_high = _figure("Upper end of the confidence interval of saving.")
    ci_method = _ci_method("saving")
    ci_units = _count("Independent units behind the interval.")


def _verdict(of: str) -> dy.String:
    return dy.String(
        check=lambda column: column.is_in(VERDICTS),
        description=f"What may be said of {of}: " + ", ".join(VERDICTS) + ".",
    )


def _test() -> dy.String:
    return dy.String(
        nullable=True,
        check=lambda column: column.is_in(TESTS),
        description="The test of no difference: mcnemar (one attempt each), permutation (of signs), or, for unequal "
        "attempts, permutation-hypergeometric: the larger p of that and of exchanging attempts within problems.",
    )


def _difference(description: str) -> dy.Float64:
    return dy.Float64(nullable=True, min=-1, max=1, description=description)


class ModelComparison(dy.Schema):
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
    difference = _difference("Mean over shared problems of b less a.")
    ci_low = _difference("Lower end of the confidence interval of difference, for this comparison alone.")
    ci_high = _difference("Upper end of it.")
    ci_method = _ci_method("difference")
    ci_units = _count("Independent units behind intervals and test.")
    test = _test()
    p_value = _share("Its two-sided p, not corrected.")
    p_adjusted = _share("The same corrected for looking at all pairs in the table.")
    correction = dy.String(description="How p is corrected: holm, or benjamini-yekutieli (false discovery rate).")
    pairs = _count("Comparisons that the correction is for.")
    adjusted_ci_low = _difference("Lower end of the interval that holds for all those comparisons together.")
    adjusted_ci_high = _difference("Upper end of it.")
    adjusted_ci_method = _ci_method("difference")
    adjusted_confidence = _share("Confidence level of that interval on its own.")
    wins = _count("Shared problems on which b passes more often.")
    losses = _count("Shared problems on which b passes less often.")
    ties = _count("Shared problems on which both pass as often.")
    effect_size = _figure("difference by the standard deviation of the problems' differences.")
    minimum_detectable_effect = _share(
        "True difference that this data would show with the configured power, corrected."
    )
    units_needed = dy.Int64(nullable=True, description="Units without which no difference can be significant; or null.")
    verdict = _verdict("b")
    sentence = dy.String(description="The same in words.")


class BaselineVerdicts(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    baseline = dy.String(description="Snapshot that the run is held against.")
    problems = _count("Problems decided on both sides.")
    only_baseline = _count("Problems decided in the baseline only.")
    only_current = _count("Problems decided in this run only.")
    rate_baseline = _share("pass@1 of the baseline on the shared problems.")
    rate_current = _share("pass@1 of this run on the shared problems.")
    difference = _difference("Mean over shared problems of this run less the baseline.")
    ci_low = _difference("Lower end of the confidence interval of difference, for this comparison alone.")
    ci_high = _difference("Upper end of it.")
    ci_method = _ci_method("difference")
    ci_units = _count("Independent units behind intervals and test.")
    test = _test()
    p_value = _share("Its two-sided p, not corrected.")
    p_adjusted = _share("The same corrected for looking at all models and tiers.")
    correction = dy.String(description="How p is corrected: holm, or benjamini-yekutieli (false discovery rate).")
    pairs = _count("Comparisons that the correction is for.")
    adjusted_ci_low = _difference("Lower end of the interval that holds for all those comparisons together.")
    adjusted_ci_high = _difference("Upper end of it.")
    adjusted_ci_method = _ci_method("difference")
    adjusted_confidence = _share("Confidence level of that interval on its own.")
    wins = _count("Shared problems on which this run passes more often.")
    losses = _count("Shared problems on which this run passes less often.")
    ties = _count("Shared problems on which both pass as often.")
    effect_size = _figure("difference by the standard deviation of the problems' differences.")
    minimum_detectable_effect = _share(
        "True difference that this data would show with the configured power, corrected."
    )
    units_needed = dy.Int64(nullable=True, description="Units without which no difference can be significant; or null.")
    verdict = _verdict("this run")
    sentence = dy.String(description="The same in words.")


class Regressions(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    oid = _id("Problem.")
    baseline_score = _share("Score of the case in the pinned baseline.")
    current_score = _share("Score of the case in this run.")
    delta = _difference("Current less baseline.")
    category = _text("What changed: compilation, tests, lint, outcome, or only the score.")
    kind = dy.String(description="regression, improvement, new, removed, lost or unscored; unchanged is left out.")
    basis = _text("Score that both sides were compared by: code_score, composite_score or pass_rate.")
    fallback = dy.Bool(description="Attempts lack the chosen score, so the pass rate was compared.")
    chance_of_regression = _share("Probability that chance alone, dealing out the attempts, makes the case regress.")


class RegressionCounts(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    regressions = _count("Cases whose score dropped by more than the threshold.")
    expected_by_chance = _figure("Regressions to expect if no case had changed: the sum of chance_of_regression.")
    improvements = _count("Cases whose score rose by more than the threshold.")
    unchanged = _count("Cases whose score changed by no more than the threshold.")
    new = _count("Cases that the baseline lacks.")
    removed = _count("Cases of the baseline that are gone.")
    lost = _count("Cases judged in the baseline that have no decided attempt now.")
    unscored = _count("Cases that could not be judged in the baseline.")
    compared_by_pass_rate = _count("Cases compared by pass rate because attempts lack the chosen score.")


class History(dy.Schema):
    snapshot = _id("Snapshot that the figure is from.", unique=False)
    made_at = dy.String(description="When the run finished, in UTC.")
    table = _id("Table that the figure is from.", unique=False)
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    item = dy.String(
        metadata={"key": True}, description="What else names the row: the k, suite, run or metric; empty: nothing."
    )
    figure = _id("Which figure: the column of that table, such as pass_at_1, composite_median or ci_low.", unique=False)
    value = dy.Float64(nullable=True, allow_inf=True, description="Its value.")


class ProblemHistory(dy.Schema):
    snapshot = _id("Snapshot that the figures are from.", unique=False)
    made_at = dy.String(description="When the run finished, in UTC.")
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    oid = _id("Problem.", unique=False)
    n = _count("Decided attempts.")
    c = _count("Passed attempts.")
    pass_rate = _share("c by n; null where nothing was decided.")
    avg_score = _share("Mean code score over the attempts.")
    best_score = _share("Best code score of the attempts.")


@dataclass(frozen=True)
class Table:
    """One table of the output folder.

    `made_by` is `module:function`, called with a frame of each table in `reads` and the value of each key in
    `settings`, in that order, or `module:Stage.method` for a method of one of the run's stages. A table with `step`
    writes itself: its method takes no frames. `made_with` names the table whose step writes this one too. `code` names
    packages that take part without being imported, such as programs that run inside a sandbox. `in_snapshots` is false
    for tables with the texts of fixes and for those about another snapshot.
    """

    name: str
    schema: type[dy.Schema]
    grain: str
    group: str
    made_by: str
    reads: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    extras: str | None = None
    per_model: bool = False
    step: bool = False
    made_with: str | None = None
    code: tuple[str, ...] = ()
    in_snapshots: bool = True

    @cached_property
    def key(self) -> list[str]:
        """The columns that identify a row."""
        return [name for name, column in self.schema.columns().items() if (column.metadata or {}).get("key", False)]

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """One line per column."""
        return {name: column.description or "" for name, column in self.schema.columns().items()}

    @cached_property
    def dtypes(self) -> pl.Schema:
        """Column types, in order."""
        return pl.Schema({name: column.dtype for name, column in self.schema.columns().items()})

    @property
    def module(self) -> str:
        """The module of the function that makes it."""
        return self.made_by.partition(":")[0]

    @property
    def description(self) -> str:
        """What it holds, in one line: the first line of its function's docstring."""
        line = (resolve(self.made_by).__doc__ or "").strip().splitlines()[0].removeprefix(f"The table `{self.name}`: ")
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


def conform(frame: pl.LazyFrame, table: Table) -> pl.LazyFrame:
    """The frame in the contract's column order and types, with permitted extra columns after them.

    >>> table = Table("problems", Problems, "problem", "ingest", "module:function")
    >>> conform(pl.LazyFrame(dict.fromkeys(table.dtypes, ["a"])), table).collect_schema()["cluster"]
    String
    """
    present = frame.collect_schema().names()
    missing = [name for name in table.dtypes if name not in present]
    if missing:
        raise ValueError(f"table '{table.name}' lacks {', '.join(missing)}")
    columns = [pl.col(name).cast(dtype) for name, dtype in table.dtypes.items()]
    extras = [name for name in present if name not in table.dtypes]
    if extras and not table.extras:
        raise ValueError(f"table '{table.name}' has no column {', '.join(extras)}")
    return frame.select(*columns, *extras)


def violations(frame: pl.LazyFrame, table: Table) -> dict[str, int]:
    """The number of rows that break each rule of the contract; empty if it holds."""
    own = frame.select(list(table.dtypes))
    if table.schema.is_valid(own):
        return {}
    return dict(table.schema.filter(own.collect()).failure.counts())
