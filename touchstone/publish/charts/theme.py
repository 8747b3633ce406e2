"""How every chart looks: colours, type and sizes, as one Vega-Lite `config` each for light and dark.

Series colours are those of Okabe and Ito (2008), "Color universal design", which people with any common colour
blindness can tell apart; the ramp is cividis (Nuñez et al., 2018), whose lightness rises evenly, so that it survives
greyscale print. No chart relies on colour alone: shapes, dashes, symbols or labels say the same.
"""

from typing import TYPE_CHECKING, Any, Final

from touchstone.errors import TouchstoneError

if TYPE_CHECKING:
    from touchstone.publish.charts.vega import Spec

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


def themed(chart: "Spec", theme: str) -> "Spec":
    """The finished chart in a theme, described by its title and caption for those who cannot see it."""
    from touchstone.publish.charts.vega import finished

    described = " ".join([chart["title"]["text"], *chart["title"]["subtitle"]])
    return {**finished(chart), "config": config(theme), "description": described}
