"""Inspect logs that are damaged, hostile or something else: one line that says so, or refused samples."""

import copy
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.adapters.inspect_files import REAL, SPEC, header, sample, write_archive, write_eval, write_json
from touchstone.errors import InputFileError
from touchstone.ingest.adapters import detect_format
from touchstone.ingest.adapters.formats import inspect_ai
from touchstone.ingest.adapters.formats.inspect_ai import read_inspect

START = ("_journal/start.json", {"version": 2, "eval": SPEC})
DEEP = b"[" * 100_000 + b"]" * 100_000


def message(path: Path) -> str:
    with pytest.raises(InputFileError) as error:
        read_inspect(path)
    text = str(error.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


BROKEN = {
    '{"status": "success", "eval": {"task": "t", "model": "m"}': "broken JSON (it ends early)",
    '{"eval": {"task": "t"}, "samples": [{}]}': "not an Inspect log: in `eval`, the model is missing",
    '{"eval": [], "samples": [{}]}': "not an Inspect log: in `eval`, the model is missing",
    '{"eval": {"task": "t", "model": "m"}}': "the log has no samples",
    '{"eval": {"task": 1x}}': "the header of the log: broken JSON at column 20 (Expecting ',' delimiter)",
}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        *((text.encode(), reason) for text, reason in BROKEN.items()),
        (b"", "the file is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer, not the log; run `git lfs pull`"),
        (b"hello", "not an Inspect log; it is neither a ZIP file nor a JSON object"),
        (
            b"PK\x03\x04" + b"\0" * 100,
            "the directory at the end of the ZIP file is missing or damaged; copy the file again",
        ),
    ],
)
def test_not_a_log(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    assert detect_format(path) == "inspect"
    assert message(path) == expected
    other = write_archive(tmp_path / "log.zip", [("data.json", {})])
    assert detect_format(other) is None
    assert message(other) == "a ZIP file, but no Inspect log; it has neither header.json nor _journal/start.json"


COUNTED = {"scores": [], "total_samples": 2340, "completed_samples": 2340}


@pytest.mark.parametrize("write", [write_json, write_eval])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": "cancelled", "results": None}, "the run was cancelled before it finished a sample"),
        (
            {"status": "error", "error": {"message": "no API key"}, "results": None},
            "the run ended with an error before it finished a sample: no API key",
        ),
        ({"status": "started"}, "the run did not end, and finished no sample: it was killed or is still going on"),
        ({"results": COUNTED}, "the log has none of its 2,340 samples: somebody removed them; use the whole log"),
        (
            {"eval": SPEC | {"config": {"log_samples": False}}, "results": COUNTED},
            "the log has no samples: it was written with --no-log-samples",
        ),
    ],
)
def test_why_a_log_has_no_samples(
    tmp_path: Path, write: Callable[..., Path], changes: dict[str, object], expected: str
) -> None:
    assert message(write(tmp_path / "log.eval", [], header(**changes))) == expected


def test_the_figures_of_a_trimmed_log_are_not_recomputed_from_what_is_left(tmp_path: Path) -> None:
    results = header()["results"] | {"total_samples": 2340, "completed_samples": 2340}  # type: ignore[operator]
    table = read_inspect(write_json(tmp_path / "log.json", [sample()], header(results=results, version=9)))
    assert "1 of 2,340 attempts are in the file" in table.notes
    assert "log version 9 is not one that was tested (1, 2, 3)" in table.notes
    (figure,) = table.figures
    assert (figure.reported, figure.recomputed) == (0.5, None)
    assert figure.note == "the file has 1 of 2,340 attempts, so the figure cannot be computed from it"


def test_an_archive_is_recognized_whatever_its_name_and_order(tmp_path: Path) -> None:
    members = [("summaries.json", [sample()]), ("header.json", header()), START]
    assert detect_format(write_archive(tmp_path / "renamed.bin", members)) == "inspect"


def test_a_log_is_recognized_where_many_ids_come_before_the_model(tmp_path: Path) -> None:
    spec = {"task": "fix", "task_id": "t", "dataset": {"sample_ids": list(range(200_000))}, "model": "acme/model"}
    assert detect_format(write_json(tmp_path / "log.json", [sample()], header(eval=spec))) == "inspect"


@pytest.mark.parametrize("name", ["header.json", "summaries.json", "_journal/start.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[" * 10, b"\xff\xfe", b"nonsense", b'{"eval": 1}', DEEP])
def test_members_with_any_content(tmp_path: Path, name: str, content: bytes) -> None:
    members = {START[0]: START[1], "summaries.json": [sample()], "header.json": header(), name: content}
    if name == START[0]:
        del members["header.json"]
    path = write_archive(tmp_path / "log.eval", list(members.items()))
    if name == "summaries.json" and content == DEEP:
        assert read_inspect(path).frame["__broken"].to_list() == ["the JSON is nested too deeply"]
    else:
        message(path)


@pytest.mark.parametrize("key", ["scores", "metadata", "model_usage", "error", "limit", "id", "uuid"])
def test_deep_json_in_a_sample_is_refused(tmp_path: Path, key: str) -> None:
    path = tmp_path / "log.json"
    text = json.dumps(header() | {"samples": [sample(**{key: "HERE"}), sample(id="b")]})
    path.write_text(text.replace('"HERE"', DEEP.decode()))
    assert read_inspect(path).frame["passed"].to_list()[1] == "true"


def test_a_damaged_sample_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    members = [START, *((f"samples/{name}_epoch_1.json", sample(id=name)) for name in "ab")]
    path = write_archive(tmp_path / "log.eval", members, zipfile.ZIP_STORED)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"id": "a"', b'"id": "x"', 1))
    table = read_inspect(path)
    assert table.frame.select("__broken", "passed").rows() == [
        ("'samples/a_epoch_1.json' is damaged (Bad CRC-32 for file 'samples/a_epoch_1.json')", None),
        (None, "true"),
    ]


def test_absurd_numbers(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    digits = "9" * 5000
    text = json.dumps(
        header() | {"samples": [sample(epoch="HERE"), sample(id="b", scores={"tests": {"value": "HERE"}})]}
    )
    path.write_text(text.replace('"HERE"', digits))
    assert read_inspect(path).frame["passed"].to_list() == ["true", None]


def test_many_keys_and_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"k{number}": number for number in range(5000)}
    path = write_json(tmp_path / "log.json", [sample(metadata=many, scores={"tests": {"value": many}})])
    assert len(read_inspect(path).columns) < 200
    monkeypatch.setattr(inspect_ai, "_MAX_SAMPLES", 2)
    assert message(write_json(path, [{}, {}, {}])) == "over 2 samples; split the log"


JSON = (REAL / "odd.json").read_bytes()


def places(value: object) -> list[tuple[dict[str, object] | list[object], object]]:
    """Every place in a document where another value could stand."""
    if isinstance(value, dict):
        return [(value, key) for key in value] + [place for each in value.values() for place in places(each)]
    if isinstance(value, list):
        return [(value, place) for place in range(len(value))] + [place for each in value for place in places(each)]
    return []


TWO_SCORES = {"tests": {"value": "C", "reason": "refusal"}, "review": {"value": {"style": 0.5, "length": [1]}}}
FULL = header(error={"message": "boom"}) | {
    "invalidated": False,
    "results": {
        "total_samples": 3,
        "headline": {"scorer": "tests", "score": "tests"},
        "scores": [
            {
                "name": "tests",
                "scorer": "tests",
                "reducer": "pass_at_2",
                "metrics": {"mean": {"value": 1, "params": {}}},
            },
            {"name": "style", "scorer": "review", "reducer": "mode", "metrics": {"stderr": {"value": 1, "params": {}}}},
        ],
    },
    "eval": {**SPEC, "scorers": [{"name": "tests", "metrics": []}, {"name": "review", "metrics": {"style": []}}]},
}
WRONG = st.sampled_from(
    [None, True, 0, -1, 1.5, float("nan"), float("-inf"), "", "x", "1", [], {}, [[]], {"a": 1}]
).map(copy.deepcopy)


@given(st.sampled_from([write_json, write_eval]), st.data())
def test_any_value_anywhere_gives_a_message_or_a_table(
    tmp_path_factory: pytest.TempPathFactory, write: Callable[..., Path], data: st.DataObject
) -> None:
    samples = [sample(scores=TWO_SCORES, error=None, limit=None), sample(id=7, epoch=2), sample(id="c")]
    log = json.loads(json.dumps({"head": FULL, "samples": samples}))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(log)))
        container[key] = data.draw(WRONG)  # type: ignore[index]
    path = tmp_path_factory.getbasetemp() / "wrong.eval"
    try:
        table = read_inspect(write(path, log["samples"], log["head"] if isinstance(log["head"], dict) else {"x": 1}))
    except InputFileError as error:
        assert "\n" not in str(error)
    else:
        assert table.frame.height
