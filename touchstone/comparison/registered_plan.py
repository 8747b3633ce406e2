"""Whether a run or a comparison is the one that was planned: every item of the plan beside what was done.

How many problems and attempts a comparison needs belongs in `planning`.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from touchstone.config import ComparisonConfig, RegisteredPlan
from touchstone.metrics.keys import PROBLEM_KEY
from touchstone.tables import TABLES
from touchstone.tables.checks import CheckResult

if TYPE_CHECKING:
    from touchstone.comparison.families import ComparisonSettings


@dataclass(frozen=True)
class PlanItem:
    """One item of a plan, as planned and as done."""

    item: str
    planned: str
    used: str
    as_planned: bool


def problems_digest(oids: Iterable[str]) -> str:
    """A digest of the ids of problems, in whatever order.

    >>> problems_digest(["b", "a"]) == problems_digest(["a", "b", "a"]) != problems_digest(["a"])
    True
    """
    return hashlib.sha256("\n".join(sorted(set(oids))).encode()).hexdigest()


def compare_with_plan(
    plan: RegisteredPlan,
    settings: "ComparisonSettings | ComparisonConfig",
    pairs: int,
    problems: Collection[str],
    attempts: Collection[int],
    models: Collection[str],
) -> list[PlanItem]:
    """Every item that the plan fixes beside the comparison: the ids of its problems and the attempts at each."""

    def item(name: str, planned: object, used: object) -> PlanItem:
        return PlanItem(name, f"{planned}", f"{used}", planned == used)

    low, high = min(attempts, default=0), max(attempts, default=0)
    items = [
        item("metric", f"{plan.metric}, k = {plan.k}", "pass@k, k = 1"),
        item("margin", plan.margin, settings.relevant),
        item("alpha", plan.alpha, settings.alpha),
        item("power", plan.power, settings.power),
        item("pairs", plan.pairs, pairs),
    ]
    if plan.problems is not None:
        items.append(item("problems", plan.problems, len(problems)))
    if plan.problems_digest is not None:
        digests = (each[:12] for each in (plan.problems_digest, problems_digest(problems)))
        items.append(item("problems digest", *digests))
    if plan.attempts_per_problem is not None:
        used = f"{low}" if low == high else f"{low} to {high}"
        items.append(item("attempts per problem", f"{plan.attempts_per_problem}", used))
    if plan.models:
        items.append(item("models", *(", ".join(sorted(each)) for each in (plan.models, models))))
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
    pairs = model_comparison.select(pl.col("pairs").max()).collect().item() or 0
    oids = problems.select("oid").collect()["oid"].to_list()
    attempts, models = counts["n"].to_list(), counts["model"].unique().to_list()
    items = compare_with_plan(wanted.plan, wanted, pairs, oids, attempts, models)
    return pl.LazyFrame([vars(each) for each in items], schema=schema)


def as_planned(items: pl.LazyFrame) -> CheckResult:
    """The run is the one that was planned."""
    rows = [PlanItem(**row) for row in items.collect().to_dicts()]
    if not rows:
        return CheckResult(True, "there is no plan")
    return CheckResult(all(row.as_planned for row in rows), plan_sentence(rows))
