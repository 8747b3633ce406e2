"""Every file in `fixes_dir` is evaluated, or named with the reason why not."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import Folder
from touchstone.config import load_config
from touchstone.errors import TouchstoneError
from touchstone.ingest.dialect import ID_NAMES
from touchstone.ingest.discovery import Discovery, discover
from touchstone.tables import TABLES

ROW = "oid,iteration_id,plausible_fix\na,1,true\n"
FAILPROOF = '{"case_id": "c", "model_id": "%s", "classification": {"primary": "pass"}, "timestamp_utc": "2026-01-01"}\n'


def found(folder: Folder, **keys: object) -> Discovery:
    return discover(load_config(folder.configure(**keys)))


def put(folder: Folder, name: str, text: str | bytes = ROW) -> Path:
    path = folder.root / "fixes" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def why(discovery: Discovery, file: str) -> tuple[str, str]:
    (each,) = [each for each in discovery.not_evaluated if each.file == file]
    return each.status, each.reason


def test_models_come_from_file_names(folder: Folder) -> None:
    folder.fixes("gemini_synthetic", ROW)
    folder.fixes("chatgpt4.1", ROW)
    assert sorted(found(folder).sources) == ["chatgpt4.1", "gemini", "m"]


@pytest.mark.parametrize(
    ("name", "model", "column"),
    [
        ("claude.csv", "claude", "plausible_fix"),
        ("claude_outcomes.csv", "claude", "is_fixed"),
        ("claude_synthetic_outcomes.csv", "claude", "fixed_file"),
        ("claude_synthetic_fixes_outcomes.csv", "claude", "fixed_code"),
        ("llm_fullfile_repair_results_gemini.csv", "gemini", "classification"),
        ("llm_fullfile_repair_results_gemini_fixes.csv", "gemini", "passed"),
        ("claude_FIXES.CSV", "claude", "passed"),
        ("gpt-4.1_results.csv", "gpt-4.1_results", "passed"),
    ],
)
def test_any_csv_with_the_required_columns_is_a_fixes_file(folder: Folder, name: str, model: str, column: str) -> None:
    put(folder, name, f"oid,iteration_id,{column}\na,1,\n")
    discovery = found(folder)
    assert {model: [source.path.name for source in sources] for model, sources in discovery.sources.items()} == {
        model: [name],
        "m": ["m_fixes.csv"],
    }
    assert discovery.not_evaluated == []


def test_the_problem_key_is_a_required_column(folder: Folder) -> None:
    put(folder, "claude.csv", ROW.replace("oid", "case"))
    assert "claude" in found(folder, problem_key="case", problems_csv="elsewhere.csv").sources
    status, reason = why(found(folder), "claude.csv")
    found_columns = "missing column oid (found: case, iteration_id, plausible_fix)"
    others = f"; {' or '.join(ID_NAMES)} will do, if there is only one of them"
    assert (status, reason) == ("unknown", f"{found_columns}{others}; `columns` in the configuration renames others")


def export(name: str) -> str:
    return ",".join(TABLES[name].dtypes) + "\n"


NOT_READ: dict[str, tuple[str, str | bytes, str]] = {
    "notes.csv": ("unknown", "a,b\n1,2\n", "missing column oid (found: a, b)"),
    "both.csv": ("unknown", "oid;passed|note\na;1|x\n", "missing column oid (found: oid;passed|note)"),
    "scored.csv": ("unknown", "oid,iteration_id,score\na,1,1\n", "no outcome and no fix (found: "),
    "empty.csv": ("unknown", "", "the file is empty"),
    "damaged.csv": ("unknown", b"\xc3\xa9,\xe9,iteration_id\n", "not UTF-8 (at byte 3)"),
    "twice.csv": ("unknown", "oid,oid\n", "the column 'oid' appears twice"),
    "more_problems.csv": ("unknown", "oid,filename\na,b\n", "a list of problems, but not the one in use"),
    "other.json": ("unknown", '{"evals": []}', "not in a known format"),
    "lists.json": ("unknown", '[[[{"a": 1}]]]', "not in a known format"),
    "deep.json": ("unknown", "[" * 100_000, "the JSON is nested too deeply"),
    "broken.json": ("unknown", "{", "broken JSON at line 1 column 2"),
    "lines.jsonl": ("unknown", "1\n", "not in a known format"),
    "other16.json": ("unknown", '{"evals": []}'.encode("utf-16"), "UTF-16; save it as UTF-8"),
    "other16.jsonl": ("unknown", '{"a": 1}'.encode("utf-16-le"), "UTF-16; save it as UTF-8"),
    "nothing.xml": ("unknown", "", "the file is empty"),
    "nothing.parquet": ("unknown", "", "the file is empty"),
    "prolog.xml": ("unknown", '<?xml version="1.0"?>\n<!-- no tests -->\n', "the XML has no element"),
    "page.xml": ("unknown", "<page/>", "not in a known format"),
    "claude.tsv": ("unknown", "a\tb\n", "missing column oid (found: a, b)"),
    "claude.txt.gz": ("unknown", b"\x1f\x8b\x08", "the gzip data is cut off"),
    "claude.xlsx": ("unknown", b"PK", ".xlsx files are not read; save it as CSV"),
    "claude_fixes.csv.bak": ("unknown", ROW, "it looks like a fixes file, but its name does not end in .csv"),
    "claude_fixes": ("unknown", ROW.replace(",", "\t"), "it looks like a fixes file, but its name does not end"),
    "README.md": ("ignored", "# oid, iteration_id", "not a data file"),
    "make.py": ("ignored", "import csv\n", "not a data file"),
    ".DS_Store": ("ignored", b"\x00", "a hidden file"),
    "._m_fixes.csv": ("ignored", b"\x00\x05", "a hidden file"),
    ".hidden_fixes.csv": ("ignored", ROW, "a hidden file"),
    "config.json": ("ignored", json.dumps({"fixes_dir": ".", "output_dir": "o"}), "a configuration of touchstone"),
    "old/m_fixes.csv": ("ignored", ROW, "a folder: files inside it are not read"),
    "summary_pass_at_k.csv": ("output", "LLM,pass@1,pass@5,attempted,problems\nm,0.5,0.5,1,1\n", "never read back"),
    "m_pass_at_k.csv": ("output", "LLM,pass@1\nm,0.5\n", "never read back"),
    "results.csv": ("output", export("pass_at_k"), "never read back"),
    "m_outcomes.csv": ("output", export("outcomes"), "never read back"),
    "scores.csv": ("output", export("attempt_scores"), "never read back"),
    "attempts.csv": ("output", export("attempts").replace("\n", ",own_column\n"), "never read back"),
}


def test_what_is_not_evaluated_is_named_with_the_reason(folder: Folder) -> None:
    for name, (_, content, _) in NOT_READ.items():
        put(folder, name, content)
    discovery = found(folder)
    assert list(discovery.sources) == ["m"]
    said = {each.file: (each.status, each.reason) for each in discovery.not_evaluated}
    assert said.keys() == {name.split("/")[0] for name in NOT_READ} and len(discovery.not_evaluated) == len(said)
    for name, (expected, _, part) in NOT_READ.items():
        status, reason = said[name.split("/")[0]]
        assert status == expected and part in reason and str(folder.root) not in reason, name


def test_links_that_lead_nowhere_and_pipes_are_not_waited_for(folder: Folder) -> None:
    for name in ("gone.json", "gone.csv"):
        (folder.root / "fixes" / name).symlink_to(folder.root / "nowhere")
    for name in ("pipe.csv", "pipe"):
        os.mkfifo(folder.root / "fixes" / name)
    discovery = found(folder)
    assert [why(discovery, name) for name in ("gone.json", "gone.csv")] == [("unknown", "no such file")] * 2
    assert [why(discovery, name) for name in ("pipe.csv", "pipe")] == [("ignored", "not a regular file")] * 2


def test_a_file_of_another_system_without_a_usable_row_is_refused(folder: Folder) -> None:
    put(folder, "results.jsonl", '{"case_id": "c", "model_id": "", "classification": {}}\n')
    status, reason = why(found(folder), "results.jsonl")
    assert status == "refused" and reason.endswith("no row names a usable model (line 1: the model_id is missing)")


def test_the_problems_file_may_have_any_name(folder: Folder) -> None:
    (folder.root / "fixes" / "problems.csv").rename(folder.root / "fixes" / "cases.txt")
    assert found(folder, problems_csv="fixes/cases.txt").not_evaluated == []


def test_the_output_folder_may_lie_inside_the_fixes_or_be_the_same(folder: Folder) -> None:
    (folder.root / "fixes" / "results").mkdir()
    inside = found(folder, output_dir="fixes/results")
    assert inside.not_evaluated == []
    store = folder.root / "fixes" / ".store" / "current"
    store.mkdir(parents=True)
    (store / "export.csv").write_text(ROW)
    (folder.root / "fixes" / "export.csv").symlink_to(".store/current/export.csv")
    same = found(folder, output_dir="fixes")
    assert ([each.file for each in same.not_evaluated], list(same.sources)) == (["results"], ["m"])


def test_models_are_matched_by_substring_and_the_others_are_named(folder: Folder) -> None:
    folder.fixes("chatgpt4.1", ROW)
    folder.fixes("chatgpt5", ROW)
    discovery = found(folder, models=["gpt"])
    assert sorted(discovery.sources) == ["chatgpt4.1", "chatgpt5"]
    assert why(discovery, "m_fixes.csv") == ("left_out", "'models' in the config does not name m")
    assert sorted(found(folder, models=["4.1", "m"]).sources) == ["chatgpt4.1", "m"]


def test_models_of_other_systems_are_left_out_one_by_one(folder: Folder) -> None:
    put(folder, "results.jsonl", FAILPROOF % "prover" + FAILPROOF % "other")
    discovery = found(folder, models=["m", "prover"])
    assert sorted(discovery.sources) == ["m", "prover"]
    assert [(each.file, each.model, each.status) for each in discovery.not_evaluated] == [
        ("results.jsonl", "other", "left_out")
    ]


def test_data_type_goes_by_file_name(folder: Folder) -> None:
    folder.fixes("gemini_synthetic", ROW)
    synthetic, real = found(folder, data_type="synthetic"), found(folder, data_type="real")
    assert (list(synthetic.sources), list(real.sources)) == (["gemini"], ["m"])
    assert why(synthetic, "m_fixes.csv") == (
        "left_out", "data_type is 'synthetic' and the file's name has no 'synthetic' in it"
    )  # fmt: skip
    assert why(real, "gemini_synthetic_fixes.csv")[0] == "left_out"


def test_no_file_matches(folder: Folder) -> None:
    with pytest.raises(
        TouchstoneError, match=r"no fixes file matches models=\['zzz'\] and data_type='all'; there are: m"
    ):
        found(folder, models=["zzz"])


def test_no_folder_and_no_files(folder: Folder) -> None:
    with pytest.raises(TouchstoneError, match="no such folder; set 'fixes_dir'"):
        found(folder, fixes_dir="nowhere")
    (folder.root / "empty").mkdir()
    with pytest.raises(TouchstoneError, match=r"no fixes file; expected <model>_fixes\.csv"):
        found(folder, fixes_dir="empty")
    (folder.root / "empty" / "claude.csv").write_text(ROW.replace("oid", "key"))
    with pytest.raises(TouchstoneError, match=r"no fixes file \(claude\.csv: missing column oid \(found: key, "):
        found(folder, fixes_dir="empty")


@pytest.mark.parametrize(
    ("file", "model"), [("-rf", "-rf"), ("a b", "a b"), ("ü", "ü"), ("openai%2Fgpt-4o", "openai/gpt-4o"), ("9%", "9%")]
)
def test_models_keep_their_names(folder: Folder, file: str, model: str) -> None:
    folder.fixes(file, ROW)
    assert sorted(found(folder).sources) == sorted(["m", model])


@pytest.mark.parametrize("name", ["", " a", "a\nb", "a...b", "x" * 201])
def test_names_that_are_not_allowed(folder: Folder, name: str) -> None:
    folder.fixes(name, ROW)
    discovery = found(folder)
    assert list(discovery.sources) == ["m"]
    assert "is not allowed: " in discovery.refused[f"{name}_fixes.csv"]


def test_of_two_files_with_the_same_bytes_one_is_read(folder: Folder) -> None:
    put(folder, "n_fixes_outcomes.csv")
    put(folder, "n_fixes.csv")
    discovery = found(folder)
    assert [source.name for source in discovery.sources["n"]] == ["n_fixes.csv"]
    assert why(discovery, "n_fixes_outcomes.csv") == ("left_out", "a copy of n_fixes.csv")


@pytest.mark.parametrize("other", ["m_synthetic_fixes.csv", "m.csv", "m_outcomes.csv"])
def test_two_files_for_one_model_are_not_mixed(folder: Folder, other: str) -> None:
    put(folder, other)
    folder.fixes("n", ROW)
    discovery = found(folder)
    assert list(discovery.sources) == ["n"]
    for name in ("m_fixes.csv", other):
        assert "both speak for the model 'm'" in discovery.refused[name]


def test_every_table_with_attempts_is_recognised_as_an_export() -> None:
    per_attempt = {name for name, table in TABLES.items() if "iteration_id" in table.dtypes}
    validated = {"validator_noise", "outcomes", "rulings", "validated_fixes"}
    assert per_attempt == {"attempts", *validated, "attempt_scores", "audit_flags"}
    assert all("model" in TABLES[name].dtypes for name in per_attempt)


def test_a_file_that_was_read_for_another_is_no_unknown_one(folder: Folder) -> None:
    put(folder, "gpt/instance_results/swe-bench.json", '{"a": {"cost": 1, "resolved": true}}')
    put(folder, "gpt/metadata.json", '{"model": "GPT"}')
    put(folder, "gpt/notes.json", '{"model": "GPT"}')
    discovery = found(folder, inputs=["gpt"])
    assert list(discovery.sources) == ["GPT"]
    assert why(discovery, "gpt/metadata.json") == ("ignored", "read for the results of another file")
    assert why(discovery, "gpt/notes.json")[0] == "unknown"


def test_folders_of_another_tool_within_a_source_are_named(folder: Folder) -> None:
    """Runs of Terminal-Bench make their folder one source: jobs of Harbor beside them would vanish."""
    files = Path(__file__).parent / "adapters" / "files"
    runs = Path(shutil.copytree(files / "terminal-bench" / "runs", folder.root / "fixes" / "runs"))
    for name in ("job-1", "job-2"):
        shutil.copytree(files / "harbor" / "jobs" / "2026-05-01__09-00-00", runs / name)
    status, reason = why(found(folder, inputs=["runs"]), "runs/job-1")
    assert (status, "its folder is read as Terminal-Bench results only; name it" in reason) == ("unknown", True)
