"""The docs name what there is, and their links lead somewhere."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from touchstone.vocabulary import CI_METHODS

PAGES = [*sorted(PROJECT.glob("*.md")), *sorted((PROJECT / "docs").rglob("*.md"))]


def test_every_kind_of_refusal_is_documented() -> None:
    used = set()
    for path in (PROJECT / "touchstone" / "ingest").glob("*.py"):
        if path.name == "checks.py":
            continue
        used |= set(
            re.findall(
                r'"(ragged|bad_\w+|contradiction|unknown_\w+|duplicate|conflict|unreadable_\w+)"', path.read_text()
            )
        )
    text = (PROJECT / "docs" / "inputs.md").read_text()
    assert len(used) == 10
    assert all(f"`{kind}`" in text for kind in used)


def test_every_interval_method_is_documented() -> None:
    documented = set(re.findall(r"^\| `([\w-]+)` \|", (PROJECT / "docs" / "statistics.md").read_text(), re.MULTILINE))
    assert CI_METHODS.keys() <= documented


def links(page: Path) -> list[tuple[Path, str]]:
    """The files that a page links to, each with its anchor."""
    found = re.findall(r"\]\(([^):#]*)(?:#([^)]*))?\)", page.read_text())
    return [((page.parent / file).resolve() if file else page, anchor) for file, anchor in found]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    broken = [f"{file}#{anchor}" for file, anchor in links(page) if not file.exists()]
    broken += [f"{file.name}#{anchor}" for file, anchor in links(page) if anchor and anchor not in anchors(file)]
    named = re.findall(r"`((?:touchstone|assets|pipelines|tests|benchmarks|deploy)/\w+[/.][\w/.]+)`", page.read_text())
    assert broken + [path for path in named if not (PROJECT / path).exists()] == []


def test_every_page_is_reachable_from_the_readme() -> None:
    reached, waiting = set[Path](), [PROJECT / "README.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        waiting += [file for file, _ in links(page) if file.suffix == ".md" and file not in reached]
    assert [page for page in PAGES if page not in reached] == []
