"""The audit of the problems: worked examples, what must hold, scipy's figures, every verdict, and the report."""

import math
from dataclasses import astuple
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from polars.testing import assert_frame_equal

from tests.publish.report.results import reported
from touchstone.audit.problems import audited_leaderboard, problem_audit
from touchstone.comparison.pairs import ComparisonSettings, model_comparison
from touchstone.inference.arrays import Floats, Integers
from touchstone.publish.audit import problem_sentences
from touchstone.publish.report.sections import sections
from touchstone.tables import TABLES, conform, violations

NOISE, BASELINES = (pl.LazyFrame(schema=TABLES[name].dtypes) for name in ("validator_noise", "baselines"))
ALPHA = 0.05


def counts_of(passed: Integers, attempts: int | Integers = 1, tier: str = "T0") -> pl.LazyFrame:
    """`problem_pass_at_k` of models (rows) and problems (columns); no attempt at a problem if there are 0 attempts."""
    n = np.broadcast_to(attempts, passed.shape)
    names = [(f"m{model:03}", f"p{problem:03}") for model, problem in np.ndindex(passed.shape)]
    named = pl.DataFrame(names, schema=["model", "oid"], orient="row")
    return named.with_columns(tier=pl.lit(tier), k=1, n=n.ravel(), c=np.minimum(n, passed).ravel()).lazy()


def audited(
    counts: pl.LazyFrame, noise: pl.LazyFrame = NOISE, baselines: pl.LazyFrame = BASELINES, alpha: float = ALPHA
) -> pl.DataFrame:
    table = TABLES["problem_audit"]
    rows = conform(problem_audit(counts, noise, baselines, alpha), table)
    assert not violations(rows, table)
    return rows.collect()


def verdicts(rows: pl.DataFrame) -> list[str]:
    return rows.sort("tier", "oid")["verdict"].to_list()


# Model i passes the problems 0 to i: the later, the better. The last problem is passed by the three worst.
GUTTMAN = np.column_stack([np.tri(6, 6, dtype=np.int64), [1, 1, 1, 0, 0, 0]])


def test_worked_example_of_an_inverted_problem() -> None:
    row = audited(counts_of(GUTTMAN)).row(6, named=True)
    # All 9 pairs of a passing and a failing model are discordant, and 15 pairs differ in pass@1 on the others.
    assert row["discrimination"] == pytest.approx(-9 / math.sqrt(9 * 15))
    # The variance of S is that of the rank sum of 3 of 6 models: 3 * 3 * 7 / 3.
    assert row["p_value"] == pytest.approx(scipy.stats.norm.cdf((-9 + 1) / math.sqrt(21)))
    assert (row["models"], row["share_of_models"], row["attempts"], row["share_of_attempts"]) == (6, 0.5, 6, 0.5)
    # Without it, the pass rates 2/7, 3/7, 4/7, 4/7, 5/7 and 6/7 are those of 1 to 6 problems of 6.
    assert (row["models_reranked"], row["largest_rank_change"]) == (1, 1)
    assert row["largest_pass_at_1_change"] == pytest.approx(6 / 6 - 6 / 7)


MATRICES = st.tuples(st.integers(6, 9), st.integers(2, 7)).flatmap(
    lambda shape: st.tuples(
        arrays.arrays(np.int64, shape, elements=st.integers(0, 3)),
        arrays.arrays(np.int64, shape, elements=st.integers(0, 3)),
    )
)


def rounded_means(rates: Floats) -> Floats:
    return np.round([np.nanmean(each) if np.isfinite(each).any() else np.nan for each in rates], 12)


@given(MATRICES)
def test_discrimination_and_p_values_are_those_of_scipy_with_the_correction_for_continuity(
    matrices: tuple[Integers, Integers],
) -> None:
    passed, attempts = matrices
    rates = np.where(attempts > 0, np.minimum(passed, attempts) / np.maximum(attempts, 1), np.nan)
    expected: dict[str, tuple[float, float]] = {}
    for problem, mine in enumerate(rates.T):
        rest = rounded_means(np.delete(rates, problem, axis=1))
        both = np.isfinite(mine) & np.isfinite(rest)
        if both.sum() < 6 or 1 in (len(set(mine[both])), len(set(rest[both]))):
            continue
        theirs = scipy.stats.kendalltau(mine[both], rest[both], method="asymptotic", alternative="less")
        signs = (np.sign(values[both][:, None] - values[both]) for values in (mine, rest))
        s = np.sum(np.prod(list(signs), axis=0)) / 2
        # scipy gives no variance, and none can be had from S = 0.
        z = (s + 1) * scipy.stats.norm.ppf(theirs.pvalue) / s if s else np.nan
        expected[f"p{problem:03}"] = theirs.statistic, z
    rows = audited(counts_of(passed, attempts)).drop_nulls("discrimination")
    assert dict(rows.select("oid", "discrimination").iter_rows()) == pytest.approx(
        {oid: tau for oid, (tau, _) in expected.items()}, abs=1e-12
    )
    z = np.array([z for _, z in expected.values()])
    if len(z) and np.isfinite(z).all():
        many = np.mean(z < 0) >= 0.25
        spread = max(1.0, np.median(-z[z < 0]) / scipy.stats.norm.ppf(0.75)) if many else 1.0
        assert rows["p_value"].to_list() == pytest.approx(scipy.stats.norm.cdf(z / spread).tolist(), rel=1e-9)


@given(MATRICES)
def test_what_changes_is_what_leaving_the_problem_out_changes(matrices: tuple[Integers, Integers]) -> None:
    passed, attempts = matrices
    rates = np.where(attempts > 0, np.minimum(passed, attempts) / np.maximum(attempts, 1), np.nan)
    whole = rounded_means(rates)
    for row in audited(counts_of(passed, attempts)).iter_rows(named=True):
        rest = rounded_means(np.delete(rates, int(row["oid"][1:]), axis=1))
        ranked = np.isfinite(rest)
        if ranked.any():
            places = [np.sum(values[:, None] < values[None, :], axis=1) for values in (whole, rest)]
            moved = np.abs(places[0] - places[1])[ranked]
            assert (row["models_reranked"], row["largest_rank_change"]) == (np.count_nonzero(moved), moved.max())
            change = np.abs(rest - whole)[ranked].max()
            assert row["largest_pass_at_1_change"] == pytest.approx(change, abs=1e-9)


def test_the_p_value_of_few_models_is_near_the_exact_one() -> None:
    passes = np.array([1, 1, 1, 1, 0, 1, 0, 0, 0, 0])
    strengths = np.arange(10)
    order = np.random.default_rng(0).permuted(np.tile(passes, (200_000, 1)), axis=1)
    exact = np.mean(order @ strengths <= passes @ strengths)
    problems = np.column_stack([np.tri(10, 9, dtype=np.int64), passes])
    [p_value] = audited(counts_of(problems)).filter(oid="p009")["p_value"]
    assert exact < p_value < 2 * exact


# Verdicts


def test_every_verdict_from_outcomes() -> None:
    rng = np.random.default_rng(1)
    strengths, difficulties = np.linspace(-2, 2, 40), rng.normal(0, 1, 30)
    passed = (rng.random((40, 30)) < 1 / (1 + np.exp(difficulties - strengths[:, None]))).astype(np.int64)
    passed[:, 0], passed[:, 1], passed[:, 2] = 1, 0, np.arange(40) < 20
    passed[:, 4] = passed[:, 3]
    rows = audited(counts_of(passed))
    assert verdicts(rows)[:5] == ["saturated", "unsolved", "suspect", "ok", "redundant"]
    assert rows["same_as"].to_list()[:5] == [None, None, None, None, "p003"]
    assert rows["discrimination"].to_list()[:2] == [None, None] and rows["p_adjusted"][2] < 0.001
    at_any_level = audited(counts_of(passed), alpha=1.0).filter(verdict="suspect")
    assert at_any_level["oid"].to_list() == ["p002"]
    adjusted = rows.drop_nulls("p_value")
    theirs = scipy.stats.false_discovery_control(adjusted["p_value"].to_numpy(), method="bh")
    assert adjusted["p_adjusted"].to_list() == pytest.approx(theirs.tolist())


def test_two_problems_that_all_solve_or_none_does_are_not_redundant() -> None:
    passed = np.column_stack([np.tri(6, 5, dtype=np.int64), np.ones((6, 2), int), np.zeros((6, 2), int)])
    assert verdicts(audited(counts_of(passed)))[-4:] == ["saturated"] * 2 + ["unsolved"] * 2


def test_fewer_than_six_models_cannot_judge_a_problem() -> None:
    rows = audited(counts_of(GUTTMAN[:5]))
    assert set(rows["verdict"]) == {"not judged"} and rows["discrimination"].count() == rows["p_value"].count() == 0
    sentences = problem_sentences(rows.lazy(), TABLES["audited_leaderboard"].dtypes.to_frame())
    assert sentences == ["The problems cannot be judged: fewer than six models attempted them."]


def test_a_problem_that_fewer_than_six_models_attempted_is_not_judged_beside_others_that_are() -> None:
    attempts = np.ones_like(GUTTMAN)
    attempts[0, 3] = 0
    rows = audited(counts_of(GUTTMAN, attempts))
    assert verdicts(rows).count("not judged") == 1 and rows["verdict"][3] == "not judged"
    assert rows["models"][3] == 5
    board = TABLES["audited_leaderboard"].dtypes.to_frame()
    assert "1 problem cannot be judged: fewer than six models attempted it." in problem_sentences(rows.lazy(), board)


def test_one_problem_alone_says_nothing_about_itself() -> None:
    [row] = audited(counts_of(GUTTMAN[:, :1])).to_dicts()
    undefined = ("discrimination", "p_value", "models_reranked", "largest_rank_change", "largest_pass_at_1_change")
    assert row["verdict"] == "not judged" and {row[name] for name in undefined} == {None}


def test_what_validation_found_counts_with_any_number_of_models() -> None:
    noise = pl.DataFrame({"oid": ["p000", "p001"], "flaky": [True, False]})
    baselines = pl.DataFrame(
        {
            "oid": ["p001", "p002", "p003", "p004"],
            "reference_status": ["passed", "failed", None, "passed"],
            "fails_as_recorded": [True, True, False, None],
        }
    )
    rows = audited(counts_of(GUTTMAN[:2]), noise.lazy(), baselines.lazy())
    assert verdicts(rows) == ["flaky", "not judged", "suspect", "suspect", "not judged", "not judged", "not judged"]
    assert rows["flaky"].to_list()[:3] == [True, False, None]
    assert rows["reference_fails"].to_list()[:5] == [None, False, True, None, False]
    assert rows["baseline_passes"].to_list()[:5] == [None, False, False, True, None]


def test_every_tier_is_judged_alone_and_no_order_of_rows_matters() -> None:
    both = pl.concat([counts_of(GUTTMAN), counts_of(GUTTMAN[::-1], tier="T1")])
    # A model may have any name.
    both = both.with_columns(pl.col("model").replace({"m000": "oid", "m001": "first"}))
    rows = audited(both)
    assert_frame_equal(rows.filter(tier="T0"), audited(counts_of(GUTTMAN)))
    assert_frame_equal(audited(both.collect().sample(fraction=1, shuffle=True, seed=3).lazy()), rows)


def test_no_outcome_is_an_empty_table() -> None:
    assert audited(counts_of(GUTTMAN).clear()).is_empty()
    assert audited(counts_of(GUTTMAN, np.zeros_like(GUTTMAN))).is_empty()


# Without the suspects


def listed(counts: pl.LazyFrame) -> pl.LazyFrame:
    return counts.select("oid", cluster=pl.lit(None, pl.String)).unique(maintain_order=True)


def flipped(models: int = 30, problems: int = 60, flips: int = 4) -> Integers:
    rng = np.random.default_rng(5)
    strengths, difficulties = np.linspace(-2, 2, models), rng.normal(0, 1, problems)
    passed = rng.binomial(3, 1 / (1 + np.exp(difficulties - strengths[:, None])))
    passed[:, :flips] = 3 - passed[:, :flips]
    return passed


def test_the_leaderboard_and_the_verdicts_are_those_of_a_benchmark_without_the_suspects() -> None:
    passed = flipped()
    settings = astuple(ComparisonSettings())
    counts = counts_of(passed, 3)
    problems = listed(counts)
    audit = audited(counts)
    suspects = audit.filter(verdict="suspect")["oid"].sort().to_list()
    assert suspects == ["p000", "p001", "p002", "p003"]
    pairs = model_comparison(counts, problems, *settings).collect()
    board = audited_leaderboard(audit.lazy(), counts, problems, pairs.lazy(), *settings)
    table = TABLES["audited_leaderboard"]
    assert not violations(conform(board, table), table)
    rows = board.collect()

    rates = passed / 3
    assert rows["pass_at_1"].to_list() == pytest.approx(rates.mean(axis=1).tolist())
    without = rates[:, 4:].mean(axis=1)
    assert rows["pass_at_1_without_suspects"].to_list() == pytest.approx(without.tolist())
    assert (
        rows["rank_without_suspects"].to_list()
        == (1 + (without.round(12)[:, None] < without.round(12)).sum(1)).tolist()
    )
    assert set(rows["suspects"]) == {4} and set(rows["problems"]) == {60}

    alone = model_comparison(counts.filter(~pl.col("oid").is_in(suspects)), problems, *settings).collect()
    changed = pairs.with_columns(now=alone["verdict"]).filter(pl.col("verdict") != pl.col("now"))
    assert changed.height and rows["changed_verdicts"].sum() == 2 * changed.height
    first = changed.row(0, named=True)
    expected = f"{first['model_a']}: {first['verdict']} → {first['now']}"
    [said] = rows.filter(model=first["model_b"])["changes"]
    assert expected in said
    assert f"and {changed.height} verdicts between models change." in problem_sentences(audit.lazy(), rows)[-1]


def test_without_a_suspect_nothing_changes() -> None:
    settings, counts = astuple(ComparisonSettings()), counts_of(GUTTMAN)
    problems = listed(counts)
    pairs = model_comparison(counts, problems, *settings)
    rows = audited_leaderboard(audited(counts).lazy(), counts, problems, pairs, *settings).collect()
    assert rows["pass_at_1"].equals(rows["pass_at_1_without_suspects"]) and rows["rank"].to_list() == [6, 5, 3, 3, 2, 1]
    assert rows["changed_verdicts"].sum() == 0 and rows["changes"].count() == 0


# In the report


def test_the_report_names_the_suspects(tmp_path: Path) -> None:
    counts = counts_of(flipped(20, 30, 1), 3).with_columns(oid=pl.format("<b>{}</b>", "oid"))
    problems, settings = listed(counts), astuple(ComparisonSettings())
    pairs = model_comparison(counts, problems, *settings)
    audit = audited(counts)
    board = audited_leaderboard(audit.lazy(), counts, problems, pairs, *settings).collect()
    run = reported(tmp_path, problem_audit=audit.to_dicts(), audited_leaderboard=board.to_dicts())
    [tables] = [tables for section, tables in sections(run) if section.title == "Can the problems be trusted?"]
    assert "1 problem is suspect: <b>p000</b>." in tables[0].notes
    assert [table.id for table in tables][1:] == ["audited-problems-table", "audited-leaderboard-table"]
    assert tables[1].cells()[0][0].text == "<b>p000</b>"
