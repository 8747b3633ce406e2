"""Charts as SVG, PNG, plain Vega-Lite and pages that work offline, all made by vl-convert on this machine."""

import hashlib
import html as markup
import json
import mmap
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from touchstone.errors import TouchstoneError
from touchstone.locations import cache_folder
from touchstone.publish.charts import ThemeName, find_chart, spec
from touchstone.publish.charts.dots import leaderboard, outcome_funnel, slices, tier_uplift, variance_split
from touchstone.publish.charts.heatmaps import failure_classes, pairwise_verdicts, problem_heatmap, suite_heatmap
from touchstone.publish.charts.lines import history, pass_at_k_curves, pass_hat_k
from touchstone.publish.charts.scatter import budget_curves, cost_quality, problem_discrimination
from touchstone.publish.charts.vega import Spec, config
from touchstone.publish.export import scan_table
from touchstone.publish.formats import saving
from touchstone.publish.views import require_tables, table_files
from touchstone.regular_files import read_bytes
from touchstone.storage.files import replacing

# The functions that draw the charts, by the chart's name: each takes the frame of the chart's table.
DRAW: Mapping[str, Callable[..., Spec]] = {
    function.__name__: function
    for function in (
        *(leaderboard, pass_at_k_curves, pass_hat_k, cost_quality, budget_curves, tier_uplift, suite_heatmap),
        *(problem_heatmap, outcome_funnel, failure_classes, variance_split, pairwise_verdicts, history, slices),
        problem_discrimination,
    )
}

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


def svg(chart: Spec) -> str:
    """The chart as SVG, described for screen readers."""
    picture: str = vl_convert().vegalite_to_svg(chart, allowed_base_urls=[])
    return picture.replace("<svg ", f'<svg role="img" aria-label="{markup.escape(chart.get("description", ""))}" ', 1)


def png(chart: Spec, scale: float = 2) -> bytes:
    """The chart as PNG; a scale of 2 is sharp on paper and on dense screens."""
    picture: bytes = vl_convert().vegalite_to_png(chart, scale=scale, allowed_base_urls=[])
    return picture


def html(chart: Spec, *, follow: bool = True) -> str:
    """The chart as one page without outside addresses, light or dark as the reader's system is if it is to follow."""
    own: Spec = chart["config"]
    text = script_json({name: part for name, part in chart.items() if name != "config"})
    themes = {"light": config("light"), "dark": config("dark")} if follow else {"light": own}
    return _PAGE.format(
        title=markup.escape(chart["title"]["text"]),
        schemes="light dark" if follow else "normal",
        background=themes["light"]["background"],
        dark_background=(themes["dark"] if follow else own)["background"],
        javascript=javascript(),
        spec=text,
        themes=script_json(themes),
        renderer="canvas" if len(text) > _LARGE else "svg",
    )


def script_json(value: Any) -> str:
    r"""JSON that may stand in a script element: nothing in it can end the element.

    >>> script_json(["</script>&\u2028"])
    '["\\u003c/script\\u003e\\u0026\\u2028"]'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def draw_results(tables_dir: Path, name: str, *, theme: ThemeName = "light", **options: Any) -> Spec:
    """The chart of that name from the tables of a run."""
    chart = find_chart(name)
    require_tables(tables_dir)
    present = table_files(tables_dir)
    if chart.table not in present:
        raise TouchstoneError(f"the chart '{name}' shows the table '{chart.table}', which these results do not have")
    beside: dict[str, pl.LazyFrame] = {
        option: scan_table(tables_dir, table) for option, table in chart.beside.items() if table in present
    }
    return spec(name, scan_table(tables_dir, chart.table), theme=theme, **beside | options)


def save_chart(chart: Spec, path: Path, format: str, *, follow: bool) -> None:
    """Write the chart as svg, png, html or json; `follow` as in `rendering.html`."""

    if format == "png":
        content = png(chart)
    elif format == "json":
        content = (json.dumps(chart, indent=1, allow_nan=False) + "\n").encode()
    else:
        content = (svg(chart) if format == "svg" else html(chart, follow=follow)).encode()
    with saving(path) as scratch:
        scratch.write_bytes(content)


_RESERVED = 65 * 2**30


@cache
def vl_convert() -> ModuleType:
    """The module, once it is known that its engine can start."""
    try:
        mmap.mmap(-1, _RESERVED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0).close()
    except OSError:
        raise TouchstoneError(
            "charts cannot be drawn in this process: the engine reserves 64 GiB of address space; raise `ulimit -v`"
        ) from None
    import vl_convert

    return vl_convert


_GLOBALS = "window.vegaEmbed = vegaEmbed; window.vega = vega; window.vegaLite = vegaLite;"
_MAX_BYTES = 20_000_000


@cache
def javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that defines `vegaEmbed`."""
    folder = cache_folder()
    file = folder / f"vega-{version('vl-convert-python')}.js" if folder is not None else None
    made = _kept(file) if file is not None else None
    if made is not None:
        return made
    made = str(vl_convert().javascript_bundle(_GLOBALS))
    if file is not None:
        _keep(file, made)
    return made


def _kept(file: Path) -> str | None:
    """The script in the file, if it is whole: its first line is the digest of the rest."""
    try:
        digest, _, script = read_bytes(file, _MAX_BYTES).partition(b"\n")
        return script.decode() if digest.decode() == _digest(script) else None
    except (OSError, UnicodeDecodeError):
        return None


def _keep(file: Path, script: str) -> None:
    content = script.encode()
    try:
        with replacing(file) as scratch:
            scratch.write_bytes(_digest(content).encode() + b"\n" + content)
    except OSError:
        # Without room for it, the next call makes it again.
        return


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
