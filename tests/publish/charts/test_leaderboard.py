"""The leaderboard chart: what it shows of the table `pass_at_k`."""

import polars as pl
import pytest

from touchstone.publish.charts import NothingToDraw, draw
from touchstone.publish.charts.rendering import svg


def table(**columns: list[object]) -> pl.DataFrame:
    rows = {
        "model": ["a", "b"],
        "tier": ["T0", "T0"],
        "k": [1, 1],
        "pass_at_k": [0.25, 0.75],
        "ci_low": [0.125, 0.5],
        "ci_high": [0.5, 0.875],
        "ci_method": ["wilson", "wilson"],
        "ci_units": [8, 8],
        "eligible": [8, 8],
    }
    return pl.DataFrame(rows | columns)


def test_the_caption_states_n_and_method() -> None:
    picture = svg(draw("leaderboard", table()))
    assert "n = 8 problems. Bars: confidence interval of pass@1 (wilson)." in picture
    assert picture.index(">b<") < picture.index(">a<"), "best first"


def test_no_rows_are_nothing_to_draw() -> None:
    with pytest.raises(NothingToDraw, match="'pass_at_k' has no rows"):
        draw("leaderboard", table().clear())
