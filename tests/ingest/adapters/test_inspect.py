"""Reading Inspect AI logs: every attempt with its verdict, and Inspect's own figures from the same rows."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.ingest.adapters.inspect_files import (
    REAL,
    SPEC,
    header,
    sample,
    scored,
    write_archive,
    write_eval,
    write_json,
)
from touchstone.errors import InputFileError
from touchstone.ingest.adapters import ReadOptions, detect_format, read_adapted
from touchstone.ingest.adapters.table import AdapterTable

START = ("_journal/start.json", {"version": 2, "eval": SPEC})
Writer = Callable[..., Path]


def verdict(table: AdapterTable, line: int = 0) -> tuple[str | None, str | None, str | None]:
    row = table.frame.row(line, named=True)
    return row["passed"], row["classification"], row["error"]


def passed(table: AdapterTable) -> dict[tuple[str, str], str | None]:
    rows = table.frame.select("oid", "iteration_id", "passed").rows()
    return {(oid, iteration): outcome for oid, iteration, outcome in rows}


@pytest.mark.parametrize(
    ("name", "attempts", "reported"),
    [
        ("letters.eval", 15, {"letter accuracy (mean)": 0.6333, "letter accuracy (pass_at_3)": 0.75}),
        ("dict.eval", 6, {"multi/passed accuracy (mean)": 0.5, "multi/style mean (mean)": 0.5}),
        ("odd.eval", 9, {"odd accuracy (mean)": 0.7083}),
        ("odd.json", 9, {"odd accuracy (mean)": 0.7083}),
        ("limits.eval", 4, {"letter accuracy (max)": 1.0}),
        ("aborted.eval", 3, {}),
        ("killed.eval", 2, {}),
    ],
)
def test_figures_of_real_logs(name: str, attempts: int, reported: dict[str, float]) -> None:
    assert detect_format(REAL / name) == "inspect"
    table = read_adapted(REAL / name)
    assert table.frame.height == attempts
    assert table.frame["__broken"].null_count() == attempts
    figures = {figure.name: figure for figure in table.figures}
    for figure in figures.values():
        assert figure.recomputed == pytest.approx(figure.reported, abs=1e-12), figure
    assert {name: round(figures[name].reported or 0, 4) for name in reported} == reported


def test_epochs_are_attempts_and_errors_are_undecided() -> None:
    table = read_adapted(REAL / "letters.eval")
    outcomes = passed(table)
    assert [outcomes["fix_letters/py-offbyone", str(epoch)] for epoch in (1, 2, 3)] == ["true", "false", "true"]
    assert [outcomes["fix_letters/js/regex 3", str(epoch)] for epoch in (1, 2, 3)] == ["true", "false", "false"]
    errored = table.frame.filter(pl.col("error").is_not_null()).row(0, named=True)
    assert (errored["oid"], errored["iteration_id"], errored["passed"]) == ("fix_letters/infra-1", "2", None)
    assert (errored["classification"], errored["retries"]) == (None, "1")
    assert "sandbox container died" in errored["error"]


VALUES: list[tuple[object, str | None]] = [
    *((value, "true") for value in ("C", True, 1, 7, "yes", "1.0")),
    # Inspect's accuracy counts "left" as 0.
    *((value, "false") for value in ("I", "P", "N", False, 0.99, "False", "left")),
    *((value, None) for value in (None, float("nan"), float("inf"), {"a": 1, "b": 0}, [1, 0])),
]


@pytest.mark.parametrize("write", [write_eval, write_json])
def test_values(tmp_path: Path, write: Writer) -> None:
    samples = [scored(value, id=f"{place:02}") for place, (value, _) in enumerate(VALUES)]
    frame = read_adapted(write(tmp_path / "log.eval", samples)).frame.sort("oid")
    assert frame["passed"].to_list() == [outcome for _, outcome in VALUES]
    assert frame["error"].is_null().to_list() == [outcome is not None for _, outcome in VALUES]


@pytest.mark.parametrize(
    "head", [header("other"), header(results={"scores": [{"name": "tests", "scorer": "tests", "metrics": {}}]})]
)
def test_a_word_without_a_metric_is_no_verdict(tmp_path: Path, head: dict[str, object]) -> None:
    table = read_adapted(write_json(tmp_path / "log.json", [scored("left")], head))
    assert verdict(table) == (None, None, "the score tests is 'left', which is no verdict")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"scores": {}}, (None, None, "not scored")),
        ({"scores": None, "error": "boom"}, (None, None, "boom")),
        ({"error": {"message": "boom", "traceback": "…"}}, (None, None, "boom")),
        ({"scores": {}, "limit": "time"}, ("false", "timeout", None)),
        ({"scores": {}, "limit": {"type": "token", "limit": 5}}, ("false", "fail", None)),
        ({"scores": {}, "limit": "operator"}, (None, None, "not scored")),
        ({"limit": "message"}, ("true", "pass", None)),
        ({"scores": {"tests": {"value": "I"}}, "limit": "working"}, ("false", "timeout", None)),
        ({"scores": {"tests": {"value": float("nan"), "reason": "refusal"}}}, ("false", "refusal", None)),
        (
            {"scores": {"tests": {"value": float("nan"), "reason": "grader_failed"}}},
            (None, None, "not scored (grader_failed)"),
        ),
        ({"invalidation": {"author": "me"}}, (None, None, "the sample was invalidated")),
    ],
)
def test_verdicts(tmp_path: Path, changes: dict[str, object], expected: tuple[str | None, ...]) -> None:
    assert verdict(read_adapted(write_json(tmp_path / "log.json", [sample(id="b"), sample(**changes)])), 1) == expected


def test_an_error_counts_as_scored_only_where_the_run_was_told_to_score_it(tmp_path: Path) -> None:
    head = header(eval={**SPEC, "config": {"score_on_error": True}})
    table = read_adapted(write_json(tmp_path / "log.json", [scored("I", error="boom")], head))
    assert verdict(table) == ("false", "fail", "boom")


TWO = {"tests": {"value": "I"}, "review": {"value": {"style": True, "length": 0.5}}}


@pytest.mark.parametrize(
    ("reported", "wanted", "chosen"),
    [
        (("tests", "review"), None, "tests"),
        (("nothing", "tests"), None, "tests"),
        (("tests",), "review/style", "review/style"),
        (("tests",), "length", "review/length"),
    ],
)
def test_the_score_that_decides(tmp_path: Path, reported: tuple[str, ...], wanted: str | None, chosen: str) -> None:
    path = write_eval(tmp_path / "log.eval", [sample(scores=TWO)], header(*reported))
    table = read_adapted(path, ReadOptions(score=wanted))
    assert table.frame["score"].to_list() == [chosen]
    assert any(note.startswith(f"the score {chosen} decides; --scorer chooses another") for note in table.notes)


def test_the_headline_decides_before_the_first_score(tmp_path: Path) -> None:
    results = {"scores": [], "headline": {"scorer": "review", "score": "style"}}
    table = read_adapted(write_json(tmp_path / "log.json", [sample(scores=TWO)], header(results=results)))
    assert table.frame.select("score", "passed").row(0) == ("review/style", "true")
    assert "the score tests disagrees on whether an attempt passed for 1 of 1" in table.notes


def test_a_score_with_a_metric_decides_before_one_without(tmp_path: Path) -> None:
    """As where `git_diff` only records what was changed: the log's accuracy of 0.0 is that of the tests."""
    scores = {"git_diff": {"value": "C"}, "tests": {"value": "I"}}
    metric = {"accuracy": {"name": "accuracy", "value": 0.0, "params": {}}}
    entries = [
        {"name": name, "scorer": name, "metrics": found} for name, found in (("git_diff", {}), ("tests", metric))
    ]
    table = read_adapted(
        write_json(tmp_path / "log.json", [sample(scores=scores)], header(results={"scores": entries}))
    )
    assert table.frame.select("score", "passed").row(0) == ("tests", "false")
    assert [(figure.name, figure.reported, figure.recomputed) for figure in table.figures] == [
        ("tests accuracy (mean)", 0.0, 0.0)
    ]


def test_a_score_without_a_metric_in_the_plan_of_a_killed_run_comes_last(tmp_path: Path) -> None:
    plan = [
        {"name": "tests", "metrics": []},
        {"name": "review", "metrics": {"length": [], "style": [{"name": "mean"}]}},
    ]
    members = [
        ("_journal/start.json", {"version": 2, "eval": {**SPEC, "scorers": plan}}),
        ("_journal/summaries/1.json", [sample(scores=TWO)]),
    ]
    assert read_adapted(write_archive(tmp_path / "log.eval", members)).frame["score"].to_list() == ["review/style"]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("speed", "no score 'speed'; it has tests, review/style, review/length"),
        ("review", "the score 'review' is ambiguous; choose one of review/style, review/length"),
    ],
)
def test_a_score_that_does_not_exist(tmp_path: Path, wanted: str, message: str) -> None:
    path = write_eval(tmp_path / "log.eval", [sample(scores=TWO)])
    with pytest.raises(InputFileError) as error:
        read_adapted(path, ReadOptions(score=wanted))
    assert str(error.value) == f"{path}: {message}"


def test_limits_alone_decide_nothing_in_a_log_without_scores(tmp_path: Path) -> None:
    """As after `inspect eval --no-score`: the samples that reached a limit would be the whole figure."""
    samples = [sample(id="a", scores={}), sample(id="b", scores={}, limit={"type": "message"})]
    table = read_adapted(write_json(tmp_path / "log.json", samples, header(results={"scores": []})))
    assert table.frame.select("passed", "error").rows() == [(None, "not scored"), (None, "not scored")]
    assert "no sample has a score, so every attempt is undecided" in table.notes
    assert not any("count as failed" in note for note in table.notes)


def test_usage_of_the_model_and_of_its_graders(tmp_path: Path) -> None:
    usage = {
        "openai/grader": {"input_tokens": 1000, "output_tokens": 1, "total_tokens": 1001, "total_cost": 9},
        "acme/model": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12, "total_cost": 0.25},
    }
    row = read_adapted(write_json(tmp_path / "log.json", [sample(model_usage=usage)])).frame.row(0, named=True)
    used = [row[name] for name in ("input_tokens", "output_tokens", "cost_usd", "total_tokens")]
    assert used == ["10", "2", "0.25", "1013"]


def test_the_transcript_is_read_where_a_summary_lacks_usage(tmp_path: Path) -> None:
    """As in files of 2024."""
    summary = {"id": "a", "epoch": 1, "scores": {"tests": {"value": "C"}}}
    body = sample(messages=[{"content": "}]"}], error_retries=[{"message": "x"}, {"message": "y"}])
    members = [START, ("samples/a_epoch_1.json", body), ("summaries.json", [summary]), ("header.json", header())]
    row = read_adapted(write_archive(tmp_path / "log.eval", members)).frame.row(0, named=True)
    assert (row["passed"], row["input_tokens"], row["duration_seconds"], row["retries"]) == ("true", "10", "1.5", "2")


def test_version_1(tmp_path: Path) -> None:
    """One score without a name."""
    samples = [sample(id=name, scores=None, score={"value": name}) for name in "CI"]
    results = {"scorer": {"name": "tests"}, "metrics": {"accuracy": {"name": "accuracy", "value": 0.5, "options": {}}}}
    table = read_adapted(write_json(tmp_path / "log.json", samples, header(version=1, results=results)))
    assert passed(table) == {("fix/C", "1"): "true", ("fix/I", "1"): "false"}
    assert [(figure.name, figure.recomputed) for figure in table.figures] == [("score accuracy (mean)", 0.5)]


def test_a_killed_run(tmp_path: Path) -> None:
    """Journal in numerical order, the last record of a sample counts, and samples without a summary are read."""
    members = [
        START,
        ("_journal/summaries/2.json", [scored("I")]),
        ("_journal/summaries/10.json", [scored("C")]),
        ("samples/a_epoch_1.json", scored("I")),
        ("samples/b/c_epoch_2/sample.json", scored("I", id="b/c", epoch=2)),
        ("samples/b/c_epoch_2/messages/0.json", []),
    ]
    table = read_adapted(write_archive(tmp_path / "log.eval", members))
    assert passed(table) == {("fix/a", "1"): "true", ("fix/b/c", "2"): "false"}
    assert "the run did not end: it was killed or is still going on" in table.notes
    assert "1 samples have no summary and were read in full" in table.notes
    assert "1 samples were recorded again later; the last record counts, as in Inspect" in table.notes


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_last_of_two_members_with_one_name_counts(tmp_path: Path) -> None:
    members = [START, *(("summaries.json", [scored(value)]) for value in "IC"), ("header.json", header())]
    assert passed(read_adapted(write_archive(tmp_path / "log.eval", members))) == {("fix/a", "1"): "true"}


def test_samples_that_cannot_be_read_are_refused_one_by_one(tmp_path: Path) -> None:
    broken = [sample(id=None), sample(epoch="1"), "text", sample(id="b", scores={"tests": 1}), sample(id=7)]
    table = read_adapted(write_json(tmp_path / "log.json", broken))
    refused = table.frame.filter(pl.col("__broken").is_not_null())
    assert refused.select("__line", "__kind", "__broken").rows() == [
        (1, "bad_id", "id: None is neither a text nor a number"),
        (2, "bad_id", "epoch: '1' is not a whole number from 1"),
        (3, "ragged", "the sample is a text where an object belongs"),
        (4, "ragged", "the score 'tests' is not an object"),
    ]
    assert passed(table)["fix/7", "1"] == "true"
    assert table.raw({3}) == {3: '"text"'}
