"""Names with markup, formulas, escapes and overrides show as text wherever a command writes them.

The report, the dashboard and the Dagster UI are looked at in a browser; here it is files and the terminal.
"""

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from tests.conftest import Command, Folder, made_once
from touchstone.evaluation import Evaluation, load_results, run

HOSTILE = {
    "html": "<b onclick=x>bold</b>",
    "script": "<script>alert(1)</script>",
    "formula": "=cmd('calc')",
    "plus": "+1+1",
    "minus": "-2",
    "at": "@SUM(1)",
    "tab": "\t=1",
    "override": "abc\u202egnp.exe",
    "isolate": "a\u2066b\u2069",
    "ansi": "\x1b[31mred\x1b[0m",
    "title": "\x1b]0;pwned\x07",
    "emoji": "👩‍🔬🧪👍🏽",
    "latex": r"\input{secret} $x$ 50% a_b #1 {y} ~^&",
    "markdown": "[link](http://evil.example) |`code`| *b* ![i](x)",
    # Fewer than 200 characters, but more bytes.
    "long": "x" * 100 + "模型" * 20,
    "command": "::error::pwned",
    "quotes": "a\"b'c,d;e",
}
# Model names that cannot be shown are refused; these can.
MODELS = ("<script>alert(1)</script>", "=cmd('calc')", "👍🏽|`x`", "@SUM(1)", r"\input{x}_$1$")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
TABLES = ("problems", "outcomes", "suite_scores", "pass_at_k", "model_comparison", "sources", "quarantine")


def _write(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def make(root: Path) -> None:
    folder, texts = Folder(root), list(HOSTILE.values())
    folder.configure(k_values=[1])
    fixes = root / "fixes"
    fixes.mkdir(exist_ok=True)
    _write(fixes / "problems.csv", [["oid", "filename", "suite"], *([text, text, text] for text in texts)])
    for place, model in enumerate(MODELS):
        rows = [
            {"oid": text, "llm_name": model, "iteration_id": "1", "tier": HOSTILE["script"], "passed": bool(place)}
            for text in texts
        ]
        (fixes / f"{place}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (fixes / "<img src=x>\x1b[31m\u202e_fixes.csv").write_text("a,b\n1,2\n")
    (fixes / "=cmd_fixes.csv").write_text(f"oid,iteration_id,passed\n=nothing,1,{HOSTILE['formula']}\n")
    run(Evaluation.load(folder.config))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of an evaluation with hostile names, to be read only."""
    return made_once(tmp_path_factory, "hostile-names", make) / "out"


def cells(text: str) -> list[str]:
    return [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]


def is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"[+-]?(\d+(\.\d+)?(e[+-]\d+)?|inf)", cell))


def test_they_are_all_evaluated(results: Path) -> None:
    stored = load_results(results)
    assert set(stored["problems"]["oid"]) == set(HOSTILE.values())
    assert set(stored["model_statistics"]["model"]) >= set(MODELS)


def test_no_cell_of_a_csv_file_is_a_formula(results: Path, touchstone: Command) -> None:
    texts = {
        str(path): path.read_text() for path in [results / "summary_pass_at_k.csv", *(results / "csv").rglob("*.csv")]
    }
    assert len(texts) > len(MODELS)
    texts |= {name: touchstone("export", name, "--data", results).stdout for name in TABLES}
    texts["sql"] = touchstone("sql", "SELECT * FROM problems", "--data", results, "--format", "csv").stdout
    for name, text in texts.items():
        run = [cell for cell in cells(text) if cell.startswith(FORMULA) and not is_number(cell)]
        assert not run, (name, run)
    assert f"'{HOSTILE['formula']}" in cells(texts["problems"]) and HOSTILE["emoji"] in cells(texts["problems"])


@pytest.mark.parametrize("table", TABLES)
def test_markdown_has_no_markup_of_theirs(results: Path, touchstone: Command, table: str) -> None:
    text = touchstone("export", table, "--data", results, "--format", "markdown").stdout
    assert not UNPRINTABLE.search(text)
    unescaped = re.sub(r"\\.", "", text.replace("<br>", ""))
    assert not re.search(r"[<>`*\[\]]|!\[", unescaped), "every special character is escaped"
    assert len({line.count("|") for line in unescaped.splitlines()}) == 1, "every row has as many cells"
    assert "http://" not in text


@pytest.mark.parametrize("table", TABLES)
def test_latex_runs_no_command_of_theirs(results: Path, touchstone: Command, table: str) -> None:
    text = touchstone("export", table, "--data", results, "--format", "latex").stdout
    assert not UNPRINTABLE.search(text)
    ours = r"\\(begin|end|toprule|midrule|bottomrule|usepackage|textbackslash|text\w+|times|infty|[&%$#_{}\\])"
    body = re.sub(r"\$[-\d.]*( \\times 10\^\{-?\d+\}|\\infty)?\$", "", text)
    assert not re.search(r"\\", re.sub(ours, "", body)), "every backslash starts a command of ours"
    rows = body.split("\\midrule\n")[1].split("\\bottomrule")[0]
    assert not re.search(r"(?<!\\)[%$#_~^]", rows)


COMMANDS = {
    "sql": ["sql", "SELECT * FROM problems", "--data", "OUT"],
    "sql csv": ["sql", "SELECT * FROM problems", "--data", "OUT", "--format", "csv"],
    "sql json": ["sql", "SELECT * FROM problems", "--data", "OUT", "--format", "json"],
    "compare": ["compare", "OUT", "OUT"],
    "pass-at-k": ["pass-at-k", "FIXES"],
    "pass-at-k --json": ["pass-at-k", "FIXES", "--json"],
    "inspect-files": ["inspect-files", "FIXES"],
    "inspect-files --json": ["inspect-files", "FIXES", "--json"],
    "snapshots": ["snapshots", "--data", "OUT"],
    "tables": ["tables", "--data", "OUT"],
    "plan": ["plan", "--detect", "0.3", "--data", "OUT", "--model", MODELS[0], "--against", "gone\x1b[31m"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_on_the_terminal_is_controlled_by_them(results: Path, touchstone: Command, name: str) -> None:
    root = results.parent
    places = {"OUT": results, "FIXES": root / "fixes"}
    line = [places.get(part, part) for part in COMMANDS[name]]
    done = touchstone(*line, terminal=True, columns=80)
    assert done.stdout or done.stderr.startswith("error: ")
    assert_harmless(done.stdout + done.stderr)


def assert_harmless(seen: str) -> None:
    assert not UNPRINTABLE.search(seen), repr(seen)
    assert not re.search(r"^\s*::", seen, re.MULTILINE), "no command to a CI system"


@pytest.mark.nightly
def test_nor_is_what_a_run_shows(touchstone: Command, tmp_path: Path) -> None:
    make(tmp_path / "evaluation")
    config = tmp_path / "evaluation" / "evaluation_config.json"
    done = touchstone("run", "--config", config, "--force", terminal=True, columns=80)
    assert "alert(1)" in done.stdout
    assert_harmless(done.stdout + done.stderr)


def test_they_reach_programs_as_they_are(results: Path, touchstone: Command) -> None:
    rows = json.loads(touchstone("sql", "SELECT oid FROM problems", "--data", results, "--format", "json").stdout)
    assert {row["oid"] for row in rows} == set(HOSTILE.values())
    found = json.loads(touchstone("pass-at-k", results.parent / "fixes", "--json").stdout)
    assert {row["model"] for row in found} >= set(MODELS)


@pytest.mark.parametrize("format", ["markdown", "junit", "sarif", "json", "text"])
def test_a_comparison_shows_them_as_text(results: Path, touchstone: Command, format: str, tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    scores = load_results(results)["attempt_scores"].filter(pl.col("model") == MODELS[1])
    for folder, rate in ((tmp_path / "before", 1.0), (lost, 0.0)):
        (folder / "tables" / "attempt_scores").mkdir(parents=True)
        changed = scores.with_columns(pass_rate=pl.lit(rate))
        changed.write_parquet(folder / "tables" / "attempt_scores" / "all.parquet")
    done = touchstone("compare", tmp_path / "before", lost, "--format", format)
    assert done.returncode == 0, done.stderr
    match format:
        case "json":
            assert {case["oid"] for case in json.loads(done.stdout)["cases"]} == set(HOSTILE.values())
        case "sarif":
            assert len(json.loads(done.stdout)["runs"][0]["results"]) == len(HOSTILE)
        case "junit":
            assert len(ElementTree.fromstring(done.stdout).findall(".//failure")) == len(HOSTILE)
        case _:
            assert not UNPRINTABLE.search(done.stdout)
    if format == "markdown":
        assert "<script" not in done.stdout.replace(r"\<", "") and "http://" not in done.stdout
