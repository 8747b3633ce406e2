"""`touchstone plan`: how many problems and attempts a comparison needs, and what that costs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from touchstone.cli.console import print_messages, show_progress
from touchstone.cli.options import (
    JSON_OPTION,
    QUIET_OPTION,
    MultiValueCommand,
    data_option,
    output_folder_here,
    share_option,
)
from touchstone.errors import TouchstoneError

if TYPE_CHECKING:
    from touchstone.compare.planning import ComparisonPlan

_CHART_FORMATS = (".svg", ".png", ".html")

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
        Path | None,
        data_option("Estimate from this output folder of a run. [default: that of the current folder]"),
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model in the data. [default: the only two models]")] = None,
    against: Annotated[str | None, typer.Option(help="The model to compare it with.")] = None,
    tier: Annotated[str | None, typer.Option(help="The tier of both. [default: the only one]")] = None,
    rate: Annotated[float | None, share_option("Without data: the mean pass rate to assume.")] = None,
    icc: Annotated[
        float | None,
        share_option("Without data: the share of the variance of an attempt that lies between problems."),
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
    problems: Annotated[
        int | None, typer.Option(min=2, help="There are only so many problems: a benchmark that cannot grow.")
    ] = None,
    attempts_per_problem: Annotated[
        list[int] | None, typer.Option(metavar="N…", help="Attempts per problem and model to consider.")
    ] = None,
    cost_per_attempt: Annotated[float | None, typer.Option(help="Dollars per attempt. [default: the data's]")] = None,
    cost_per_problem: Annotated[float, typer.Option(help="Dollars for a new problem.")] = 0.0,
    save_to: Annotated[Path | None, typer.Option(help="Also draw the trade-off: .svg, .png or .html.")] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Say how many problems and attempts a comparison of two models needs, what each mix costs, and what is enough."""
    from touchstone.compare.planning import PlanRequest, make_plan
    from touchstone.inference.planning import Goal
    from touchstone.storage.output_folders import results_folder

    format = _chart_format(save_to)
    data = data or (output_folder_here() if rate is None and icc is None else None)
    with show_progress("planning", quiet=quiet):
        found = make_plan(
            PlanRequest(
                goal=Goal(detect, power, alpha / pairs),
                data=data and results_folder(data), model=model, against=against, tier=tier,
                rate=rate, icc=icc, correlation=correlation, clusters=clusters, cluster_share=cluster_share,
                problems=problems, attempts=tuple(attempts_per_problem or ()),
                cost_per_attempt=cost_per_attempt, cost_per_problem=cost_per_problem,
            )
        )  # fmt: skip
    if as_json:
        from touchstone.cli.json_output import print_json
        from touchstone.cli.plan_text import plan_document

        print_json(plan_document(found))
    elif not quiet:
        from touchstone.cli.plan_text import show_plan

        show_plan(found)
    print_messages("note", found.notes, quiet)
    if save_to is not None:
        _save_chart(found, save_to, format)


def _chart_format(save_to: Path | None) -> str:
    suffix = save_to.suffix.lower() if save_to is not None else ".svg"
    if suffix not in _CHART_FORMATS:
        raise TouchstoneError(f"--save-to {save_to}: a chart is a file that ends in {', '.join(_CHART_FORMATS)}")
    return suffix.removeprefix(".")


def _save_chart(found: "ComparisonPlan", save_to: Path, format: str) -> None:
    from touchstone.cli.plan_text import plan_frame
    from touchstone.publish.charts import rendering
    from touchstone.publish.charts.plan import plan_tradeoff
    from touchstone.publish.charts.theme import themed
    from touchstone.storage.files import replacing

    if all(mix.problems is None for mix in found.mixes):
        raise TouchstoneError("nothing to draw: no number of problems is enough")
    render = getattr(rendering, format)
    content = render(themed(plan_tradeoff(plan_frame(found).lazy()), "light"))
    try:
        with replacing(save_to) as scratch:
            scratch.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise TouchstoneError(f"{save_to}: cannot be written ({error.strerror})") from None
