"""Writes the two repair benchmarks: broken Terraform modules and Python functions, and what three models made of them.

    python data/sample/make_repairs.py

Nothing here states an outcome: Touchstone is to find it. What is broken is a real file under `clones/`, what a model
answered is one under `fixes/`, with its worth in its name: `reference` and `good-…` repair the file, `bad-…`,
`endless` and `hostile-…` do not. The tables below say who answered what. A fix of a problem with a line range is the
block for these lines, else the whole file. Tokens and times are drawn from a fixed seed, so that the same bytes come
out each time and on each machine.
"""

import csv
import hashlib
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SAMPLE = Path(__file__).parent
SEED = 20250602
NESTING = 5000


class Problem(NamedTuple):
    """A broken file. `lines` are the first and last line of the block to replace, counted from 1."""

    directory: str
    filename: str
    lines: tuple[int, int] | None
    summary: str

    @property
    def slug(self) -> str:
        """The name of the folder of its fixes."""
        return self.directory.replace("/", "-")

    @property
    def project(self) -> str:
        """Whose file it is."""
        return self.directory.split("/")[0]


class Model(NamedTuple):
    """An invented model: whether its file has a column for blocks, how fast it writes, and how much."""

    name: str
    llm_name: str
    has_block_column: bool
    tokens_per_second: int
    verbosity: float


class Suite(NamedTuple):
    """One benchmark: its folder, how its files end, the column of whole files, its problems, who answered what."""

    name: str
    suffix: str
    whole: str
    problems: tuple[Problem, ...]
    answers: str


MODELS = (
    Model("atlas-large", "atlas-large-2025-02", True, 55, 1.3),
    Model("boreal-mini", "boreal-mini-v3", True, 160, 0.7),
    Model("cedar-coder", "cedar-coder-32b", False, 90, 1.0),
)

TERRAFORM = Suite(
    "terraform",
    ".tf",
    "fixed_file",
    (
        Problem("orchard/network", "main.tf", (10, 15), "Reference to undeclared input variable"),
        Problem("orchard/dns", "outputs.tf", (5, 8), "Reference to undeclared resource"),
        Problem("harbour/bucket", "main.tf", (10, 28), "Unsupported argument"),
        Problem("harbour/queue", "main.tf", (14, 27), "Unexpected end of template"),
        Problem("lantern/compute", "main.tf", (5, 25), "Missing required argument"),
        Problem("lantern/balancer", "main.tf", (5, 25), "Unsupported block type"),
        Problem("quarry/budget", "main.tf", (5, 14), "Insufficient notification blocks"),
        Problem("quarry/database", "variables.tf", (22, 26), "Duplicate variable declaration"),
        Problem("beacon/certificate", "main.tf", (9, 17), "Reference to undeclared local value"),
        Problem("meadow/schedule", "main.tf", (12, 24), "Unclosed configuration block"),
    ),
    # Each model's answers in order. After a plus: how the answer is wrapped.
    """
    orchard/network    | atlas-large | reference reference+fence good-declared reference
    orchard/network    | boreal-mini | reference bad-other-name bad-extra-argument reference+fence
    orchard/network    | cedar-coder | reference good-declared reference reference+prose
    orchard/dns        | atlas-large | reference reference good-sorted reference+cdata
    orchard/dns        | boreal-mini | reference bad-data-source reference reference
    orchard/dns        | cedar-coder | bad-module reference good-sorted bad-repeats-output
    harbour/bucket     | atlas-large | reference good-iterator reference+prose reference
    harbour/bucket     | boreal-mini | bad-as-block bad-as-block reference bad-loses-region
    harbour/bucket     | cedar-coder | reference reference+fence bad-as-block good-iterator
    harbour/queue      | atlas-large | good-encoded reference bad-consumers good-encoded+fence
    harbour/queue      | boreal-mini | bad-endif bad-marker good-encoded brackets
    harbour/queue      | cedar-coder | bad-marker reference bad-endif good-encoded
    lantern/compute    | atlas-large | reference bad-other-image reference good-dynamic
    lantern/compute    | boreal-mini | bad-argument-name reference bad-cut-short reference+prose
    lantern/compute    | cedar-coder | reference bad-argument-name reference+cdata bad-cut-short
    lantern/balancer   | atlas-large | reference good-without-interval bad-no-listener reference+fence
    lantern/balancer   | boreal-mini | reference bad-plural reference bad-second-balancer
    lantern/balancer   | cedar-coder | bad-plural reference good-without-interval reference
    quarry/budget      | atlas-large | good-two-steps reference empty reference+fence
    quarry/budget      | boreal-mini | bad-as-argument bad-no-threshold hostile-outside reference
    quarry/budget      | cedar-coder | good-two-steps bad-no-threshold reference hostile-outside
    quarry/database    | atlas-large | reference reference bad-other-duplicate reference+fence
    quarry/database    | boreal-mini | reference good-nullable bad-colon reference
    quarry/database    | cedar-coder | reference bad-word-for-type good-nullable empty
    beacon/certificate | atlas-large | reference good-inline bad-extra-block reference
    beacon/certificate | boreal-mini | reference bad-plural-locals reference+cdata bad-as-variable
    beacon/certificate | cedar-coder | good-inline unchanged reference+fence bad-as-variable
    meadow/schedule    | atlas-large | reference bad-one-line bad-no-command good-without-retry
    meadow/schedule    | boreal-mini | reference empty reference+fence good-without-retry
    meadow/schedule    | cedar-coder | reference bad-brace-at-the-end unchanged reference
    """,
)

PYTHON = Suite(
    "python",
    ".py",
    "fixed_code",
    (
        Problem("almanac/intervals", "intervals.py", (10, 18), "An interval within another one cuts it short"),
        Problem("almanac/roman", "roman.py", None, "Four and nine are not in their short form"),
        Problem("larder/lru", "lru.py", None, "Two caches share their entries"),
        Problem("papertrail/csvline", "csv_line.py", (4, 21), "Doubled quotes are lost"),
        Problem("papertrail/wrap", "wrap.py", None, "A word longer than the line never ends"),
        Problem("plumbline/average", "moving_average.py", None, "The last window is missing"),
        Problem("plumbline/rounding", "bank_rounding.py", (4, 11), "Halves are always rounded up"),
        Problem("thicket/toposort", "toposort.py", (8, 24), "A task that is needed twice is taken for a cycle"),
    ),
    """
    almanac/intervals  | atlas-large | reference reference+fence good-days reference bad-no-neighbours
    almanac/intervals  | boreal-mini | bad-sorted-by-end reference hostile-always-equal bad-syntax reference+fence
    almanac/intervals  | cedar-coder | reference good-days unchanged bad-no-neighbours reference
    almanac/roman      | atlas-large | reference good-by-digit reference+prose reference good-by-digit
    almanac/roman      | boreal-mini | bad-only-small reference reference bad-breaks-back hostile-exit
    almanac/roman      | cedar-coder | reference bad-only-small reference+cdata good-by-digit reference+fence
    larder/lru         | atlas-large | reference good-ordered reference+fence hostile-quit reference
    larder/lru         | boreal-mini | bad-cleared reference bad-forgets-use reference+fence reference
    larder/lru         | cedar-coder | reference good-ordered bad-cleared reference hostile-quit
    papertrail/csvline | atlas-large | reference bad-past-the-end good-by-module reference+cdata reference
    papertrail/csvline | boreal-mini | bad-plain-split reference good-by-module empty hostile-forged-report
    papertrail/csvline | cedar-coder | bad-any-quote reference bad-past-the-end good-by-module reference+fence
    papertrail/wrap    | atlas-large | good-pieces reference bad-long-line reference+prose good-pieces
    papertrail/wrap    | boreal-mini | bad-long-line good-pieces bad-not-full reference good-pieces
    papertrail/wrap    | cedar-coder | endless reference bad-not-full hostile-rewrites-test good-pieces
    plumbline/average  | atlas-large | reference reference good-by-end reference+fence empty
    plumbline/average  | boreal-mini | reference good-by-end bad-indent reference+fence bad-one-too-many
    plumbline/average  | cedar-coder | reference reference bad-lost-function good-by-end hostile-socket
    plumbline/rounding | atlas-large | reference good-fraction bad-float reference good-fraction+fence
    plumbline/rounding | boreal-mini | bad-half-down reference bad-float bad-undefined reference+prose
    plumbline/rounding | cedar-coder | good-fraction bad-half-down reference hostile-shadow reference
    thicket/toposort   | atlas-large | reference good-rounds bad-no-cycles bad-standard-library reference+fence
    thicket/toposort   | boreal-mini | bad-no-cycles reference good-rounds bad-missing-leaves reference
    thicket/toposort   | cedar-coder | reference bad-missing-leaves good-rounds endless reference+fence
    """,
)

SUITES = (TERRAFORM, PYTHON)

PROBLEM_COLUMNS = (
    "oid",
    "filename",
    "working_directory",
    "project_name",
    "suite",
    "language",
    "line_start",
    "line_end",
    "severity",
    "summary",
    "tests",
    "resource_schema",
    "reference_fix",
)

BLOCK = "fixed_block_content"
FIXES_COLUMNS = (
    "oid",
    "iteration_id",
    "input_tokens",
    "output_tokens",
    "duration_seconds",
    "llm_name",
    BLOCK,
    "fixed_file",
    "fixed_code",
)

FENCES = {".tf": "hcl", ".py": "python"}

WRAPPINGS: dict[str, Callable[[str, str], str]] = {
    "": lambda text, language: text,
    "fence": lambda text, language: f"```{language}\n{text}\n```",
    "prose": lambda text, language: (
        f"The fault is in this part of the file. Here is the repaired version:\n\n```{language}\n{text}\n```\n\n"
        "Nothing else had to be changed."
    ),
    "cdata": lambda text, language: f"<![CDATA[\n{text}\n]]>",
}


def write_repairs(folder: Path) -> list[Path]:
    """Write the problems and the fixes of both benchmarks into their folders, and return the paths."""
    return [path for suite in SUITES for path in write_suite(suite, folder / suite.name)]


def write_suite(suite: Suite, folder: Path) -> list[Path]:
    """Write one benchmark. Broken files and fixes are read from where this script lies."""
    folder.mkdir(parents=True, exist_ok=True)
    problems = [problem_row(suite, problem) for problem in suite.problems]
    written = [_write(folder / "problems.csv", PROBLEM_COLUMNS, problems)]
    answers = answers_of(suite)
    for model in MODELS:
        rows = [row for problem in suite.problems for row in fix_rows(suite, problem, model, answers)]
        written.append(_write(folder / f"{model.name}_fixes.csv", FIXES_COLUMNS, rows))
    return written


def answers_of(suite: Suite) -> dict[tuple[str, str], list[str]]:
    """The names of a model's answers to a problem, by directory and model."""
    table = [[cell.strip() for cell in line.split("|")] for line in suite.answers.strip().splitlines()]
    return {(directory, model): answers.split() for directory, model, answers in table}


def should_pass(answer: str) -> bool:
    """Whether an answer of this name repairs its file."""
    return answer.startswith(("reference", "good-"))


def problem_row(suite: Suite, problem: Problem) -> dict[str, str]:
    """One row of problems.csv."""
    first, last = problem.lines or ("", "")
    row = {
        "oid": oid_of(suite, problem),
        "filename": problem.filename,
        "working_directory": problem.directory,
        "project_name": problem.project,
        "suite": suite.name,
        "line_start": str(first),
        "line_end": str(last),
        "severity": "error",
        "summary": problem.summary,
        "reference_fix": whole_file(suite, problem, fix_text(suite, problem, "reference")),
    }
    if suite is PYTHON:
        return {**row, "language": "python", "tests": f"test_{problem.filename}"}
    return {**row, "resource_schema": schema_of(problem)}


def fix_rows(
    suite: Suite, problem: Problem, model: Model, answers: dict[tuple[str, str], list[str]]
) -> list[dict[str, str]]:
    """A model's attempts at one problem."""
    column, is_block = column_of(suite, problem, model)
    prompt = 350 + len(broken_text(suite, problem)) // 3
    rows = []
    for iteration, answer in enumerate(answers[problem.directory, model.name], start=1):
        name, _, wrapping = answer.partition("+")
        text = fix_text(suite, problem, name)
        if text and not is_block:
            text = whole_file(suite, problem, text)
        if is_block or wrapping:
            # Like most models, these end a block without a line break.
            text = text.removesuffix("\n")
        text = WRAPPINGS[wrapping](text, FENCES[suite.suffix])
        key = (suite.name, problem.directory, model.name, iteration)
        tokens = int(len(text) / 3.2 + model.verbosity * _between(40, 220, "thoughts", *key))
        seconds = _between(0.3, 1.1, "waiting", *key) + tokens / model.tokens_per_second
        rows.append(
            {
                "oid": oid_of(suite, problem),
                "iteration_id": str(iteration),
                "input_tokens": str(prompt),
                "output_tokens": str(tokens),
                "duration_seconds": f"{seconds:.2f}",
                "llm_name": model.llm_name,
                column: text,
            }
        )
    return rows


def column_of(suite: Suite, problem: Problem, model: Model) -> tuple[str, bool]:
    """The column for a model's answer to a problem, and whether what is in it stands for the problem's lines alone.

    `fixed_file` is always a whole file; `fixed_code` is a block where the problem has lines.
    """
    if problem.lines is not None and model.has_block_column:
        return BLOCK, True
    return suite.whole, problem.lines is not None and suite.whole == "fixed_code"


def oid_of(suite: Suite, problem: Problem) -> str:
    """An id that follows from what is broken."""
    return hashlib.sha256(broken_text(suite, problem).encode()).hexdigest()[:12]


def broken_text(suite: Suite, problem: Problem) -> str:
    """The file to be repaired."""
    return _read(SAMPLE / suite.name / "clones" / problem.directory / problem.filename)


def fix_text(suite: Suite, problem: Problem, name: str) -> str:
    """An answer: a file of `fixes/`, or one of the three that need none. A block where the problem has lines."""
    match name:
        case "empty":
            return ""
        case "unchanged":
            broken = broken_text(suite, problem)
            first, last = problem.lines or (1, broken.count("\n"))
            return "".join(broken.splitlines(keepends=True)[first - 1 : last])
        case "brackets":
            return f"locals {{\n  deep = {'[' * NESTING}{']' * NESTING}\n}}\n"
        case _:
            return _read(SAMPLE / suite.name / "fixes" / problem.slug / f"{name}{suite.suffix}")


def whole_file(suite: Suite, problem: Problem, fix: str) -> str:
    """The file with the fix in place of the problem's lines, or the fix where it has none."""
    if problem.lines is None:
        return fix
    first, last = problem.lines
    lines = broken_text(suite, problem).splitlines(keepends=True)
    return "".join([*lines[: first - 1], fix, *lines[last:]])


def schema_of(problem: Problem) -> str:
    """The provider's schema, less all that the module does not use, as compact JSON."""
    provider: dict[str, dict[str, Any]] = json.loads(_read(SAMPLE / "terraform" / "schema" / "provider_schema.json"))
    module = SAMPLE / "terraform" / "clones" / problem.directory
    text = "\n".join(_read(path) for path in sorted(module.glob("*.tf")))
    words = {"resource_schemas": "resource", "data_source_schemas": "data"}
    used = {part: set(re.findall(rf'^{word} "(\w+)"', text, re.MULTILINE)) for part, word in words.items()}
    schema = {part: {name: provider[part][name] for name in sorted(used[part])} for part in words}
    return json.dumps(schema, separators=(",", ":"))


def _between(low: float, high: float, *name: object) -> float:
    """A number of the range that depends on the name alone."""
    return low + (high - low) * random.Random("/".join(map(str, (SEED, *name)))).random()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _write(path: Path, columns: Sequence[str], rows: Sequence[dict[str, str]]) -> Path:
    """Write the rows, with those of the columns that any row has."""
    used = [column for column in columns if any(column in row for row in rows)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, used, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


if __name__ == "__main__":
    for path in write_repairs(SAMPLE):
        print(path)
