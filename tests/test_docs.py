"""The docs name what there is."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.conftest import PROJECT
from touchstone.config import EvaluationConfig
from touchstone.vocabulary import CI_METHODS


def keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    found = []
    for name, field in model.model_fields.items():
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel):
            found += keys(nested, f"{prefix}{name}.")
        else:
            found.append(prefix + name)
    return found


def test_every_configuration_key_is_documented() -> None:
    documented = re.findall(r"^\| `([\w.]+)` \|", (PROJECT / "docs" / "configuration.md").read_text(), re.MULTILINE)
    assert sorted(documented) == sorted(keys(EvaluationConfig))


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
    documented = set(
        re.findall(r"^\|[^|]*\| `([\w-]+)` \|", (PROJECT / "docs" / "statistics.md").read_text(), re.MULTILINE)
    )
    assert CI_METHODS.keys() <= documented


PAGES = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("*.md"))]
TOOLS = sorted((PROJECT / "docs" / "tools").glob("*.md"))


@pytest.mark.parametrize("page", [*PAGES, *TOOLS], ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    links = [page.parent / link for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)]
    paths = [PROJECT / path for path in re.findall(r"^(touchstone/[\w/]+\.py)", text, re.MULTILINE)]
    assert [str(path) for path in links + paths if not path.exists()] == []


def test_every_page_is_reachable_from_the_readme() -> None:
    readme = (PROJECT / "README.md").read_text()
    pages = [*PAGES[1:], PROJECT / "docs" / "tools" / "README.md"]
    assert [page.name for page in pages if f"{page.relative_to(PROJECT)})" not in readme] == []
