"""The contract of all adapters: a good file gives the rows of its golden file, any other refused records or one line.

After a change that is meant: python -m tests.ingest.adapters.test_every_format writes the golden files again.
"""

import json
import os
import shutil
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import nightly_but
from tests.ingest.adapters.formats import DEEP, DEEP_JSON, SAMPLES, Sample, changed_values, damaged
from touchstone.config.input_limits import InputLimits
from touchstone.errors import InputFileError
from touchstone.ingest import limits
from touchstone.ingest.adapters import AdapterTable, adapters, detect_format, read_adapted, read_as
from touchstone.ingest.adapters import folders as folders_module

GOLDEN = Path(__file__).parent / "golden"
NOT_READ = {"bigcode-figures", "git-lfs", "human-eval-samples", "human-eval-problems", "livecodebench-generations"}
NOT_READ |= {"aider-leaderboard", "inspect-index", "promptfoo-table", "tau2-bench-parts"}
NOT_READ |= {"bigcodebench-figures", "multipl-e-figures", "every-eval-ever-aggregates", "lighteval-results"}
NOT_READ |= {"repairbench-candidates", "repairbench-figures", "swebench-pro-errors"}
JSON_SAMPLES = [name for name, sample in SAMPLES.items() if sample.is_json]
TEXTS = [name for name in SAMPLES if name not in ("inspect archive", "parquet", "lighteval", "failproof database")]
OTHER_CONTENT = {
    "empty": b"",
    "blank": b"\n",
    "null": b"null",
    "a list": b"[]",
    "an object": b"{}",
    "not UTF-8": b"\xff",
    "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
    "deep": b"[" * 10**5,
    "zeros": b"\0" * 1000,
}


def snapshot(table: AdapterTable, folder: Path) -> dict[str, Any]:
    """Everything that a table says. Ids that depend on the place of the file are left out."""
    frame = table.frame
    if table.format == "openhands":
        frame = frame.drop("sample_uuid")
    return {
        "format": table.format,
        "columns": frame.columns,
        "rows": [list(row) for row in frame.rows()],
        "figures": [list(astuple(each)) for each in table.figures],
        "settings": [list(astuple(each)) for each in dict.fromkeys(table.settings)],
        "notes": list(table.notes),
        "files": [str(file.relative_to(folder)) for file in table.files],
        "tier_bound": table.tier_bound,
    }


def golden(name: str) -> Path:
    return GOLDEN / f"{name.replace(' ', '-')}.json"


def read_good(sample: Sample, folder: Path) -> AdapterTable:
    path = sample.copy(folder)
    assert detect_format(path) == sample.format
    return read_adapted(path)


def test_every_format_has_a_sample() -> None:
    known = {adapter.format for adapter in adapters()}
    assert {sample.format for sample in SAMPLES.values()} | NOT_READ | {"lm-eval-results"} == known


@pytest.mark.parametrize("name", SAMPLES)
def test_a_good_file_gives_its_golden_rows(tmp_path: Path, name: str) -> None:
    found = json.loads(json.dumps(snapshot(read_good(SAMPLES[name], tmp_path), tmp_path)))
    assert found == json.loads(golden(name).read_text())


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample.is_json and not sample.source])
def test_a_file_in_utf_16_is_called_that(tmp_path: Path, name: str) -> None:
    """As PowerShell redirects output; in a folder, only its own files are refused."""
    sample = SAMPLES[name]
    path = sample.copy(tmp_path, sample.content.decode().encode("utf-16"))
    with pytest.raises(InputFileError, match=r": the file is UTF-16; save it as UTF-8$"):
        read_adapted(path)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_figures_that_a_file_states_are_reproduced(tmp_path: Path, name: str) -> None:
    for figure in read_good(SAMPLES[name], tmp_path).figures:
        if figure.reported is not None and figure.recomputed is not None:
            assert figure.recomputed == pytest.approx(figure.reported, rel=2e-3), figure


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
def test_damaged_bytes(tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject) -> None:
    sample, folder = SAMPLES[name], tmp_path_factory.getbasetemp() / "damaged"
    sample.read(sample.copy(folder, data.draw(damaged(sample.content))))
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", JSON_SAMPLES)
@given(data=st.data())
def test_odd_values(tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject) -> None:
    sample, folder = SAMPLES[name], tmp_path_factory.getbasetemp() / "odd"
    sample.read(sample.copy(folder, data.draw(changed_values(sample))))
    shutil.rmtree(folder)


@pytest.mark.parametrize("content", OTHER_CONTENT.values(), ids=OTHER_CONTENT)
@pytest.mark.parametrize("name", SAMPLES)
def test_files_that_are_something_else(tmp_path: Path, name: str, content: bytes) -> None:
    sample = SAMPLES[name]
    sample.read(sample.copy(tmp_path, content))


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, by the keys that lead to it; of a list only the first element."""
    keys = list(value) if isinstance(value, dict) else [0] if isinstance(value, list) and value else []
    return [place for key in keys for place in ((*above, key), *places(value[key], (*above, key)))]


@pytest.mark.parametrize(
    ("name",), nightly_but([("forgetest",), ("swebench-logs",)], [(each,) for each in JSON_SAMPLES])
)
def test_deep_values_anywhere(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    first, *rest = sample.content.splitlines() if sample.document.endswith(".jsonl") else [sample.content]
    good = json.loads(first)
    for place in places(good)[:300]:
        document = json.loads(first)
        parent = document
        for key in place[:-1]:
            parent = parent[key]
        parent[place[-1]] = DEEP
        deep = json.dumps(document).replace(f'"{DEEP}"', DEEP_JSON).encode()
        sample.read(sample.copy(tmp_path, b"\n".join([deep, *rest])))


@pytest.mark.parametrize("name", TEXTS)
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    good = read_good(sample, tmp_path / "good")
    changed = sample.read(sample.copy(tmp_path / "changed", b"\xef\xbb\xbf" + sample.content.replace(b"\n", b"\r\n")))
    assert changed is not None
    columns = [column for column in good.frame.columns if column != "sample_uuid" or sample.format != "openhands"]
    assert changed.frame.select(columns).equals(good.frame.select(columns))


@pytest.mark.parametrize("stem", ["-rf", "a b", "ü%2F", "x" * 200, os.fsdecode(b"\xff"), "..a"])
@pytest.mark.parametrize("name", [name for name in SAMPLES if SAMPLES[name].source is None])
def test_hostile_names(tmp_path: Path, name: str, stem: str) -> None:
    path = SAMPLES[name].copy(tmp_path)
    SAMPLES[name].read(path.rename(path.with_name(stem + path.suffix)))


# Logs of Inspect are streamed, with limits of their own; of several documents the one is refused alone.
OWN_LIMITS = ("inspect", "swe-agent", "multipl-e")


@pytest.mark.parametrize(
    "name", [name for name in TEXTS if SAMPLES[name].source is None and not name.startswith(OWN_LIMITS)]
)
def test_files_that_are_too_large(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = SAMPLES[name]
    monkeypatch.setattr(limits, "_in_use", InputLimits(file_mb=1))
    path = sample.copy(tmp_path, sample.content + b"\n" * (1 << 20))
    with pytest.raises(InputFileError, match="more than 1 MiB of text"):
        read_as(sample.format, path)


@pytest.mark.parametrize("name", ["p" * 252, "p" * 255])
def test_folders_with_long_names(tmp_path: Path, name: str) -> None:
    """The name of a file in it, made from its own, is too long for the file system."""
    (tmp_path / "runs" / name / name).mkdir(parents=True)
    assert detect_format(tmp_path / "runs") is None
    assert detect_format(tmp_path / "runs" / name) is None


def test_a_link_that_leads_to_itself_hides_nothing(tmp_path: Path) -> None:
    job = SAMPLES["harbor"].copy(tmp_path)
    (job / "loop").symlink_to(job / "loop")
    assert detect_format(job) == "harbor"
    assert read_adapted(job).frame.height == 10


def test_folders_with_too_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders_module, "MAX_SUBFOLDERS", 5)
    path = SAMPLES["harbor"].copy(tmp_path)
    with pytest.raises(InputFileError, match="more than 5 folders; read fewer of them at a time"):
        read_adapted(path)


def test_documents_that_are_too_large(tmp_path: Path) -> None:
    path = SAMPLES["swebench-submission"].copy(tmp_path)
    with path.open("r+b") as file:
        file.truncate(folders_module.MAX_DOCUMENT_BYTES + 1)
    with pytest.raises(InputFileError, match=r"has more than 134,217,728 bytes, the most that are read"):
        read_adapted(path)


def write_golden() -> None:
    """Write what is read now as the golden files; a row takes one line, so that a change is easy to see."""
    import tempfile

    GOLDEN.mkdir(exist_ok=True)
    for name, sample in SAMPLES.items():
        with tempfile.TemporaryDirectory() as folder:
            parts = snapshot(read_good(sample, Path(folder)), Path(folder))
        rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in parts.pop("rows"))
        head = json.dumps(parts, ensure_ascii=False, indent=1)
        golden(name).write_text(f'{head[:-2]},\n "rows": [\n{rows}\n]}}\n')


if __name__ == "__main__":
    write_golden()
