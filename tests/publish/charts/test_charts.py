"""What holds for every chart: its table, its caption, any number of models, and names that are only ever text."""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import altair as alt
import polars as pl
import pytest

from tests.conftest import PROJECT, nightly_but
from tests.publish.charts.tables import HOSTILE, TABLE_OF, names, problem_statistics
from touchstone.errors import TouchstoneError
from touchstone.publish.charts import CHARTS, NothingToDraw, draw, spec
from touchstone.publish.charts.rendering import svg

LONG = "vendor/" + "x" * 86 + "-name-1"
ALL = pytest.mark.parametrize("name", CHARTS)
# Tooltips and links of a results table that the charts of one model cannot have.
OF_PAIRS = {"pairwise_verdicts"}


@functools.cache
def of_three(name: str) -> dict[str, Any]:
    """The specification of a chart of three models, to be read only."""
    return spec(name, TABLE_OF[name](names(3)))


def caption(drawn: dict[str, Any]) -> str:
    return " ".join(drawn["title"]["subtitle"])


def texts(picture: str) -> str:
    """All text that a reader of the picture sees."""
    return " ".join(re.sub(r"<[^>]*>", " ", text) for text in re.findall(r"<text[^>]*>(.*?)</text>", picture))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, str):
        yield value


@ALL
def test_the_caption_states_n_and_how_sure_the_figures_are_and_is_read_to_those_who_cannot_see(name: str) -> None:
    drawn = of_three(name)
    said = caption(drawn)
    assert drawn["description"] == f"{drawn['title']['text']} {said}"
    assert re.search(r"n = [\d,]+ (problem|attempt|independent unit)", said)
    assert re.search("[Ii]nterval|CI", said)
    table = TABLE_OF[name](names(3)).lazy().collect()
    methods = {each for column in table.columns if column.endswith("ci_method") for each in table[column].drop_nulls()}
    assert "so no interval" in said or all(each in said for each in methods)


@pytest.mark.parametrize("name", nightly_but(["leaderboard"], CHARTS))
def test_a_chart_follows_the_schema_of_vega_lite(name: str) -> None:
    alt.TopLevelSpec.validate(of_three(name))
    assert draw(name, TABLE_OF[name](names(3))).to_dict(validate=False)["datasets"] == of_three(name)["datasets"]


@ALL
def test_a_table_without_rows_is_nothing_to_draw_and_one_without_the_columns_is_named(name: str) -> None:
    with pytest.raises(NothingToDraw, match="nothing to draw: "):
        draw(name, TABLE_OF[name](names(2)).clear())
    with pytest.raises(TouchstoneError, match=f"the chart '{name}' needs the table '{CHARTS[name].table}'"):
        draw(name, pl.DataFrame({"x": [1]}))


@pytest.mark.parametrize(("name",), nightly_but([("history",), ("variance_split",)], [(name,) for name in CHARTS]))
def test_only_the_configuration_differs_between_light_and_dark(name: str) -> None:
    light, dark = of_three(name), spec(name, TABLE_OF[name](names(3)), theme="dark")
    assert light["config"] != dark["config"]
    assert light | {"config": None} == dark | {"config": None}


@functools.cache
def of_odd_names(name: str) -> dict[str, Any]:
    """The specification of a chart of a hostile and a long name, to be read only."""
    return spec(name, TABLE_OF[name]([HOSTILE, LONG, "=cmd()"]))


@ALL
def test_names_show_as_text_and_nothing_leads_elsewhere(name: str) -> None:
    assert not [text for text in strings(of_three(name)) if "//" in text or text in ("url", "$schema", "href")]
    drawn = json.dumps(of_odd_names(name), ensure_ascii=False)
    assert "\u202e" not in drawn and "\x1b" not in drawn and "u001b" not in drawn


@pytest.mark.parametrize("name", sorted(CHARTS.keys() - {"outcome_funnel"}))
def test_long_names_are_cut_on_axes_and_whole_in_tooltips(name: str) -> None:
    found = set(strings(of_odd_names(name)))
    assert any(text.startswith("vendor/") and "…" in text and "name-1" in text for text in found)
    assert any(LONG in text for text in found)


@pytest.mark.parametrize(("name",), nightly_but([("pairwise_verdicts",)], [(name,) for name in CHARTS]))
def test_the_size_of_a_chart_is_bounded(name: str) -> None:
    """134 models, which a page shows among a dozen other charts."""
    assert len(json.dumps(spec(name, TABLE_OF[name](names(134))))) < 800_000


@pytest.mark.nightly
def test_the_size_of_a_chart_does_not_grow_with_the_problems() -> None:
    drawn = spec("problem_heatmap", problem_statistics(names(134), 10_000))
    assert "10,000 problems" in caption(drawn)
    assert len(json.dumps(drawn)) < 400_000


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("leaderboard", 1),
        *(pytest.param(name, count, marks=pytest.mark.nightly) for name in CHARTS for count in (1, 134)),
    ],
)
def test_one_and_many_models_can_be_read(name: str, models: int) -> None:
    if name in OF_PAIRS and models == 1:
        pytest.skip("one model has no pair")
    shown = texts(svg(spec(name, TABLE_OF[name](names(models)))))
    assert "n = " in shown
    if models > 1 and name not in ("outcome_funnel", "pairwise_verdicts", "cost_quality"):
        assert len(set(re.findall(r"model-\d+", shown))) >= 6
    if models == 1 and name != "outcome_funnel":
        assert "model-000" in shown
    assert not re.search("NaN|undefined|null|Infinity", shown)


@pytest.mark.nightly
@ALL
def test_hostile_names_are_escaped_in_the_picture(name: str) -> None:
    picture = svg(spec(name, TABLE_OF[name]([HOSTILE, "=cmd()", "m"])))
    assert "<script" not in picture and "\x1b" not in picture and "\u202e" not in picture


def test_every_chart_is_documented_with_its_table() -> None:
    page = (PROJECT / "docs" / "looking.md").read_text()
    documented = dict(re.findall(r"`(\w+)`\s+\(`(\w+)`\)", page))
    assert documented == {chart.name: chart.table for chart in CHARTS.values()}


def test_an_unknown_chart_suggests_the_near_one() -> None:
    with pytest.raises(TouchstoneError, match="no chart 'leaderbord' \\(did you mean 'leaderboard'\\?\\)"):
        draw("leaderbord", pl.DataFrame())


def test_an_unknown_theme_is_an_error() -> None:
    with pytest.raises(TouchstoneError, match="no theme 'sepia' \\(themes: light, dark\\)"):
        draw("leaderboard", TABLE_OF["leaderboard"](["m"]), theme="sepia")  # type: ignore[arg-type]
