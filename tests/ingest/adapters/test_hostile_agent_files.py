"""Hostile content in files of agents and their harnesses: deep JSON anywhere, and names that the system refuses."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import nightly_but
from tests.ingest.adapters.damage import DEEP, DEEP_JSON, read_or_refuse
from touchstone.errors import InputFileError
from touchstone.ingest.adapters import detect_format, read_adapted
from touchstone.ingest.adapters import folders as folders_module

FILES = Path(__file__).parent / "files"
INSTANCE = "swebench/logs/run_evaluation/run-2026-05/acme__fixer-large/acme__tool-101/report.json"
RUN, JOB = "terminal-bench/runs/2026-05-01__09-00-00", "harbor/jobs/2026-05-01__09-00-00"
TRIAL = f"{JOB}/fix-null__dX3q9Z/result.json"
# A document, and the file or folder that is read.
DOCUMENTS = {
    "swebench/acme__fixer-large.run-2026-05.json": "swebench/acme__fixer-large.run-2026-05.json",
    INSTANCE: str(Path(INSTANCE).parent),
    "swebench/preds.json": "swebench/preds.json",
    f"{RUN}/results.json": f"{RUN}/results.json",
    f"{RUN}/run_metadata.json": RUN,
    f"{JOB}/result.json": JOB,
    TRIAL: TRIAL,
}


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, by the keys that lead to it; of a list only the first element."""
    keys = list(value) if isinstance(value, dict) else [0] if isinstance(value, list) and value else []
    return [place for key in keys for place in ((*above, key), *places(value[key], (*above, key)))]


@pytest.mark.parametrize(
    ("name",),
    nightly_but(
        [(f"{RUN}/results.json",), (TRIAL,)],
        [(name,) for name in DOCUMENTS],
    ),
)
def test_deep_values_anywhere(tmp_path: Path, name: str) -> None:
    good = json.loads((FILES / name).read_text())
    if name == TRIAL:
        # The rest of the configuration is not looked at.
        good["config"] = {"job_id": "j", "agent": {"model_name": "m"}}
    for each in {name, TRIAL if name.startswith(JOB) else name}:
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FILES / each, tmp_path / each)
    if name == f"{RUN}/run_metadata.json":
        shutil.copy(FILES / RUN / "results.json", tmp_path / RUN)
    file, source = tmp_path / name, tmp_path / DOCUMENTS[name]
    for place in places(good):
        document = json.loads(json.dumps(good))
        parent = document
        for key in place[:-1]:
            parent = parent[key]
        parent[place[-1]] = DEEP
        file.write_text(json.dumps(document).replace(f'"{DEEP}"', DEEP_JSON))
        read_or_refuse(source)


@pytest.mark.parametrize("name", ["p" * 252, "p" * 255])
def test_folders_with_long_names(tmp_path: Path, name: str) -> None:
    """The name of a file in it, made from its own, is too long for the file system."""
    (tmp_path / "runs" / name / name).mkdir(parents=True)
    assert detect_format(tmp_path / "runs") is None
    assert detect_format(tmp_path / "runs" / name) is None


def test_a_link_that_leads_to_itself_hides_nothing(tmp_path: Path) -> None:
    job = Path(shutil.copytree(FILES / "harbor" / "jobs" / "2026-05-01__09-00-00", tmp_path / "job"))
    (job / "loop").symlink_to(job / "loop")
    assert detect_format(job) == "harbor"
    assert read_adapted(job).frame.height == 10


def test_folders_with_too_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders_module, "MAX_SUBFOLDERS", 5)
    with pytest.raises(InputFileError, match="more than 5 folders; read fewer of them at a time"):
        read_adapted(FILES / "harbor" / "jobs" / "2026-05-01__09-00-00")


def test_documents_that_are_too_large(tmp_path: Path) -> None:
    path = tmp_path / "m.r.json"
    shutil.copy(FILES / "swebench" / "acme__fixer-large.run-2026-05.json", path)
    with path.open("r+b") as file:
        file.truncate(folders_module.MAX_DOCUMENT_BYTES + 1)
    with pytest.raises(InputFileError, match=r"has 134,217,729 bytes; at most 134,217,728 are read"):
        read_adapted(path)
