"""The docs name what there is."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.conftest import PROJECT
from tests.pipelines.test_run import evaluate_config
from touchstone.config import EvaluationConfig
from touchstone.publish.query import run_query


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
        used |= set(
            re.findall(
                r'"(ragged|bad_\w+|contradiction|unknown_\w+|duplicate|conflict|unreadable_\w+)"', path.read_text()
            )
        )
    text = (PROJECT / "docs" / "inputs.md").read_text()
    assert len(used) == 10
    assert all(f"`{kind}`" in text for kind in used)


QUERIES = re.findall(r"## (.*?)\n\n```sql\n(.*?)```", (PROJECT / "docs" / "queries.md").read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def sample_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sample")
    config = PROJECT / "data" / "sample" / "evaluation_config.json"
    assert evaluate_config(config, output=home / "out").exit_code == 0
    return home / "out" / "tables"


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=[title for title, _ in QUERIES])
def test_example_queries_answer_on_the_sample(sample_results: Path, title: str, query: str) -> None:
    assert run_query(sample_results, query).num_rows > 0


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_and_paths_lead_somewhere(page: str) -> None:
    text = (PROJECT / page).read_text()
    links = re.findall(r"\]\(([^)#:]+)\)", text) + re.findall(r"^(touchstone/[\w/]+\.py)", text, re.MULTILINE)
    assert links
    assert [link for link in links if not (PROJECT / link).exists()] == []
