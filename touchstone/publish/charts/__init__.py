"""Charts of a run: every one is a function of one table that gives Vega-Lite with n and CI method in its caption.

This module only declares them, so that listing charts stays fast; `rendering` has their functions and turns a chart
into SVG, PNG or a page, `vega` has the parts of a chart, colours and type, `frames` what all charts do with their
table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from touchstone.errors import TouchstoneError
from touchstone.text import near

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

ThemeName = Literal["light", "dark"]


class NothingToDraw(TouchstoneError):  # noqa: N818 - a state of the data, not a mistake
    """The table has no rows that the chart could show."""


@dataclass(frozen=True)
class Chart:
    """One chart: `table` is what it shows. The function that draws it has the same name; see `rendering`.

    `beside` names options that take the frame of another table, if there is one: the chart says more with it.
    """

    name: str
    title: str
    table: str
    beside: Mapping[str, str] = field(default_factory=dict)


# Where the confidence level is: the tables of figures do not repeat it.
_LEVEL = {"settings": "settings"}

_ALL = (
    Chart("leaderboard", "Leaderboard", "pass_at_k", _LEVEL),
    Chart("pass_at_k_curves", "pass@k by number of attempts", "pass_at_k", _LEVEL),
    Chart("pass_hat_k", "pass@k and pass^k", "reliability_curve", _LEVEL),
    Chart("cost_quality", "Cost and quality", "economics", _LEVEL),
    Chart("budget_curves", "Solved within a budget", "budget_curves", _LEVEL),
    Chart("tier_uplift", "Uplift by tier", "tiers", _LEVEL),
    Chart("suite_heatmap", "Score by suite", "suite_scores", _LEVEL),
    Chart("problem_heatmap", "Pass rate by problem", "problem_statistics"),
    Chart("outcome_funnel", "From attempt to pass", "outcomes"),
    Chart("failure_classes", "How attempts fail", "suite_scores"),
    Chart("variance_split", "Where the uncertainty comes from", "variance_split"),
    Chart("pairwise_verdicts", "Model against model", "model_comparison", _LEVEL),
    Chart(
        "history",
        "History",
        "history",
        beside={"verdicts": "baseline_verdicts", "trends": "trends", "changes": "change_points"},
    ),
    Chart("slices", "pass@1 by slice", "slices", _LEVEL),
    Chart("problem_discrimination", "Do better models do better?", "problem_audit"),
)

CHARTS: dict[str, Chart] = {chart.name: chart for chart in _ALL}


def spec(
    name: str, frame: "pl.DataFrame | pl.LazyFrame", *, theme: ThemeName = "light", **options: Any
) -> dict[str, Any]:
    """The chart as plain Vega-Lite, data included, without any outside address.

    The options are those of the chart's function. Its colours of text, lines and series are all in `config`: replace
    that with `vega.config("dark")` to switch.
    """
    import polars as pl

    from touchstone.publish.charts.rendering import DRAW
    from touchstone.publish.charts.vega import themed

    chart = find_chart(name)
    try:
        return themed(DRAW[name](frame.lazy(), **options), theme)
    except pl.exceptions.ColumnNotFoundError as error:
        reason = str(error).splitlines()[0].partition(";")[0]
        raise TouchstoneError(f"the chart '{name}' needs the table '{chart.table}': {reason}") from error


def draw(
    name: str, frame: "pl.DataFrame | pl.LazyFrame", *, theme: ThemeName = "light", **options: Any
) -> "alt.TopLevelMixin":
    """The same as a chart of Altair, to show in a notebook and to change: importing Altair takes a while."""
    drawn = spec(name, frame, theme=theme, **options)
    import altair as alt

    # `Chart.from_dict` validates against one class after the other, which takes seconds.
    classes: dict[str, Any] = {"layer": alt.LayerChart, "vconcat": alt.VConcatChart, "facet": alt.FacetChart}
    made: alt.TopLevelMixin = next((each for key, each in classes.items() if key in drawn), alt.Chart).from_dict(drawn)
    return made


def find_chart(name: str) -> Chart:
    """The chart of that name."""
    if name not in CHARTS:
        raise TouchstoneError(f"there is no chart '{name}' ({near(name, CHARTS, 'charts')})")
    return CHARTS[name]
