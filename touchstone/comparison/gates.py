"""Gates that must be proven: whether each holds, failed, or cannot be decided, and what would settle it.

A gate holds if every value in the figure's confidence interval satisfies it, and failed if none does; everything else,
and what is undefined, is inconclusive. Counts, unlike estimates, are compared as they are.

The interval of `pass^k(problem)` is Clopper and Pearson's of the problem's pass rate p, carried over to p^k, or to
1 - (1 - p)^k for pass@k. That it holds `for all` problems is shown if it is for each (an intersection-union test, which
needs no correction: Berger 1982); that it fails for one, at a level divided by the number of problems (Bonferroni).

The language of the expressions is in `touchstone.config.gates`.
"""

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import polars as pl

from touchstone.comparison.planning import paired_data, single_data
from touchstone.config import IntervalSettings
from touchstone.config.gates import GateExpression, GateSettings, interval_columns, parse_gate
from touchstone.errors import TouchstoneError
from touchstone.inference.planning import MOST_ATTEMPTS, Goal
from touchstone.inference.quantiles import t_critical
from touchstone.metrics.keys import MODEL_TIER
from touchstone.metrics.pass_at_k import decided_counts, pass_at_k_of, pass_hat_k_of, problem_counts
from touchstone.tables import TABLES
from touchstone.tables.checks import CheckResult
from touchstone.text import counted, estimate, near, significant
from touchstone.vocabulary import GATE_ANSWERS

Row = dict[str, Any]

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
# The column that counts the problems behind an interval: the first of these that the table has.
_PROBLEMS = ("eligible", "repeated", "attempted", "problems", "ci_units")
_MOST_NAMED = 3


@dataclass(frozen=True)
class GateData:
    """The data that gates are answered from: tables by name, and how sure to be.

    `baseline` has the scores of the baseline's attempts; None if there is none. `exploratory` are the reasons why the
    two sides are not comparable.
    """

    table: Callable[[str], pl.LazyFrame]
    intervals: IntervalSettings
    power: float
    baseline: pl.LazyFrame | None = None
    exploratory: Sequence[str] = ()


def answer_gates(gates: GateSettings, data: GateData) -> pl.LazyFrame:
    """The table `gate_results`."""
    rows = [row for text in gates.expressions for row in _answer_gate(parse_gate(text), data)]
    return pl.LazyFrame(rows, schema=TABLES["gate_results"].dtypes)


def proven(comparison: str, low: float, high: float, bound: float) -> str:
    """The answer of a gate if the figure is from `low` to `high`.

    >>> proven(">=", 0.6, 0.7, 0.6), proven(">=", 0.5, 0.7, 0.6), proven(">=", 0.5, 0.59, 0.6), proven("=", 0, 2, 1)
    ('held', 'inconclusive', 'failed', 'inconclusive')
    """
    ends = [_COMPARE[comparison](end, bound) for end in (low, high)]
    is_open = any(ends) or (comparison == "=" and low < bound < high)
    return "held" if all(ends) else "inconclusive" if is_open else "failed"


def _answer_gate(gate: GateExpression, data: GateData) -> Iterator[Row]:
    """A row per model and tier; one row if the table is not about models."""
    keys = [key for key in MODEL_TIER if key in TABLES[gate.table].key]
    found: dict[tuple[str, ...], list[Row]] = {} if keys else {(): []}
    for row in _figures(gate, data).to_dicts():
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    sides = {*found, *(data.table("pass_at_k").select(keys).collect().iter_rows() if keys else ())}
    for place, key in enumerate(keys):
        names = sorted({side[place] for side in sides})
        if key in gate.where and gate.where[key] not in names:
            hint = near(str(gate.where[key]), names)
            raise TouchstoneError(f"gate '{gate.text}': there is no {key} '{gate.where[key]}'; {hint}")
        sides = {side for side in sides if gate.where.get(key, side[place]) == side[place]}
    for side in sorted(sides) or [(None,) * len(keys)]:
        named: Row = {"model": None, "tier": None, **dict(zip(keys, side, strict=True))}
        yield {"gate": gate.text, **named, **_decide(gate, found.get(side, []), named, data)}


def _figures(gate: GateExpression, data: GateData) -> pl.DataFrame:
    """The rows that a gate is about, with `figure`, `low` and `high`."""
    where = {key: value for key, value in gate.where.items() if not (gate.by_problem and key == "k")}
    rows = data.table(gate.table).filter(pl.lit(True), *(pl.col(key) == value for key, value in where.items()))
    if gate.by_problem:
        return _problem_figures(gate, problem_counts(rows), data.intervals.confidence)
    if (gate.table, gate.column) == ("problem_scores", "undecided"):
        undecided = pl.col("attempts") - pl.col("decided")
        rows = rows.group_by(MODEL_TIER).agg(undecided=undecided.sum() / pl.col("attempts").sum())
    figure, ends = pl.col(gate.column).cast(pl.Float64), interval_columns(TABLES[gate.table], gate.column)
    low, high = (pl.col(each) for each in ends) if ends else (figure, figure)
    if gate.column == "regressions":
        # A lost case may have regressed as well.
        high = figure + pl.col("lost")
    if gate.end is not None:
        figure = low = high = low if gate.end == "low" else high
    return rows.with_columns(figure=figure, low=low, high=high).collect()


def _problem_figures(gate: GateExpression, counts: pl.LazyFrame, confidence: float) -> pl.DataFrame:
    """pass@k or pass^k of problems with intervals: a row for all `rows` problems of a side with the same counts."""
    of = pass_hat_k_of if gate.column == "pass_hat_k" else pass_at_k_of
    groups = counts.group_by(*MODEL_TIER, "n", "c").agg(pl.col("oid").min(), rows=pl.len())
    found = groups.with_columns(total=pl.col("rows").sum().over(MODEL_TIER)).sort(*MODEL_TIER, "oid").collect()
    judged = [
        (of(n, c, int(gate.where["k"])), *_problem_ends(gate, n, c, total, confidence))
        for n, c, total in found.select("n", "c", "total").iter_rows()
    ]
    return found.hstack(pl.DataFrame(judged, dict.fromkeys(("figure", "low", "high"), pl.Float64), orient="row"))


def _problem_ends(gate: GateExpression, n: int, c: int, problems: int, confidence: float) -> tuple[float, float]:
    """The interval of one of several problems: the end that can show it to fail is corrected for their number."""
    holding, failing = (1 - confidence) / 2, (1 - confidence) / 2 / problems
    tails = (holding, failing) if gate.comparison.startswith(">") else (failing, holding)
    k, (low, high) = int(gate.where["k"]), clopper_pearson(n, c, *tails)
    return (low**k, high**k) if gate.column == "pass_hat_k" else (1 - (1 - low) ** k, 1 - (1 - high) ** k)


@lru_cache(10_000)
def clopper_pearson(n: int, c: int, below: float, above: float) -> tuple[float, float]:
    """The exact interval of a probability from c passes in n attempts, with these probabilities of missing it.

    >>> [round(end, 4) for end in (*clopper_pearson(5, 5, 0.025, 0.025), *clopper_pearson(5, 0, 0.025, 0.0025))]
    [0.4782, 1.0, 0.0, 0.6983]
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    low = float(betaincinv(c, n - c + 1, below)) if c else 0.0
    return low, float(betaincinv(c + 1, n - c, 1 - above)) if c < n else 1.0


def _decide(gate: GateExpression, rows: Sequence[Row], side: Row, data: GateData) -> Row:
    """The answer of a gate for one model and tier: of its row, or of the worst of several."""
    sign = 1 if gate.comparison.startswith(">") else -1
    judged = [(row, *_judge(gate, row, data)) for row in rows] or [({}, "inconclusive", _why_missing(gate, data))]
    judged.sort(key=lambda each: (GATE_ANSWERS.index(each[1]), sign * (each[0].get("figure") or 0.0)))
    row, answer, why = judged[0]
    figure, low, high = (row.get(name) for name in ("figure", "low", "high"))
    low, high = (None, None) if low == high == figure else (low, high)
    words = why or estimate(figure, low, high, lambda value: _shown(value, gate)) + _remark(gate)
    if gate.items and row:
        named = (f"{'problem' if key == 'oid' else key} {row[key]}, " for key in gate.items if row[key] is not None)
        counts = {each: sum(one.get("rows", 1) for one, its, _ in judged if its == each) for each in GATE_ANSWERS}
        words = f"{''.join(named)}{words} ({', '.join(f'{many:,} {each}' for each, many in counts.items() if many)})"
    undecided = [each for each, its, reason in judged if its == "inconclusive" and not reason]
    needed = _needed(gate, undecided, side, data) if undecided and answer == "inconclusive" and not why else None
    words += f"; about {needed} would settle it" if needed else ""
    found = {"figure": figure, "low": low, "high": high, "bound": gate.bound, "answer": answer}
    verb = "is inconclusive" if answer == "inconclusive" else answer
    return found | {"sentence": f"{gate.text} {verb}: {words}", "needed": needed}


def _judge(gate: GateExpression, row: Row, data: GateData) -> tuple[str, str]:
    """The answer of one row, and why if nothing can be said."""
    if TABLES[gate.table].against_baseline and data.exploratory:
        return "inconclusive", f"the two sides are not comparable ({'; '.join(data.exploratory)})"
    if row["figure"] is None:
        few = f": it has fewer than {gate.where['k']} decided attempts" if gate.by_problem else ""
        return "inconclusive", f"{gate.column} is undefined here{few}"
    if row["low"] is None or row["high"] is None:
        return "inconclusive", f"{_shown(row['figure'], gate)} has no confidence interval: there are too few problems"
    return proven(gate.comparison, row["low"], row["high"], gate.bound), ""


def _why_missing(gate: GateExpression, data: GateData) -> str:
    if TABLES[gate.table].against_baseline:
        return "there is no baseline" if data.baseline is None else "the baseline does not have this model and tier"
    hint = f" for k = {gate.where['k']}; add it to k_values" if gate.table == "pass_at_k" else ""
    return f"there is no such row in '{gate.table}'{hint}"


def _remark(gate: GateExpression) -> str:
    """That an estimate without an interval proves nothing; counts and shares of all attempts are known exactly."""
    field = TABLES[gate.table].fields.get(gate.column)
    is_estimate = field is not None and field.type_name == "Float64" and not gate.by_problem
    is_bare = is_estimate and interval_columns(TABLES[gate.table], gate.column) is None
    return " (compared as it is: the table has no interval of it)" if is_bare else ""


def _shown(value: float, gate: GateExpression) -> str:
    return f"{significant(100 * value, 3)}%" if gate.percent else significant(value, 3)


# How much more data would settle an inconclusive gate, if the figure stays as it is


def _needed(gate: GateExpression, rows: Sequence[Row], side: Row, data: GateData) -> str | None:
    """Attempts per problem, or problems, with which the interval would leave out the bound with the set power."""
    figure, low, high = (rows[0][name] for name in ("figure", "low", "high"))
    distance, width = abs(figure - gate.bound), figure - low if gate.bound < figure else high - figure
    attempts, problems, kind = None, None, (gate.table, gate.column, gate.where.get("k"))
    if gate.by_problem:
        attempts = _attempts_at_problems(gate, rows, data)
    elif not distance or not math.isfinite(distance + width) or gate.column == "regressions":
        return None
    elif kind in (("pass_at_k", "pass_at_k", 1), ("baseline_verdicts", "difference", None)):
        confidence = rows[0].get("adjusted_confidence") or data.intervals.confidence
        attempts, problems = _planned(side["model"], side["tier"], distance, confidence, data, is_pair=kind[2] is None)
    elif size := next((rows[0][name] for name in _PROBLEMS if rows[0].get(name)), None):
        sure = NormalDist().inv_cdf((1 + data.intervals.confidence) / 2)
        problems = math.ceil(size * (width / distance * (1 + NormalDist().inv_cdf(data.power) / sure)) ** 2)
    parts = [(attempts, "attempt per problem", "attempts per problem"), (problems, "problem", "problems")]
    return " or ".join(counted(number, *words) for number, *words in parts if number is not None) or None


def _planned(
    model: str, tier: str, distance: float, confidence: float, data: GateData, *, is_pair: bool
) -> tuple[int | None, int | None]:
    """For pass@1, and for the difference to the baseline: from the variances that `touchstone plan` estimates."""
    try:
        if is_pair and data.baseline is not None:
            sides = {"a": data.baseline, "b": data.table("attempt_scores")}
            both = pl.concat([_counts(scores, model, tier, name) for name, scores in sides.items()])
            plan = paired_data(both, data.table("problems"), ("a", tier), ("b", tier), Goal(min(distance, 0.99)))
        else:
            plan = single_data(data.table("problem_pass_at_k"), data.table("problems"), (model, tier), correlation=0.0)
    except TouchstoneError:
        return None, None
    # The variance of the mean is (between + within / attempts) / problems; a single model has half that of two.
    models = 1 if is_pair else 2
    between, within = plan.population.between / models, (plan.population.attempt_variance or 0.0) / models
    degrees = plan.problems / plan.population.unit_size - 1
    target = (distance / (t_critical(degrees, confidence) + NormalDist().inv_cdf(data.power))) ** 2
    problems = max(plan.problems + 1, math.ceil((between + within / plan.attempts) / target))
    left = plan.problems * target - between
    attempts = max(math.floor(plan.attempts) + 1, math.ceil(within / left)) if within and left > 0 else math.inf
    return int(attempts) if attempts <= MOST_ATTEMPTS else None, problems


def _counts(scores: pl.LazyFrame, model: str, tier: str, name: str) -> pl.LazyFrame:
    """Decided attempts and passes per problem, as in `problem_pass_at_k`, under another name of the model."""
    counts = decided_counts(scores.filter(pl.col("model") == model, pl.col("tier") == tier))
    return counts.with_columns(model=pl.lit(name), k=pl.lit(1))


def _attempts_at_problems(gate: GateExpression, rows: Sequence[Row], data: GateData) -> int | None:
    """The attempts that would settle every problem that is open, at its present pass rate."""

    def needed(n: int, c: int, problems: int) -> int:
        def settles(attempts: int) -> bool:
            ends = _problem_ends(gate, attempts, round(c / n * attempts), problems, data.intervals.confidence)
            return proven(gate.comparison, *ends, gate.bound) != "inconclusive"

        return bisect_left(range(MOST_ATTEMPTS + 1), True, n + 1, key=settles)

    most = max(needed(row["n"], row["c"], row["total"]) for row in rows)
    return most if most <= MOST_ATTEMPTS else None


# The check


def gates_hold(results: pl.LazyFrame, settings: GateSettings, accept: bool = False) -> CheckResult:
    """Every gate holds; one that failed is an error, and one that is inconclusive as the configuration says."""
    rows = sorted(results.collect().to_dicts(), key=lambda row: GATE_ANSWERS.index(row["answer"]))
    counts = {answer: sum(row["answer"] == answer for row in rows) for answer in GATE_ANSWERS}
    open_gates, rule = counts["inconclusive"], settings.on_inconclusive
    fails = counts["failed"] > 0 or (open_gates > 0 and rule == "fail")
    tally = ", ".join(f"{count:,} {answer}" for answer, count in counts.items() if count)
    parts = [f"gates: {tally or 'none'}"]
    parts += ["inconclusive counts as failed (on_inconclusive: fail)"] if open_gates and rule == "fail" else []
    bad = [row for row in rows if row["answer"] != "held"]
    for row in bad[:_MOST_NAMED]:
        named = " ".join(row[key] for key in MODEL_TIER if row[key] is not None)
        parts.append(f"{named}: {row['sentence']}" if named else row["sentence"])
    parts += [f"{len(bad) - _MOST_NAMED:,} more in gate_results"] if len(bad) > _MOST_NAMED else []
    passed = not fails and not (open_gates and rule == "warn")
    return CheckResult(passed, "; ".join(parts), error=fails and not accept, figures=counts)
