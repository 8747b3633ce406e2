"""Formats and adapters of the user's own, through the configuration: what they read, and what their mistakes become."""

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import call_here
from tests.ingest.adapters.formats import SAMPLES
from touchstone.config import EvaluationConfig, load_config
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.ingest.adapters import adapter_of, why_not
from touchstone.ingest.adapters.adapter import Head
from touchstone.ingest.adapters.marks import lacking
from touchstone.ingest.discovery import Discovery, discover, read_options
from touchstone.ingest.implied_config import config_with_results
from touchstone.ingest.parallel_reading import FileToRead, Reader, read_file

# tau2-bench, as a user may map it.
TAU2 = {
    "name": "our-tau2",
    "records": "simulations[]",
    "problem": "={$.info.environment_info.domain_name}/{task_id}",
    "model": "$.info.agent_info.llm",
    "suite": "$.info.environment_info.domain_name",
    "attempt": "trial",
    "passed": "reward_info.reward",
    "at_least": 1,
    "cost": "agent_cost",
    "settings": {"generation": "$.info.agent_info.llm_args.temperature"},
}
SIMULATIONS = {
    "info": {
        "environment_info": {"domain_name": "retail"},
        "agent_info": {"llm": "acme", "llm_args": {"temperature": 0}},
    },
    "simulations": [
        {"task_id": "0", "trial": 0, "reward_info": {"reward": 1.0}, "agent_cost": 0.1},
        {"task_id": "0", "trial": 1, "reward_info": {"reward": 0.5}, "agent_cost": 0.1},
        {"task_id": "1", "trial": 0, "reward_info": None, "agent_cost": None},
    ],
}
ADAPTER = """
from touchstone.adapters import Adapter, fill_records, numbered_lines, raw_lines, table_from_records

def fill(cells, line):
    cells["oid"], cells["passed"] = line.split("|")
    cells |= {"llm_name": "ours", "iteration_id": "1"}

def read(path, options):
    return table_from_records(path, "ours", ("oid", "passed"), fill_records(numbered_lines(path), fill), raw_lines)

ADAPTER = Adapter("ours", "a file of ours", lambda head: "|" in head.text, read)
"""


def configured(folder: Path, code: str = ADAPTER, **settings: Any) -> EvaluationConfig:
    (folder / "runs").mkdir(exist_ok=True)
    (folder / "runs" / "ours.txt").write_text("a|true\nb|false\n")
    (folder / "ours.py").write_text(code)
    config = {"fixes_dir": "runs", "output_dir": "out", "adapters": ["ours.py"], **settings}
    (folder / "config.json").write_text(json.dumps(config))
    return load_config(folder / "config.json")


def only_refusal(found: Discovery) -> str:
    (refused,) = found.refused.values()
    assert "\n" not in refused
    return refused


def test_tau2_bench_through_the_configuration_alone(tmp_path: Path) -> None:
    config = configured(tmp_path, formats=[TAU2])
    path = tmp_path / "runs" / "results.json"
    path.write_text(json.dumps(SIMULATIONS))
    found = discover(config)
    assert set(found.sources) == {"ours", "acme"}
    table = found.adapter_tables[path]
    rows = table.frame.select("oid", "iteration_id", "passed", "suite", "cost_usd").rows()
    assert rows == [
        ("retail/0", "0", "true", "retail", "0.1"),
        ("retail/0", "1", "false", "retail", "0.1"),
        ("retail/1", "0", None, "retail", None),
    ]
    assert [(each.name, each.value) for each in table.settings] == [("temperature", "0")]


def test_a_changed_adapter_is_read_again(tmp_path: Path) -> None:
    def passed(code: str) -> list[bool]:
        evaluation = Evaluation(configured(tmp_path, code))
        evaluation.ingest.problems()
        evaluation.ingest.attempts()
        return evaluation.store.scan("attempts").collect()["passed"].to_list()

    assert passed(ADAPTER) == [True, False]
    assert passed(ADAPTER.replace('line.split("|")', 'line.replace("false", "true").split("|")')) == [True, True]


def test_a_worker_reads_by_the_same_adapter(tmp_path: Path) -> None:
    config = configured(tmp_path)
    item = FileToRead(tmp_path / "runs" / "ours.txt", "ours", read_options(config), config.input_limits)
    assert read_file(Reader(), pickle.loads(pickle.dumps(item))).rows["oid"].to_list() == ["a", "b"]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('line.split("|")', 'line.split("!")', "ours.py, line 5: ValueError: not enough values to unpack"),
        ('"|" in head.text', '{}["x"]', "ours.py, line 11: KeyError: 'x'"),
        ('"|" in head.text', "exit()", "ours.py, line 11: SystemExit"),
        ("    return table", "    return 1 or table", "TypeError: read returned int instead of an AdapterTable"),
        ("numbered_lines(path)", '[(1, "a|true")] * 2', "ours.py gives two records the same line"),
    ],
)
def test_a_mistake_in_an_adapter_refuses_its_file_alone(tmp_path: Path, before: str, after: str, why: str) -> None:
    config = configured(tmp_path, ADAPTER.replace(before, after))
    (tmp_path / "runs" / "gpt_fixes.csv").write_text("oid,passed\na,true\n")
    if "head" in before:
        # Asked about every file, it fails at each.
        (tmp_path / "runs" / "gpt_fixes.csv").unlink()
    found = discover(config)
    assert why in only_refusal(found)
    assert "head" in before or set(found.sources) == {"gpt"}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("x = (\n", r"the adapter failed in ours.py, line 1: SyntaxError: '\(' was never closed"),
        ("import nothing_of_this_name\n", "ours.py, line 1: ModuleNotFoundError: No module named"),
        ("x = 1\n", "ours.py: no adapter in it; assign an `Adapter` of touchstone.adapters to a name"),
        (ADAPTER.replace('"ours", "a', '"jsonl", "a'), "the format 'jsonl' of the configuration is there already"),
    ],
)
def test_an_adapter_that_cannot_be_used_stops_the_run(tmp_path: Path, code: str, why: str) -> None:
    config = configured(tmp_path, code)
    with pytest.raises(TouchstoneError, match=why):
        discover(config)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"adapters": ["other.py"]}, r"config.json: adapters: other.py: cannot be read \(No such file or directory\)"),
        ({"adapters": ["other"]}, "'other' is neither a file that ends in .py nor an installed adapter"),
        ({"formats": [{**TAU2, "problm": "x"}]}, r"formats.0: unknown key 'problm' \(did you mean 'problem'\?\)"),
        ({"formats": [{**TAU2, "problem": "a..b"}]}, r"formats.0.problem: 'a..b' is not a path: unexpected '..b'"),
        ({"formats": [TAU2, TAU2]}, "two formats are called 'our-tau2'; rename one"),
        (
            {"formats": [{"name": "x", "records": "*", "problem": "@key", "passed": "@"}]},
            "'x' names no key, so any JSON would fit; name its files in 'files'",
        ),
    ],
)
def test_a_wrong_configuration_is_one_line(tmp_path: Path, settings: dict[str, Any], why: str) -> None:
    with pytest.raises(TouchstoneError, match=why) as error:
        configured(tmp_path, **settings)
    assert "\n" not in str(error.value)


def test_an_installed_adapter_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site"
    (package / "acme-1.0.dist-info").mkdir(parents=True)
    (package / "acme-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (package / "acme-1.0.dist-info" / "entry_points.txt").write_text("[touchstone.adapters]\nacme = acme_own:ADAPTER\n")
    (package / "acme_own.py").write_text(ADAPTER)
    monkeypatch.syspath_prepend(package)
    config = configured(tmp_path, adapters=["acme"])
    assert set(discover(config).sources) == {"ours"}
    sys.modules.pop("acme_own")


def test_a_configuration_that_was_found_runs_no_python(tmp_path: Path) -> None:
    configured(tmp_path)
    found = tmp_path / "runs" / "evaluation_config.json"
    found.write_text((tmp_path / "config.json").read_text())
    with pytest.raises(TouchstoneError, match="names adapters, which are programs; if you trust it, use --config"):
        config_with_results([tmp_path / "runs"])


def test_no_file_lacks_the_marks_of_its_own_format(tmp_path: Path) -> None:
    for name, sample in SAMPLES.items():
        if sample.is_json and not sample.source:
            path = sample.copy(tmp_path / name)
            assert not lacking(adapter_of(sample.format), Head(path)).startswith("lacks"), name


def test_why_a_file_is_not_recognized(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"task_id": "a", "ok": true}\n')
    said = {adapter.format: why for adapter, why in why_not(path)}
    assert said["human-eval"] == "lacks [].passed, [].result | [].completion | [].solution"
    assert said["junit"] == "wants XML with testsuites, testsuite or testcase"
    assert all(why and "\n" not in why for why in said.values())
    shown = call_here("inspect-files", "--why", str(path), "--json")
    assert dict(json.loads(shown.stdout)[str(path)]) == said
