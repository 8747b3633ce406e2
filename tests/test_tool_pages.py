"""The recipes in docs/tools, run on small files of each tool: the page shows what the command prints.

Of a `console` block, every line that starts with `$ touchstone` is run, and what follows is compared with its output,
where a line with `…` stands for any lines. Other blocks are not run.
"""

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT, call_here, nightly_but

pytestmark = pytest.mark.services

PAGES = PROJECT / "docs" / "tools"
FILES = PROJECT / "tests" / "ingest" / "adapters" / "files"
# Files of the systems that Touchstone replaces, made from their documents.
SEEDS = PROJECT / "tests" / "seeds"
COLUMNS = 130
# The files of each page: where they are in the folder in which its commands are run.
SAMPLES = {
    "aider": {"../made/aider": "tmp.benchmarks"},
    "bigcodebench": {"../made/bigcodebench": "bcb_results", "../made/multipl-e": "."},
    "cruxeval": {"cruxeval/handmade_scored_acme_temp0.8_output.json": "scored_acme_temp0.8_output.json"},
    "deepeval": {"deepeval/test_run.json": ".deepeval/.latest_run_full.json"},
    "evalplus": {"evalplus": "."},
    "failproof": {"seeds/failproof": "."},
    "forgetest": {"seeds/forgetest": "."},
    "harbor": {"harbor/jobs": "jobs"},
    "helm": {"../made/helm": "runs", "../made/nemo-skills/acme-fixer": "acme-fixer"},
    "human-eval": {"human_eval": "gpt-4"},
    "inspect": {"inspect/dict.eval": "logs/fix_model-a.eval", "inspect/dict_model-b.eval": "logs/fix_model-b.eval"},
    "junit": {"junit/pytest.xml": "reports/gpt-4o.xml"},
    "livecodebench": {
        f"livecodebench/handmade_Scenario.codegeneration_3_0.2_{end}.json": (
            f"output/GPT-4o/Scenario.codegeneration_3_0.2_{end}.json"
        )
        for end in ("eval", "eval_all")
    },
    "lm-eval": {"lm-eval/acme__fixer-7b": "out/acme__fixer-7b"},
    "openhands": {
        f"openhands/handmade_output{end}.jsonl": f"infer/output{end}.jsonl" for end in ("", ".swebench_eval")
    },
    "projectscylla": {"seeds/projectscylla": "."},
    "promptfoo": {"promptfoo/output.json": "output.json"},
    "swebench": {
        "swebench/logs": "harness/logs",
        "swebench/acme__fixer-large.run-2026-05.json": "harness/acme__fixer-large.run-2026-05.json",
        "../made/mini-swe-agent": "mini",
    },
    "tau-bench": {"../made/tau2-bench": "submission", "../made/tau-bench": "results"},
    "terminal-bench": {"terminal-bench/runs": "runs"},
    "test-reports": {
        "test-reports/handmade_jest.json": "reports/gpt-4o.json",
        "test-reports/handmade_mstest.trx": "reports/qwen.trx",
        "test-reports/handmade_go.jsonl": "reports/sonnet.json",
    },
    "tf-repair-evaluator": {
        "seeds/tf-repair-evaluator/problems": "problems",
        "seeds/tf-repair-evaluator/gemini_synthetic_fixes.csv": "llms_fixes_results/gemini_synthetic_fixes.csv",
        "seeds/tf-repair-evaluator/evaluation_config.json": "evaluation/evaluation_config.json",
    },
}


def recipes(page: Path) -> Iterator[tuple[list[str], list[str]]]:
    """The commands on a page, each with the lines that it is said to print."""
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
            command, *printed = part.rstrip().splitlines() or [""]
            if command.startswith("$ touchstone "):
                yield shlex.split(command.removeprefix("$ touchstone ")), printed


def pattern_of(printed: list[str]) -> str:
    return "".join(r"(?:.*\n)*?" if line == "…" else re.escape(line) + r"\n" for line in printed)


def prepare(name: str, folder: Path) -> None:
    for source, target in SAMPLES[name].items():
        place = folder / target
        origin = SEEDS / source.removeprefix("seeds/") if source.startswith("seeds/") else FILES / source
        if origin.is_dir():
            shutil.copytree(origin, place, dirs_exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(origin, place)


def output_of(arguments: list[str]) -> str:
    done = call_here(*arguments, columns=COLUMNS, terminal=True)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith(("note: ", "warning: "))]
    return "".join(f"{line.rstrip()}\n" for line in [*done.stdout.splitlines(), *told])


# Logs, a folder of folders, JSON lines, and the systems that Touchstone replaces.
BY_DAY = ("inspect", "swebench", "human-eval", "failproof", "forgetest", "projectscylla", "tf-repair-evaluator")


@pytest.mark.parametrize("name", nightly_but(BY_DAY, SAMPLES))
def test_a_page_shows_what_its_commands_print(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(name, tmp_path)
    monkeypatch.chdir(tmp_path)
    found = list(recipes(PAGES / f"{name}.md"))
    assert found and all(printed for _, printed in found)
    for arguments, printed in found:
        shown = output_of(arguments)
        assert re.fullmatch(pattern_of(printed), shown), f"{' '.join(arguments)} prints:\n{shown}"


def test_every_page_has_its_files_and_is_in_the_index() -> None:
    pages = {page.stem for page in PAGES.glob("*.md")} - {"README"}
    assert pages == set(SAMPLES)
    linked = set(re.findall(r"\]\(([\w-]+)\.md", (PAGES / "README.md").read_text()))
    assert linked == pages
