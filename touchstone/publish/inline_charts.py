"""Charts as pictures inside Markdown, for a page that has no files beside it: that of an asset in the Dagster UI.

Drawing belongs in `touchstone.publish.charts`.
"""

import base64
import re
from typing import TYPE_CHECKING

from touchstone.publish.charts import CHARTS, NothingToDraw, spec
from touchstone.text import markdown_text, visible

if TYPE_CHECKING:
    import polars as pl

# The charts that answer the first questions, by their table. The first takes 1.5 s of CPU, each further one 0.2 s.
INLINE = {
    "pass_at_k": "leaderboard",
    "tiers": "tier_uplift",
    "economics": "cost_quality",
    "model_comparison": "pairwise_verdicts",
}
# Dagster keeps the text in its history twice, in every run that changes the table.
MAX_BYTES = 60_000
# Tables with more rows are not drawn: a pair takes two cells of 280 bytes each, and drawing 9,000 pairs takes seconds.
_MAX_ROWS = {"model_comparison": 200}
# No XML may have the control characters; the others turn the text around them.
_UNSHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e\u2066-\u2069]")


def inline_chart(table: str, frame: "pl.DataFrame") -> str | None:
    """The chart of a table as an SVG picture in Markdown, or why there is none; null if there is nothing to draw."""
    chart = CHARTS[INLINE[table]]
    command = f"touchstone chart {chart.name}"
    try:
        if frame.height > _MAX_ROWS.get(table, frame.height):
            return _too_large(command)
        from touchstone.publish.charts.rendering import svg

        picture = svg(spec(chart.name, frame))
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
