"""Flaky tests: found by validating the same files several times, named, and left out where no fix can be to blame.

The planted tests toss a coin in the real Python validator, from the system's entropy, because the runners seed
`random`. Each assertion about them fails by chance with a probability of at most one in a billion.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.conftest import Command, Folder
from tests.pipelines.test_retrying import table as csv_text
from tests.pipelines.test_run import evaluate
from tests.validation.test_session import Project
from tests.validation.validators.support import tree_of
from touchstone.config import IntervalSettings, load_config
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation, RunOutcome
from touchstone.tables import TABLES
from touchstone.tables.checks import CheckResult
from touchstone.validation.checks import no_flaky_tests
from touchstone.validation.files.working_copy import HashedTree
from touchstone.validation.judging.verdicts import compute_verdict
from touchstone.validation.noise import sample_fixes
from touchstone.validation.outcomes import ValidatedProblem, exclude_tests
from touchstone.validation.protocol import Diagnostic, NoTarget, Problem, Report, Tree
from touchstone.validation.targets import Target

BROKEN = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a * b\n"
RANDOM_FIX = "import os\n\n\ndef add(a, b):\n    return a + b if os.urandom(1)[0] < 128 else 0\n"
FAST = {"python": {"lint": False}, "workers": 1}
# A share of the outcomes of four random bytes.
FLAKY_TEST = "\n\ndef test_clock():\n    assert int.from_bytes(os.urandom(4), 'big') < {chance} * 2**32\n"
# All tosses on the unmodified problem agree, and so do all on the reference fix: once in four million times.
REPEAT = 12


def suite(tests: int, flaky: str = "") -> str:
    """So many tests, the first two of which need the fix: calls of the fix are what takes time."""
    cases = [f"assert add({number}, 1) == {number} + 1" if number < 2 else "assert os" for number in range(tests)]
    functions = (f"\n\ndef test_{number}():\n    {case}\n" for number, case in enumerate(cases))
    return "import os\n\nfrom calc import add\n" + "".join(functions) + flaky


def make_problems(root: Path, suites: Iterable[str], fixes: Iterable[str], reference: str = RIGHT) -> Folder:
    """Problems that differ in their tests alone, and a model with the same fixes for each."""
    folder, problems, attempts = Folder(root), [], []
    for number, tests in enumerate(suites):
        tree_of(root / "clones" / f"p{number}", {"calc.py": BROKEN, "test_calc.py": tests})
        problems.append((f"p{number}", "calc.py", f"p{number}", reference))
        attempts += [(f"p{number}", iteration, fix) for iteration, fix in enumerate(fixes)]
    folder.problems(csv_text(("oid", "filename", "working_directory", "reference_fix"), *problems))
    folder.fixes("m", csv_text(("oid", "iteration_id", "fixed_file"), *attempts))
    return folder


def repeat(folder: Folder, times: int, **settings: object) -> RunOutcome:
    folder.configure(clones_dir="clones", k_values=[1], validation={**FAST, "repeat": times, **settings})
    return evaluate(folder)


def table(folder: Folder, name: str) -> pl.DataFrame:
    return pl.read_parquet(folder.output / "tables" / name / "*.parquet")


def flaky_tests(folder: Folder) -> set[tuple[str, str]]:
    flaky = table(folder, "validator_noise").filter("flaky", pl.col("test").is_not_null())
    return set(flaky.select("oid", "test").iter_rows())


def check_of(folder: Folder) -> CheckResult:
    noise, problems = (table(folder, name).lazy() for name in ("validator_noise", "problems"))
    return no_flaky_tests(noise, problems, IntervalSettings())


@pytest.fixture(scope="module")
def one_in_ten(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Two problems with five tests each, one of which tosses a coin; flaky tests do not count."""
    suites = [suite(5), suite(4, FLAKY_TEST.format(chance=0.5))]
    folder = make_problems(tmp_path_factory.mktemp("flaky"), suites, [RIGHT, WRONG, ""])
    assert repeat(folder, REPEAT, exclude_flaky=True).exit_code == 0
    return folder


@pytest.mark.nightly
def test_a_flaky_test_is_found_and_the_share_of_flaky_tests_estimated(one_in_ten: Folder) -> None:
    assert flaky_tests(one_in_ten) == {("p1", "test_clock")}
    found = check_of(one_in_ten)
    assert (found.passed, found.error) == (False, False)
    assert (found.figures["tests"], found.figures["flaky"], found.figures["flaky_share"]) == (10, 1, 0.1)
    assert found.figures["flaky_share_ci_low"] < 0.1 < found.figures["flaky_share_ci_high"]
    assert found.message.startswith("1 of 10 tests (10.0%, 95% CI ")
    assert "p1 test_clock (passed " in found.message
    assert found.message.endswith("; 1 test is left out of all verdicts")


@pytest.mark.services
def test_every_test_of_every_repeated_tree_is_counted(one_in_ten: Folder) -> None:
    noise = table(one_in_ten, "validator_noise")
    # A control cannot judge a pass whose tests change from run to run: such a verdict is undecided, and not counted.
    of_flaky_fix = (pl.col("oid") == "p1") & (pl.col("validated") == "fix") & pl.col("test").is_null()
    assert set(noise.filter(~of_flaky_fix)["runs"]) == {REPEAT}
    counts = noise.filter(pl.col("test").is_not_null()).group_by("validated").len().sort("validated")
    assert counts.rows() == [("baseline", 10), ("fix", 20), ("reference", 10)], "an empty fix runs no test"
    verdicts = noise.filter(pl.col("test").is_null(), pl.col("oid") != "p1", pl.col("validated") == "fix")
    passes = verdicts.group_by("iteration_id").agg(pl.col("passes").sum()).sort("iteration_id")
    assert passes.rows() == [("0", REPEAT), ("1", 0), ("2", 0)]
    stable = noise.filter(pl.col("oid") == "p0", pl.col("test").is_null(), pl.col("validated") == "reference")
    assert stable.select(pl.col("ci_low").round(3), "ci_high").row(0) == (0.758, 1.0)


@pytest.mark.services
def test_an_excluded_test_decides_no_verdict(one_in_ten: Folder) -> None:
    outcomes = table(one_in_ten, "outcomes")
    assert outcomes.group_by("iteration_id").agg(pl.col("passed").sum()).sort("iteration_id").rows() == [
        ("0", 2), ("1", 0), ("2", 0),
    ]  # fmt: skip
    assert set(table(one_in_ten, "baselines")["reference_status"]) == {"passed"}
    ran = outcomes.filter(pl.col("oid") == "p1", pl.col("iteration_id") == "0")
    assert ran.select("tests_passed", "tests_failed").row(0) == (4, 0)
    variance = table(one_in_ten, "validator_variance").row(0, named=True)
    assert (variance["problems"], variance["fixes"], variance["flaky"]) == (2, 6, 1)
    assert variance["share_from_validator"] is None, "the runs that chose the tests cannot measure the rest"


@pytest.mark.services
def test_an_unchanged_run_repeats_nothing(one_in_ten: Folder) -> None:
    assert evaluate(one_in_ten).made == 0


@pytest.mark.nightly
def test_a_fix_that_is_itself_random_excludes_no_test(tmp_path: Path) -> None:
    folder = make_problems(tmp_path, [suite(2)], [RANDOM_FIX], reference="")
    # A pass of such a fix is undecided by its negative control.
    done = repeat(folder, 32, exclude_flaky=True, controls=False, python={"lint": False})
    assert done.exit_code == 0, [check for check in done.checks if not check.passed]
    noise = table(folder, "validator_noise")
    assert set(noise.filter("flaky")["validated"]) == {"fix"} and not noise["excluded"].any()
    assert check_of(folder).message.endswith("; 2 tests flip only with fixes, which may be to blame")
    variance = table(folder, "validator_variance").row(0, named=True)
    assert (variance["fixes"], variance["sampling_variance"], variance["share_from_validator"]) == (1, None, None)


@pytest.mark.nightly
def test_a_sample_of_no_fixes_repeats_the_problems_alone(tmp_path: Path) -> None:
    folder = make_problems(tmp_path, [suite(1)], [RIGHT, WRONG])
    assert repeat(folder, 2, repeat_fixes=0).exit_code == 0
    assert set(table(folder, "validator_noise")["validated"]) == {"baseline", "reference"}
    found = check_of(folder)
    assert found.passed and found.message == "the same results every time: 1 test and 2 verdicts, each up to 2 runs"
    assert table(folder, "validator_variance").is_empty()


def test_without_repeats_nothing_is_validated_for_it(folder: Folder) -> None:
    evaluation = Evaluation(load_config(folder.config))
    for name in ("problems", "attempts", "validator_noise"):
        evaluation.materialize(name)
    assert "session" not in vars(evaluation.validation), "no sandbox, no worker"
    noise = evaluation.store.scan("validator_noise").collect()
    assert noise.is_empty() and noise.schema == TABLES["validator_noise"].dtypes
    found = no_flaky_tests(noise.lazy(), evaluation.store.scan("problems"), IntervalSettings())
    assert found.passed and found.message == "nothing was validated more than once (validation.repeat)"


def test_excluding_flaky_tests_without_looking_for_them_is_refused(folder: Folder) -> None:
    folder.configure(validation={"exclude_flaky": True})
    with pytest.raises(TouchstoneError, match="exclude_flaky needs a repeat of at least 2"):
        load_config(folder.config)


@pytest.mark.parametrize(
    ("validated", "test", "said"),
    [
        ("reference", "test_a", "1 of 1 test (100.0%, 95% CI 20.7% to 100.0%) is flaky, and 0 of 0 verdicts changed: "
         "p test_a (passed 3 of 4 runs of the reference fix); 1 test and 0 verdicts, each up to 4 runs; "
         "correct the tests, or set validation.exclude_flaky"),
        ("baseline", None, "1 of 1 verdict changed from run to run, and no test did: p verdict (passed 3 of 4 runs of "
         "the unmodified problem); 0 tests and 1 verdict, each up to 4 runs"),
    ],
)  # fmt: skip
def test_the_check_says_what_flipped_and_what_to_do(validated: str, test: str | None, said: str) -> None:
    counts = {"oid": "p", "validated": validated, "test": test, "runs": 4, "passes": 3}
    noise = pl.LazyFrame([counts | {"flaky": True, "excluded": False}], schema_overrides={"test": pl.String})
    problems = pl.LazyFrame({"oid": ["p"], "cluster": [None]}, schema_overrides={"cluster": pl.String})
    assert no_flaky_tests(noise, problems, IntervalSettings()).message == said


def simulated_noise(problems: int, tests: int, share: float, repeat: int, seed: int) -> tuple[pl.LazyFrame, int]:
    """Counts of tests on one tree per problem, some of which fail in one of a hundred runs, and how many those are."""
    generator = np.random.default_rng(seed)
    flaky = generator.random(problems * tests) < share
    passes = np.where(flaky, generator.binomial(repeat, 0.99, problems * tests), repeat)
    frame = (
        pl.LazyFrame({"runs": repeat, "passes": passes})
        .with_row_index("number")
        .with_columns(
            oid=pl.format("p{}", pl.col("number") // tests),
            test=pl.format("test_{}", pl.col("number") % tests),
            validated=pl.lit("reference"),
            flaky=(pl.col("passes") > 0) & (pl.col("passes") < repeat),
            excluded=pl.lit(False),
        )
    )
    return frame, int(flaky.sum())


@pytest.mark.nightly
@pytest.mark.parametrize("problems", [20, 50, 200])
def test_one_test_in_a_hundred_that_fails_once_in_a_hundred_runs(problems: int) -> None:
    """A thousand runs find every such test, and the interval of their share contains the truth in 93% of cases."""
    ids = [f"p{number}" for number in range(problems)]
    known = pl.LazyFrame({"oid": ids, "cluster": None}, schema_overrides={"cluster": pl.String})
    covered, cases = 0, 60 if problems == 50 else 150
    for seed in range(cases):
        noise, planted = simulated_noise(problems, tests=10, share=0.01, repeat=1000, seed=seed)
        found = no_flaky_tests(noise, known, IntervalSettings())
        assert planted - 1 <= found.figures["flaky"] <= planted
        low, high = (found.figures.get(f"flaky_share_ci_{end}", 0.0) for end in ("low", "high"))
        covered += not planted or low <= 0.01 <= high
    assert covered >= 0.93 * cases - 3 * (cases * 0.05 * 0.95) ** 0.5


# Parts


@pytest.mark.services
def test_repeats_neither_read_the_cache_nor_write_to_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with project.validation() as validation:
        project.ask(validation, "yes")
        known, new = project.requests(validation, ["yes", "no"])
        project.judged()
        found = validation.repeats([known, new, known], 3)
        assert [[report.status for report in found[one.key]] for one in (known, new)] == [
            ["passed"] * 3,
            ["failed"] * 3,
        ]
        assert sorted(project.judged()) == ["no"] * 3 + ["yes"] * 3
        assert project.ask(validation, "yes", "no") == [("passed", True), ("failed", False)]


def attempts(problems: int, each: int) -> pl.DataFrame:
    rows = [("m", "T0", f"p{oid}", str(number), "fix") for oid in range(problems) for number in range(each)]
    return pl.DataFrame(rows, schema=["model", "tier", "oid", "iteration_id", "fixed_file"], orient="row")


def test_a_sample_has_one_fix_of_each_problem_before_a_second_of_any() -> None:
    """It depends on the seed and not on the order of rows."""
    fixes = attempts(problems=10, each=4)
    assert sample_fixes(fixes.lazy(), 7, seed=7)["oid"].n_unique() == 7
    counts = sample_fixes(fixes.lazy(), 25, seed=7).group_by("oid").len()["len"]
    assert sorted(counts) == [2] * 5 + [3] * 5
    assert sample_fixes(fixes.lazy(), 100, seed=7).height == 40
    first = sample_fixes(fixes.lazy(), 12, seed=7)
    assert sample_fixes(fixes.reverse().lazy(), 12, seed=7).equals(first)
    assert not sample_fixes(fixes.lazy(), 12, seed=8).equals(first)
    both = sample_fixes(pl.concat([fixes, fixes.with_columns(model=pl.lit("n"))]).lazy(), 12, seed=7)
    assert both.filter(pl.col("model") == "m").equals(first), "each model has a sample of its own"


def failed_tests(*names: str) -> dict[str, Any]:
    errors = tuple(Diagnostic("error", f"test failed: {name}", test=name) for name in names)
    return {"status": "failed", "fidelity": "full", "diagnostics": errors, "tests": dict.fromkeys(names, False)}


def test_a_report_without_some_tests_still_fails_by_the_others() -> None:
    report = Report(**failed_tests("test_a", "test_b"))
    assert report.without_tests({"test_a"}) == Report(**failed_tests("test_b"))
    assert report.without_tests({"test_a", "test_b"}) == Report("passed", "full")
    assert report.without_tests(frozenset()) is report
    contradictory = Report(**failed_tests("test_a"), consistent=False)
    assert contradictory.without_tests({"test_a"}).status == "failed"
    unfinished = Report(**{**failed_tests("test_a"), "status": "timeout"})
    assert unfinished.without_tests({"test_a"}).status == "timeout"


def test_a_problem_whose_every_failing_test_is_flaky_is_undecided(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BROKEN)
    target = Target(
        Problem("p", "a.py", tmp_path), Tree(tmp_path, ("a.py",)), "python", HashedTree(tmp_path, ("a.py",))
    )
    known = ValidatedProblem(target, Report(**failed_tests("test_a", "test_b")), None, None)
    assert isinstance(exclude_tests(known, frozenset({"test_a"})), ValidatedProblem)
    nothing = exclude_tests(known, frozenset({"test_a", "test_b"}))
    assert isinstance(nothing, NoTarget) and nothing.status == "validator_unavailable"
    assert "flaky and left out (validation.exclude_flaky): test_a, test_b" in nothing.reason


@pytest.mark.parametrize(
    ("flaky", "status"), [("test_old", "passed"), ("test_none", "failed"), ("test_bug", ""), ("test_bug test_old", "")]
)
def test_a_flaky_test_that_the_problem_names_decides_nothing_either(tmp_path: Path, flaky: str, status: str) -> None:
    """Unless no other test shows the errors of the problem."""
    about = Problem("p", "a.py", tmp_path, fail_to_pass=("test_bug",), pass_to_pass=("test_old",))
    target = Target(about, Tree(tmp_path, ()), "command", HashedTree(tmp_path, ()))
    baseline = Report(**{**failed_tests("test_bug", "test_other"), "tests": {"test_bug": False, "test_old": True}})
    known = exclude_tests(ValidatedProblem(target, baseline, None, None), frozenset(flaky.split()))
    assert isinstance(known, NoTarget) == (status == "")
    if isinstance(known, ValidatedProblem):
        report = Report("failed", "full", tests={"test_bug": True, "test_old": False}).without_tests(known.excluded)
        assert compute_verdict(known.baseline, report, known.judged, 1, 1).status == status


@pytest.mark.nightly
def test_validate_shows_how_often_a_flaky_test_passed(tmp_path: Path, touchstone: Command) -> None:
    folder = make_problems(tmp_path, [suite(1), suite(1, FLAKY_TEST.format(chance=0.5))], [RIGHT])
    folder.configure(clones_dir="clones", validation=FAST)
    fix = tmp_path / "fix.py"
    fix.write_text(RIGHT)

    def validate(oid: str, times: int) -> str:
        command = ("validate", "--config", folder.config, "--problem", oid, "--fix", fix, "--repeat", times)
        return touchstone(*command).stdout

    assert "not flaky: 3 test results and all verdicts are the same in 2 runs" in validate("p0", 2)
    shown = validate("p1", REPEAT)
    assert f"flaky: the results of {REPEAT} runs differ" in shown
    assert "test_clock" in shown and f" of {REPEAT}" in shown
