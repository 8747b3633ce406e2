"""Reading lm-eval's samples files: which metric is the verdict, what is undecided, and whose attempts they are."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable, ReadOptions, detect_format, read_adapted
from touchstone.ingest.adapters.adapter import NotEvaluatedError

FILES = Path(__file__).parent / "files" / "lm-eval" / "acme__fixer-7b"
TIME = "2026-11-15T13-40-50.650094"


def samples(task: str) -> Path:
    return FILES / f"samples_{task}_{TIME}.jsonl"


def sample(doc_id: object = 0, **changes: object) -> dict[str, object]:
    made = {"doc_id": doc_id, "doc": {"q": "?"}, "target": "a", "arguments": {}, "resps": [["a"]], "filtered_resps": []}
    return made | {"filter": "none", "metrics": ["acc"], "acc": 1.0} | changes


def write(folder: Path, *lines: object, name: str = f"samples_sums_{TIME}.jsonl") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))
    return path


def column(table: AdapterTable, name: str) -> list[str | None]:
    return table.frame[name].to_list()


@pytest.mark.parametrize(
    ("score", "passed"),
    [(None, "1000"), ("exact_match", "1000"), ("exact_match,first", "1000"), ("exact_match,maj3", "1100")],
)
def test_the_first_filter_is_read_unless_another_is_chosen(score: str | None, passed: str) -> None:
    table = read_adapted(samples("fix_gen"), ReadOptions(score=score))
    assert column(table, "passed") == ["true" if each == "1" else "false" for each in passed]
    other = "exact_match,first" if score == "exact_match,maj3" else "exact_match,maj3"
    assert other in table.notes[0]


def test_shares_of_several_responses_are_no_verdicts() -> None:
    table = read_adapted(samples("fix_pass"))
    assert column(table, "metric") == ["pass@1"] * 4
    assert column(table, "passed") == [None] * 4
    assert column(table, "weighted_score")[-2:] == ["0.3333333333333333", "0.0"]
    assert any("undecided" in note for note in table.notes)
    assert [figure.note is not None for figure in table.figures] == [True, False]
    for figure in table.figures:
        assert figure.recomputed == pytest.approx(figure.reported), figure


def test_pass_at_3_is_read_only_if_it_is_chosen() -> None:
    table = read_adapted(samples("fix_pass"), ReadOptions(score="pass@3"))
    assert column(table, "passed") == ["true", "true", "true", "false"]
    assert "pass@3 is about several attempts: each row stands for all of them" in table.notes


@pytest.mark.parametrize("score", ["pass@1", None])
def test_a_share_that_happens_to_be_whole_is_still_no_verdict(tmp_path: Path, score: str | None) -> None:
    line = sample(resps=[["a", "b"]], metrics=["pass@1"]) | {"pass@1": 1.0}
    assert column(read_adapted(write(tmp_path, line), ReadOptions(score=score)), "passed") == [None]


def test_an_unknown_score_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputFileError, match=r"no score 'f1'; there are: exact_match,first, exact_match,maj3$"):
        read_adapted(samples("fix_gen"), ReadOptions(score="f1"))


def test_a_metric_of_fractions_gives_way_to_one_of_verdicts(tmp_path: Path) -> None:
    lines = [sample(place, metrics=["f1", "em"], f1=0.4, em=place) for place in (0, 1)]
    assert column(read_adapted(write(tmp_path, *lines)), "metric") == ["em", "em"]


@pytest.mark.parametrize(("lower", "metric", "passed"), [(False, "pct_stereotype", "true"), (True, "acc", "false")])
def test_a_metric_of_which_less_is_better_is_no_verdict(tmp_path: Path, lower: bool, metric: str, passed: str) -> None:
    """As that of crows_pairs, which is 1 if the model prefers the stereotype."""
    declared = [{"metric": "pct_stereotype", "aggregation": "mean", "higher_is_better": not lower}]
    write(tmp_path, {"configs": {"sums": {"metric_list": declared}}}, name=f"results_{TIME}.json")
    line = sample(metrics=["pct_stereotype", "acc"], pct_stereotype=1.0, acc=0.0)
    table = read_adapted(write(tmp_path, line))
    assert table.frame.select("metric", "passed").row(0) == (metric, passed)
    chosen = read_adapted(table.path, ReadOptions(score="pct_stereotype"))
    assert column(chosen, "passed") == [None if lower else "true"]


@pytest.mark.parametrize("value", [None, float("nan"), [1.5, 3]])
def test_what_was_not_scored_is_undecided(tmp_path: Path, value: object) -> None:
    table = read_adapted(write(tmp_path, sample(0), sample(1, acc=value), sample(2, acc=False)))
    assert column(table, "passed") == ["true", None, "false"]
    assert column(table, "weighted_score") == ["1.0", None, "0"]


def test_scores_outside_of_0_to_1_are_no_weighted_score(tmp_path: Path) -> None:
    table = read_adapted(write(tmp_path, sample(0, acc=-3.5), sample(1, acc=17)))
    assert column(table, "weighted_score") == column(table, "passed") == [None, None]
    assert column(table, "metric_acc") == ["-3.5", "17"]


def test_files_from_before_filters_and_metrics_were_written(tmp_path: Path) -> None:
    old = {name: value for name, value in sample().items() if name not in ("filter", "metrics")}
    table = read_adapted(write(tmp_path / "gpt2", old, name="pretrained__gpt2_sums.jsonl"))
    assert table.frame.select("oid", "passed", "llm_name").row(0) == ("pretrained__gpt2_sums/0", "true", "gpt2")


def test_each_time_is_a_run(tmp_path: Path) -> None:
    times = ["2026-01-01T00-00-00.1", "2026-01-02T00-00-00.1"]
    tables = [read_adapted(write(tmp_path, sample(), name=f"samples_sums_{each}.jsonl")) for each in times]
    assert [table.frame.select("iteration_id", "run_id").row(0) for table in tables] == [("1", each) for each in times]


@pytest.mark.parametrize("start", ["results", "sums_baseline"])
@pytest.mark.parametrize(
    ("results", "model", "note"),
    [
        ({"model_name": "org/m"}, "org/m", None),
        ({"model_name": "", "config": {"model_args": "pretrained=org/m,dtype=auto"}}, "org/m", None),
        ({"config": {"model_args": {"model": "org/m"}}}, "org/m", None),
        ({"model_name": None}, "org__m", "names no model"),
        (["no object"], "org__m", "not an object"),
        ("{", "org__m", "broken JSON"),
        (None, "org__m", "no results file of the same time"),
    ],
)
def test_the_model_comes_from_the_results_else_from_the_folder(
    tmp_path: Path, results: object, model: str, note: str | None, start: str
) -> None:
    """With `--output_path sums_baseline.json`, the results are called by that."""
    path = write(tmp_path / "org__m", sample())
    if results is not None:
        write(path.parent, results, name=f"{start}_{TIME}.json")
    table = read_adapted(path)
    assert column(table, "llm_name") == [model]
    assert note is None or note in table.notes[0]


def test_aggregates_alone_are_recognised_and_not_evaluated() -> None:
    path = FILES / f"results_{TIME}.json"
    assert detect_format(path) == "lm-eval-results"
    with pytest.raises(NotEvaluatedError, match=r"aggregates of lm-eval; the attempts are in the samples_\*\.jsonl"):
        read_adapted(path)


def test_results_of_version_0_3_are_aggregates_too(tmp_path: Path) -> None:
    results = {"results": {"gsm8k": {"acc": 0.5}}, "versions": {"gsm8k": 0}, "config": {"model": "hf-causal"}}
    assert detect_format(write(tmp_path, results, name="bloom-1b1_gsm8k_8-shot.json")) == "lm-eval-results"


@pytest.mark.parametrize("value", [[], [None, "x"], [-1.5, 3]])
def test_a_file_without_a_number_has_no_attempts(tmp_path: Path, value: object) -> None:
    """As that of wikitext has, beside the files of other tasks."""
    with pytest.raises(NotEvaluatedError, match="no metric has a number for a document, as for perplexity"):
        read_adapted(write(tmp_path, sample(acc=value)))


def test_a_file_without_a_sample_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="no sample can be read") as refused:
        read_adapted(write(tmp_path, sample(acc="x")))
    assert not isinstance(refused.value, NotEvaluatedError)


def test_an_aggregate_that_is_no_mean_is_not_recomputed(tmp_path: Path) -> None:
    path = write(tmp_path, sample(0), sample(1, acc=0))
    configs = {"sums": {"metric_list": [{"metric": "acc", "aggregation": "median"}]}}
    results = {"model_name": "m", "results": {"sums": {"acc,none": 0.7, "acc_stderr,none": "N/A"}}, "configs": configs}
    write(tmp_path, results, name=f"results_{TIME}.json")
    [figure] = read_adapted(path).figures
    assert (figure.reported, figure.recomputed) == (0.7, None) and "aggregated by median" in str(figure.note)


TASK = """
dataset_path: json
dataset_kwargs: {data_files: {test: docs.jsonl}}
test_split: test
"""
GENERATE = """
task: fix_gen
output_type: generate_until
doc_to_text: "Repair {{bug}}:"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["."]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
filter_list: [{name: first, filter: [{function: take_first}]}, {name: again, filter: [{function: take_first}]}]
"""
CHOOSE = """
task: fix_mc
output_type: multiple_choice
doc_to_text: "{{bug}}"
doc_to_choice: "{{choices}}"
doc_to_target: gold
metric_list: [{metric: acc}, {metric: acc_norm}]
"""


@pytest.mark.nightly
def test_fresh_files_of_the_installed_lm_eval(tmp_path: Path) -> None:
    program = shutil.which("lm_eval")
    if program is None:
        pytest.skip("lm_eval is not installed")
    docs = [{"bug": word, "answer": word, "choices": ["x", "y"], "gold": 0} for word in ("lol", "no")]
    write(tmp_path, *docs, name="docs.jsonl")
    for name, text in (("fix_gen", GENERATE), ("fix_mc", CHOOSE)):
        write(tmp_path / "tasks", text + TASK, name=f"{name}.yaml")
    options = ["--model", "dummy", "--tasks", "fix_gen,fix_mc", "--include_path", "tasks"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    command = [program, "run", *options, "--log_samples", "--output_path", "out"]
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    tables = [read_adapted(path) for path in sorted((tmp_path / "out").glob("*/samples_*.jsonl"))]
    assert [table.frame["suite"].unique().to_list() for table in tables] == [["fix_gen"], ["fix_mc"]]
    for table in tables:
        assert table.frame["passed"].null_count() == 0 and table.frame.height == 2
        assert len(table.figures) == 2
        for figure in table.figures:
            assert figure.recomputed == pytest.approx(figure.reported), figure
