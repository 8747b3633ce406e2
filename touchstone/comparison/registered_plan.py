"""Whether a run or a comparison is the one that was planned: every item of the plan beside what was done.

How many problems and attempts a comparison needs belongs in `planning`.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import polars as pl

from touchstone.checks import CheckResult
from touchstone.config import ComparisonConfig, RegisteredPlan
from touchstone.metrics.keys import PROBLEM_KEY
from touchstone.tables import TABLES


@dataclass(frozen=True)
class PlanItem:
    """One item of a plan, as planned and as done."""

    item: str
    planned: str
    used: str
    as_planned: bool


@dataclass(frozen=True)
class Done:
    """A comparison as done: its settings, pairs, problems by id, fewest and most attempts per problem, and models."""

    margin: float
    alpha: float
    power: float
    pairs: int
    problems: Collection[str]
    attempts: tuple[int, int]
    models: Collection[str]


def problems_digest(oids: Iterable[str]) -> str:
    """A digest of the ids of problems, in whatever order.

    >>> problems_digest(["b", "a"]) == problems_digest(["a", "b", "a"]) != problems_digest(["a"])
    True
    """
    return hashlib.sha256("\n".join(sorted(set(oids))).encode()).hexdigest()


def compare_with_plan(plan: RegisteredPlan, done: Done) -> list[PlanItem]:
    """Every item that the plan fixes, with what was done."""

    def item(name: str, planned: object, used: object) -> PlanItem:
        return PlanItem(name, f"{planned}", f"{used}", planned == used)

    low, high = done.attempts
    attempts = f"{low}" if low == high else f"{low} to {high}"
    items = [
        item("metric", f"{plan.metric}, k = {plan.k}", "pass@k, k = 1"),
        item("margin", plan.margin, done.margin),
        item("alpha", plan.alpha, done.alpha),
        item("power", plan.power, done.power),
        item("pairs", plan.pairs, done.pairs),
    ]
    if plan.problems is not None:
        items.append(item("problems", plan.problems, len(done.problems)))
    if plan.problems_digest is not None:
        digests = (each[:12] for each in (plan.problems_digest, problems_digest(done.problems)))
        items.append(item("problems digest", *digests))
    if plan.attempts_per_problem is not None:
        items.append(item("attempts per problem", f"{plan.attempts_per_problem}", attempts))
    if plan.models:
        items.append(item("models", *(", ".join(sorted(each)) for each in (plan.models, done.models))))
    return items


def plan_sentence(items: Iterable[PlanItem]) -> str:
    """Whether all is as planned, or every departure.

    >>> plan_sentence([PlanItem("margin", "0.03", "0.05", False)])
    'not as planned: margin: planned 0.03, used 0.05'
    """
    departures = [f"{each.item}: planned {each.planned}, used {each.used}" for each in items if not each.as_planned]
    return f"not as planned: {'; '.join(departures)}" if departures else "as planned"


def registered_plan(
    model_comparison: pl.LazyFrame, problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, wanted: ComparisonConfig
) -> pl.LazyFrame:
    """Every item of the plan beside what the run did; empty without a plan."""
    schema = TABLES["registered_plan"].dtypes
    if wanted.plan is None:
        return pl.LazyFrame(schema=schema)
    counts = problem_pass_at_k.unique(PROBLEM_KEY).select("model", "n").collect()
    compared = model_comparison.select(pl.col("pairs").max()).collect().item() or 0
    attempts = (int(counts["n"].min() or 0), int(counts["n"].max() or 0)) if counts.height else (0, 0)  # type: ignore[arg-type]
    done = Done(
        wanted.relevant,
        wanted.alpha,
        wanted.power,
        compared,
        problems.select("oid").collect()["oid"].to_list(),
        attempts,
        counts["model"].unique().to_list(),
    )
    return pl.LazyFrame([vars(each) for each in compare_with_plan(wanted.plan, done)], schema=schema)


def as_planned(items: pl.LazyFrame) -> CheckResult:
    """The run is the one that was planned."""
    rows = [PlanItem(**row) for row in items.collect().to_dicts()]
    if not rows:
        return CheckResult(True, "there is no plan")
    return CheckResult(all(row.as_planned for row in rows), plan_sentence(rows))
