"""The formulas in SQL and in Polars give the same, on random data and at the edges."""

import random
from collections.abc import Iterator

import duckdb
import polars as pl
import pytest

from touchstone.config.scoring import CodeWeights, CompositeWeights, Scoring
from touchstone.metrics import attempts as metric
from touchstone.metrics import reliability
from touchstone.metrics.tiers import uplift
from touchstone.publish.settings import scoring_settings
from touchstone.publish.views import macros

ROWS = 3000
EDGES = [None, 0.0, 0.65, 0.75, 0.85, 0.95, 1.0]
DEFAULT = Scoring()
OTHER = Scoring(
    composite=CompositeWeights(pass_rate=2, impl_rate=1, missing="zero"),
    code=CodeWeights(compilation=0.2, tests=0.5, lint=0.1, structure=0.2, per_warning=0.25),
    grades={"fine": 0.75, "it's excellent": 0.85, "fair": 0.4, "poor": 0.1},
    failing_grade="none",
)


def random_rows() -> pl.DataFrame:
    chance = random.Random(7)

    def share() -> float | None:
        return chance.choice(EDGES) if chance.random() < 0.4 else chance.random()

    def count() -> int | None:
        return None if chance.random() < 0.2 else chance.randint(0, 12)

    rows = [
        (share(), share(), share(), chance.choice([None, True, False]), count(), count(), count()) for _ in range(ROWS)
    ]
    floats, counts = ["rate", "score", "cost"], ["passed", "failed", "warnings"]
    schema = dict.fromkeys(floats, pl.Float64) | {"compiled": pl.Boolean} | dict.fromkeys(counts, pl.Int64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def connected(settings: dict[str, object]) -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    for macro in macros(settings):
        made.execute(macro)
    return made


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connected({}) as made:
        yield made


def formulas(scoring: Scoring) -> dict[str, pl.Expr]:
    tests = metric.test_score(pl.col("passed"), pl.col("failed"))
    lint = metric.lint_score(pl.col("warnings"), scoring.code)
    return {
        "composite_score(rate, score)": metric.composite_score(pl.col("rate"), pl.col("score"), scoring.composite),
        "cost_of_pass(cost, rate)": metric.cost_of_pass(pl.col("cost"), pl.col("rate")),
        "letter_grade(score)": metric.grade(pl.col("score"), scoring),
        "uplift(score, rate)": uplift(pl.col("score"), pl.col("rate")),
        "code_score(compiled, passed, failed, warnings, structure_score := rate)": metric.code_score(
            pl.col("compiled").cast(pl.Float64), tests, lint, pl.col("rate"), scoring.code
        ),
    }


@pytest.mark.parametrize("sql", formulas(DEFAULT))
@pytest.mark.parametrize("scoring", [DEFAULT, OTHER], ids=["defaults", "configured"])
def test_sql_and_polars_agree(scoring: Scoring, sql: str) -> None:
    rows = random_rows()
    ours = rows.select(value=formulas(scoring)[sql])["value"]
    with connected(scoring_settings(scoring)) as connection:
        connection.register("rows", rows.to_arrow())
        theirs = pl.Series(value for (value,) in connection.execute(f"SELECT {sql} FROM rows").fetchall())
    assert ours.null_count() > 0 and ours.drop_nulls().n_unique() > 4
    assert theirs.is_null().equals(ours.is_null())
    if ours.dtype == pl.String:
        assert theirs.equals(ours)
    else:
        near = ((theirs - ours).abs() <= 1e-12 * ours.abs().clip(1)) | (theirs == ours)
        assert near.drop_nulls().all()


def test_what_a_run_of_another_version_does_not_say_is_the_default() -> None:
    with connected({"scoring.code.tests": 0.6, "scoring.new": 1}) as connection:
        sql = "SELECT code_score(true, 1, 0, 0), letter_grade(0.9), composite_score(1, NULL)"
        assert connection.execute(sql).fetchall() == [(pytest.approx(1.1), "B", None)]


def test_a_negative_cost_is_refused(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match=r"a cost cannot be negative, got -1"):
        connection.execute("SELECT cost_of_pass(-1, 1)").fetchall()


def test_composite_score_with_weights(connection: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT composite_score(0.8, 0.6, pass_weight := 2, impl_weight := 1)"
    assert connection.execute(sql).fetchall()[0][0] == pytest.approx(0.73333, abs=5e-6)


def test_flips_and_consistency_agree_with_polars_on_every_small_case(connection: duckdb.DuckDBPyConnection) -> None:
    pairs = [(n, c) for n in range(31) for c in range(n + 1)] + [(None, 1), (2, None), (None, None)]
    cases = pl.DataFrame(pairs, schema={"n": pl.Int64, "c": pl.Int64}, orient="row")
    n, c = pl.col("n"), pl.col("c")
    ours = cases.select(reliability.flips(n, c), alike=reliability.consistency(n, c)).rows()
    connection.register("cases", cases.to_arrow())
    theirs = connection.execute("SELECT flips(n, c), consistency(n, c) FROM cases").fetchall()
    connection.unregister("cases")
    assert theirs == ours
    assert sum(flipped is None for flipped, _ in ours) == sum(alike is None for _, alike in ours) == 6


def test_consistency_of_many_attempts_held_as_small_integers(connection: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT consistency(100000::INTEGER, 50000::INTEGER), flips(200::UTINYINT, 100::UTINYINT)"
    assert connection.execute(sql).fetchall() == [(pytest.approx(0.499995, abs=1e-9), True)]


@pytest.mark.parametrize("macro", ["flips", "consistency"])
def test_more_passes_than_attempts_is_an_error(connection: duckdb.DuckDBPyConnection, macro: str) -> None:
    with pytest.raises(duckdb.Error, match="there cannot be 6 passes among 5 attempts"):
        connection.execute(f"SELECT {macro}(5, 6)").fetchall()
