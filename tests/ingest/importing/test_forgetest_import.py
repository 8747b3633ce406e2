"""Importing forgetest's eval sets: a crate per case with its tests, and the code of reports and outputs as attempts."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.conftest import PROJECT, Command
from tests.ingest.importing.test_human_eval_import import rows
from tests.validation.validators.test_rust import needs_cargo
from touchstone.errors import TouchstoneError
from touchstone.evaluation import evaluate
from touchstone.ingest.importing.forgetest import import_forgetest

SEED = PROJECT / "tests" / "seeds" / "forgetest"
EVAL_SET, REPORT = SEED / "rust-small.toml", SEED / "report.json"


def test_cases_and_the_code_of_a_report(tmp_path: Path, touchstone: Command) -> None:
    folder = tmp_path / "evaluation"
    shown = touchstone("import", "forgetest", "--eval-set", EVAL_SET, "--samples", REPORT, folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[:2] == [f"{folder}: 2 problems", "  claude-sonnet-4: 4 attempts"]
    problems = rows(folder / "problems.csv")
    assert [(row["oid"], row["suite"], row["filename"]) for row in problems] == [
        ("clamp_sum", "rust-small", "src/lib.rs"),
        ("counter", "rust-small", "src/lib.rs"),
    ]
    assert "fn clamps()" in (folder / "clones" / "clamp_sum" / "src" / "lib.rs").read_text()
    attempts = rows(folder / "claude-sonnet-4_fixes.csv")
    # What was measured elsewhere is measured again; the truncated struct lacks three functions of four symbols.
    assert not {"passed", "compiled", "tests_passed"} & set(attempts[0])
    assert [row["structure_score"] for row in attempts] == ["1.0", "1.0", "1.0", "0.25"]
    assert (attempts[0]["cost_usd"], attempts[0]["latency_ms"]) == ("0.0017", "1900")


@needs_cargo
@pytest.mark.nightly
def test_attempts_are_judged_as_forgetest_judged_them(tmp_path: Path) -> None:
    import_forgetest([EVAL_SET], [REPORT], [], tmp_path / "evaluation")
    config = tmp_path / "evaluation" / "evaluation_config.json"
    weights = {"compilation": 0.3, "tests": 0.45, "structure": 0.15, "lint": 0.1}
    config.write_text(json.dumps(json.loads(config.read_text()) | {"scoring": {"code": weights}}))
    results = evaluate(config)
    found = results["outcomes"].sort("oid", "iteration_id").select("passed", "compiled", "tests_passed", "tests_failed")
    assert found.rows()[:3] == [(True, True, 2, 0), (False, True, 1, 1), (True, True, 1, 0)]
    assert found.row(3)[:2] == (False, False)
    scores = results["attempt_scores"].sort("oid", "iteration_id")
    expected = [0.3 + 0.45 * tests + 0.15 + 0.1 * lint for tests, lint in ((1, 1), (0.5, 1))]
    assert scores["code_score"].to_list()[:2] == pytest.approx(expected)
    assert scores["code_score"][3] == 0


def test_problems_alone_dependencies_and_cases_without_tests(tmp_path: Path, touchstone: Command) -> None:
    text = EVAL_SET.read_text() + '\n[[cases]]\nid = "free"\nprompt = "Write anything."\n'
    text = text.replace(
        'id = "counter"\n', 'id = "counter"\ndependencies = [{ name = "tokio", version = "1", features = ["full"] }]\n'
    )
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "a.toml").write_text(text)
    shown = touchstone("import", "forgetest", "--eval-set", tmp_path / "sets", tmp_path / "evaluation")
    assert shown.stderr.splitlines() == [
        "note: cases depend on tokio: run `cargo vendor` and set validation.rust.vendor_dir in the config",
        "note: left out, because there are no tests: 1 of 3 cases",
    ]
    assert "There are no attempts yet" in shown.stdout
    manifest = tomllib.loads((tmp_path / "evaluation" / "clones" / "counter" / "Cargo.toml").read_text())
    assert manifest["dependencies"] == {"tokio": {"version": "1", "features": ["full"]}}


def test_plain_outputs_of_a_case(tmp_path: Path) -> None:
    file = tmp_path / "m_outputs.jsonl"
    file.write_text(json.dumps({"oid": "clamp_sum", "iteration_id": 1, "output": "```rust\nfn clamp_sum() {}\n```"}))
    evaluation, _ = import_forgetest([EVAL_SET], [file, REPORT], [], tmp_path / "evaluation")
    assert {model: len(each) for model, each in evaluation.fixes.items()} == {"m": 1, "claude-sonnet-4": 4}
    assert evaluation.fixes["m"][0]["structure_score"] == "1.0"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("[eval_set]", "[set]"), r"not an eval set of forgetest"),
        (('id = "counter"', 'id = "clamp_sum"'), r"the case 'clamp_sum' is there twice"),
        (('id = "counter"', "id = 7"), r"case 2: it needs an id of at most"),
        (('"rust"', '"python"'), r"case 1: the language is 'python'; only cases in Rust"),
        (('["clamp_sum"]', '"clamp_sum"'), r"case 1: expected_functions is not a list of texts"),
        (('id = "counter"', 'id = "counter"\ndependencies = [{ name = "../x" }]'), r"a dependency needs a name"),
        (("[eval_set]", "[eval_set"), r"not valid TOML"),
        (("test_file", "other_file"), r"no case has tests"),
    ],
)
def test_what_is_no_eval_set_is_one_line(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    (tmp_path / "a.toml").write_text(EVAL_SET.read_text().replace(*change))
    with pytest.raises(TouchstoneError, match=reason):
        import_forgetest([tmp_path / "a.toml"], [], [], tmp_path / "evaluation")
    assert not (tmp_path / "evaluation").exists()
