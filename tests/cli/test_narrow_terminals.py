"""Leaderboard, tiers, suites and verdicts on terminals of any width: no figure is broken, no two names are the same."""

import io
import math
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from tests.conftest import Command, Folder, nightly_but
from tests.publish.report.results import pair, reported
from touchstone.cli.results import summary_text
from touchstone.cli.terminal_tables import UNLIMITED, SafeConsole, print_line, show_table
from touchstone.publish.result_tables import leaderboard_of, pairs, suites, tiers
from touchstone.publish.short_names import cell_width, shortened
from touchstone.tables.presentation import ResultTable

WIDTHS = (40, 60, 80, 120, 200)
FIGURE = re.compile(r"^(?:-|[+-]?\d\.\d{3})(?: \[[+-]?(?:\d\.\d{3}|…|∞), [+-]?(?:\d\.\d{3}|…|∞)\])?$")
LONG = {
    "short": lambda place: f"m{place}",
    "one family": lambda place: f"provider/model-{'x' * 40}-{place:03}-{'y' * 40}",
    "wide": lambda place: f"{'模型评估' * 12}👩‍🔬{place:03}",
}


def drawn(table: ResultTable, width: int) -> str:
    out = io.StringIO()
    show_table(Console(file=out, width=width, force_terminal=False, highlight=False, emoji=False), table, 200)
    return out.getvalue()


def rows_of(seen: str) -> list[list[str]]:
    lines = [line for line in seen.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def pass_at_k(models: list[str], tiers: int = 1, known: bool = True) -> pl.DataFrame:
    """A leaderboard of models with equal figures; without intervals if they are not known."""
    rows = [
        {
            "model": model, "tier": f"T{tier}", "k": k, "pass_at_k": 0.576 if known else None,
            "ci_low": 0.483 if known else None, "ci_high": 0.663 if known else None,
            "ci_method": "wilson-t" if known else None, "attempted": 40, "problems": 40,
        }
        for model in models
        for tier in range(tiers)
        for k in (1, 5, 10)
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


@pytest.mark.parametrize("known", [True, False], ids=["intervals", "no figures"])
@pytest.mark.parametrize("names", LONG)
@pytest.mark.parametrize("count", nightly_but([6], [1, 6, 134]))
def test_the_leaderboard_fits_and_tells_all_models_apart(count: int, names: str, known: bool) -> None:
    models = [LONG[names](place) for place in range(count)]
    table = leaderboard_of(pass_at_k(models, known=known))
    for width in WIDTHS:
        seen = drawn(table, width)
        assert max(map(cell_len, seen.splitlines())) <= width
        rows = rows_of(seen)
        assert len({row[0] for row in rows}) == len(rows) == count, "a line and a name of its own per model"
        lines = [line.strip("┃").split("┃") for line in seen.splitlines() if line.startswith("┃")]
        headers = [" ".join(" ".join(cells).split()) for cells in zip(*lines, strict=True)]
        headline = headers.index("pass@1")
        assert all(FIGURE.match(row[headline]) for row in rows)
        assert ("[" in rows[0][headline]) == known
        missing = re.search(r"not shown: (.*); use a wider", " ".join(seen.split()))
        told = missing[1] if missing else ""
        whole = set(headers) | {part.removeprefix("the intervals of ") for part in told.split(", ")}
        assert {"tier", "pass@5", "pass@10", "attempted", "CI method"} <= whole


def test_a_bar_beside_the_headline_on_a_terminal_only() -> None:
    table = leaderboard_of(pass_at_k(["m"]))
    assert "█████▊" in drawn(table, 80) and "█" not in drawn(table, UNLIMITED)
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    SafeConsole(out, width=80).print("")
    show_table(SafeConsole(out, width=80), table, 1)
    out.flush()
    seen = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert seen.isascii() and "| ######" in seen


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("names", LONG)
def test_verdicts_fit_and_are_whole(tmp_path: Path, width: int, names: str) -> None:
    ends = {"adjusted_ci_low": -0.123, "adjusted_ci_high": 0.456, "p_value": 1e-9, "p_adjusted": 1e-8}
    verdicts = ("better", "no relevant difference", "inconclusive")
    compared = [pair(LONG[names](0), LONG[names](1), verdict, **ends) for verdict in verdicts]
    seen = drawn(pairs(reported(tmp_path, model_comparison=compared)), width)
    assert max(map(cell_len, seen.splitlines())) <= width
    rows = rows_of(seen)
    assert rows[0][0] != rows[0][1]
    words = " ".join(row[2] for row in rows)
    assert re.sub(r"\s+", " ", words) == "better no relevant difference inconclusive"
    assert width < 60 or "+0.100" in seen
    assert width < 120 or "[-0.123, +0.456]" in seen
    assert not re.search(r"\[[^\]]*$", seen, re.MULTILINE), "no interval is broken"


@pytest.mark.parametrize("width", WIDTHS)
def test_tiers_with_infinite_costs_and_suites_fit(tmp_path: Path, width: int) -> None:
    key = {"model": LONG["one family"](7), "tier": "T0"}
    tier = key | {
        "attempts": 135, "scored": 90, "composite_median": 0.925, "ci_low": 0.425, "grade": "B", "grade_low": "F",
        "grade_high": "B", "uplift": 0.1, "uplift_ci_low": -0.5, "uplift_ci_high": math.inf, "cost_of_pass": math.inf,
    }  # fmt: skip
    run = reported(
        tmp_path,
        tiers=[tier, tier | {"tier": "T1"}],
        cross_tier=[{"model": key["model"]}],
        suite_scores=[key | {"suite": f"suite-{place}-{'x' * 20}", "score": 0.5} for place in range(6)],
        run_scores=[key | {"overall_score": 0.5, "ci_low": 0.25, "ci_high": 0.75, "cases": 9, "decided": 9}],
    )
    seen = drawn(tiers(run), width)
    assert "0.925" in seen and max(map(cell_len, seen.splitlines())) <= width
    seen = drawn(suites(run), width)
    assert "0.500" in seen and max(map(cell_len, seen.splitlines())) <= width


@given(names=st.lists(st.text(max_size=40), max_size=30), width=st.integers(6, 40))
def test_short_names_fit_and_differ(names: list[str], width: int) -> None:
    short = shortened(names, width)
    assert all(cell_width(text) <= width for text in short.values())
    assert len(set(short.values())) == len(set(names))
    assert all(text == name or cell_width(name) > width for name, text in short.items())


def test_a_line_of_text_never_breaks_a_figure() -> None:
    out = io.StringIO()
    line = "worse by 13.8 points (95% CI [-0.390, -0.190], p < 0.001; 40 problems)"
    print_line(SafeConsole(out, width=34), line)
    assert out.getvalue().splitlines() == [
        "worse by 13.8 points (95% CI",
        "[-0.390, -0.190], p < 0.001; 40",
        "problems)",
    ]


def test_pass_at_k_on_a_narrow_terminal() -> None:
    summary = pl.DataFrame(
        {"LLM": [LONG["one family"](place) for place in range(2)]} | {f"pass@{k}": [0.5, 0.123456] for k in (1, 5, 10)}
    )
    lines = summary_text(summary, (1, 5, 10), width=34).splitlines()
    assert max(map(len, lines)) <= 34 and lines[-1] == "not shown: pass@10"
    assert [line.split()[1:] for line in lines[1:-1]] == [
        ["…-000-yyyyy", "0.500000", "0.500000"],
        ["…-001-yyyyy"] + ["0.123456"] * 2,
    ]


@pytest.mark.parametrize(
    ("environment", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
    ids=str,
)
def test_colours(environment: dict[str, str], terminal: bool, coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.conftest import Screen
    from touchstone.cli.setup import Requirement, show_doctor

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"TERM": "xterm-256color"} | environment).items():
        monkeypatch.setenv(name, value)
    out = Screen(terminal)
    monkeypatch.setattr("sys.stdout", out)
    show_doctor([Requirement("Python", True, True, "found")])
    assert bool(re.search(r"\x1b\[3\dm", out.getvalue())) == coloured
    assert ("\x1b" in out.getvalue()) == (coloured or "NO_COLOR" in environment)


def test_snapshots_keep_their_ids_whole(touchstone: Command, finished: Folder) -> None:
    (identity,) = [path.name for path in (finished.output / "snapshots").iterdir() if path.is_dir()]
    for columns in (40, 80):
        seen = touchstone("snapshots", "--data", finished.output, columns=columns, terminal=True).stdout
        assert identity in seen and max(map(len, seen.splitlines())) <= columns
