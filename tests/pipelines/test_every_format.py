"""One folder with a file of every format, beside damaged, empty and hostile ones, evaluated by one command."""

import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import PROJECT, call_here, made_once
from tests.ingest.adapters.test_openhands import INDEX
from tests.ingest.adapters.test_swe_agent import trajectory
from tests.pipelines.test_four_systems import SCYLLA, failproof_line, forgetest_result, table
from touchstone.ingest.adapters import adapters
from touchstone.vocabulary import RESULTS_FOLDER

REAL = PROJECT / "tests" / "ingest" / "adapters" / "files"
TRUNCATED = (REAL / "inspect" / "letters.eval").read_bytes()[:20_000]
DAMAGED = {
    "cut.eval": "the end of the ZIP file is missing; the copy is incomplete",
    "deep.json": "the JSON is nested too deeply",
    "empty_fixes.csv": "the file is empty; it must start with a header line",
    "entities.xml": "has a document type declaration, which is refused",
    "nothing.json": "the file is empty",
    "pointer.jsonl": "git lfs pull",
}
# Formats that never hold attempts, or whose attempts another file in this folder has.
NOT_EVALUATED = {
    "bigcode": "unknown",
    "git-lfs": "refused",
    "human-eval-problems": "ignored",
    "human-eval-samples": "ignored",
    "livecodebench-tests": "ignored",
    "lm-eval-results": "ignored",
}
# Variants of other formats, with tests of their own.
NOT_HERE = {"livecodebench-generations", "swebench-submission"}
# The cases of every model, tier and suite, how many of them are decided, and how many passed.
SUITES = """
acme                     T0      output                            9  9 4
acme/echo-a              plain   default                           9  9 3
acme/echo-a              verbose default                           9  9 9
acme/fixer               T0      default                           1  1 0
acme/fixer-7b            T0      base                             12 12 8
acme/fixer-7b            T0      fix_gen                           4  4 1
acme/fixer-7b            T0      fix_mc                            4  4 2
acme/fixer-7b            T0      plus                             12 12 4
acme/fixer-large         T0      default                           3  1 0
acme/fixer-large         T0      princeton-nlp/SWE-bench_Verified  3  3 1
acme/fixer-large         T0      tiny-fixes                       10  7 4
acme/flaky               plain   default                           9  8 3
acme/flaky               verbose default                           9  8 3
acme/reported            T0      default                           3  1 0
acme/reported            T0      princeton-nlp/SWE-bench_Verified  3  3 1
anthropic/claude-x       T0      tiny-core                         6  4 2
claude-sonnet-4-5-20250929 T0    hello                             2  2 1
claude-sonnet-4-5-20250929 T1    hello                             2  2 2
claude-x                 T0      swe-bench                         3  2 1
columns                  T0      default                           2  2 1
handmade                 T0      codegeneration                    6  6 2
handmade_ctrf            T0      default                           7  5 3
handmade_go              T0      default                           9  8 2
handmade_jest            T0      default                           8  6 3
handmade_mocha           T0      default                           6  5 2
handmade_mstest          T0      default                           9  8 3
handmade_nunit2          T0      default                           7  4 2
handmade_nunit3          T0      default                           9  6 3
handmade_rspec           T0      default                           6  4 2
human_eval               T0      Fix                               9  9 4
lines                    T1      default                           1  1 1
litellm_proxy/acme/fixer T0      princeton-nlp/SWE-bench_Verified  3  3 1
mockllm/acme/model-b     T0      fix_dict                          4  4 1
mockllm/model            T0      fix_aborts                        3  1 1
mockllm/model            T0      fix_crash                         2  2 2
mockllm/model            T0      fix_dict                          6  6 3
mockllm/model            T0      fix_letters                      15 14 8
mockllm/model            T0      fix_limits                        4  4 2
mockllm/model            T0      fix_odd                          18 12 6
native                   T0      default                           4  4 3
node                     T0      default                           4  2 1
openai/gpt-4o            T0      default                           2  2 1
prover                   T0      json_api                          1  1 1
pytest                   T0      default                          11  9 5
pytest_collect_error     T0      default                           1  1 0
scylla_model             T0      repair                            2  2 1
scylla_model             T1      repair                            1  1 1
table_one                T0      default                           1  1 1
table_two                T0      default                           2  2 1
"""


def write(path: Path, content: str | bytes | object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def put_plain_files(root: Path) -> None:
    write(root / "problems.csv", "oid,filename\na,a.tf\nb,b.tf\n")
    write(root / "native_fixes.csv", "oid,iteration_id,plausible_fix\na,1,true\na,2,true\nb,1,false\nb,2,true\n")
    write(root / "plain" / "models.csv", "oid,model,passed\na,table_one,pass\na,table_two,fail\nb,table_two,pass\n")
    write(root / "plain" / "lines.jsonl", '{"oid": "a", "iteration_id": 1, "passed": true, "tier": "T1"}\n')
    write(root / "problems-of-others.csv", "oid,filename\nz,z.tf\n")
    pl.DataFrame({"oid": ["a", "b"], "iteration_id": [1, 1], "passed": [True, False]}).write_parquet(
        root / "plain" / "columns.parquet"
    )


def put_other_systems(root: Path) -> None:
    write(root / "report.json", {"results": [forgetest_result("case-1", 1, 3, 0), forgetest_result("case-1", 2, 1, 2)]})
    write(root / "runs.csv", "".join(SCYLLA.splitlines(keepends=True)[:-1]))
    shutil.copytree(PROJECT / "tests" / "seeds" / "projectscylla", root / "scylla")
    write(root / "run_results.jsonl", failproof_line("c1", "r1", "pass", 1, 1))
    write(root / "trajectories" / "acme__tool-1" / "acme__tool-1.traj", trajectory("exit_cost", None))
    write(root / "index" / "claude-x" / "instance_results" / "swe-bench.json", INDEX)
    report = (root / "swebench" / "acme__fixer-large.run-2026-05.json").read_bytes()
    write(root / "reports" / "acme__reported.run-1.json", report)
    (root / "predictions").mkdir()
    shutil.move(root / "swebench" / "preds.jsonl", root / "predictions" / "preds.jsonl")


def put_damaged_files(root: Path) -> None:
    write(root / "cut.eval", TRUNCATED)
    write(root / "empty_fixes.csv", "")
    write(root / "deep.json", "[" * 100_000)
    write(root / "nothing.json", "")
    write(root / "entities.xml", '<!DOCTYPE x [<!ENTITY a "aaaa">]><testsuites><testsuite/></testsuites>')
    write(root / "pointer.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    os.mkfifo(root / "pipe.jsonl")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after one run, with what the command printed beside it."""

    def make(folder: Path) -> None:
        shutil.copytree(REAL, folder / "every")
        put_plain_files(folder / "every")
        put_other_systems(folder / "every")
        put_damaged_files(folder / "every")
        done = call_here("run", folder / "every", dagster=False)
        write(folder / "printed.json", [done.returncode, done.stdout, done.stderr])

    return made_once(tmp_path_factory, "every_format", make) / "every"


@pytest.fixture(scope="module")
def results(root: Path) -> Path:
    return root / RESULTS_FOLDER


def test_every_file_is_accounted_for(root: Path, results: Path) -> None:
    known = table(results, "sources")["source_file"].to_list()
    files = [path.relative_to(root) for path in root.rglob("*") if not path.is_dir()]
    inputs = [path for path in files if path.parts[0] != RESULTS_FOLDER]
    assert [str(path) for path in inputs if not {str(path), *map(str, path.parents)} & set(known)] == []


def test_every_format_is_there_and_has_its_status(results: Path) -> None:
    sources = table(results, "sources").filter(~pl.col("source_file").is_in(list(DAMAGED)))
    evaluated = set(sources.filter(pl.col("status") == "evaluated")["format"])
    assert evaluated == {"native", *(adapter.format for adapter in adapters())} - set(NOT_EVALUATED) - NOT_HERE
    others = table(results, "sources").filter(pl.col("format").is_in(list(NOT_EVALUATED)))
    assert dict(others.select("format", "status").iter_rows()) == NOT_EVALUATED


def test_tiers_suites_and_attempts(results: Path) -> None:
    # Three instances of SWE-bench are in the suite that the output of OpenHands names.
    counts = pl.col("cases", "decided", "passed").sum()
    rows = table(results, "suite_scores").group_by("model", "tier", "suite").agg(counts).sort("model", "tier", "suite")
    found = [[str(cell).replace(" ", "_") for cell in row] for row in rows.rows()]
    assert found == [line.split() for line in SUITES.strip().splitlines()]


def test_every_model_has_pass_at_k(results: Path) -> None:
    figures = table(results, "pass_at_k").filter(pl.col("k") == 1)
    assert {name.replace(" ", "_") for name in figures["model"]} == {
        line.split()[0] for line in SUITES.split("\n") if line
    }
    assert figures["pass_at_k"].null_count() == 0


def test_the_figures_that_the_tools_state_are_reproduced(results: Path) -> None:
    stated = table(results, "reported_figures").drop_nulls(["reported", "recomputed"])
    tools = {"cruxeval", "harbor", "inspect", "junit", "livecodebench", "lm-eval", "promptfoo", "swebench"}
    tools.add("test-reports")
    assert tools < {name.split("/")[0] for name in stated["source_file"]}
    assert stated.filter((pl.col("reported") - pl.col("recomputed")).abs() > 1e-9).is_empty()


@pytest.mark.parametrize(
    ("model", "suite", "figure", "printed"),
    [
        ("acme/fixer-7b", "base", "pass@1", 0.667),
        ("acme/fixer-7b", "plus", "pass@1", 0.333),
        ("human_eval", None, "pass@1", 0.4444),
        ("human_eval", None, "pass@2", 0.7778),
        ("human_eval", None, "pass@3", 1.0),
        ("litellm_proxy/acme/fixer", None, "resolved / instances", 0.3333),
    ],
)
def test_the_figures_that_the_tools_only_print_are_reproduced(
    results: Path, model: str, suite: str | None, figure: str, printed: float
) -> None:
    same = pl.col("suite").eq_missing(pl.lit(suite)), pl.col("model") == model, pl.col("figure") == figure
    assert table(results, "reported_figures").filter(*same)["recomputed"][0] == pytest.approx(printed, abs=5e-4)


def test_suite_scores_and_pass_at_k_are_the_tools_own_figures(results: Path) -> None:
    scores = {row[:2]: row[2] for row in table(results, "suite_scores").select("model", "suite", "score").rows()}
    assert scores["acme/fixer-7b", "base"] == pytest.approx(2 / 3)
    assert scores["acme/fixer-7b", "plus"] == pytest.approx(1 / 3)
    # Harbor counts trials without a verdict as 0, as the score of a suite does.
    assert scores["acme/fixer-large", "tiny-fixes"] == 0.4
    figures = table(results, "pass_at_k").filter(pl.col("k") == 1)
    assert figures.filter(pl.col("model") == "human_eval")["pass_at_k"].item() == pytest.approx(0.4444, abs=5e-5)


def test_damaged_files_are_named_in_one_line_and_the_others_go_on(root: Path, results: Path) -> None:
    code, printed, errors = json.loads((root.parent / "printed.json").read_text())
    assert code == 1 and errors.count("\n") < 20 and "Traceback" not in errors
    reasons = dict(table(results, "sources").select("source_file", "reason").iter_rows())
    told = [line for line in printed.splitlines() if line.startswith("not evaluated: ")]
    for name, reason in DAMAGED.items():
        assert reason in reasons[name] and "\n" not in reasons[name]
        assert sum(line.startswith(f"not evaluated: {name} (") and reason in line for line in told) == 1
    assert reasons["pipe.jsonl"] == "not a regular file"
    assert "results were published despite a failed check" in printed
