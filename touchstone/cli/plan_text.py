"""What `touchstone plan` prints: the mixes as a table or as JSON."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from touchstone.cli.fitted_table import FittedTable, numbers, print_line, terminal
from touchstone.text import counted

if TYPE_CHECKING:
    import polars as pl

    from touchstone.compare.planning import ComparisonPlan, FixedBenchmark
    from touchstone.inference.planning import Mix


def show_plan(plan: "ComparisonPlan") -> None:
    """Print the goal, what the plan rests on, the mixes, and what is possible now."""
    screen = terminal()
    goal = plan.goal
    print_line(
        screen,
        f"to find a difference of {goal.effect:g} in pass@1 with probability {goal.power:g} "
        f"(paired test over problems, level {goal.alpha:.2g})",
        "bold",
    )
    for line in plan.assumptions:
        print_line(screen, line)
    mixes_table(plan).print(screen)
    for line in conclusions(plan):
        print_line(screen, line)


def mixes_table(plan: "ComparisonPlan") -> FittedTable:
    """A row per number of attempts."""
    fixed = plan.fixed is not None
    table = FittedTable(
        [
            *numbers("attempts per problem", "problems"),
            *numbers("attempts of both models", rank=2),
            *(numbers("finds") if fixed else []),
            *numbers("cost", rank=1),
        ],
        caption="* the cheapest mix that is enough" if any(mix.cheapest for mix in plan.mixes) else "",
        compact=True,
    )
    for mix in plan.mixes:
        table.add_row(f"{mix.attempts_per_problem:,}", *_cells(mix, fixed))
    return table


def _cells(mix: "Mix", fixed: bool) -> list[str]:
    if mix.problems is None:
        return ["never enough", "-", "-  "]
    cost = "-" if mix.cost_usd is None else f"${mix.cost_usd:,.2f}"
    finds = "nothing" if mix.detectable is None else f"{mix.detectable:.3f}"
    star = " *" if mix.cheapest else "  "
    return [f"{mix.problems:,}", f"{mix.total_attempts:,}", *([finds] if fixed else []), cost + star]


def conclusions(plan: "ComparisonPlan") -> list[str]:
    """What the mixes mean, in words."""
    lines = []
    if all(mix.problems is None for mix in plan.mixes):
        more = "; more problems in the same clusters do not replace more clusters" if plan.population.clusters else ""
        lines.append(f"no number of problems is enough{more}")
    if plan.fixed is not None:
        lines.append(_fixed_line(plan.fixed, plan.goal.effect))
    if plan.today is not None and plan.today.detectable is not None:
        attempts = counted(round(plan.today.attempts), "attempt")
        lines.append(
            f"today: {counted(plan.today.problems, 'problem')} with {attempts} each find a difference of "
            f"{plan.today.detectable:.3f} or more"
        )
    if plan.mixes and all(mix.cost_usd is None for mix in plan.mixes):
        lines.append("costs are not known; add --cost-per-attempt to compare the mixes")
    return lines


def _fixed_line(fixed: "FixedBenchmark", effect: float) -> str:
    problems = counted(fixed.problems, "problem")
    if fixed.attempts_needed is not None:
        return f"{problems} are enough with {counted(fixed.attempts_needed, 'attempt')} per problem and model"
    if fixed.detectable_at_best is None:
        return f"{problems} are not enough, however many attempts there are"
    return (
        f"{problems} are not enough: more attempts alone never find less than {fixed.detectable_at_best:.3f}, because "
        f"the models differ from problem to problem; {effect:g} takes more problems"
    )


def plan_document(plan: "ComparisonPlan") -> dict[str, object]:
    """The plan for --json."""
    today = plan.today and {
        "problems": plan.today.problems,
        "attempts_per_problem": plan.today.attempts,
        "detectable": plan.today.detectable,
        "correlation": plan.today.correlation,
    }
    return {
        "goal": asdict(plan.goal),
        "population": asdict(plan.population),
        "assumptions": plan.assumptions,
        "mixes": [asdict(mix) for mix in plan.mixes],
        "cheapest": next((asdict(mix) for mix in plan.mixes if mix.cheapest), None),
        "today": today,
        "fixed": plan.fixed and asdict(plan.fixed),
        "conclusions": conclusions(plan),
        "notes": plan.notes,
    }


def plan_frame(plan: "ComparisonPlan") -> "pl.DataFrame":
    """The mixes as the table of the chart `plan_tradeoff`."""
    import polars as pl

    return pl.DataFrame([asdict(mix) | {"effect": plan.goal.effect, "power": plan.goal.power} for mix in plan.mixes])
