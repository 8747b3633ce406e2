"""Importing plain model outputs: prose with a fenced block becomes a fix that is validated."""

import csv
import json
from pathlib import Path

import pytest

from tests.conftest import Command
from touchstone.errors import TouchstoneError
from touchstone.evaluation import evaluate
from touchstone.ingest.importing.outputs import read_outputs

ANSWERS = [
    "The sign was wrong:\n\n```python\ndef add(a, b):\n    return a + b\n```\n\nNow it adds.",
    "```python\ndef add(a, b):\n    return a - b\n```",
    "def add(a, b):\n    return b + a\n",
]


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    folder = tmp_path / "problems"
    folder.mkdir()
    (folder / "add.py").write_text("def add(a, b):\n    return a * b\n")
    (folder / "test_add.py").write_text("from add import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n")
    (folder / "problems.csv").write_text("oid,filename,tests\nadd,add.py,test_add.py\n")
    return folder / "problems.csv"


def outputs(path: Path, **more: object) -> Path:
    records = [{"oid": "add", "iteration_id": n, "response": text} | more for n, text in enumerate(ANSWERS, start=1)]
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
    else:
        text = json.dumps(records) if path.suffix == ".json" else "\n".join(map(json.dumps, records))
        path.write_text(text)
    return path


@pytest.mark.services
def test_outputs_are_validated(problems: Path, tmp_path: Path, touchstone: Command) -> None:
    file = outputs(tmp_path / "gpt-4_outputs.jsonl", cost_usd=0.5, passed=False)
    shown = touchstone("import", "outputs", "--problems", problems, "--outputs", file, tmp_path / "evaluation")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[:2] == [f"{tmp_path / 'evaluation'}: 1 problem", "  gpt-4: 3 attempts"]
    results = evaluate(tmp_path / "evaluation" / "evaluation_config.json")
    assert results["outcomes"].sort("iteration_id")["passed"].to_list() == [True, False, True]
    assert results["attempts"]["cost_usd"].to_list() == [0.5] * 3


@pytest.mark.parametrize("name", ["gpt-4.csv", "gpt-4.json", "gpt-4_responses.jsonl"])
def test_every_form_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    found = read_outputs([outputs(tmp_path / name)], [], {"add"})
    assert [(row["iteration_id"], row["fixed_code"]) for row in found.fixes["gpt-4"]] == [
        (str(place), text) for place, text in enumerate(ANSWERS, start=1)
    ]
    assert found.notes == []


def test_models_numbers_and_several_blocks(tmp_path: Path) -> None:
    lines = [{"oid": "a", "model": "m", "output": "```\nx\n```\nor\n```\ny\n```"}, {"oid": "a", "output": "z"}]
    file = tmp_path / "n.jsonl"
    file.write_text("\n".join(map(json.dumps, [*lines, lines[1]])))
    found = read_outputs([file], [], {"a"})
    assert {model: [row["iteration_id"] for row in rows] for model, rows in found.fixes.items()} == {
        "m": ["1"],
        "n": ["1", "2"],
    }
    assert found.notes == [
        "3 outputs have no iteration_id; attempts are numbered in the order of the file",
        "1 output has more than one fenced block; which one is the fix is not guessed",
    ]
    assert list(read_outputs([file], ["other"], {"a"}).fixes) == ["other"]


@pytest.mark.parametrize(
    ("records", "text", "reason"),
    [
        ([{"oid": "b", "output": "x"}], None, r"line 1: the oid 'b' is not among the problems"),
        ([{"output": "x"}], None, r"the oid is missing"),
        ([{"oid": "a", "prompt": "x"}], None, r"no column is the text; name it with --text"),
        ([{"oid": "a", "output": "x", "response": "y"}], None, r"more than one column may be the text \(output, resp"),
        ([{"oid": "a", "output": "x"}], "reply", r"there is no column 'reply'; it has oid, output"),
    ],
)
def test_what_cannot_be_imported_is_one_line(
    tmp_path: Path, records: list[dict[str, str]], text: str | None, reason: str
) -> None:
    file = tmp_path / "m.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in [*records, *records]))
    with pytest.raises(TouchstoneError, match=reason):
        read_outputs([file], [], {"a"}, text=text)
