"""The displays of progress, as text: nothing is cut, and every line says what the reader wants to know."""

import io
import re

import pytest
from rich.console import Console
from rich.progress import Progress

from touchstone import progress
from touchstone.cli.live import LineDisplay, LiveDisplay, figures

MODEL = "claude-sonnet-4-5-20251101"


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_live_display_cuts_neither_names_nor_figures_however_narrow(columns: int) -> None:
    screen = io.StringIO()
    with LiveDisplay("loading", Console(file=screen, force_terminal=True, color_system=None, width=columns)):
        progress.report_stage("validation", 9, 24)
        progress.report_step(f"outcomes: {MODEL}")
        with progress.track(f"validating {MODEL}", 1800, cached=120) as advance:
            advance(1680)
    frame = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[━─]|\s+", " ", screen.getvalue())
    words = " ".join(frame.split())
    assert f"validation: outcomes: {MODEL} 9/24 0:00:0" in words
    assert re.search(rf"validating {MODEL} 1,800/1,800 [\d,.]+/s 0:00:00 left 120 already known", words)


def test_the_rate_and_the_time_left_leave_out_what_came_from_the_cache() -> None:
    now = 100.0
    tasks = Progress(get_time=lambda: now)
    bar = tasks.add_task("validating", total=200, completed=100, cached=100, poll=None, is_bar=True, note="")
    assert figures(tasks.tasks[0]) == ["100/200"], "nothing is known before the first one is done"
    now += 10
    tasks.update(bar, completed=120)
    assert figures(tasks.tasks[0]) == ["120/200", "2.0/s", "0:00:40 left"]


def test_a_live_display_asks_how_much_is_made_before_a_whole_batch_is_done() -> None:
    screen, made = io.StringIO(), 0
    console = Console(file=screen, force_terminal=True, color_system=None, width=80)
    with (
        LiveDisplay("loading", console) as display,
        progress.track("validating m", 10, cached=2, poll=lambda: made) as advance,
    ):
        made = 3
        display.show_step("")
        assert " 5/10 " in screen.getvalue()
        advance(4)
        display.show_step("")
        assert " 6/10 " in screen.getvalue()
        made = 20
        display.show_step("")
        assert " 10/10 " in screen.getvalue()


def test_lines_say_each_stage_once_and_how_much_there_is_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with LineDisplay():
        for done, stage in enumerate(["ingest", "validation", "ingest", "validation"]):
            progress.report_stage(stage, done, 4)
            progress.report_step("not shown")
        with progress.track("validating m", 1200, cached=200) as advance:
            advance(1000)
        with progress.track("validating n", 5, cached=5):
            pass
        assert progress.report_warning("a file is gone")
    assert not progress.report_warning("nobody sees it")
    assert capsys.readouterr().err.splitlines() == [
        "ingest: step 1 of 4",
        "validation: step 2 of 4",
        "validation: validating m, 1,000 of 1,200 to do, 200 already known",
        "warning: a file is gone",
    ]
