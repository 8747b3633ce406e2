"""Tables at any width: no figure and no name is ever cut."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from touchstone.cli.terminal_tables import UNLIMITED, FittedTable, names, numbers, prose
from touchstone.tables.presentation import name
from touchstone.text import significant

LONG_NAME = "provider-" + "x" * 80 + "-20250929"
CJK = "模型评估" * 6
EMOJI = "👩‍🔬🧪-model-👍🏽"


def drawn(table: FittedTable, width: int) -> str:
    out = io.StringIO()
    table.print(Console(file=out, width=width, force_terminal=False, highlight=False, emoji=False))
    return out.getvalue()


def cells_of(seen: str) -> list[list[str]]:
    """The rows of a drawn table, each cell put together again from its lines, without spaces."""
    rows: list[list[str]] = []
    for group in re.split(r"^[├┡].*\n", seen.split("┩\n")[1].split("└")[0], flags=re.MULTILINE):
        lines = [[cell.strip() for cell in line.strip("│").split("│")] for line in group.strip().splitlines()]
        rows.append([re.sub(r"\s", "", "".join(parts)) for parts in zip(*lines, strict=True)])
    return rows


def leaderboard(*models: str) -> FittedTable:
    table = FittedTable(
        [*names("model", "tier"), *numbers("pass@1", "minimum_detectable_effect"), *prose("note")],
        title="pass@k",
        lines_between_rows=True,
    )
    for model in models:
        table.add_row(model, "T0", "0.576 [0.483, 0.663]", "1.0729e-06", "too few problems to tell these two apart")
    return table


@pytest.mark.parametrize("width", [40, 80, 120, UNLIMITED])
@pytest.mark.parametrize("model", ["claude-sonnet-4-5-20250929", "claude-sonnet-4-20250514", LONG_NAME, CJK, EMOJI])
def test_what_is_shown_is_whole_and_the_rest_is_named(width: int, model: str) -> None:
    table = leaderboard(model)
    seen = drawn(table, width)
    whole = [model, "T0", "0.576[0.483,0.663]", "1.0729e-06", "toofewproblemstotellthesetwoapart"]
    shown = len(table.layout(width).widths)
    assert shown >= 3, "a figure is shown at any of these widths"
    assert cells_of(seen) == [whole[:shown]]
    assert all(cell_len(line) <= width for line in seen.splitlines())
    hidden = [column.header for column in table.columns[shown:]]
    told = " ".join(seen.split("┘\n")[1].split())
    assert told == (f"not shown: {', '.join(hidden)}; use a wider terminal, or pipe the output" if hidden else "")
    assert "…" not in seen


def test_figures_are_right_aligned_and_break_only_before_their_interval() -> None:
    table = FittedTable([*names("model"), *numbers("difference", "p")])
    table.add_row("m", "-0.290 [-0.356, -0.223]", "< 0.001")
    table.add_row("n", "+0.1", "1")
    body = drawn(table, 38).splitlines()[3:-1]
    assert body == [
        "│ m     │           -0.290 │ < 0.001 │",
        "│       │ [-0.356, -0.223] │         │",
        "│ n     │             +0.1 │       1 │",
    ]


def test_a_single_figure_wider_than_the_terminal_is_left_to_the_terminal() -> None:
    table = FittedTable(numbers("n", "m"))
    table.add_row("1" * 60, "2")
    seen = drawn(table, 40)
    assert "1" * 60 in seen and "not shown: m" in seen


def test_markup_and_what_steers_a_terminal_are_shown_as_text() -> None:
    table = FittedTable(prose("[b]note[/b]"))
    table.add_row("[red]x[/] :smile: \x1b[31m\ta\nsecond line")
    seen = drawn(table, 80)
    assert "[b]note[/b]" in seen and r"[red]x[/] :smile: \x1b[31m" in seen and "\x1b" not in seen
    assert "│ second line" in seen


def test_a_styled_cell_is_whole_too() -> None:
    table = FittedTable([*names("model"), *prose("verdict")])
    table.add_row("m" * 30, Text("no relevant difference between them", style="green"))
    assert cells_of(drawn(table, 40)) == [["m" * 30, "norelevantdifferencebetweenthem"]]


def test_a_row_has_a_cell_per_column() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        FittedTable(names("a", "b")).add_row("x")


TEXTS = st.text(
    st.characters(exclude_characters="│\u2028\u2029", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=60
)


@given(
    width=st.integers(20, 200),
    kinds=st.lists(st.sampled_from(["name", "number", "text"]), min_size=1, max_size=6),
    data=st.data(),
)
def test_no_character_of_a_shown_cell_is_ever_lost(width: int, kinds: list, data: st.DataObject) -> None:
    table = FittedTable(
        [name(f"column_{place}", kind=kind) for place, kind in enumerate(kinds)], lines_between_rows=True
    )
    for _ in range(2):
        table.add_row(*(data.draw(TEXTS) for _ in kinds))
    shown = len(table.layout(width).widths)
    expected = [[re.sub(r"\s", "", str(cell)) for cell in row[:shown]] for row in table.rows]
    assert cells_of(drawn(table, width)) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0728836059570312e-06, "1.0729e-06"),
        (0.6908552631578947, "0.69086"),
        (0.1, "0.1"),
        (0.5, "0.5"),
        (1.0, "1"),
        (0.0, "0"),
        (-0.0833333333, "-0.083333"),
        (0.9999999, "1.0000"),
        (9999.96, "10000"),
        (123456.789, "123457"),
        (1234567.0, "1234567"),
        (1.5e20, "1.5e+20"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_figures_have_five_significant_digits_and_whole_numbers_all(value: float, text: str) -> None:
    assert significant(value) == text
