"""Every example of docs/queries.md gives the right answer on data small enough to work it out by hand."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from tests.conftest import PROJECT, WITH_WAREHOUSE, Folder, made_once
from tests.pipelines.test_run import evaluate
from touchstone.publish.query import locked_connection, require_select
from touchstone.publish.views import create_views
from touchstone.storage.snapshots import list_snapshots, pin, prune

SECTIONS = (PROJECT / "docs" / "queries.md").read_text().split("\n## ")[1:]
QUERIES = {
    section.partition("\n")[0]: query
    for section in SECTIONS
    for query in re.findall(r"```sql\n(.*?)```", section, re.DOTALL)
}

# Passed of four attempts in the second of two runs; in the first, the pinned baseline, some differed:
#                 easy  hard  rare  nobody
# atlas-large T0     4     2     1       0      hard 0
# atlas-large T1     4     3     2       0
# boreal-mini T0     3     1     0       0      easy 4, hard 3, rare 1
# An attempt costs $0.04 with atlas-large and $0.01 with boreal-mini; the judge gives .9 to a pass and .3 to a failure.
ATLAS, BOREAL = "atlas-large", "boreal-mini"
PROBLEMS = "oid,filename,suite\neasy,a.py,python\nhard,b.py,python\nrare,c.tf,terraform\nnobody,d.tf,terraform\n"
HEADER = "oid,iteration_id,tier,plausible_fix,weighted_score,cost_usd\n"
REFUSED = "easy,9,T1,maybe,,\n"

# Per example the columns that are compared and their rows. Ends of intervals and p-values are left to other tests.
ANSWERS: dict[str, tuple[str, list[tuple]]] = {
    "Leaderboard": (
        "model tier pass_at_k",
        [(ATLAS, "T1", 2.25 / 4), (ATLAS, "T0", 1.75 / 4), (BOREAL, "T0", 1 / 4)],
    ),
    "Best model per suite": (
        "suite tier best_model score",
        [
            ("python", "T0", ATLAS, 6 / 8),
            ("python", "T1", ATLAS, 7 / 8),
            ("terraform", "T0", ATLAS, 1 / 8),
            ("terraform", "T1", ATLAS, 2 / 8),
        ],
    ),
    "A model in slices": (
        "model tier value problems pass_at_1",
        [
            (ATLAS, "T1", "python", 2, 7 / 8),
            (ATLAS, "T0", "python", 2, 6 / 8),
            (BOREAL, "T0", "python", 2, 4 / 8),
            (ATLAS, "T1", "terraform", 2, 2 / 8),
            (ATLAS, "T0", "terraform", 2, 1 / 8),
            (BOREAL, "T0", "terraform", 2, 0.0),
        ],
    ),
    "Cheapest model that solves a problem": (
        "oid model tier cost_of_pass",
        [("rare", ATLAS, "T1", 0.04 / 0.5), ("hard", BOREAL, "T0", 0.01 / 0.25), ("easy", BOREAL, "T0", 0.01 / 0.75)],
    ),
    "Hardest problems": (
        "oid mean_pass_rate models_solving",
        [("nobody", 0, 0), ("rare", 0.75 / 3, 1), ("hard", 1.5 / 3, 2), ("easy", 2.75 / 3, 2)],
    ),
    "Problems that only one model solves": ("oid model passes attempts", [("rare", ATLAS, 3, 8)]),
    "Where two models disagree": (
        "oid atlas_large boreal_mini difference",
        [("easy", 1, 0.75, 0.25), ("hard", 0.5, 0.25, 0.25), ("rare", 0.25, 0, 0.25), ("nobody", 0, 0, 0)],
    ),
    "Cost against quality": (
        "model tier pass_rate cost_of_pass composite_median grade",
        [
            (BOREAL, "T0", 0.25, 0.01 / 0.25, 0.15, "F"),
            (ATLAS, "T1", 0.5625, 0.04 / 0.5625, 0.95, "A"),
            (ATLAS, "T0", 0.4375, 0.04 / 0.4375, 0.15, "F"),
        ],
    ),
    "Tier trend": (
        "model tier composite_median uplift",
        [(ATLAS, "T0", 0.15, 0), (ATLAS, "T1", 0.95, 0.8 / 0.15), (BOREAL, "T0", 0.15, 0)],
    ),
    "Any other k, from the counts": (
        "model tier pass_at_3 pass_hat_3",
        [
            (ATLAS, "T0", (1 + 1 + 3 / 4) / 4, 1 / 4),
            (ATLAS, "T1", 3 / 4, (1 + 1 / 4) / 4),
            (BOREAL, "T0", (1 + 3 / 4) / 4, (1 / 4) / 4),
        ],
    ),
    "What was refused, and why": ("kind rows", [("bad_boolean", 1)]),
    "Which model is better, and how sure that is": (
        "model_a model_b tier difference",
        [(ATLAS, BOREAL, "T0", 0.25 - 0.4375)],
    ),
    "What changed against the pinned baseline": ("regressions improvements worse_models", [(1, 1, 0)]),
    "A figure over time": (
        "model tier pass_at_1",
        [
            (ATLAS, "T0", 1.25 / 4),
            (ATLAS, "T0", 1.75 / 4),
            (ATLAS, "T1", 2.25 / 4),
            (ATLAS, "T1", 2.25 / 4),
            (BOREAL, "T0", 2 / 4),
            (BOREAL, "T0", 1 / 4),
        ],
    ),
    "Worst regressions over time": (
        "model tier oid previous pass_rate change",
        [
            (BOREAL, "T0", "hard", 0.75, 0.25, -0.5),
            (BOREAL, "T0", "easy", 1, 0.75, -0.25),
            (BOREAL, "T0", "rare", 0.25, 0, -0.25),
        ],
    ),
    "How reliable a model is": (
        "model tier flip_rate consistency k pass_at_k pass_hat_k",
        [
            (ATLAS, "T0", 2 / 4, (1 + 1 / 3 + 1 / 2 + 1) / 4, 1, 0.4375, 0.4375),
            (ATLAS, "T1", 2 / 4, (1 + 1 / 2 + 1 / 3 + 1) / 4, 1, 0.5625, 0.5625),
            (BOREAL, "T0", 2 / 4, (1 / 2 + 1 / 2 + 1 + 1) / 4, 1, 0.25, 0.25),
        ],
    ),
    "Which problems flip": (
        "oid flipping consistency",
        [
            ("hard", 3, (1 / 3 + 1 / 2 + 1 / 2) / 3),
            ("rare", 2, (1 / 2 + 1 / 3 + 1) / 3),
            ("easy", 1, (1 + 1 + 1 / 2) / 3),
            ("nobody", 0, 1),
        ],
    ),
    # Nothing is validated here; see test_attempt_detail.
    "Which tests fail most": ("oid test attempts not_passed", []),
    "More problems or more samples": (
        "model tier plan problems samples extra_attempts extra_cost_usd advised",
        [
            (model, tier, plan, problems, samples, extra, extra * cost, advised)
            for model, tier, cost in ((ATLAS, "T0", 0.04), (ATLAS, "T1", 0.04), (BOREAL, "T0", 0.01))
            for plan, problems, samples, extra, advised in (
                ("now", 4, 4, 0, None),
                ("problems x2", 8, 4, 16, True),
                ("samples x2", 4, 8, 16, False),
                ("problems x4", 16, 4, 48, True),
                ("samples x4", 4, 16, 48, False),
            )
        ],
    ),
    "What a pass costs, and who is worth it": (
        "model tier pass_rate cost_per_attempt cost_of_pass pareto",
        [
            (BOREAL, "T0", 0.25, 0.01, 0.04, True),
            (ATLAS, "T1", 0.5625, 0.04, 0.04 / 0.5625, True),
            (ATLAS, "T0", 0.4375, 0.04, 0.04 / 0.4375, False),
        ],
    ),
    "Which model for which suite": (
        "suite model tier cost_of_pass second_model second_cost_of_pass",
        [
            ("python", BOREAL, "T0", 0.01 / (4 / 8), ATLAS, 0.04 / (7 / 8)),
            ("terraform", ATLAS, "T1", 0.04 / (2 / 8), ATLAS, 0.04 / (1 / 8)),
        ],
    ),
    # The first and third attempts choose and the others judge, and the other way round. For `suite`: boreal-mini for
    # python both times; for terraform atlas-large T0, which then never passes, and T1.
    "What routing saves": (
        "policy pass_rate cost_of_pass saving",
        [
            ("problem", 0.3125, 0.092, 1 - 0.092 / (0.025 / 0.375)),
            ("suite", (0.125 + 0.5) / 2, 0.025 / 0.3125, 1 - 0.08 / (0.025 / 0.375)),
            ("single", (0.125 + 0.625) / 2, 0.025 / 0.375, 0),
        ],
    ),
}  # fmt: skip


def attempts(tier: str, passed: tuple[int, ...], cost: float) -> str:
    """Four attempts at each problem, of which the first so many pass."""
    oids = ("easy", "hard", "rare", "nobody")
    return "".join(
        f"{oid},{i},{tier},{i < c},{0.9 if i < c else 0.3},{cost}\n"
        for oid, c in zip(oids, passed, strict=True)
        for i in range(4)
    )


def write_fixes(folder: Folder, atlas: tuple[int, ...], boreal: tuple[int, ...]) -> None:
    stronger = attempts("T1", (4, 3, 2, 0), 0.04)
    folder.fixes(ATLAS, HEADER + attempts("T0", atlas, 0.04) + stronger + REFUSED)
    folder.fixes(BOREAL, HEADER + attempts("T0", boreal, 0.01))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of two runs, the first of them pinned as the baseline."""

    def make(root: Path) -> None:
        folder = Folder(root)
        folder.problems(PROBLEMS)
        folder.configure(k_values=[1, 5, 10], slices=["suite"], publish=WITH_WAREHOUSE)
        write_fixes(folder, atlas=(4, 0, 1, 0), boreal=(4, 3, 1, 0))
        assert evaluate(folder).exit_code == 0
        pin(folder.output, "latest", "baseline")
        write_fixes(folder, atlas=(4, 2, 1, 0), boreal=(3, 1, 0, 0))
        assert evaluate(folder, accept=True).exit_code == 0

    return Folder(made_once(tmp_path_factory, "tiny", make)).output


@pytest.fixture(scope="module")
def warehouse(results: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(results / "warehouse.duckdb"), read_only=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def sql_command(results: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """What `touchstone sql` asks in its own process."""
    with closing(locked_connection(results / "tables", 2**30)) as connection:
        yield connection


def test_every_example_has_an_answer_here() -> None:
    assert list(QUERIES) == list(ANSWERS)
    assert all(section.count("```sql") == 1 for section in SECTIONS)


@pytest.mark.services
@pytest.mark.parametrize("title", QUERIES)
def test_the_examples_answers(
    warehouse: duckdb.DuckDBPyConnection, sql_command: duckdb.DuckDBPyConnection, title: str
) -> None:
    columns, expected = ANSWERS[title]
    found = warehouse.sql(QUERIES[title])
    rows = [tuple(row[found.columns.index(name)] for name in columns.split()) for row in found.fetchall()]
    assert rows == [tuple(pytest.approx(cell) if isinstance(cell, float) else cell for cell in row) for row in expected]
    assert sql_command.sql(require_select(sql_command, QUERIES[title])).fetchall() == found.fetchall()


@pytest.mark.services
def test_what_is_not_worked_out_by_hand_is_plausible(warehouse: duckdb.DuckDBPyConnection) -> None:
    for _, _, figure, low, high in warehouse.sql(QUERIES["Leaderboard"]).fetchall():
        assert 0 <= low < figure < high <= 1
    [pair] = warehouse.sql(QUERIES["Which model is better, and how sure that is"]).fetchall()
    assert pair[4] < pair[3] < pair[5] and 0 < pair[6] <= 1 and pair[7] not in ("better", "worse")


@pytest.mark.nightly
def test_the_history_of_problems_has_every_snapshot_once_and_forgets_removed_ones(evaluated: Folder) -> None:
    folder = evaluated

    def history() -> list[tuple]:
        with duckdb.connect() as connection:
            create_views(connection, folder.output / "tables")
            query = "SELECT snapshot, model, oid, n, c, pass_rate FROM problem_history ORDER BY made_at, model, oid"
            return connection.sql(query).fetchall()

    [first] = list_snapshots(folder.output)
    before = [(first.id, "m", "a", 2, 1, 0.5), (first.id, "m", "b", 2, 0, 0.0)]
    assert history() == before
    assert evaluate(folder).exit_code == 0
    assert history() == before
    kept = folder.output / ".store" / "draft" / "tables" / "problem_history" / f"{first.id}.parquet"
    written = kept.stat().st_mtime_ns
    folder.fixes("m", "oid,iteration_id,plausible_fix\na,1,\nb,1,true\n")
    assert evaluate(folder).exit_code == 0
    _, second = list_snapshots(folder.output)
    assert history() == [*before, (second.id, "m", "a", 0, 0, None), (second.id, "m", "b", 1, 1, 1.0)]
    assert kept.stat().st_mtime_ns == written
    prune(folder.output, keep=1)
    assert evaluate(folder).exit_code == 0
    assert {row[0] for row in history()} == {second.id}
