"""Files of any size: in small pieces they give the same rows, and a hundred megabytes need little memory."""

import gc
import importlib
import json
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.ingest.adapters.formats import SAMPLES
from tests.ingest.adapters.test_every_format import golden, read_good, snapshot
from tests.peak_memory import run_measured
from touchstone.errors import InputFileError
from touchstone.ingest.adapters import json_files, json_stream, read_adapted, table
from touchstone.ingest.adapters.json_files import skim_document
from touchstone.ingest.adapters.json_stream import Each, Keep, Members, Shape

STREAMED = (
    "human-eval",
    "evalplus",
    "cruxeval",
    "livecodebench",
    "swebench-report",
    "predictions by line",
    "predictions by id",
    "openhands",
    "terminal-bench",
    "harbor",
    "promptfoo",
    "lm-eval",
    "nemo-skills",
)
LARGE = (
    "human-eval evalplus cruxeval promptfoo promptfoo-lines terminal-bench swebench-predictions livecodebench lm-eval "
    "nemo-skills"
)
READ = """
import sys
from pathlib import Path
from touchstone.ingest.adapters import read_adapted
from touchstone.ingest.adapters.tool_figures import counts_of_table
print(sum(attempts for attempts, _ in counts_of_table(read_adapted(Path(sys.argv[1])))))
"""
TASKS: Shape = {"tasks": Members(Keep())}


@pytest.fixture
def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "_CHUNK", 211)
    monkeypatch.setattr(json_files, "_AT_ONCE_BYTES", 0)
    monkeypatch.setattr(table, "_WEIGHED_ROWS", 2)
    monkeypatch.setattr(table, "MAX_BYTES", 0)


@pytest.mark.usefixtures("in_small_pieces")
@pytest.mark.parametrize("name", STREAMED)
def test_the_same_in_small_pieces(tmp_path: Path, name: str) -> None:
    found = json.loads(json.dumps(snapshot(read_good(SAMPLES[name], tmp_path), tmp_path)))
    assert found == json.loads(golden(name).read_text())


def test_a_large_file_is_read_the_same_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows with different keys wait on disk, in their order, for as long as anybody needs them."""
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    path = tmp_path / "m.jsonl"
    rows = [{"oid": "a", "iteration_id": place, "passed": True, f"k{place % 3}": place} for place in range(50)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "broken\n")
    in_memory = read_adapted(path).frame
    monkeypatch.setattr(table, "MAX_BYTES", 100)
    monkeypatch.setattr(table, "_BATCH_ROWS", 7)
    monkeypatch.setattr(table, "_WEIGHED_ROWS", 7)
    found = read_adapted(path)
    of_model = found.for_model("m")
    assert len(list(temporary.rglob("*.parquet"))) == 8
    assert found.frame.equals(in_memory)
    del found
    gc.collect()
    assert of_model.frame.equals(in_memory)
    del of_model
    gc.collect()
    assert list(temporary.iterdir()) == []


@pytest.mark.usefixtures("in_small_pieces")
def test_a_file_appended_to_itself_on_disk(tmp_path: Path) -> None:
    path = SAMPLES["human-eval"].copy(tmp_path)
    once = read_adapted(path)
    path.write_bytes(path.read_bytes().rstrip(b"\n") + b"\n" + path.read_bytes())
    twice = read_adapted(path)
    height = once.frame.height
    assert twice.frame.head(height).equals(once.frame) and twice.figures == once.figures
    assert twice.frame["__kind"][height:].to_list() == ["duplicate"] * height


@pytest.mark.usefixtures("in_small_pieces")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"tasks": {"a": [], "b": [], "a": []}}', "an object has a key twice"),
        ('{"tasks": {"a": [{"b": 1, "b": 2}]}}', "an object has a key twice"),
        ('{"tasks": {"a": [', r"broken JSON \(it ends early\)"),
        ('{"tasks": {"a": [1 2]}}', r"broken JSON \(Expecting ',' delimiter"),
        ('{"tasks": {"a": "\udcff"}}', r"broken JSON \('utf-8' codec"),
        ('{"tasks": {"a": ["%s"]}}' % ("x" * 100), "it has a part of over 0 MiB, which is not read"),
    ],
)
def test_what_is_wrong_with_a_large_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    monkeypatch.setattr(json_stream, "MAX_ELEMENT_BYTES", 90)
    path = tmp_path / "large.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputFileError, match=reason):
        list(skim_document(path, TASKS, ["tasks"]))


def test_a_small_document_says_where_it_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text('[{},\n{"a": tru}]')
    with pytest.raises(InputFileError, match="broken JSON at line 2 column 7"):
        list(skim_document(path, Each(Keep())))


@pytest.mark.nightly
@pytest.mark.parametrize("name", LARGE.split())
def test_a_hundred_megabytes_need_little_memory(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROJECT / "benchmarks")
    path = importlib.import_module("large_results").write(tmp_path, name, 100_000_000)
    printed, memory = run_measured(READ, str(path))
    path.unlink()
    assert int(printed) > 40_000
    assert memory < 400
