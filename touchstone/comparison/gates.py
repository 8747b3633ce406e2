"""Gates that must be proven: whether each holds, failed, or cannot be decided, and what would settle it.

A gate holds if every value in the figure's confidence interval satisfies it, and failed if none does; the rest is
inconclusive. A figure that is counted rather than estimated is compared as it is. What is undefined is inconclusive.

Of `pass^k(problem) for all`, the interval of each problem is Clopper and Pearson's of its pass rate p, carried over to
p^k or 1 - (1 - p)^k. That all problems hold is shown if each is (an intersection-union test, which needs no correction:
Berger 1982); that one does not is shown at a level divided by the number of problems (Bonferroni).

The language of the expressions is in `touchstone.config.gates`.
"""

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import polars as pl

from touchstone.checks import CheckResult
from touchstone.comparison.inputs import ComparisonInput
from touchstone.comparison.planning import paired_data
from touchstone.config import IntervalSettings
from touchstone.config.gates import GateExpression, GateSettings, interval_columns
from touchstone.errors import TouchstoneError
from touchstone.inference.planning import MOST_ATTEMPTS, Goal, attempts_needed, problems_needed
from touchstone.inference.quantiles import t_critical
from touchstone.metrics.keys import MODEL_TIER
from touchstone.metrics.pass_at_k import pass_at_k_of, pass_hat_k_of, problem_counts
from touchstone.metrics.variance import VarianceParts
from touchstone.tables import TABLES
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
    """What gates are answered from: tables by name, how sure to be, and why the run and its baseline do not compare.

    `sides` are the baseline and the run, for what another comparison of the two needs; None without a baseline.
    """

    table: Callable[[str], pl.LazyFrame]
    intervals: IntervalSettings
    power: float
    alpha: float
    exploratory: Sequence[str] = ()
    sides: tuple[ComparisonInput, ComparisonInput] | None = None


def answer_gates(gates: Sequence[GateExpression], data: GateData) -> list[Row]:
    """The rows of the table `gate_results`."""
    return [row for gate in gates for row in _answer_gate(gate, data)]


def proven(comparison: str, low: float, high: float, bound: float) -> str:
    """The answer of a gate if the figure is from `low` to `high`.

    >>> proven(">=", 0.6, 0.7, 0.6), proven(">=", 0.5, 0.7, 0.6), proven(">=", 0.5, 0.59, 0.6), proven("=", 0, 2, 1)
    ('held', 'inconclusive', 'failed', 'inconclusive')
    """
    ends = [_COMPARE[comparison](end, bound) for end in (low, high)]
    if all(ends):
        return "held"
    return "inconclusive" if any(ends) or (comparison == "=" and low < bound < high) else "failed"


def _answer_gate(gate: GateExpression, data: GateData) -> Iterator[Row]:
    """A row per model and tier; one row if the table is not about models."""
    table = TABLES[gate.table]
    keys = [key for key in MODEL_TIER if key in table.fields]
    every = data.table("pass_at_k").select(MODEL_TIER).unique().collect()
    rows = _figures(gate, data)
    sides = pl.concat([every.select(keys), rows.select(keys)]).unique().sort(keys) if keys else None
    for key, wanted in ((key, gate.where[key]) for key in keys if key in gate.where):
        known = sides[key].unique().sort().to_list() if sides is not None else []
        if wanted not in known:
            raise TouchstoneError(f"gate '{gate.text}': there is no {key} '{wanted}'; {near(str(wanted), known)}")
        sides = sides.filter(pl.col(key) == wanted) if sides is not None else None
    found = {tuple(side): part.to_dicts() for side, part in rows.group_by(keys)} if keys else {(): rows.to_dicts()}
    for side in sides.iter_rows() if sides is not None else [()]:
        named = {"model": None, "tier": None, **dict(zip(keys, side, strict=True))}
        yield {"gate": gate.text, **named, **_decide(gate, found.get(side, []), (named["model"], named["tier"]), data)}


def _figures(gate: GateExpression, data: GateData) -> pl.DataFrame:
    """The rows that a gate is about, with `figure`, `low` and `high`."""
    source = data.table(gate.table)
    if gate.by_problem:
        return _problem_figures(gate, problem_counts(source), data.intervals.confidence)
    chosen = source.filter(pl.lit(True), *(pl.col(key) == value for key, value in gate.where.items()))
    if (gate.table, gate.column) == ("problem_scores", "undecided"):
        undecided = (pl.col("attempts") - pl.col("decided")).sum() / pl.col("attempts").sum()
        return chosen.group_by(MODEL_TIER).agg(figure=undecided).with_columns(low="figure", high="figure").collect()
    figure, ends = pl.col(gate.column).cast(pl.Float64), interval_columns(TABLES[gate.table], gate.column)
    if gate.column == "regressions":
        # A lost case may have regressed as well.
        ends_of = {"low": figure, "high": figure + pl.col("lost")}
    else:
        low, high = (figure, figure) if ends is None else (pl.col(end) for end in ends)
        ends_of = {"low": low, "high": high}
    if gate.end is not None:
        figure = ends_of[gate.end]
        ends_of = {"low": figure, "high": figure}
    return chosen.with_columns(figure=figure, **ends_of).collect()


def _problem_figures(gate: GateExpression, counts: pl.LazyFrame, confidence: float) -> pl.DataFrame:
    """pass@k or pass^k of problems with intervals: a row for all `rows` problems of a side with the same counts."""
    of = pass_hat_k_of if gate.column == "pass_hat_k" else pass_at_k_of
    cells = counts.filter(pl.lit(True), *(pl.col(key) == value for key, value in gate.where.items() if key != "k"))
    groups = cells.group_by(*MODEL_TIER, "n", "c").agg(pl.col("oid").min(), rows=pl.len())
    found = (
        groups.with_columns(total=pl.col("rows").sum().over(MODEL_TIER)).sort(*MODEL_TIER, "oid").collect().to_dicts()
    )
    for row in found:
        row["low"], row["high"] = _problem_ends(gate, row["n"], row["c"], row["total"], confidence)
        row["figure"] = of(row["n"], row["c"], int(gate.where["k"]))
    return pl.DataFrame(found, schema_overrides=dict.fromkeys(("figure", "low", "high"), pl.Float64))


def _problem_ends(gate: GateExpression, n: int, c: int, problems: int, confidence: float) -> tuple[float, float]:
    k, ends = int(gate.where["k"]), clopper_pearson(n, c, 1 - confidence, problems)
    low, high = (end**k if gate.column == "pass_hat_k" else 1 - (1 - end) ** k for end in ends)
    return low, high


@lru_cache(10_000)
def clopper_pearson(n: int, c: int, alpha: float, problems: int = 1) -> tuple[float, float]:
    """The exact interval of a probability from c passes in n attempts; the upper end is corrected for more problems.

    >>> [round(end, 4) for end in (*clopper_pearson(5, 5, 0.05), *clopper_pearson(5, 0, 0.05, 10))]
    [0.4782, 1.0, 0.0, 0.6984]
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    low = float(betaincinv(c, n - c + 1, alpha / 2)) if c else 0.0
    return low, float(betaincinv(c + 1, n - c, 1 - alpha / 2 / problems)) if c < n else 1.0


def _decide(gate: GateExpression, rows: Sequence[Row], side: tuple[str | None, str | None], data: GateData) -> Row:
    """The answer of a gate for one model and tier: of its row, or of the worst of several."""
    judged = [(row, *_judge(gate, row, data)) for row in rows] or [({}, "inconclusive", _why_missing(gate, data))]
    row, answer, why = min(judged, key=lambda each: (GATE_ANSWERS.index(each[1]), _badness(gate, each[0])))
    figure, low, high = (row.get(name) for name in ("figure", "low", "high"))
    ends = (None, None) if low == high == figure else (low, high)
    words = why or estimate(figure, *ends, lambda value: _shown(value, gate)) + _remark(gate)
    if gate.for_all and row:
        words = f"{_item(gate, row)}{words}{_tally(judged)}"
    needed = None
    if answer == "inconclusive" and not why:
        open_rows = [each for each, its_answer, reason in judged if its_answer == answer and not reason]
        needed = _problem_attempts(gate, open_rows, data) if gate.by_problem else _needed(gate, row, side, data)
        words += f"; about {needed} would settle it" if needed else ""
    verb = "is inconclusive" if answer == "inconclusive" else answer
    found = {"figure": figure, "low": ends[0], "high": ends[1], "bound": gate.bound, "answer": answer}
    return found | {"sentence": f"{gate.text} {verb}: {words}", "needed": needed}


def _judge(gate: GateExpression, row: Row, data: GateData) -> tuple[str, str]:
    """The answer of one row, and why if nothing can be said."""
    if TABLES[gate.table].against_baseline and data.exploratory:
        return "inconclusive", f"the two sides are not comparable ({'; '.join(data.exploratory)})"
    if row["figure"] is None:
        return "inconclusive", f"{gate.column} is undefined here"
    if row["low"] is None or row["high"] is None:
        return "inconclusive", f"{_shown(row['figure'], gate)} has no confidence interval: there are too few problems"
    return proven(gate.comparison, row["low"], row["high"], gate.bound), ""


def _why_missing(gate: GateExpression, data: GateData) -> str:
    if TABLES[gate.table].against_baseline:
        return (
            "the baseline does not have this model and tier" if data.sides else "there is no baseline to compare with"
        )
    chosen = ", ".join(f"{key} = {value}" for key, value in gate.where.items() if key not in MODEL_TIER)
    hint = "; add it to k_values" if gate.table == "pass_at_k" and "k" in gate.where else ""
    return f"'{gate.table}' has no row" + (f" with {chosen}{hint}" if chosen else "")


def _badness(gate: GateExpression, row: Row) -> float:
    """A number that is lower the further a row is on the wrong side."""
    figure = row.get("figure")
    return math.inf if figure is None else figure if gate.comparison.startswith(">") else -figure


def _remark(gate: GateExpression) -> str:
    """That an estimate without an interval proves nothing; counts and shares of all attempts are known exactly."""
    field = TABLES[gate.table].fields.get(gate.column)
    is_estimate = field is not None and field.type_name == "Float64" and not gate.by_problem and gate.end is None
    is_alone = is_estimate and interval_columns(TABLES[gate.table], gate.column) is None
    return " (compared as it is: the table has no interval of it)" if is_alone else ""


def _shown(value: float, gate: GateExpression) -> str:
    return f"{significant(100 * value, 3)}%" if gate.percent else significant(value, 3)


def _item(gate: GateExpression, row: Row) -> str:
    """The row that decides, in words: `oid p07, `."""
    named = [key for key in TABLES[gate.table].key if key not in {*MODEL_TIER, *gate.where}]
    return "".join(f"{'problem' if key == 'oid' else key} {row[key]}, " for key in named if row[key] is not None)


def _tally(judged: Sequence[tuple[Row, str, str]]) -> str:
    counts = {each: sum(row.get("rows", 1) for row, answer, _ in judged if answer == each) for each in GATE_ANSWERS}
    return f" ({', '.join(f'{count:,} {answer}' for answer, count in counts.items() if count)})"


# What would settle an inconclusive gate, if the figure stays as it is


def _needed(gate: GateExpression, row: Row, side: tuple[str | None, str | None], data: GateData) -> str | None:
    """Attempts per problem, or problems, with which the interval would leave out the bound with the set power."""
    figure, bound = row["figure"], gate.bound
    distance, width = abs(figure - bound), figure - row["low"] if bound < figure else row["high"] - figure
    attempts, problems = None, None
    if not distance or not math.isfinite(distance) or not math.isfinite(width) or gate.column == "regressions":
        return None
    if (gate.table, gate.column, data.sides is None) == ("baseline_verdicts", "difference", False):
        attempts, problems = _needed_by_pair(data, *side, Goal(min(distance, 0.99), data.power, data.alpha))
    elif (gate.table, gate.column, gate.where.get("k")) == ("pass_at_k", "pass_at_k", 1):
        attempts, problems = _needed_by_mean(data, *side, distance)
    elif size := next((row[name] for name in _PROBLEMS if row.get(name)), None):
        more = 1 + NormalDist().inv_cdf(data.power) / NormalDist().inv_cdf((1 + data.intervals.confidence) / 2)
        problems = math.ceil(size * (width / distance * more) ** 2)
    parts = [(attempts, "attempt per problem", "attempts per problem"), (problems, "problem", "problems")]
    return " or ".join(counted(number, *words) for number, *words in parts if number is not None) or None


def _needed_by_mean(
    data: GateData, model: str | None, tier: str | None, distance: float
) -> tuple[int | None, int | None]:
    """For pass@1 against a number: from the parts of its variance, as in the table `next_samples`."""
    own = data.table("variance_split").filter(pl.col("model") == model, pl.col("tier") == tier).collect().to_dicts()
    split = own[0] if own else {}
    if not split.get("variance_of_mean") or not split["degrees_of_freedom"]:
        return None, None
    parts = VarianceParts(*(split[name] for name in ("variance_of_mean", "from_problems", "from_samples")))
    degrees, power = split["degrees_of_freedom"], NormalDist().inv_cdf(data.power)
    target = (distance / (t_critical(degrees, data.intervals.confidence) + power)) ** 2
    problems = math.ceil(split["problems"] * split["variance_of_mean"] / target)
    between = parts.expected_from_problems(degrees)
    if between is None or between >= target or not parts.from_samples:
        return None, problems
    attempts = math.ceil(split["samples"] * parts.from_samples / (target - between))
    return attempts if attempts <= MOST_ATTEMPTS else None, problems


def _needed_by_pair(data: GateData, model: str | None, tier: str | None, goal: Goal) -> tuple[int | None, int | None]:
    """For the difference to the baseline: as `touchstone plan` says it of these two sides."""
    assert data.sides is not None
    mine = pl.col("model") == model, pl.col("tier") == tier, pl.col("pass_rate").is_not_null()
    counts = pl.col("pass_rate").count().cast(pl.Int64), pl.col("pass_rate").sum().cast(pl.Int64)
    frames = [
        each.attempt_scores.filter(mine)
        .group_by("oid")
        .agg(n=counts[0], c=counts[1])
        .with_columns(model=pl.lit(name), tier=pl.lit(tier), k=pl.lit(1))
        for name, each in zip("ab", data.sides, strict=True)
    ]
    both, problems = pl.concat(frames), data.sides[1].problems
    if problems is None:
        problems = both.select(pl.col("oid").unique(), cluster=pl.lit(None, pl.String))
    try:
        planned = paired_data(both, problems, ("a", str(tier)), ("b", str(tier)), goal)
        population, now = planned.population, max(1, round(planned.attempts))
        known = population.attempt_variance is not None
        attempts = attempts_needed(population, planned.problems, goal) if known else None
        return attempts, problems_needed(population, [now], goal)[0]
    except TouchstoneError:
        return None, None


def _problem_attempts(gate: GateExpression, rows: Sequence[Row], data: GateData) -> str | None:
    """The attempts that would settle every problem that is open, at its present pass rate."""
    needed = []
    for row in rows:
        n, c, total = row["n"], row["c"], row["total"]

        def settles(attempts: int, rate: float = c / n, problems: int = total) -> bool:
            ends = _problem_ends(gate, attempts, round(rate * attempts), problems, data.intervals.confidence)
            return proven(gate.comparison, *ends, gate.bound) != "inconclusive"

        low, high = n, MOST_ATTEMPTS
        if not settles(high):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if settles(middle) else (middle, high)
        needed.append(high)
    return counted(max(needed), "attempt per problem", "attempts per problem") if needed else None


# The check


def gates_hold(results: pl.LazyFrame, settings: GateSettings, accept: bool = False) -> CheckResult:
    """Every gate holds; one that failed is an error, and one that is inconclusive as the configuration says."""
    rows = results.collect().to_dicts()
    if not rows:
        return CheckResult(True, "there are no gates")
    counts = {answer: sum(row["answer"] == answer for row in rows) for answer in GATE_ANSWERS}
    strict = settings.on_inconclusive == "fail"
    fails = counts["failed"] > 0 or (strict and counts["inconclusive"] > 0)
    passed = not fails and not (counts["inconclusive"] and settings.on_inconclusive == "warn")
    bad = sorted((row for row in rows if row["answer"] != "held"), key=lambda row: GATE_ANSWERS.index(row["answer"]))
    named = [f"{gate_subject(row)}{row['sentence']}" for row in bad[:_MOST_NAMED]]
    named += [f"{len(bad) - _MOST_NAMED:,} more in gate_results"] if len(bad) > _MOST_NAMED else []
    tally = ", ".join(f"{count:,} {answer}" for answer, count in counts.items() if count)
    rule = ["inconclusive counts as failed (on_inconclusive: fail)"] if strict and counts["inconclusive"] else []
    message = "; ".join([f"gates: {tally}", *rule, *named])
    return CheckResult(passed, message, error=fails and not accept, figures=counts)


def gate_subject(row: Mapping[str, Any]) -> str:
    """The model and tier that a row is about, before its sentence; empty if it is about none."""
    named = [row[key] for key in MODEL_TIER if row[key] is not None]
    return f"{' '.join(named)}: " if named else ""
