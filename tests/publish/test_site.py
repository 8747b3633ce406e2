"""The site over several evaluations: what it says, where it leads, and whose files it replaces."""

import json
import re
import shutil
from collections.abc import Callable
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Command, Folder
from tests.publish.report.results import figure, pair, write_results
from touchstone.errors import TouchstoneError
from touchstone.publish.site import file_name, write_site

HOSTILE = "@cf/x<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three benchmarks: `a` is shown to be best in the first, unknown in the second; the third has one model."""
    root = tmp_path_factory.mktemp("runs")
    first = {
        "pass_at_k": [figure("a", 0.9), figure("b", 0.5), figure("A", 0.4)],
        "model_comparison": [pair("a", "b", "worse"), pair("a", "A", "worse"), pair("b", "A", "no evidence")],
        "problems": [{"oid": "p", "suite": "<i>odd</i>"}],
        "change_points": [
            {"model": "a", "tier": "T0", "made_at": "2026-11-03T02:00:00Z", "sentence": "it fell & rose"}
        ],
    }
    second = {"pass_at_k": [figure("a", 0.2, k=5), figure("b", None, k=5), figure(HOSTILE, 0.3, k=5)]}
    third = {"pass_at_k": [figure("..", 1.0)], "settings": [{"key": "name", "value": json.dumps("first")}]}
    made = []
    for name, tables in {"first": first, "<b>second": second, "results": third}.items():
        made.append(write_results(root / name, None, **tables))
        (made[-1] / "report.html").write_text(f"the report on {name}")
    return made


@pytest.fixture(scope="module")
def site(folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sites") / "site"
    assert write_site(folders, place) == []
    return place


def cells(page: Path, table: str) -> list[list[str]]:
    """The texts of a table's cells, header included."""
    body = re.search(rf'<table id="{table}".*?</table>', page.read_text(), re.DOTALL)
    assert body is not None
    rows = re.findall(r"<tr>(.*?)</tr>", body[0])
    return [
        [unescape(re.sub("<[^>]*>", "", cell)).replace("\u00a0", " ") for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in rows
    ]


def test_benchmarks_stand_side_by_side_and_a_missing_figure_is_a_gap(site: Path, folders: list[Path]) -> None:
    assert cells(site / "index.html", "leaderboard-table") == [
        [
            "model",
            "unbeaten",
            "first: pass@1 [95% CI]",
            "<b>second: pass@5 [95% CI]",
            f"first ({folders[2]}): pass@1 [95% CI]",
        ],
        ["a", "2 of 2", "0.900 [0.800, 1.000]", "0.200 [0.100, 0.300]", ""],
        [HOSTILE, "1 of 1", "", "0.300 [0.200, 0.400]", ""],
        ["b", "0 of 1", "0.500 [0.400, 0.600]", "-", ""],
        ["A", "0 of 1", "0.400 [0.300, 0.500]", "", ""],
        ["..", "-", "", "", "1.000 [0.900, 1.000]"],
    ]
    page = site / "models" / file_name("b")
    assert cells(page, "figures-table")[1:] == [
        ["first", "pass@1 [95% CI]", "0.500 [0.400, 0.600]", "-", "a", "40 of 40"],
        ["<b>second", "pass@5 [95% CI]", "-", "-", "-", "40 of 40"],
    ]
    page = site / "benchmarks" / file_name("first")
    assert cells(page, "change-points-table")[1][:3] == ["2026-11-03 02:00", "a", "it fell & rose"]
    assert [row[1:3] for row in cells(site / "index.html", "benchmarks-table")[1:]] == [["3", "40"]] * 2 + [["1", "40"]]


def test_every_link_leads_to_a_file_and_no_name_is_markup(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 1 + 5 + 3 + 3 and len({str(page).lower() for page in pages}) == len(pages)
    for page in pages:
        text = page.read_text()
        index = re.findall(r'\["[^"]*","[^"]*","([^"]*)"\]', text)
        for link in [*map(unescape, re.findall(r'href="([^"]*)"', text)), *index]:
            assert not urlsplit(link).scheme and not link.startswith("/")
            assert not urlsplit(link).path or (page.parent / unquote(urlsplit(link).path)).is_file(), link
        assert not re.search(r"<script>alert|<b>second|<i>odd", text) or page.parent.name == "reports"
    assert (site / "reports" / file_name("<b>second")).read_text() == "the report on <b>second"


def test_the_same_runs_give_the_same_bytes_and_an_earlier_site_is_replaced(
    site: Path, folders: list[Path], tmp_path: Path
) -> None:
    again = tmp_path / "again"
    write_site([folders[2]], again)
    write_site([*folders, folders[0]], again)
    assert contents(again) == contents(site)
    assert list(tmp_path.iterdir()) == [again]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda site: (site / "models" / "CNAME").write_text("mine"), "models/CNAME"),
        (lambda site: (site / "index.html").write_text("mine"), "index.html"),
        (lambda site: (site / "linked").symlink_to("models"), "linked"),
        (lambda site: (site / "touchstone-site.json").write_text("[3]"), "index.html"),
        (lambda site: (site / "touchstone-site.json").unlink(), "already exists"),
    ],
)
def test_files_of_others_are_never_replaced(
    site: Path, folders: list[Path], tmp_path: Path, change: Callable[[Path], object], named: str
) -> None:
    mine = shutil.copytree(site, tmp_path / "mine")
    change(mine)
    before = contents(mine)
    with pytest.raises(TouchstoneError, match=re.escape(named)):
        write_site(folders[2:], mine)
    assert contents(mine) == before and list(tmp_path.iterdir()) == [mine]


@pytest.mark.services
def test_a_folder_that_cannot_be_read_is_named_and_the_others_go_on(
    finished: Folder, folders: list[Path], tmp_path: Path, touchstone: Command
) -> None:
    damaged = shutil.copytree(folders[0], tmp_path / "damaged")
    (damaged / "tables" / "problems" / "problems.parquet").write_bytes(b"no")
    called = touchstone("site", finished.output, damaged, tmp_path / "none", "--output", tmp_path / "site")
    assert (called.returncode, called.stdout) == (2, f"{tmp_path}/site/index.html\n")
    lines = called.stderr.splitlines()
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == [str(damaged), str(tmp_path / "none")]
    assert cells(tmp_path / "site" / "index.html", "unread-table")[1:] == [[line[len("error: ") :]] for line in lines]
    (benchmark,) = (tmp_path / "site" / "benchmarks").iterdir()
    assert "m repairs 25 of 100 problems at the first try" in benchmark.read_text()
    drawn = tmp_path / "site" / "reports" / benchmark.name
    assert "Touchstone report" in drawn.read_text(), "drawn, because the run has none"
    nothing = touchstone("site", damaged, "--output", tmp_path / "other")
    assert nothing.returncode == 2 and "there is nothing to show" in nothing.stderr
    assert not (tmp_path / "other").exists()


@given(st.lists(st.text("aA.-/@ é\0\ud800", max_size=300), max_size=8, unique=True))
def test_file_names_are_safe_and_unique(names: list[str]) -> None:
    made = [file_name(name) for name in [*names, *(name.upper() for name in names)]]
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,99}\.html", each) for each in made)
    assert len(set(made)) == len({*names, *(name.upper() for name in names)})
