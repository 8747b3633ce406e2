"""Files that others are writing: no figure from half a file, and what is appended counts in the next run."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import Folder, nightly_but
from touchstone.config import load_config
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.ingest import inputs, read_inputs, stage
from touchstone.ingest.sources import ChangedWhileReadError, read_unchanged

HEADER = "oid,iteration_id,passed,cost_usd\n"
REFUSED = HEADER + "a,1,true,1\na,2,perhaps,1\n"
MORE = "b,1,true,1\n"
STILL = "if the file is still being written, run again when it is complete"


def ingest(folder: Folder) -> Evaluation:
    evaluation = Evaluation(load_config(folder.config))
    evaluation.materialize("problems")
    evaluation.ingest.attempts()
    return evaluation


def accepted(evaluation: Evaluation) -> list[tuple[str, str]]:
    return evaluation.store.scan("attempts").select("oid", "iteration_id").collect().rows()


def row(evaluation: Evaluation) -> dict[str, Any]:
    (found,) = evaluation.store.scan("sources", ["m"]).collect().to_dicts()
    return found


def after_reading(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, change: Callable[[], object], times: int
) -> list[int]:
    """Let `change` happen right after each of the first calls of a reader; returns the list of calls."""
    real, calls = getattr(module, name), []

    def read(*words: Any, **named: Any) -> Any:
        result = real(*words, **named)
        calls.append(1)
        if len(calls) <= times:
            change()
        return result

    monkeypatch.setattr(module, name, read)
    return calls


@pytest.mark.parametrize("packed", [False, True], ids=["csv", "gzip"])
def test_appended_rows_count_in_the_next_run(folder: Folder, packed: bool) -> None:
    path = folder.fixes("m", "")
    if packed:
        path = path.rename(path.with_suffix(".csv.gz"))

    def append(text: str) -> None:
        with path.open("ab") as file:
            file.write(gzip.compress(text.encode()) if packed else text.encode())

    append(HEADER + "a,1,true,1\n")
    assert accepted(ingest(folder)) == [("a", "1")]
    append(MORE)
    assert accepted(ingest(folder)) == [("a", "1"), ("b", "1")]
    assert ingest(folder).ingest.attempts_of("m").reused


LINE = json.dumps({"oid": "a", "iteration_id": 1, "passed": True})
HALVES = [
    *(("m_fixes.csv", f"{HEADER}a,1,true,1\n{end}", 1, True) for end in ("b,1,tr", 'b,1,tr"', "b,")),
    ("m_fixes.csv", REFUSED + "b,1,true,1", 2, False),
    ("m_fixes.csv", HEADER + 'a,1,true,"1', 0, True),
    ("m.jsonl", f"{LINE}\n{LINE[:30]}", 1, True),
]


@pytest.mark.parametrize(("name", "text", "rows", "half"), nightly_but([HALVES[0], *HALVES[3:]], HALVES))
def test_half_a_row_is_refused_and_says_so(folder: Folder, name: str, text: str, rows: int, half: bool) -> None:
    folder.fixes("m", "").unlink()
    (folder.root / "fixes" / name).write_text(text)
    evaluation = ingest(folder)
    (reason,) = evaluation.store.scan("quarantine").collect()["reason"]
    assert (STILL in reason) is half and len(accepted(evaluation)) == rows


@pytest.mark.parametrize(("end", "notes"), [("\n", None), ("", f"the last line has no end; {STILL}")])
@pytest.mark.parametrize("text", [HEADER + "a,1,true,1", REFUSED + "b,1,true,1"], ids=["clean", "careful"])
def test_a_last_row_without_an_end_is_read_and_noted(folder: Folder, text: str, end: str, notes: str | None) -> None:
    """It may be complete, or `1` may be the start of `12`."""
    folder.fixes("m", text + end)
    assert row(ingest(folder))["notes"] == notes


CHANGES: dict[str, Callable[[Path], object]] = {
    "grows": lambda path: path.open("a").write(MORE),
    "is replaced": lambda path: (path.with_name("new").write_text(REFUSED + MORE), path.with_name("new").replace(path)),
    "is rewritten to the same size": lambda path: path.write_text(path.read_text().replace("a,1,true", "b,1,true")),
}


@pytest.mark.parametrize("change", nightly_but(["is rewritten to the same size"], CHANGES))
def test_a_file_that_changes_while_it_is_read_is_read_again(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = folder.fixes("m", REFUSED)
    calls = after_reading(monkeypatch, stage, "read_fixes", lambda: CHANGES[change](path), times=1)
    evaluation = ingest(folder)
    assert len(calls) == 2
    monkeypatch.undo()
    assert row(evaluation)["status"] == "evaluated"
    assert accepted(evaluation) == accepted(Evaluation(load_config(folder.config)))
    assert evaluation.inputs.file_hash(path) == row(evaluation)["sha256"]


@pytest.mark.parametrize("change", nightly_but(["is replaced"], CHANGES))
def test_a_file_that_does_not_stop_changing_is_refused(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = folder.fixes("m", REFUSED)
    flips = [CHANGES[change], lambda path: path.write_text(REFUSED)]
    after_reading(monkeypatch, stage, "read_fixes", lambda: flips.pop(0)(path), times=2)
    found = row(ingest(folder))
    assert found["status"] == "refused"
    assert found["reason"] == f"{path}: changed while it was being read; run again when nothing writes to it"


def test_a_file_that_vanishes_while_it_is_read_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder.fixes("m", REFUSED)
    folder.fixes("other", HEADER + MORE)
    after_reading(monkeypatch, stage, "read_fixes", path.unlink, times=1)
    evaluation = ingest(folder)
    assert (row(evaluation)["status"], row(evaluation)["reason"]) == (
        "refused",
        f"{path}: cannot be read (No such file or directory)",
    )
    assert accepted(evaluation) == [("b", "1")]


def test_a_clean_file_that_changes_while_it_is_read_is_read_again(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder.fixes("m", HEADER + "a,1,true,1\n")
    after_reading(monkeypatch, stage, "read_clean_files", lambda: CHANGES["grows"](path), times=1)
    assert accepted(ingest(folder)) == [("a", "1"), ("b", "1")]


def test_a_parquet_file_that_is_replaced_after_discovery_is_not_read_by_its_old_footer(folder: Folder) -> None:
    folder.fixes("m", "").unlink()
    path = folder.root / "fixes" / "m.parquet"
    rows = pl.DataFrame({"oid": ["a", "b"], "iteration_id": ["1", "1"], "passed": [True, True]})
    rows.head(1).write_parquet(path)
    evaluation = Evaluation(load_config(folder.config))
    evaluation.materialize("problems")
    rows.write_parquet(path)
    with pytest.raises(TouchstoneError, match=r"m\.parquet: changed while it was being read; run again"):
        evaluation.ingest.attempts()
    assert accepted(ingest(folder)) == [("a", "1"), ("b", "1")]


@pytest.mark.parametrize("times", [1, 2])
def test_a_file_that_changes_while_it_is_discovered(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    path = folder.root / "fixes" / "x.jsonl"
    record = json.dumps({"oid": "a", "iteration_id": 1, "passed": True}) + "\n"
    path.write_text(record)
    after_reading(monkeypatch, inputs, "discover", lambda: path.open("a").write(record.replace("1", "2")), times)
    evaluation = Evaluation(load_config(folder.config))
    if times == 1:
        assert evaluation.inputs.models == ["m", "x"]
    else:
        with pytest.raises(TouchstoneError, match=r"x\.jsonl: changed while it was being read; run again"):
            _ = evaluation.inputs.models


@pytest.mark.parametrize("times", [1, 2])
def test_quick_commands_read_again_too(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, times: int
) -> None:
    path = folder.fixes("m", REFUSED)
    after_reading(monkeypatch, read_inputs, "read_fixes_csv", lambda: CHANGES["grows"](path), times)
    config = load_config(folder.config)
    if times == 1:
        assert read_inputs.read_inputs(config, tmp_path).attempts["m"].height == 2
    else:
        with pytest.raises(ChangedWhileReadError):
            read_inputs.read_inputs(config, tmp_path)


def test_an_error_in_a_file_that_changed_is_no_verdict_on_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("half")

    def read() -> str:
        text = path.read_text()
        if text == "half":
            path.write_text("whole")
            raise TouchstoneError("it is only half")
        return text

    assert read_unchanged(lambda: [path], read) == "whole"
