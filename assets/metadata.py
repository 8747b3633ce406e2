"""The metadata of a table in the Dagster UI: its chart, figures over time, row count, first rows, and columns.

How rows look belongs in `touchstone.publish.previews`; which figures are plotted is declared in `FIGURES`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from touchstone.evaluation import Evaluation
from touchstone.storage.store import Part
from touchstone.tables import TABLES
from touchstone.text import visible
from touchstone.vocabulary import PROBLEM_VERDICTS, VERDICTS

if TYPE_CHECKING:
    import polars as pl

# Dagster's tag of a materialization.
DATA_VERSION = "dagster/data_version"
# Not Dagster's own key, whose columns fill the page before the figures.
COLUMNS = "columns"
_MAX_MODELS = 200
Figures = Mapping[str, Any]
_LEADERBOARD_ROWS = 200
_CASE_FIGURES = ("regressions", "expected_by_chance", "improvements", "lost", "compared_by_pass_rate")


def table_metadata(table: str) -> dict[str, Any]:
    """The metadata of a table before it is materialized."""
    declared = TABLES[table]
    return {
        "grain": f"one row per {declared.grain}",
        "made_by": f"{declared.code[0]}:{table}",
        **({"settings": ", ".join(declared.settings)} if declared.settings else {}),
        COLUMNS: _columns(table),
    }


def table_result(evaluation: Evaluation, table: str, parts: Mapping[str, Part]) -> dg.MaterializeResult[None]:
    """A table that was made or found current, for the UI: what people look for first comes first."""
    import polars as pl

    from touchstone.publish.previews import MAX_CHARACTERS, inline_chart, preview

    store, declared = evaluation.store, TABLES[table]
    frame = store.scan(table)
    chart = inline_chart(table, frame) if evaluation.config.publish.charts else None
    # The parts of models can be many and large: the largest shows what is in them.
    part = max(parts.values(), key=lambda part: part.rows)
    rows = pl.scan_parquet(part.path, glob=False) if declared.per_model or len(parts) == 1 else frame
    snapshot = evaluation.publish.snapshot if table == "history" else None
    metadata = {
        **({"chart": dg.MetadataValue.md(chart)} if chart else {}),
        **rounded(FIGURES[table](frame) if table in FIGURES else {}),
        "dagster/row_count": sum(part.rows for part in parts.values()),
        # Of most tables some rows are shown at once; a table of Dagster would fill the panel beside the graph.
        "preview": dg.MetadataValue.md(preview(rows, table).markdown(MAX_CHARACTERS)),
        **(_models(evaluation, table, parts) if declared.per_model else {}),
        **({} if declared.per_model else {"unchanged_and_reused": all(part.reused for part in parts.values())}),
        **({"snapshot": snapshot.id} if snapshot else {}),
        **rounded(evaluation.run_log.figures(table)),
        # The asset spec lists the contract's columns; repeating them in every event would bloat the history.
        **({COLUMNS: _columns(table, part)} if declared.extras else {}),
    }
    return dg.MaterializeResult(table, metadata=metadata, data_version=dg.DataVersion(store.fingerprint(table)))


def _columns(table: str, part: Part | None = None) -> dg.TableSchema:
    """The contract's columns with their descriptions, and the extra input columns of a part."""
    contract = TABLES[table]
    columns = [
        dg.TableColumn(name, field.type_name, description=field.description) for name, field in contract.fields.items()
    ]
    if part is not None:
        import polars as pl

        present = pl.read_parquet_schema(part.path)
        extras = [name for name in present if name not in contract.dtypes]
        columns += [dg.TableColumn(visible(name), str(present[name]), description=contract.extras) for name in extras]
    return dg.TableSchema(columns)


def _models(evaluation: Evaluation, table: str, parts: Mapping[str, Part]) -> dict[str, Any]:
    """A line per model, and how many models were made or reused."""
    import polars as pl

    from touchstone.publish.previews import preview

    counts = outcome_counts(evaluation.store.scan(table, list(parts))) if table == "outcomes" else {}
    lines = [
        {"model": model, "rows": part.rows, "reused": part.reused, **counts.get(model, {})}
        for model, part in parts.items()
    ]
    reused = sum(part.reused for part in parts.values())
    shown = dg.MetadataValue.md(preview(pl.LazyFrame(lines), "", _MAX_MODELS).markdown())
    return {"models": shown, "models_made": len(parts) - reused, "models_reused": reused}


# The figures of each table that the UI plots over time, and the leaderboard


def plotted(names: Sequence[str], figures: Sequence[str]) -> "Callable[[pl.LazyFrame], Figures]":
    """A function from a table to some of its figures, each labelled with the values of `names`."""

    def plot(table: "pl.LazyFrame") -> Figures:
        rows = table.select(*names, *figures).collect().iter_rows(named=True)
        return {
            visible(" ".join([*(str(row[of]) for of in names), name])): row[name] for row in rows for name in figures
        }

    return plot


def _files(sources: "pl.LazyFrame") -> Figures:
    totals = sources.select("rows", "accepted", "quarantined").sum().collect().row(0, named=True)
    return {**totals, **_counted("status", "files_")(sources)}


def _counted(column: str, prefix: str) -> "Callable[[pl.LazyFrame], Figures]":
    """A function from a table to the number of rows with each value of a column."""

    def count(table: "pl.LazyFrame") -> Figures:
        counts = table.group_by(column).len().sort(column).collect()
        return {f"{prefix}{value}": rows for value, rows in counts.iter_rows()}

    return count


def _by_k(pass_at_k: "pl.LazyFrame") -> Figures:
    figures = pass_at_k.select("model", "tier", "k", "pass_at_k").collect()
    numbers = {visible(f"{model} {tier} pass@{k}"): value for model, tier, k, value in figures.iter_rows()}
    return {**leaderboard_table(pass_at_k), **numbers}


def _unsolved(problem_frontier: "pl.LazyFrame") -> Figures:
    return {"unsolved_problems": problem_frontier.filter(models_solving=0).collect().height}


def _counted_verdicts(known: "Iterable[str]") -> "Callable[[pl.LazyFrame], Figures]":
    """A function from a table to the number of rows with each of the known verdicts."""

    def count(table: "pl.LazyFrame") -> Figures:
        verdicts = table.select("verdict").collect()["verdict"].to_list()
        return {verdict: verdicts.count(verdict) for verdict in known}

    return count


def _without_suspects(audited_leaderboard: "pl.LazyFrame") -> Figures:
    board = audited_leaderboard.select("rank", "rank_without_suspects", "changed_verdicts").collect()
    reranked = board["rank"].ne_missing(board["rank_without_suspects"]).sum()
    # A pair is counted by both of its sides.
    changed = board["changed_verdicts"].sum() // 2
    return {"reranked_without_suspects": reranked, "changed_verdicts_without_suspects": changed}


def _cases(regression_counts: "pl.LazyFrame") -> Figures:
    return regression_counts.select(_CASE_FIGURES).sum().collect().row(0, named=True)


def _kill_rate(test_strength: "pl.LazyFrame") -> Figures:
    totals = test_strength.select("mutants", "killed", "survived", "undecided", "weak").sum()
    row = totals.collect().row(0, named=True)
    decided = row["killed"] + row["survived"]
    return row | {"kill_rate": row["killed"] / decided if decided else None}


def _changes(change_points: "pl.LazyFrame") -> Figures:
    differences = change_points.select("difference").collect()["difference"]
    return {"change_points": len(differences), "falls": (differences < 0).sum()}


FIGURES: "Mapping[str, Callable[[pl.LazyFrame], Figures]]" = {
    "sources": _files,
    "quarantine": _counted("kind", "kind_"),
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
    "audit_flags": _counted("rule", "rule_"),
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
