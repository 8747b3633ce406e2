"""Charts as SVG, PNG, plain Vega-Lite and pages that work offline, all made by vl-convert on this machine."""

import json
from typing import TYPE_CHECKING, Any

import vl_convert

if TYPE_CHECKING:
    import altair as alt


_GLOBALS = "window.vegaEmbed = vegaEmbed; window.vega = vega; window.vegaLite = vegaLite;"


def vega_lite(chart: "alt.TopLevelMixin") -> dict[str, Any]:
    """The chart as plain Vega-Lite, data included."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("$schema", None)
    return spec


def svg(chart: "alt.TopLevelMixin") -> str:
    """The chart as SVG."""
    return vl_convert.vegalite_to_svg(vega_lite(chart), allowed_base_urls=[])


def png(chart: "alt.TopLevelMixin", scale: float = 2) -> bytes:
    """The chart as PNG; a scale of 2 is sharp on paper and on dense screens."""
    return vl_convert.vegalite_to_png(vega_lite(chart), scale=scale, allowed_base_urls=[])


def javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that defines `vegaEmbed`."""
    return vl_convert.javascript_bundle(_GLOBALS)


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<div id="chart"></div>
<script>{javascript}</script>
<script>vegaEmbed("#chart", {spec});</script>
</html>
"""


def html(chart: "alt.TopLevelMixin") -> str:
    """The chart as one page without outside addresses."""
    spec = json.dumps(vega_lite(chart), ensure_ascii=True).replace("<", "\\u003c")
    return _PAGE.format(javascript=javascript(), spec=spec)
