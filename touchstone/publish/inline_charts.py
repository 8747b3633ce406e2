"""Charts as pictures inside Markdown, for a page that has no files beside it: that of an asset in the Dagster UI.

Drawing belongs in `touchstone.publish.charts`.
"""

import base64
import re
from typing import TYPE_CHECKING

from touchstone.contracts import resolve
from touchstone.publish.charts import CHARTS, NothingToDraw
from touchstone.text import markdown_text, visible

if TYPE_CHECKING:
    import polars as pl

# The charts that answer the first questions, by their table.
INLINE = {
    "pass_at_k": "leaderboard",
    "tiers": "tier_uplift",
    "economics": "cost_quality",
    "model_comparison": "pairwise_verdicts",
}
# Dagster keeps the text in its history twice, in every run that changes the table.
MAX_BYTES = 60_000
# The best models, as many as can be read beside an asset; the caption says how many more there are.
_TOP = {"leaderboard": 30, "tier_uplift": 30, "pairwise_verdicts": 20}
# Tables with more rows are not drawn: ordering the pairs of a thousand models takes a second.
_MAX_ROWS = 50_000
# No XML may have the control characters; the others turn the text around them.
_UNSHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e\u2066-\u2069]")


def inline_chart(table: str, frame: "pl.DataFrame") -> str | None:
    """The chart of a table as an SVG picture in Markdown, or why there is none; null if there is nothing to draw."""
    chart = CHARTS[INLINE[table]]
    command = f"touchstone chart {chart.name}"
    try:
        if frame.height > _MAX_ROWS:
            return _too_large(command)
        from touchstone.publish.charts.simple_svg import simple_svg

        options = {"top": _TOP[chart.name]} if chart.name in _TOP else {}
        picture = simple_svg(resolve(chart.draw)(frame.lazy(), **options))
    except NothingToDraw:
        return None
    except Exception as error:  # A picture must not fail the run.
        return f"not drawn: {markdown_text(visible(str(error))[:200])}"
    return _picture(chart.title, picture, command)


def _picture(title: str, svg: str, command: str) -> str:
    """An image with its data inside, unless it is too large.

    >>> _picture("A", "<svg/>", ""), _picture("A", " " * MAX_BYTES, "draw it")
    ('![A](data:image/svg+xml;base64,PHN2Zy8+)', 'larger than 60 kB; draw it')
    """
    data = base64.b64encode(_UNSHOWN.sub("\ufffd", svg).encode()).decode()
    if len(data) > MAX_BYTES:
        return _too_large(command)
    return f"![{markdown_text(title)}](data:image/svg+xml;base64,{data})"


def _too_large(command: str) -> str:
    return f"larger than {MAX_BYTES // 1000} kB; {command}"
