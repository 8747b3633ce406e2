"""Charts of points, bars and cells as SVG, drawn here: starting Vega's JavaScript takes .85 s of CPU in every run.

Draws those parts of Vega-Lite that the charts in the metadata of assets have, in the same places and colours; all
other charts belong in `rendering`. A part that is unknown here is an error.
"""

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

import polars as pl

from touchstone.publish.charts.axes import Names, Numbers, text_width
from touchstone.publish.charts.theme import config
from touchstone.publish.charts.vega import Rows, Spec

_PADDING, _TITLE, _LINE, _LEGEND = 12, 15, 14, 24
_LOOKS = config("light")
_CONDITIONS: dict[str, Callable[[pl.Expr, Any], pl.Expr]] = {
    "equal": lambda column, value: column == value,
    "valid": lambda column, value: column.is_not_null() == value,
}
# Shapes of half the square root of a mark's size, as Vega has them: where the pen starts, and how it moves from there.
_SHAPES = {
    "square": "M-1,-1h2v2h-2z",
    "triangle-up": "M0,-.866l1,1.732h-2z",
    "triangle-down": "M0,.866l1,-1.732h-2z",
    "diamond": "M0,-1l1,1l-1,1l-1,-1z",
    "cross": "M-.4,-1h.8v.6h.6v.8h-.6v.6h-.8v-.6h-.6v-.8h.6z",
}
_POSITIONS = ("x", "x2", "y")

Axis = Names | Numbers


def simple_svg(spec: Spec) -> str:
    """A chart in layers, with title and caption, as SVG in the light theme; described for screen readers."""
    x, y = _axis(spec, "x"), _axis(spec, "y")
    title, caption = spec["title"]["text"], spec["title"]["subtitle"]
    legend, long = _legend(spec)
    above = x.space if isinstance(x, Names) else 0.0
    top = _PADDING + _TITLE + _LINE * len(caption) + 14 + (_LEGEND if legend else 0) + above
    marks = [_layer(each, spec, x, y) for each in spec["layer"]]
    beside = max((text_width(text) + 8 for text in _notes(spec)), default=0.0)
    widths = [y.space + x.length + beside, long, text_width(title, _TITLE), *map(text_width, caption)]
    width = 2 * _PADDING + max(widths)
    height = top + y.length + x.space - above + _PADDING
    lines = "".join(f'<text y="{_LINE * nth + 4}">{escape(line)}</text>' for nth, line in enumerate(caption, 1))
    looks = _LOOKS["title"]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(" ".join([title, *caption]))}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="{escape(_LOOKS["font"])}" font-size="11">'
        f'<rect width="100%" height="100%" fill="{_LOOKS["background"]}"/>'
        f'<g transform="translate({_PADDING},{_PADDING + _TITLE - 3})" fill="{looks["subtitleColor"]}">'
        f'<text fill="{looks["color"]}" font-size="{_TITLE}" font-weight="600">{escape(title)}</text>{lines}'
        f'<g transform="translate(0,{_LINE * len(caption) + _LEGEND})">{legend}</g></g>'
        f'<g transform="translate({_PADDING + y.space:.1f},{top:.1f})">{x.svg(y.length)}{y.svg(x.length)}'
        f"{''.join(marks)}</g></svg>"
    )


def _axis(spec: Spec, name: str) -> Axis:
    """The axis of a channel, from the first layer that has one."""
    channel = next(found for each in spec["layer"] if "scale" in (found := each["encoding"].get(name, {})))
    size = spec["width" if name == "x" else "height"]
    if channel["type"] == "nominal":
        return Names(channel["scale"]["domain"], size["step"], is_y=name == "y")
    return Numbers(channel, size, is_y=name == "y")


def _rows(layer: Spec, spec: Spec) -> pl.DataFrame:
    """The rows of a layer: filtered, and with the names that their numbers stand for."""
    rows: Rows = layer.get("data") or spec["data"]
    frame, lists = rows.frame, {param["name"]: param["value"] for param in spec.get("params", ())}
    for transform in layer.get("transform", ()):
        if "calculate" in transform:
            values, column = re.fullmatch(r"(\w+)\[datum\.(\w+)\]", transform["calculate"]).groups()  # type: ignore[union-attr]
            names = pl.col(column).replace_strict(dict(enumerate(lists[values])), return_dtype=pl.String)
            frame = frame.with_columns(names.alias(transform["as"]))
        else:
            (condition,) = transform["filter"].keys() - {"field"}
            column = pl.col(transform["filter"]["field"])
            frame = frame.filter(_CONDITIONS[condition](column, transform["filter"][condition]))
    return frame.drop_nulls([layer["encoding"][name]["field"] for name in _POSITIONS if _has_field(layer, name)])


def _has_field(layer: Spec, channel: str) -> bool:
    return "field" in layer["encoding"].get(channel, {})


def _notes(spec: Spec) -> Iterator[str]:
    """The texts on the right of the plot."""
    for each in spec["layer"]:
        if each["mark"]["type"] == "text" and "value" in each["encoding"]["x"]:
            yield from _rows(each, spec)[each["encoding"]["text"]["field"]]


# Marks


def _layer(layer: Spec, spec: Spec, x: Axis, y: Axis) -> str:
    """The marks of a layer: one path for all of a colour."""
    mark, encoding, rows = layer["mark"], layer["encoding"], _rows(layer, spec)
    style = _LOOKS["style"].get(mark.get("style"), {})
    across, down = _places(encoding["x"], rows, x), _places(encoding.get("y", {"value": 0}), rows, y)
    if mark["type"] == "text":
        return _texts(mark, rows[encoding["text"]["field"]], across, down, style["fill"])
    if mark["type"] == "rule":
        ends = _places(encoding["x2"], rows, x) if "x2" in encoding else across
        fall = 0 if "y" in encoding else y.length
        drawn = [f"M{x:.1f},{y:.1f}L{end:.1f},{y + fall:.1f}" for x, y, end in zip(across, down, ends, strict=True)]
    elif mark["type"] == "line":
        steps = [f"H{x:.1f}V{y:.1f}" for x, y in zip(across, down, strict=True)]
        drawn = [f"M{across[0]:.1f},{down[0]:.1f}{''.join(steps)}"] if steps else []
    else:
        half = x.step / 2 if isinstance(x, Names) and mark["type"] == "rect" else math.sqrt(mark["size"]) / 2
        plain = "square" if mark["type"] == "rect" else mark.get("shape", "circle")
        shapes = _chosen(encoding.get("shape"), rows, _LOOKS["range"]["symbol"], plain)
        drawn = [_symbol(*each, half) for each in zip(shapes, across, down, strict=True)]
    own = style.get("stroke", _LOOKS["mark"]["color"])
    paths: dict[str, str] = {}
    colours = _chosen(encoding.get("color"), rows, _LOOKS["range"]["category"], own)
    # A line is one path through all rows.
    for colour, path in zip(colours, drawn, strict=False):
        paths[colour] = paths.get(colour, "") + path
    return "".join(_path(path, colour, mark, style) for colour, path in paths.items())


def _path(path: str, colour: str, mark: Spec, style: Spec) -> str:
    opacity = f' opacity="{mark["opacity"]}"' if mark.get("opacity", 1) != 1 else ""
    if mark["type"] == "rect" or mark.get("filled"):
        return f'<path d="{path}" fill="{colour}"{opacity}/>'
    width, dash = mark.get("strokeWidth", style.get("strokeWidth", 1)), mark.get("strokeDash", ())
    dashes = f' stroke-dasharray="{",".join(map(str, dash))}"' if dash else ""
    fill = style.get("fill", "none")
    return f'<path d="{path}" fill="{fill}" stroke="{colour}" stroke-width="{width}"{dashes}{opacity}/>'


def _places(channel: Spec, rows: pl.DataFrame, axis: Axis) -> list[float]:
    """Where the marks stand along an axis."""
    if "value" in channel:
        return [channel["value"]] * rows.height
    return [axis.place(value) for value in rows[channel["field"]]]


def _chosen(channel: Spec | None, rows: pl.DataFrame, looks: Sequence[str], plain: str) -> list[str]:
    """The colour or shape of every row: of the values of a field, one for all, or the plain one."""
    if channel is None or "value" in channel:
        return [channel["value"] if channel else plain] * rows.height
    scale, values = channel.get("scale", {}), rows[channel["field"]].to_list()
    known = scale.get("domain") or sorted(set(values))
    look = {value: scale.get("range", looks)[nth % len(looks)] for nth, value in enumerate(known)}
    return [look[value] for value in values]


def _symbol(shape: str, x: float, y: float, half: float) -> str:
    """A symbol as a path: `half` is half the square root of its area."""
    if shape == "circle":
        radius = half * 2 / math.sqrt(math.pi)
        arc = f"a{radius:.2f},{radius:.2f},0,1,0,"
        return f"M{x - radius:.1f},{y:.1f}{arc}{2 * radius:.2f},0{arc}{-2 * radius:.2f},0"
    start, moves = re.match(r"M([-.\d]+,[-.\d]+)(.*)", _SHAPES.get(shape, shape)).groups()  # type: ignore[union-attr]
    right, below = map(float, start.split(","))
    return f"M{x + right * half:.1f},{y + below * half:.1f}" + _scaled(moves, half)


@functools.cache
def _scaled(moves: str, factor: float) -> str:
    return re.sub(r"-?[.\d]+", lambda number: f"{float(number[0]) * factor:.4g}", moves)


def _texts(mark: Spec, texts: pl.Series, x: list[float], y: list[float], ink: str) -> str:
    anchor = "end" if mark["align"] == "right" else "start"
    shown = "".join(
        f'<text x="{right + mark.get("dx", 0):.1f}" y="{down + mark.get("dy", 0) + 4:.1f}">{escape(text)}</text>'
        for text, right, down in zip(texts, x, y, strict=True)
    )
    return f'<g fill="{ink}" text-anchor="{anchor}">{shown}</g>'


def _legend(spec: Spec) -> tuple[str, float]:
    """What the colours and shapes of cells mean, in one line, and its length; empty if the chart says it otherwise."""
    colours = [each["encoding"].get("color", {}) for each in spec["layer"]]
    shown = next((each for each in colours if each.get("legend")), None)
    if shown is None:
        return "", 0.0
    shapes = next(each["encoding"]["shape"]["scale"]["range"] for each in spec["layer"] if "shape" in each["encoding"])
    text, x = f"<text>{escape(shown['legend']['title'])}</text>", text_width(shown["legend"]["title"]) + 14
    for value, colour, shape in zip(shown["scale"]["domain"], shown["scale"]["range"], shapes, strict=True):
        text += (
            f'<path d="{_symbol("square", x, -4, 7)}" fill="{colour}"/>'
            f'<path d="{_symbol(shape, x, -4, 4)}" fill="#000000"/>'
            f'<text x="{x + 13:.1f}">{escape(value)}</text>'
        )
        x += text_width(value) + 34
    return text, x
