"""The contract of all adapters: a good file gives the rows of its golden file, any other refused records or one line.

After a change that is meant: python -m tests.ingest.adapters.test_every_format writes the golden files again.
"""

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import fewer_examples, nightly_but
from tests.ingest.adapters.formats import DEEP, DEEP_JSON, SAMPLES, WAYS, Sample, changed_values, damaged
from touchstone.config import InputLimits
from touchstone.errors import InputFileError
from touchstone.ingest import limits
from touchstone.ingest.adapters import AdapterTable, adapters, detect_format, read_adapted, read_as
from touchstone.ingest.adapters import folders as folders_module

GOLDEN = Path(__file__).parent / "golden"
NOT_READ = {"bigcode-figures", "git-lfs", "human-eval-samples", "human-eval-problems", "livecodebench-generations"}
NOT_READ |= {"aider-leaderboard", "inspect-index", "promptfoo-table", "tau2-bench-parts"}
NOT_READ |= {"bigcodebench-figures", "multipl-e-figures", "every-eval-ever-aggregates", "lighteval-results"}
NOT_READ |= {"repairbench-candidates", "repairbench-figures", "swebench-pro-errors", "openhands-parts"}
NOT_READ |= {"unread-xml", "unread-json", "printed-tests", "helm-parts"}
JSON_SAMPLES = [name for name, sample in SAMPLES.items() if sample.is_json]
BINARY = ("inspect archive", "parquet", "lighteval", "lighteval 0.6", "failproof database")
TEXTS = [name for name in SAMPLES if name not in BINARY]
SCYLLA = "experiment,agent_model,tier,subtest,run_number,passed\n"
OTHER_CONTENT = [
    *(b"", b"\n", b"null", b"[]", b"{}", b"\xff", b"[" * 10**5, b"\0" * 1000),
    b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
]


def by_way(names: Iterable[str]) -> list[Any]:
    """Samples as parameters: one of every way of reading by day, the others nightly."""
    every = list(names)
    return nightly_but([name for name in every if name in WAYS], every)


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
def test_a_good_file_gives_its_golden_rows_and_the_figures_that_it_states(tmp_path: Path, name: str) -> None:
    table = read_good(SAMPLES[name], tmp_path)
    assert json.loads(json.dumps(snapshot(table, tmp_path))) == json.loads(golden(name).read_text())
    for figure in table.figures:
        if figure.reported is not None and figure.recomputed is not None:
            assert figure.recomputed == pytest.approx(figure.reported, rel=2e-3), figure


@pytest.mark.parametrize(
    "name", by_way(name for name, sample in SAMPLES.items() if sample.is_json and not sample.source)
)
def test_a_file_in_utf_16_is_called_that(tmp_path: Path, name: str) -> None:
    """As PowerShell redirects output; in a folder, only its own files are refused."""
    sample = SAMPLES[name]
    path = sample.copy(tmp_path, sample.content.decode().encode("utf-16"))
    with pytest.raises(InputFileError, match=r": the file is UTF-16; save it as UTF-8$"):
        read_adapted(path)


@pytest.mark.parametrize("name", by_way(SAMPLES))
@fewer_examples
@given(data=st.data())
def test_damaged_bytes(tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject) -> None:
    sample, folder = SAMPLES[name], tmp_path_factory.getbasetemp() / "damaged"
    sample.read(sample.copy(folder, data.draw(damaged(sample.content))))
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", by_way(JSON_SAMPLES))
@fewer_examples
@given(data=st.data())
def test_odd_values(tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject) -> None:
    sample, folder = SAMPLES[name], tmp_path_factory.getbasetemp() / "odd"
    sample.read(sample.copy(folder, data.draw(changed_values(sample))))
    shutil.rmtree(folder)


# For a sample, the place of a record in it; then the place in the record, what stands there instead, and the refusal.
DEEP_TEXT = b"[" * 200_000
REFUSED: dict[str, tuple[str, list[tuple[str, object, str, str]]]] = {
    "failproof lines": (
        "1",
        [
            ("", b"{broken", "ragged", "broken JSON at column 2 (Expecting property name enclosed in double quotes)"),
            ("", [1], "ragged", "the result is a list where an object belongs"),
            ("", DEEP_TEXT, "ragged", "the JSON is nested too deeply"),
            ("case_id", None, "bad_id", "the case_id is missing"),
            ("model_id", "", "bad_id", "the model_id is missing"),
            ("timestamp_utc", "yesterday", "bad_time", "timestamp_utc: 'yesterday' is not an ISO 8601 time"),
            ("timestamp_utc", 20250810, "bad_time", "timestamp_utc: '20250810' is not an ISO 8601 time"),
            ("timestamp_utc", None, "bad_time", "the timestamp_utc is missing"),
            ("scores.accuracy", 0, "contradiction", "accuracy is 0 but the class is 'pass'"),
            ("classification.primary", "Fail", "contradiction", "accuracy is 1 but the class is 'fail'"),
            ("scores.accuracy", 0.5, "contradiction", "accuracy is 0.5 but the class is 'pass'"),
            ("scores.accuracy", "high", "bad_number", "accuracy: 'high' is not a number"),
            ("classification", "pass", "ragged", "the classification is a text where an object belongs"),
            ("scores", [1], "ragged", "the scores is a list where an object belongs"),
        ],
    ),
    "forgetest": (
        "results.1",
        [
            ("case_id", None, "bad_id", "the case_id is missing"),
            ("case_id", "", "bad_id", "the case_id is missing"),
            ("case_id", ["c"], "bad_id", "the case_id is a list where text belongs"),
            ("model", None, "bad_id", "the model is missing"),
            ("model", " ", "bad_id", "the model is missing"),
            ("attempt", None, "bad_id", "the attempt is missing"),
            ("attempt", True, "bad_id", "the attempt is a boolean where text belongs"),
            ("compilation", True, "ragged", "the compilation is a boolean where an object belongs"),
            ("", [1], "ragged", "the result is a list where an object belongs"),
            ("", 7, "ragged", "the result is a number where an object belongs"),
            ("", None, "ragged", "the result is null where an object belongs"),
        ],
    ),
    "lm-eval": (
        "2",
        [
            ("", b'{"doc_id": 1', "ragged", "broken JSON at column 13 (Expecting ',' delimiter)"),
            ("", [], "ragged", "the sample is a list where an object belongs"),
            ("", DEEP_TEXT, "ragged", "the JSON is nested too deeply"),
            ("doc_id", None, "bad_id", "the doc_id is missing"),
            ("doc_id", [1], "bad_id", "the doc_id is missing"),
            ("exact_match", "good", "bad_number", "exact_match: 'good' is not a number"),
            ("metrics", [f"m{place}" for place in range(300)], "ragged", "300 metrics; at most 200 are read"),
        ],
    ),
    "predictions by line": (
        "1",
        [
            ("", [1], "ragged", "the prediction is a list where an object belongs"),
            ("instance_id", "", "bad_id", "the instance_id is missing"),
            ("model_name_or_path", None, "bad_id", "the model_name_or_path is missing"),
            ("model_patch", ["diff"], "ragged", "the model_patch is not a text"),
            ("model_patch", 1, "ragged", "the model_patch is not a text"),
        ],
    ),
    "openhands": (
        "1",
        [
            ("", [1], "ragged", "the instance is a list where an object belongs"),
            ("instance_id", None, "bad_id", "the instance_id is missing"),
            ("test_result.report.resolved", "yes", "bad_boolean", "resolved is not true or false"),
        ],
    ),
    "promptfoo": (
        "results.results.3",
        [
            ("", "text", "ragged", "the row is a text where an object belongs"),
            ("", [], "ragged", "the row is a list where an object belongs"),
            ("provider", None, "bad_id", "the provider has no id"),
            ("provider", {"id": 3}, "bad_id", "the provider has no id"),
            ("testCase", [1], "ragged", "the testCase is a list where an object belongs"),
            ("success", "yes", "bad_boolean", "success: 'yes' is not a boolean"),
            ("failureReason", 1, "contradiction", "success is true but failureReason is 1"),
        ],
    ),
    "terminal-bench": (
        "results.1",
        [
            ("", 7, "ragged", "the trial is a number where an object belongs"),
            ("task_id", None, "bad_id", "the task_id is missing"),
            ("is_resolved", "yes", "bad_boolean", "is_resolved is not true, false or null"),
            ("parser_results", [], "ragged", "the parser_results is a list where an object belongs"),
        ],
    ),
    "human-eval": (
        "0",
        [
            ("result", "failed: x", "contradiction", "passed is true but the result is 'failed: x'"),
            ("task_id", None, "bad_id", "the task_id is missing"),
        ],
    ),
    "tau-bench": ("0", [("reward", "high", "bad_number", "the reward is not a number")]),
    "deepeval": ("testCases.0", [("success", "yes", "bad_boolean", "success: 'yes' is not true or false")]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_odd_record_is_refused_alone(tmp_path: Path, name: str) -> None:
    sample, (record, odd) = SAMPLES[name], REFUSED[name]
    good = read_good(sample, tmp_path / "good").frame
    assert good["__kind"].null_count() == good.height
    for number, (place, value, kind, reason) in enumerate(odd):
        *above, last = (int(key) if key.isdecimal() else key for key in f"{record}.{place}".strip(".").split("."))
        table = read_adapted(sample.copy(tmp_path / str(number), with_value(sample, above, last, value)))
        (refused,) = table.frame.drop_nulls("__kind").to_dicts()
        assert (refused["__kind"], refused["__broken"]) == (kind, reason), place
        assert table.frame.height == good.height and table.raw({refused["__line"]}), place
        if place and last not in ("model", "model_id", "model_name_or_path", "provider"):
            assert refused["__model"] in good["__model"].to_list(), "its refusal is listed under its model"


def with_value(sample: Sample, above: list[str | int], last: str | int, value: object) -> bytes:
    """The document with another value at a place; bytes are another line."""
    by_line = sample.document.endswith(".jsonl")
    texts = sample.content.decode().splitlines()
    document = [json.loads(text) for text in texts] if by_line else json.loads(sample.content)
    parent = document
    for key in above:
        parent = parent[key]
    parent[last] = value
    if not by_line:
        return json.dumps(document).encode()
    return b"\n".join(each if isinstance(each, bytes) else json.dumps(each).encode() for each in document)


# What the names of files and folders say: the columns that they fill, for a document under this name.
NAMES: list[tuple[str, str, str, tuple[str | None, ...]]] = [
    ("human-eval", "gpt-4/samples.jsonl_results.jsonl", "llm_name", ("gpt-4",)),
    ("human-eval", "gpt-4/results.jsonl", "llm_name", ("gpt-4",)),
    ("human-eval", "runs/gpt-4.1_samples.jsonl_results.jsonl", "llm_name", ("gpt-4.1",)),
    ("human-eval", "runs/llama3.8b.jsonl.gz_results.jsonl", "llm_name", ("llama3.8b",)),
    ("human-eval", "runs/claude_results.jsonl", "llm_name", ("claude",)),
    ("evalplus", "gpt_4_temp_0.8_eval_results.json", "llm_name temperature", ("gpt_4", "0.8")),
    ("evalplus", "a--b_hf_temp_0.2-sanitized_eval_results.json", "llm_name temperature", ("a/b-sanitized", "0.2")),
    ("evalplus", "humaneval/acme--fixer_hf_temp_1.0/eval_results.json", "llm_name temperature", ("acme/fixer", "1.0")),
    ("evalplus", "mine_eval_results.json", "llm_name temperature", ("mine", None)),
    ("swebench-report", "gpt-4o.run1.json", "llm_name run_id", ("gpt-4o", "run1")),
    ("swebench-report", "gpt-4.1.run1.json", "llm_name run_id", ("gpt-4.1", "run1")),
    ("swebench-report", "openai__gpt-4.1.v2.json", "llm_name run_id", ("openai/gpt-4.1", "v2")),
    ("swebench-report", "claude-haiku-4.5.json", "llm_name run_id", ("claude-haiku-4.5", None)),
    ("swebench-report", "claude-haiku-4.5.v1.2.json", "llm_name run_id", ("claude-haiku-4.5", "v1.2")),
    ("swebench-report", "qwen2.5-coder.0.json", "llm_name run_id", ("qwen2.5-coder", "0")),
    ("swebench-report", "gpt-4.20240402.json", "llm_name run_id", ("gpt-4", "20240402")),
    ("swebench-report", "openai__gpt-5-mini.json", "llm_name run_id", ("openai/gpt-5-mini", None)),
    ("swebench-report", "swe-bench_verified__test__fixer_v3.json", "llm_name run_id", ("fixer_v3", None)),
    ("swebench-report", "Subset.swe_bench_verified__test__fixer_v3.5.json", "llm_name run_id", ("fixer_v3.5", None)),
    *(
        ("swebench-report", f"fixer/{name}.json", "llm_name run_id", ("fixer", None))
        for name in ("report", "output.report", "eval-results", "Final_Report")
    ),
    *(
        ("bigcodebench", f"{name}_eval_results.json", "llm_name suite", (model, suite))
        for name, model, suite in (
            ("a--b--main--bigcodebench-complete--vllm-0-1-sanitized_calibrated", "a/b", "complete"),
            ("gpt-4o--bigcodebench-hard-instruct--openai-0.8-5-sanitized-calibrated", "gpt-4o", "hard-instruct"),
            ("a--b--v2--bigcodebench-instruct--hf-inference-0-1-sanitized", "a/b/v2-sanitized", "instruct"),
            ("mine", "mine", None),
        )
    ),
]


@pytest.mark.parametrize("format", dict.fromkeys(name for name, *_ in NAMES))
def test_what_a_name_says(tmp_path: Path, format: str) -> None:
    for number, (name, below, columns, cells) in enumerate(NAMES):
        if name == format:
            path = tmp_path / str(number) / below
            path.parent.mkdir(parents=True)
            path.write_bytes(SAMPLES[name].content)
            table = read_adapted(path)
            assert table.frame.select(columns.split()).unique().rows() == [cells], below
            assert cells[0] in " ".join(table.notes) or (name == "swebench-report" and "." in path.stem), below
            assert name != "human-eval" or ("its folder" in table.notes[0]) == below.startswith(f"{cells[0]}/"), below


# The whole text of a sample's document, or what follows it, and why it is refused as a whole.
UNUSABLE: dict[str, list[tuple[str | bytes, str]]] = {
    "forgetest": [
        (" \n", "the file is empty"),
        ('{"id": 1}', "not in a known format"),
        ('{"results": {"a": 1}}', "not in a known format"),
        ('{"results": null}', "not in a known format"),
        ("[1, 2]", "not in a known format"),
        ('{"eval_set": {}, "results": []}', "the file holds no results"),
        ('{"results": [\n  {"case_id": }\n]}', r"broken JSON at line 2 column 15 \(Expecting value\)"),
        ('{"results": [{}]} x', r"broken JSON at line 1 column 19 \(Extra data\)"),
        ('{"results": [' + "[" * 200_000, "the JSON is nested too deeply"),
    ],
    "evalplus": [
        ('{"date": "", "hash": "", "eval": {}}', "holds no results"),
        ('{"date": "", "hash": "", "eval": []}', "need an object 'eval'"),
        ('{"date": "", "hash": "", "eval": {"a": [], "a": []}}', "the key 'a' twice"),
        ('{"date": "", "hash": "", "eval": {"a": [', "broken JSON"),
        ('{"date": "", "hash": "", "eval": ' + "[" * 100_000, "nested too deeply"),
    ],
    "promptfoo": [
        ('{"results": {"version": 4, "prompts": [], "results": [{}]}}', "results.version is 4; versions 1, 2, 3"),
        ('{"results": {"version": 3, "results": []}}', "the file holds no results"),
        ('{"results": {"version": 3, "results": [', "broken JSON"),
        ('{"evalId": "x", "results": {"prompts": [], "results": {}}}', "there is no list results.results"),
        ('{"evalId": "x", "results": {"prompts": [' + "[" * 100_000, "nested too deeply"),
    ],
    "livecodebench-tests": [('[{"pass@1": 1, "detail": {}}]', "a list of metrics, results and metadata")],
    "failproof lines": [(" \n\n", "the file is empty"), (b'"\xe9"\n', r"not UTF-8 \(at byte 7683\)")],
    "scylla": [
        (SCYLLA, "the file holds no results"),
        (SCYLLA + 'e,"m\n', "the quote opened at line 2 is never closed"),
        (SCYLLA.encode() + b"\xe9,m,T0\n", "not UTF-8"),
        (SCYLLA.replace("\n", ",x,x\n"), "the column 'x' appears twice"),
    ],
}


@pytest.mark.parametrize(
    ("name", "content", "reason"), [(name, *each) for name, listed in UNUSABLE.items() for each in listed]
)
def test_why_a_file_cannot_be_used(tmp_path: Path, name: str, content: str | bytes, reason: str) -> None:
    follows = name == "failproof lines" and isinstance(content, bytes)
    data = content.encode() if isinstance(content, str) else content
    path = SAMPLES[name].copy(tmp_path, (SAMPLES[name].content if follows else b"") + data)
    with pytest.raises(InputFileError, match=reason) as caught:
        read_adapted(path)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", by_way(SAMPLES))
def test_files_that_are_something_else(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    for place, content in enumerate(OTHER_CONTENT):
        sample.read(sample.copy(tmp_path / str(place), content))


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, by the keys that lead to it; of a list only the first element."""
    keys = list(value) if isinstance(value, dict) else [0] if isinstance(value, list) and value else []
    return [place for key in keys for place in ((*above, key), *places(value[key], (*above, key)))]


@pytest.mark.parametrize("name", nightly_but(["forgetest", "swebench-logs"], JSON_SAMPLES))
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


@pytest.mark.parametrize("name", by_way(TEXTS))
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    good = read_good(sample, tmp_path / "good")
    changed = sample.read(sample.copy(tmp_path / "changed", b"\xef\xbb\xbf" + sample.content.replace(b"\n", b"\r\n")))
    assert changed is not None
    columns = [column for column in good.frame.columns if column != "sample_uuid" or sample.format != "openhands"]
    assert changed.frame.select(columns).equals(good.frame.select(columns))


@pytest.mark.parametrize("name", by_way(name for name, sample in SAMPLES.items() if sample.document.endswith(".jsonl")))
def test_lines_that_were_appended_to_themselves_count_once(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    good = read_good(sample, tmp_path / "good")
    twice = sample.read(sample.copy(tmp_path / "twice", sample.content.rstrip(b"\n") + b"\n" + sample.content))
    assert twice is not None and twice.figures == good.figures
    key = ("llm_name", "oid", "iteration_id")
    once, again = (table.frame.filter(pl.col("__kind").is_null()).select(key) for table in (good, twice))
    assert set(again.rows()) == set(once.rows())


NOT_UTF_8 = os.fsdecode(b"\xff")
STEMS = ["-rf", "a b", "ü%2F", "x" * 200, NOT_UTF_8, "..a"]
ONE_FILE = [name for name in SAMPLES if SAMPLES[name].source is None]


@pytest.mark.parametrize(
    ("name", "stem"),
    nightly_but(
        [*((name, NOT_UTF_8) for name in ONE_FILE if name in WAYS), *(("evalplus", stem) for stem in STEMS)],
        [(name, stem) for name in ONE_FILE for stem in STEMS],
    ),
)
def test_hostile_names(tmp_path: Path, name: str, stem: str) -> None:
    path = SAMPLES[name].copy(tmp_path)
    SAMPLES[name].read(path.rename(path.with_name(stem + path.suffix)))


# Logs of Inspect are streamed, with limits of their own; of several documents the one is refused alone.
OWN_LIMITS = ("inspect", "swe-agent", "multipl-e")


@pytest.mark.parametrize(
    "name", by_way(name for name in TEXTS if SAMPLES[name].source is None and not name.startswith(OWN_LIMITS))
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
