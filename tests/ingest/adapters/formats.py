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
    "swebench-submission": Sample(
        "swebench-submission", "submission/acme/results/results.json", ("submission/acme/all_preds.jsonl",), root=MADE
    ),
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
    "junit": Sample("junit", "junit/pytest.xml"),
    "junit of node": Sample("junit", "junit/node.xml"),
    "trx": Sample("trx", "test-reports/handmade_mstest.trx"),
    "nunit": Sample("nunit", "test-reports/handmade_nunit3.xml"),
    "nunit 2": Sample("nunit", "test-reports/handmade_nunit2.xml"),
    "go-test": Sample("go-test", "test-reports/handmade_go.jsonl"),
    "ctrf": Sample("ctrf", "test-reports/handmade_ctrf.json"),
    "jest": Sample("jest", "test-reports/handmade_jest.json"),
    "mocha": Sample("mocha", "test-reports/handmade_mocha.json"),
    "rspec": Sample("rspec", "test-reports/handmade_rspec.json"),
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
    "csv": Sample("csv", "plain/results.csv", root=MADE),
    "jsonl": Sample("jsonl", "plain/gpt_fixes.jsonl", root=MADE),
    "parquet": Sample("parquet", "plain/gpt_fixes.parquet", root=MADE),
}

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
