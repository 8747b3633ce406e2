"""Vega-Lite as plain dictionaries, in the words of Altair, and how charts look: a `config` for light and for dark.

Every run draws a dozen charts. Altair checks and copies a chart with all its rows at every step: with its import, that
would cost a run a second. Tests check the charts against the schema of Vega-Lite through Altair. Rows stay Polars
frames until the chart is finished.

Series colours are those of Okabe and Ito (2008), "Color universal design", which people with any common colour
blindness can tell apart; the ramp is cividis (Nuñez et al., 2018), whose lightness rises evenly, so that it survives
greyscale print. No chart relies on colour alone: shapes, dashes, symbols or labels say the same.
"""

from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from touchstone.errors import TouchstoneError

Spec = dict[str, Any]

_TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}
# The other end of a bar or an area: its type is that of the first end.
_SECOND_ENDS = ("x2", "y2")


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that a chart shows; as CSV they are a third of the size, for large grids of numbers."""

    frame: pl.DataFrame
    csv: bool = False

    @property
    def values(self) -> str | list[dict[str, Any]]:
        """The rows as Vega-Lite takes them."""
        return self.frame.write_csv() if self.csv else self.frame.to_dicts()


@dataclass(frozen=True)
class View:
    """One view of some rows: transforms, a mark and an encoding. Every method returns another view."""

    spec: Spec

    def encode(self, **channels: Any) -> "View":
        """Add channels: a `field`, what a field's name and type say, or a list of tooltips."""
        added = {name: _channel(name, given) for name, given in channels.items()}
        return View({**self.spec, "encoding": {**self.spec.get("encoding", {}), **added}})

    def mark(self, type: str, **properties: Any) -> "View":
        """Draw marks of a type, such as `point`."""
        return View({**self.spec, "mark": {"type": type, **properties}})

    def transform(self, **transform: Any) -> "View":
        """Add a transform, such as `filter="datum.n > 0"`."""
        return View({**self.spec, "transform": [*self.spec.get("transform", ()), transform]})

    def calculate(self, **expressions: str) -> "View":
        """Add fields that the reader's browser computes."""
        added = [{"calculate": expression, "as": name} for name, expression in expressions.items()]
        return View({**self.spec, "transform": [*self.spec.get("transform", ()), *added]})


def view(rows: Rows | None = None) -> View:
    """A view of the rows, without a mark."""
    return View({} if rows is None else {"data": rows})


def field(name_and_type: str, **properties: Any) -> Spec:
    """A field by its name and the first letter of its type.

    >>> field("model:N", title=None)
    {'field': 'model', 'type': 'nominal', 'title': None}
    """
    name, _, letter = name_and_type.rpartition(":")
    return {"field": name, "type": _TYPES[letter], **properties}


def value(constant: Any) -> Spec:
    """A constant in place of a field."""
    return {"value": constant}


def condition(test: str, then: Any, otherwise: Any) -> Spec:
    """One of two constants."""
    return {"condition": {"test": test, "value": then}, "value": otherwise}


def step(pixels: float, **properties: Any) -> Spec:
    """A width or height by the number of columns or rows."""
    return {"step": pixels, **properties}


def layer(*views: View, **properties: Any) -> Spec:
    """Views on top of each other. Rows that all of them share are those of the layers, so that they share an order."""
    specs = [each.spec for each in views]
    shared = specs[0].get("data")
    if all(each.get("data") is shared for each in specs):
        specs = [{name: part for name, part in each.items() if name != "data"} for each in specs]
        properties |= {} if shared is None else {"data": shared}
    return {"layer": specs, **properties}


def _channel(name: str, given: Any) -> Any:
    if not isinstance(given, str):
        return given
    found = field(given)
    return {"field": found["field"]} if name in _SECOND_ENDS else found


def finished(spec: Spec) -> Spec:
    """The chart as Vega-Lite that can be written as JSON: its rows by name in `datasets`."""
    shown, tables = _with_named_rows(spec)
    return {**shown, "datasets": {name: rows.values for name, rows in tables.items()}}


def _with_named_rows(spec: Spec) -> tuple[Spec, dict[str, Rows]]:
    """The chart without its rows, and the rows by the names that it has for them."""
    names: dict[Rows, str] = {}

    def named(node: Any) -> Any:
        if isinstance(node, Rows):
            name = names.setdefault(node, f"rows-{len(names) + 1}")
            types = dict.fromkeys(node.frame.columns, "number")
            return {"name": name, **({"format": {"type": "csv", "parse": types}} if node.csv else {})}
        if isinstance(node, dict):
            return {key: named(each) for key, each in node.items()}
        return [named(each) for each in node] if isinstance(node, list) else node

    return named(spec), {name: rows for rows, name in names.items()}


FONT: Final = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"

# Okabe-Ito, most contrast to the background first; its yellow is left out of light, its black and blue of dark.
_SERIES: Final = {
    "light": ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"],
    "dark": ["#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00", "#FFFFFF"],
}
_INK: Final = {"light": "#1A1A1A", "dark": "#ECECEC"}
_FAINT_INK: Final = {"light": "#5A5A5A", "dark": "#B0B0B0"}
_RULE: Final = {"light": "#D9D9D9", "dark": "#444444"}
_PAPER: Final = {"light": "#FFFFFF", "dark": "#181A1B"}
# Vega's name of cividis, from dark to light: a high value stands out from the background of either theme.
RAMP: Final = "cividis"
SHAPES: Final = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
DASHES: Final = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 1], [1, 3]]

WIDTH: Final = 520


def config(theme: str) -> dict[str, Any]:
    """The Vega-Lite configuration of a theme. Everything that differs between light and dark is in it."""
    if theme not in _INK:
        raise TouchstoneError(f"there is no theme '{theme}' (themes: {', '.join(_INK)})")
    ink, faint, rule = _INK[theme], _FAINT_INK[theme], _RULE[theme]
    words = {
        "labelColor": ink,
        "titleColor": faint,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    }
    return {
        "background": _PAPER[theme],
        "font": FONT,
        "padding": 12,
        "view": {"stroke": None},
        # Vega would name every mark for screen readers, empty ones too: they get the description of the chart instead.
        "aria": False,
        "mark": {"color": _SERIES[theme][0], "aria": False},
        "rule": {"color": _SERIES[theme][0]},
        "text": {"fontSize": 11},
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "color": ink,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleColor": faint,
            "subtitleFontSize": 11,
            "subtitleLineHeight": 14,
            "subtitlePadding": 4,
            "offset": 12,
        },
        "axis": words
        | {
            "domainColor": rule,
            "tickColor": rule,
            "gridColor": rule,
            "gridOpacity": 0.6,
            "labelLimit": 320,
            "labelFlush": False,
            "titlePadding": 8,
        },
        "legend": words | {"symbolStrokeWidth": 2, "labelLimit": 320, "orient": "top", "titleOrient": "left"},
        "header": words | {"labelFontWeight": 600, "labelLimit": 320},
        "range": {"category": _SERIES[theme], "symbol": SHAPES, "ramp": {"scheme": RAMP}, "heatmap": {"scheme": RAMP}},
        "style": {
            "ink": {"color": ink, "fill": ink},
            "guide": {"color": faint, "stroke": faint},
            "hollow": {"fill": _PAPER[theme], "strokeWidth": 1.5},
        },
    }


def dark_style(scope: str) -> str:
    """CSS that gives a light SVG inside the selector the colours of the dark theme.

    Colours that a chart names itself, such as the ink on a cell of the ramp, must not be written as these are.
    """
    light, dark = ([*_SERIES[name], _INK[name], _FAINT_INK[name], _RULE[name], _PAPER[name]] for name in _INK)
    return "".join(
        f'{scope} [{part}="{old}"] {{ {part}: {new}; }}\n'
        for old, new in zip(light, dark, strict=True)
        for part in ("fill", "stroke")
        if old != new
    )


def themed(chart: Spec, theme: str) -> Spec:
    """The finished chart in a theme, described by its title and caption for those who cannot see it."""
    described = " ".join([chart["title"]["text"], *chart["title"]["subtitle"]])
    return {**finished(chart), "config": config(theme), "description": described}
