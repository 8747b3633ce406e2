"""Fixed words and limits shared by the whole package. Imports next to nothing, so that fast commands stay fast."""

from typing import Literal, get_args

VERSION = "0.1.0"

# The folder of the results of `touchstone run PATH…`, beside the files.
RESULTS_FOLDER = "touchstone-results"

DEFAULT_TIER = "T0"
DEFAULT_SUITE = "default"
MAX_ID_LENGTH = 200

# A larger value in one attempt is an input error: MAX_AMOUNT for dollars, seconds and milliseconds, MAX_COUNT for
# tokens and tests. The limits also keep sums over attempts from overflowing; see `inference.exact`.
MAX_AMOUNT = 1_000_000_000
MAX_COUNT = 1_000_000_000_000
# Characters that are kept of what a validator or a file says about an attempt.
MAX_DIAGNOSTICS = 2000

# The class of an attempt that passed; every other class, known or not, is a failure.
PASS_CLASS = "pass"
CLASSES = (PASS_CLASS, "fail", "error", "refusal", "wrong_format", "policy_violation", "crash", "timeout")

# How a file in `fixes_dir` was handled.
FileStatus = Literal["evaluated", "refused", "left_out", "problems", "output", "unknown", "ignored"]
FILE_STATUSES: tuple[str, ...] = get_args(FileStatus)

# The columns of `<model>_outcomes.csv`, for writing it and for recognising it among input files.
OUTCOMES_CSV_COLUMNS = (
    "oid",
    "iteration_id",
    "tier",
    "plausible_fix",
    "status",
    "validator",
    "fidelity",
    "compiled",
    "tests_passed",
    "tests_failed",
    "lint_warnings",
    "diagnostics",
)

STATUSES = (
    "passed",
    "failed",
    "timeout",
    "memory_limit",
    "output_limit",
    "disk_limit",
    "no_report",
    "sandbox_error",
    "validator_unavailable",
    "unsafe_input",
)

# Why no fix of a problem is judged that the validator cannot show: not for lack of anything on this machine.
WARNING_NOT_SHOWN = "the problem is a warning, and the static checker reports errors only; Terraform itself shows it"

# How often the static checker passes what Terraform 1.11.4 refuses, measured on the changes of ordinary modules in
# tests/validation/hcl/mutants.csv, which it was not developed with: those that pass, and all that Terraform refuses.
STATIC_FIDELITIES = ("static", "static+schema")
STATIC_PASSES = (9, 418)
STATIC_AGREEMENT = (
    f"static: {STATIC_PASSES[0] / STATIC_PASSES[1]:.0%} of wrong repairs pass ({STATIC_PASSES[0]} of "
    f"{STATIC_PASSES[1]} single changes of ordinary modules that Terraform 1.11.4 refuses)"
)

# Kinds of repeated validations, to find flaky tests (`validation.repeat`).
VALIDATED = ("baseline", "reference", "fix")

# Rules for the pass of a validated fix (`validation.success`).
Success = Literal["plausible", "clean", "fixed", "strict_block", "strict_module"]

# Ways to treat changes of the judge's files in a fix (`validation.test_edits`): "ignore" puts them back.
TestEdits = Literal["refuse", "ignore", "allow"]

# How a confidence interval was computed, in a line each; docs/statistics.md has when each is used.
CI_METHODS = {
    "wilson": "Wilson's score interval of a proportion",
    "wilson-t": "Wilson's interval with Student's t and the effective number of units",
    "bootstrap": "percentile bootstrap over units",
    "woodruff": "Woodruff's interval of a median",
    "fieller": "Fieller's interval of a ratio",
    "fieller-widened": "Fieller's interval with a higher upper end, because costs are skewed",
    "bootstrap-t-log": "studentised bootstrap of the log of the ratio, because costs are skewed",
    "mover": "MOVER-R interval of a ratio, from the intervals of its two parts",
    "t": "Student's t",
    "t-widened": "Student's t, widened because hardly any unit differs",
    "newcombe": "Newcombe's hybrid of the two score intervals",
}
# The methods for each kind of figure; ratios are uplift and savings.
MEAN_CI_METHODS = ("wilson", "wilson-t", "bootstrap")
MEDIAN_CI_METHODS = ("woodruff",)
RATIO_CI_METHODS = ("bootstrap",)
COST_CI_METHODS = ("fieller", "fieller-widened", "bootstrap-t-log")
SHARE_CI_METHODS = ("mover",)
DIFFERENCE_CI_METHODS = ("t", "t-widened")
UNPAIRED_CI_METHODS = ("newcombe",)

# Findings on pass@1 before and after a model's cutoff.
CUTOFF_FINDINGS = ("higher before", "lower before", "no evidence", "too few problems")

# Tests of "no difference" between two sides; see `inference.paired_tests`.
TESTS = (
    "mcnemar",
    "permutation-exact",
    "permutation-saddlepoint",
    "permutation",
    "permutation-rounded",
    "permutation-hypergeometric",
    "permutation-hypergeometric-rounded",
    "permutation-hypergeometric-saddlepoint",
)

# Verdicts on one side compared with another, most urgent first.
VERDICTS = ("worse", "better", "no relevant difference", "inconclusive")
# `inconclusive` in results of earlier versions.
FORMER_VERDICTS = ("no evidence", "underpowered")
OPEN_VERDICTS = ("inconclusive", *FORMER_VERDICTS)
OPPOSITE_VERDICTS = {"better": "worse", "worse": "better"}

# Effects of factors.
EFFECTS = ("main", "interaction")

# Changes of a failure mode since the baseline.
MODE_CHANGES = ("new", "grown", "shrunk", "gone", "unchanged")
# Answers of a gate, the worst first.
GATE_ANSWERS = ("failed", "inconclusive", "held")

# Whether an attempt passed, in words.
OUTCOME_WORDS = {True: "passed", False: "failed", None: "undecided"}

# Rulings on an attempt; see `ingest.rulings`.
RULINGS = ("passed", "failed", "undecided", "exclude")

# In what two sides of a comparison may differ besides the model; see `comparison.comparability`.
Dimension = Literal[
    "problems", "task_version", "validator", "scorer", "generation", "attempts", "agent", "limits", "harness"
]
DIMENSIONS: tuple[str, ...] = get_args(Dimension)
REQUIRED_DIMENSIONS: tuple[Dimension, ...] = ("problems", "scorer", "validator")
# Columns of the problems that say what a model was asked, and by which tests it is judged.
ASKED = ("asked_sha", "summary", "prompt", "problem_statement", "question", "instruction")
JUDGED_BY = (
    "tests",
    "expected_tests",
    "test_command",
    "test_patch",
    "fail_to_pass",
    "pass_to_pass",
    "FAIL_TO_PASS",
    "PASS_TO_PASS",
    "judge_files",
    "files_sha",
)
# The digest of what a model was asked, if files of one run ask it differently.
ASKED_DIFFERENTLY = "several"
COMPARED = ("baseline", "models")
AGREEMENTS = ("different", "unknown", "same")

# Verdicts of the audit on a problem, the first that holds, and what each means.
PROBLEM_VERDICTS = {
    "suspect": "better models fail it more often, its reference fix fails, or it passes unmodified",
    "flaky": "validating the same files repeatedly gave different results",
    "not judged": "fewer than six models attempted it",
    "saturated": "every attempt of every model passes",
    "unsolved": "no attempt of any model passes",
    "redundant": "every model has the same pass rate as on another problem",
    "ok": "none of these",
}

# pandas writes a column of booleans with gaps as 1.0 and 0.0.
TRUE_WORDS = ("true", "1", "yes", "t", "y", "1.0")
FALSE_WORDS = ("false", "0", "no", "f", "n", "0.0")
PASS_WORDS = ("pass", "passed", "resolved", "solved", "success", "correct")
FAIL_WORDS = ("fail", "failed", "unresolved", "unsolved", "failure", "incorrect")

# How a test command reports.
CommandReport = Literal["exit_code", "json", "pytest", "junit", "tap", "go", "cargo", "jest"]
COMMAND_REPORTS: tuple[str, ...] = get_args(CommandReport)

# The columns of the problems file that control validation.
VALIDATION_COLUMNS = (
    "filename",
    "working_directory",
    "project_name",
    "language",
    "line_start",
    "line_end",
    "impacted_block_start_line",
    "impacted_block_end_line",
    "severity",
    "summary",
    "reference_fix",
    "resource_schema",
    "tests",
    "expected_tests",
    "test_command",
    "setup_command",
    "test_report",
    "report_file",
    "judge_files",
    "source_files",
    "requirements",
    "environment",
    # As SWE-bench has them.
    "reference_patch",
    "patch",
    "test_patch",
    "fail_to_pass",
    "pass_to_pass",
    "FAIL_TO_PASS",
    "PASS_TO_PASS",
)

# Resources of a budget, and the column of an attempt that says how much of it was used.
RESOURCES = {"dollars": "cost_usd", "tokens": "total_tokens", "seconds": "duration_seconds"}

# Sources of evidence in the audit of passes, and how much it says.
AUDITED = ("fix", "files", "transcript")
SEVERITIES = ("high", "low")
