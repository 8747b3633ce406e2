"""The figures of each table that the UI plots over time, and the leaderboard. The formulas belong in `touchstone`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from touchstone.text import visible
from touchstone.vocabulary import PROBLEM_VERDICTS, VERDICTS

if TYPE_CHECKING:
    import polars as pl

Figures = Mapping[str, Any]
_LEADERBOARD_ROWS = 200
_CASES = ("regressions", "expected_by_chance", "improvements", "lost", "compared_by_pass_rate")


def plotted(names: Sequence[str], figures: Sequence[str]) -> "Callable[[pl.LazyFrame], Figures]":
    """A function from a table to some of its figures, each labelled with the values of `names`."""

    def plot(table: "pl.LazyFrame") -> Figures:
        rows = table.select(*names, *figures).collect().iter_rows(named=True)
        return {
            visible(" ".join([*(str(row[of]) for of in names), name])): row[name] for row in rows for name in figures
        }

    return plot


def _files(sources: "pl.LazyFrame") -> Figures:
    import polars as pl

    totals = sources.select(pl.col("rows", "accepted", "quarantined").sum()).collect().row(0, named=True)
    statuses = sources.group_by("status").len().sort("status").collect()
    return totals | {f"files_{status}": files for status, files in statuses.iter_rows()}


def _kinds(quarantine: "pl.LazyFrame") -> Figures:
    return {f"kind_{kind}": rows for kind, rows in quarantine.group_by("kind").len().sort("kind").collect().iter_rows()}


def _by_k(pass_at_k: "pl.LazyFrame") -> Figures:
    figures = pass_at_k.select("model", "tier", "k", "pass_at_k").collect()
    numbers = {visible(f"{model} {tier} pass@{k}"): value for model, tier, k, value in figures.iter_rows()}
    return {**leaderboard_table(pass_at_k), **numbers}


def _unsolved(problem_frontier: "pl.LazyFrame") -> Figures:
    import polars as pl

    return {"unsolved_problems": problem_frontier.filter(pl.col("models_solving") == 0).collect().height}


def _counted_verdicts(known: "Iterable[str]") -> "Callable[[pl.LazyFrame], Figures]":
    """A function from a table to the number of rows with each of the known verdicts."""

    def count(table: "pl.LazyFrame") -> Figures:
        verdicts = table.select("verdict").collect()["verdict"].to_list()
        return {verdict: verdicts.count(verdict) for verdict in known}

    return count


def _without_suspects(audited_leaderboard: "pl.LazyFrame") -> Figures:
    import polars as pl

    reranked = pl.col("rank").ne_missing(pl.col("rank_without_suspects"))
    # A pair is counted by both of its sides.
    counts = audited_leaderboard.select(reranked=reranked.sum(), changed_verdicts=pl.col("changed_verdicts").sum() // 2)
    return {f"{name}_without_suspects": value for name, value in counts.collect().row(0, named=True).items()}


def _cases(regression_counts: "pl.LazyFrame") -> Figures:
    import polars as pl

    return regression_counts.select(pl.col(_CASES).sum()).collect().row(0, named=True)


def _kill_rate(test_strength: "pl.LazyFrame") -> Figures:
    import polars as pl

    totals = test_strength.select(pl.col("mutants", "killed", "survived", "undecided", "weak").sum()).collect()
    row = totals.row(0, named=True)
    decided = row["killed"] + row["survived"]
    return row | {"kill_rate": row["killed"] / decided if decided else None}


def _flags(audit_flags: "pl.LazyFrame") -> Figures:
    counts = audit_flags.group_by("rule").len().sort("rule").collect()
    return {f"rule_{rule}": flags for rule, flags in counts.iter_rows()}


def _changes(change_points: "pl.LazyFrame") -> Figures:
    import polars as pl

    return change_points.select(change_points=pl.len(), falls=(pl.col("difference") < 0).sum()).collect().to_dicts()[0]


FIGURES: "Mapping[str, Callable[[pl.LazyFrame], Figures]]" = {
    "sources": _files,
    "quarantine": _kinds,
    "pass_at_k": _by_k,
    "tiers": plotted(["model", "tier"], ["composite_median", "uplift"]),
    "cross_tier": plotted(
        ["model"], ["pass_rate_variance", "cost_variance", "score_variance", "cost_delta", "frontier_cost_of_pass"]
    ),
    "run_scores": plotted(["model", "tier"], ["overall_score"]),
    "model_statistics": plotted(["model", "tier"], ["total_cost_usd"]),
    "problem_frontier": _unsolved,
    "variance_split": plotted(["model", "tier"], ["standard_error", "share_from_problems"]),
    "reliability": plotted(["model", "tier"], ["flip_rate", "consistency"]),
    "economics": plotted(["model", "tier"], ["frontier_probability", "pareto_probability"]),
    "routing_policies": plotted(["policy"], ["saving"]),
    "model_comparison": _counted_verdicts(VERDICTS),
    "regression_counts": _cases,
    "problem_audit": _counted_verdicts(PROBLEM_VERDICTS),
    "audited_leaderboard": _without_suspects,
    "test_strength": _kill_rate,
    "contamination": plotted(["model", "tier", "column"], ["difference"]),
    "reference_overlap": plotted(["model", "tier"], ["overlap_passed", "overlap_failed"]),
    "audit_flags": _flags,
    "change_points": _changes,
    "pass_audit": plotted(["model", "tier"], ["flagged", "worth_a_look"]),
}


def leaderboard_table(pass_at_k: "pl.LazyFrame") -> dict[str, Any]:
    """The leaderboard as a table that the UI shows at once, the methods of its intervals, and what it leaves out."""
    from touchstone.publish.result_tables import leaderboard_of

    figures = pass_at_k.collect()
    board = leaderboard_of(figures)
    names = [column.header for column in board.written_columns]
    rows = board.cells(_LEADERBOARD_ROWS, board.written_columns)
    cut = {"leaderboard_rows": f"the best {len(rows):,} of {board.total:,}"} if len(rows) < board.total else {}
    methods = sorted(figures["ci_method"].drop_nulls().unique())
    records = [dg.TableRecord({name: cell.text for name, cell in zip(names, row, strict=True)}) for row in rows]
    schema = dg.TableSchema([dg.TableColumn(name) for name in names])
    return {
        "leaderboard": dg.MetadataValue.table(records, schema),
        **cut,
        "confidence_intervals": ", ".join(methods) or "none",
    }


def outcome_counts(outcomes: "pl.LazyFrame") -> dict[str, dict[str, int]]:
    """How many outcomes of each model passed, are undecided, were validated, or came from the cache."""
    import polars as pl

    counts = outcomes.group_by("model").agg(
        passed=pl.col("passed").sum(),
        undecided=pl.col("passed").is_null().sum(),
        validated_here=pl.col("applied").is_not_null().sum(),
        cache_hits=pl.col("cached").sum(),
    )
    return {row.pop("model"): row for row in counts.collect(engine="streaming").to_dicts()}


def rounded(figures: Figures) -> dict[str, Any]:
    """Figures with as many digits as people read and compare; those that are undefined are left out.

    >>> rounded({"a": 2 / 3, "b": None, "c": 0.00012345678, "d": 7})
    {'a': 0.6667, 'c': 0.0001235, 'd': 7}
    """
    short = {name: float(f"{value:.4g}") for name, value in figures.items() if isinstance(value, float)}
    return {name: short.get(name, value) for name, value in figures.items() if value is not None}
