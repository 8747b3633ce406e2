"""Telling the formats apart by content."""

import json
import random
from pathlib import Path

import pytest

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import adapters, detect_format, read_adapted
from touchstone.ingest.adapters.adapter import Head

RUNS = b"experiment,agent_model,tier,subtest,run_number,passed"
LINE = b'{"case_id": "c", "model_id": "m", "classification": {"primary": "pass"}'


def write(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "some_fixes.csv"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b'{"eval_set": {}, "results": [', "forgetest"),
        (b' \n{"id": {"results": 1}, "notes": ["[{\\"", "}"], "eval_set": 1, "results" :\n [1', "forgetest"),
        (b'{"meta": "' + b"x" * 500_000 + b'", "eval_set": 1, "results": []}', "forgetest"),
        (b'{"eval_set": "\xff\xfe", "results": []}', "forgetest"),
        (RUNS, "scylla"),
        (b"\xef\xbb\xbf" + b" , ".join(reversed(RUNS.split(b","))) + b",grade\r\n", "scylla"),
        (b'"experiment","agent_model","tier","subtest","run_number","passed"\n', "scylla"),
        (RUNS + b"\n\xff\xfe", "scylla"),
        (LINE + b"}", "failproof"),
        (b"\n \n" + LINE + b', "results": []}\n{broken', "failproof"),
        (b"PAR1\x00\x00\x15\x04", "parquet"),
        (b'{"a.eval": {"version": 2, "status": "error", "eval": {"task": "t", "model": "m"}}}', "inspect-index"),
        (b'{"a.json": {"eval_id": "e", "task": "t", "status": "success", "model": "m"}}', "inspect-index"),
        (b'{"eval_set_id": "e", "tasks": [{"name": "t"}]}', "inspect-index"),
        (b"topic,[m] a prompt,Status,Score,Named Scores,Grader Reason,Comment\n", "promptfoo-table"),
        (b"evalId: eval-ham-2026\nresults:\n  version: 3\n", "promptfoo-table"),
        (b"<promptfoo>\n  <evalId>eval-ham-2026</evalId>\n", "promptfoo-table"),
    ],
)
def test_recognised(tmp_path: Path, content: bytes, name: str) -> None:
    assert detect_format(write(tmp_path, content)) == name


NOT_RECOGNISED = [
    b"",
    b"\xef\xbb\xbf",
    b"\n\n",
    b"oid,iteration_id,plausible_fix\na,1,true\n",
    b"oid,iteration_id," + RUNS + b"\n",
    RUNS.replace(b",subtest", b"") + b"\n",
    b"oid,filename\na,{\n",
    b'{"runs": [{"results": [1]}]}',
    b'{"results": {"a": []}}',
    b'{"results": null}',
    b'{"results": []}',
    b'{"eval_set": {}, "results": {}}',
    b'{"results": [{"id": "a", "passed": true}]}',
    b'{"results": [{"case_id": "a", "score": 1}]}',
    b'{"text": "\\"results\\": ["}',
    b'["results", [1]]',
    b"{",
    b'{"unclosed',
    b"[[[[",
    b'{"case_id": "c", "model_id": "m"}\n',
    b'{\n"case_id": "c",\n"model_id": "m",\n"classification": null}\n',
    b"\xff\xfe{\x00",
    b'"' * 1001,
    b"{" * 300_000,
    b"}" * 100 + b'{"results": [1]}',
]


def test_not_recognised(tmp_path: Path) -> None:
    for content in NOT_RECOGNISED:
        path = write(tmp_path, content)
        assert detect_format(path) is None, content[:80]
        with pytest.raises(InputFileError) as caught:
            read_adapted(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("mocha.JSON", '{\n  "stats": {"tests": 0}, "tests": []\n}\n'),
        ("deno.XML", '<?xml version="1.0"?>\n<testsuites/>\n'),
        ("deno.XML", "<testsuite name='s'/>"),
    ],
)
def test_a_report_below_what_the_tests_printed(tmp_path: Path, name: str, report: str) -> None:
    """As `mocha --reporter json > mocha.json` leaves it."""
    path = tmp_path / name.lower()
    path.write_text(f"Calculator loaded!\n[1/2] ready\n{report}")
    kind = name.rpartition(".")[2]
    with pytest.raises(InputFileError, match=rf": the {kind} begins at line 3; delete what was printed above"):
        read_adapted(path)


def test_random_bytes(tmp_path: Path) -> None:
    for seed in range(50):
        source = random.Random(seed)
        content = source.choice([b"", b"{", b'{"results', RUNS[:-3]]) + source.randbytes(3000)
        assert detect_format(write(tmp_path, content)) is None


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    assert detect_format(tmp_path) is None
    assert detect_format(tmp_path / "gone.json") is None
    with pytest.raises(InputFileError, match="no such file"):
        read_adapted(tmp_path / "gone.json")


def test_a_long_first_line(tmp_path: Path) -> None:
    line = json.dumps({"case_id": "c", "raw_response": "x" * 300_000, "model_id": "m", "classification": None})
    assert detect_format(write(tmp_path, line.encode())) == "failproof"


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"instance_id": "a__b-1", "test_result": {"git_patch": "x"}}, "openhands"),
        ({"instance_id": "a__b-1", "model_name_or_path": "m", "model_patch": "x"}, "swebench-predictions"),
        ({"oid": "a", "model": "m", "passed": True}, "jsonl"),
    ],
)
def test_a_first_line_that_is_longer_than_the_start_that_is_looked_at(
    tmp_path: Path, record: dict[str, object], found: str
) -> None:
    """As with the history of an agent in it."""
    path = tmp_path / "output.jsonl"
    path.write_text("\n" + f"{json.dumps({'history': 'x' * 2_000_000} | record)}\n{json.dumps(record)}\n")
    assert detect_format(path) == found
    assert read_adapted(path).frame.height == 2


@pytest.mark.parametrize("tail", ["", "\\"])
def test_a_string_that_is_never_closed_is_read_once(tmp_path: Path, tail: str) -> None:
    """Trying every escaped quote as another start would take hours."""
    path = tmp_path / "a.json"
    path.write_text('{"eval_set": 1, "results": [], "a": "' + '\\"' * 500_000 + tail)
    assert detect_format(path) == "forgetest"


def test_the_adapters_left_out_would_recognize_nothing() -> None:
    examples = Path(__file__).parent / "files"
    for path in [examples, *sorted(examples.rglob("*"))]:
        head = Head(path)
        assert detect_format(path) == next((each.format for each in adapters() if each.recognizes(head)), None), path
