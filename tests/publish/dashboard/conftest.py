"""An evaluation with something to filter: two models, two tiers, two suites, slices, and names that are markup."""

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.conftest import Folder, made_once
from touchstone.publish.dashboard.selection import RunTables

# Names of problems, suites and slices are free text.
MARKUP, FORMULA, RIGHT_TO_LEFT, ADDRESS = (
    "<img src=x onerror=alert(1)>",
    "=cmd()",
    "a\u202eb",
    "http://evil.example/x.png",
)
PROBLEMS = [f"p{number}" for number in range(12)] + [MARKUP, FORMULA, RIGHT_TO_LEFT, ADDRESS]

Row = dict[str, str]


def problem_rows() -> list[Row]:
    """Problems in two suites and two difficulties; the first four share a cluster."""
    return [
        {
            "oid": oid,
            "filename": f"{number}.tf",
            "suite": "web" if number % 2 else "<b>core</b>",
            "difficulty": ("easy", "hard")[number // 8],
            "cluster": "shared" if number < 4 else "",
        }
        for number, oid in enumerate(PROBLEMS)
    ]


def attempt_rows(model: str, problems: Iterable[Row]) -> list[Row]:
    """Four attempts at each problem in two tiers. The model `one-suite` attempts only one suite, `m` all but a few."""
    drawn = random.Random(model)
    rows = [
        {
            "oid": problem["oid"],
            "iteration_id": str(attempt),
            "tier": tier,
            "plausible_fix": "" if drawn.random() < 0.1 else str(drawn.random() < (0.7 if tier == "T1" else 0.4)),
            "cost_usd": f"{drawn.uniform(0.01, 0.05):.4f}",
            "weighted_score": f"{drawn.random():.2f}",
            "latency_ms": str(drawn.randrange(100, 900)),
        }
        for problem in problem_rows()
        for tier in ("T0", "T1")
        for attempt in range(1, 5)
    ]
    wanted = {problem["oid"] for problem in problems if model != "one-suite" or problem["suite"] == "web"}
    return [row for row in rows if row["oid"] in wanted]


def write_evaluation(root: Path, keep: Callable[[Row], bool] = lambda row: True) -> Folder:
    """The input files, with the problems that are kept."""
    made = Folder(root)
    problems = [row for row in problem_rows() if keep(row)]
    made.problems(csv_of(problems))
    for model in ("m", "one-suite"):
        if rows := attempt_rows(model, problems):
            made.fixes(model, csv_of(rows))
    made.configure(k_values=[1, 3])
    return made


def csv_of(rows: list[Row]) -> str:
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    return "".join(",".join(f'"{value}"' for value in line) + "\n" for line in lines)


@pytest.fixture(scope="session")
def filterable(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The evaluation after one run, shared by all tests: to be read only."""
    from tests.pipelines.test_run import evaluate

    def make(root: Path) -> None:
        assert not evaluate(write_evaluation(root)).failures

    return Folder(made_once(tmp_path_factory, "filterable", make))


@pytest.fixture
def run(filterable: Folder) -> RunTables:
    return RunTables(filterable.output)
