"""`touchstone plan`: how many problems and attempts a comparison needs, and what that costs."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from touchstone.cli.console import print_json, print_messages, show_progress
from touchstone.cli.options import (
    JSON_OPTION,
    QUIET_OPTION,
    MultiValueCommand,
    data_option,
    output_folder_here,
    share_option,
)
from touchstone.errors import TouchstoneError
from touchstone.text import counted

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from touchstone.comparison.planning import ComparisonPlan, FixedBenchmark
    from touchstone.inference.planning import Mix

_CHART_FORMATS = (".svg", ".png", ".html")
_PLAN_FORMAT = "json"

commands = typer.Typer()


@commands.command(cls=MultiValueCommand)
def plan(
    detect: Annotated[
        float, share_option("The difference in pass@1 to find, such as 0.03 or 3%.", metavar="DIFFERENCE")
    ],
    power: Annotated[float, share_option("Probability of finding it.")] = 0.8,
    alpha: Annotated[float, share_option("Significance level of the test.")] = 0.05,
    pairs: Annotated[int, typer.Option(min=1, help="Number of pairs that the test will be corrected for.")] = 1,
    data: Annotated[
        Path | None, data_option("Estimate from this output folder of a run. [default: that of the current folder]")
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model in the data. [default: the only two models]")] = None,
    against: Annotated[str | None, typer.Option(help="The model to compare it with.")] = None,
    tier: Annotated[str | None, typer.Option(help="The tier of both. [default: the only one]")] = None,
    rate: Annotated[float | None, share_option("Without data: the mean pass rate to assume.")] = None,
    icc: Annotated[
        float | None, share_option("Without data: the share of the variance of an attempt that is between problems.")
    ] = None,
    correlation: Annotated[
        float | None,
        share_option("Correlation of the two models' pass rates over problems. [default: the data's, else 0.5]"),
    ] = None,
    clusters: Annotated[
        int | None, typer.Option(help="Without data: problems come in so many clusters, such as repositories.")
    ] = None,
    cluster_share: Annotated[
        float | None,
        share_option("Share of the variance between problems that belongs to their cluster. [default: 0.2]"),
    ] = None,
    cluster_cv: Annotated[
        float | None,
        typer.Option(help="Standard deviation of the clusters' sizes over their mean; 0 if equal. [default: 1.5]"),
    ] = None,
    problems: Annotated[
        int | None, typer.Option(min=2, help="There are only so many problems: a benchmark that cannot grow.")
    ] = None,
    attempts_per_problem: Annotated[
        list[int] | None, typer.Option(metavar="N…", help="Attempts per problem and model to consider.")
    ] = None,
    cost_per_attempt: Annotated[float | None, typer.Option(help="Dollars per attempt. [default: the data's]")] = None,
    cost_per_problem: Annotated[float, typer.Option(help="Dollars for a new problem.")] = 0.0,
    save_to: Annotated[
        Path | None, typer.Option(help="Also register the plan (.json), or draw the trade-off (.svg, .png, .html).")
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Say how many problems and attempts a comparison of two models needs, what each mix costs, and what is enough."""
    from touchstone.comparison.planning import PlanRequest, make_plan
    from touchstone.inference.planning import Goal
    from touchstone.storage.output_folders import results_folder

    format = _file_format(save_to)
    data = data or (output_folder_here() if rate is None and icc is None else None)
    with show_progress("planning", quiet=quiet):
        found = make_plan(
            PlanRequest(
                goal=Goal(detect, power, alpha / pairs),
                data=data and results_folder(data), model=model, against=against, tier=tier,
                rate=rate, icc=icc, correlation=correlation, clusters=clusters, cluster_share=cluster_share,
                cluster_cv=cluster_cv, problems=problems, attempts=tuple(attempts_per_problem or ()),
                cost_per_attempt=cost_per_attempt, cost_per_problem=cost_per_problem,
            )
        )  # fmt: skip
    if as_json:
        print_json(plan_document(found))
    elif not quiet:
        show_plan(found)
    print_messages("note", found.notes, quiet)
    if save_to is not None and format == _PLAN_FORMAT:
        _register(found, save_to, alpha, pairs, quiet)
    elif save_to is not None:
        _save_chart(found, save_to, format)


def _file_format(save_to: Path | None) -> str:
    suffix = save_to.suffix.lower() if save_to is not None else ".svg"
    if suffix not in (*_CHART_FORMATS, f".{_PLAN_FORMAT}"):
        formats = ", ".join(_CHART_FORMATS)
        raise TouchstoneError(f"--save-to {save_to}: a plan ends in .json, a chart of it in {formats}")
    return suffix.removeprefix(".")


def _register(found: "ComparisonPlan", save_to: Path, alpha: float, pairs: int, quiet: bool) -> None:
    """Save what the plan fixes, to hold a run or a comparison to it."""
    from touchstone.comparison.planning import planned_comparison
    from touchstone.publish.formats import saving

    plan = planned_comparison(found, alpha, pairs)
    with saving(save_to) as scratch:
        scratch.write_text(plan.model_dump_json(indent=1) + "\n")
    if not quiet:
        print(f"registered: hold a run or a comparison to it with --plan {save_to}")
    left_open = [name for name in ("problems", "problems_digest", "attempts_per_problem") if not getattr(plan, name)]
    if left_open:
        print_messages("note", [f"the plan leaves open: {', '.join(left_open)}"], quiet)


def _save_chart(found: "ComparisonPlan", save_to: Path, format: str) -> None:
    from touchstone.publish.charts.plan import plan_tradeoff
    from touchstone.publish.charts.rendering import save_chart
    from touchstone.publish.charts.vega import themed

    if all(mix.problems is None for mix in found.mixes):
        raise TouchstoneError("nothing to draw: no number of problems is enough")
    save_chart(themed(plan_tradeoff(plan_frame(found).lazy()), "light"), save_to, format, follow=True)


# Output


def show_plan(plan: "ComparisonPlan") -> None:
    """Print the goal, the assumptions of the plan, the mixes, and the limits of the data at hand."""
    from touchstone.cli.terminal_tables import print_line, terminal

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
    show_mixes(screen, plan)
    for line in conclusions(plan):
        print_line(screen, line)


def show_mixes(screen: "Console", plan: "ComparisonPlan") -> None:
    """Print a row per number of attempts."""
    from touchstone.cli.terminal_tables import numbers, print_table

    fixed = plan.fixed is not None
    columns = [
        *numbers("attempts per problem", "problems"),
        *([] if fixed else numbers("if spread evenly", rank=1)),
        *numbers("attempts of both models", rank=3),
        *(numbers("finds if spread evenly", "finds on few problems") if fixed else []),
        *numbers("cost", rank=2),
    ]
    star = "* the cheapest mix that is enough, also for a difference on few problems"
    rows = ((f"{mix.attempts_per_problem:,}", *_cells(mix, fixed)) for mix in plan.mixes)
    caption = star if any(mix.cheapest for mix in plan.mixes) else ""
    print_table(columns, rows, screen, caption=caption, compact=True)


def _cells(mix: "Mix", fixed: bool) -> list[str]:
    even = "-" if mix.problems_if_even is None else f"{mix.problems_if_even:,}"
    if mix.problems is None:
        return ["never enough", even, "-", "-  "]
    cost = "-" if mix.cost_usd is None else f"${mix.cost_usd:,.2f}"
    found = ["nothing" if found is None else f"{found:.3f}" for found in (mix.detectable, mix.detectable_on_few)]
    star, attempts = " *" if mix.cheapest else "  ", f"{mix.total_attempts:,}"
    return [f"{mix.problems:,}", *([attempts, *found] if fixed else [even, attempts]), cost + star]


def conclusions(plan: "ComparisonPlan") -> list[str]:
    """The mixes in words."""
    lines = []
    if all(mix.problems is None for mix in plan.mixes):
        more = "; more problems in the same clusters do not replace more clusters" if plan.population.clusters else ""
        lines.append(f"no number of problems is enough{more}")
    if plan.fixed is not None:
        lines.append(_fixed_line(plan.fixed, plan.goal.effect))
    if plan.today is not None and plan.today.detectable is not None:
        attempts = counted(round(plan.today.attempts), "attempt")
        few = f", of {plan.today.detectable_on_few:.3f} on few problems" if plan.today.detectable_on_few else ""
        lines.append(
            f"today: {counted(plan.today.problems, 'problem')} with {attempts} each find a difference of "
            f"{plan.today.detectable:.3f} if it is spread evenly{few}"
        )
    if plan.mixes and all(mix.cost_usd is None for mix in plan.mixes):
        lines.append("costs are not known; add --cost-per-attempt to compare the mixes")
    return lines


def _fixed_line(fixed: "FixedBenchmark", effect: float) -> str:
    problems = counted(fixed.problems, "problem")
    even = fixed.attempts_if_even
    if fixed.attempts_needed is not None:
        needed = counted(fixed.attempts_needed, "attempt")
        fewer = f" ({even:,} if the difference is spread evenly)" if even != fixed.attempts_needed else ""
        return f"{problems} are enough with {needed} per problem and model{fewer}"
    if even is not None:
        start = f"{problems} are enough with {counted(even, 'attempt')} per problem and model if it is spread evenly"
    elif fixed.at_best_if_even is None:
        return f"{problems} are not enough, however many attempts there are"
    else:
        start = f"{problems} are not enough: more attempts alone never find less than {fixed.at_best_if_even:.3f}"
    few = fixed.detectable_at_best
    limit = "it is never found" if few is None else f"more attempts alone never find less than {few:.3f}"
    return f"{start}; on few problems, {limit}: {effect:g} takes more problems"


def plan_document(plan: "ComparisonPlan") -> dict[str, object]:
    """The plan for --json."""
    today = plan.today and {
        "problems": plan.today.problems,
        "attempts_per_problem": plan.today.attempts,
        "detectable": plan.today.detectable,
        "detectable_on_few": plan.today.detectable_on_few,
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
