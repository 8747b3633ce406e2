"""Charts as SVG, PNG, plain Vega-Lite and pages that work offline, all made by vl-convert on this machine."""

import html as markup
import json
from typing import TYPE_CHECKING, Any, TypeAlias

from touchstone.publish.charts.bundle import javascript
from touchstone.publish.charts.engine import vl_convert
from touchstone.publish.charts.theme import config
from touchstone.publish.charts.vega import Spec

if TYPE_CHECKING:
    import altair as alt

AnyChart: TypeAlias = "Spec | alt.TopLevelMixin"

__all__ = ["html", "javascript", "png", "script_json", "svg", "vega_lite"]

# A larger chart is drawn on a canvas, which is quicker than thousands of SVG elements.
_LARGE = 200_000

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:;
 script-src 'unsafe-inline' 'unsafe-eval'">
<title>{title}</title>
<style>
:root {{ color-scheme: {schemes}; }}
body {{ margin: 0; background: {background}; }}
@media (prefers-color-scheme: dark) {{ body {{ background: {dark_background}; }} }}
main {{ overflow-x: auto; }}
h1 {{ position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }}
</style>
</head>
<body>
<main tabindex="0" aria-label="Chart"><h1>{title}</h1><div id="chart"></div></main>
<script>{javascript}</script>
<script>
const spec = {spec}, themes = {themes}, dark = matchMedia("(prefers-color-scheme: dark)");
const actions = {{export: true, source: false, compiled: false, editor: false}};
const options = {{mode: "vega-lite", renderer: "{renderer}", actions}};
const named = () => {{
  document.querySelector("#chart summary").setAttribute("aria-label", "Save the chart");
  const picture = document.querySelector("#chart .marks");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", spec.description);
}};
const shown = () => ({{...spec, config: (dark.matches && themes.dark) || themes.light}});
const show = () => vegaEmbed("#chart", shown(), options).then(named);
dark.addEventListener("change", show);
show();
</script>
</body>
</html>
"""


def vega_lite(chart: AnyChart) -> Spec:
    """A chart of Altair as plain Vega-Lite, data included; a specification as it is."""
    if isinstance(chart, dict):
        return chart
    spec: Spec = chart.to_dict(validate=False)
    # An address that nobody needs: every reader of Vega-Lite recognizes it without.
    spec.pop("$schema", None)
    return spec


def svg(chart: AnyChart) -> str:
    """The chart as SVG, described for screen readers."""
    spec = vega_lite(chart)
    picture: str = vl_convert().vegalite_to_svg(spec, allowed_base_urls=[])
    return picture.replace("<svg ", f'<svg role="img" aria-label="{markup.escape(spec.get("description", ""))}" ', 1)


def png(chart: AnyChart, scale: float = 2) -> bytes:
    """The chart as PNG; a scale of 2 is sharp on paper and on dense screens."""
    picture: bytes = vl_convert().vegalite_to_png(vega_lite(chart), scale=scale, allowed_base_urls=[])
    return picture


def html(chart: AnyChart, *, follow: bool = True) -> str:
    """The chart as one page without outside addresses, light or dark as the reader's system is if it is to follow."""
    spec = dict(vega_lite(chart))
    own = spec.pop("config")
    text = script_json(spec)
    themes = {"light": config("light"), "dark": config("dark")} if follow else {"light": own}
    return _PAGE.format(
        title=markup.escape(spec["title"]["text"]),
        schemes="light dark" if follow else "normal",
        background=themes["light"]["background"],
        dark_background=themes.get("dark", own)["background"],
        javascript=javascript(),
        spec=text,
        themes=script_json(themes),
        renderer="canvas" if len(text) > _LARGE else "svg",
    )


def script_json(value: Any) -> str:
    """JSON that may stand in a script element, whatever the texts in it.

    >>> script_json("</script>")
    '"\\\\u003c/script>"'
    """
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")
