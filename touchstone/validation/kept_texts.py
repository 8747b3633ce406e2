"""What a run keeps of its validations so that people can look at one: the original files, diffs, and tests by name.

It makes the tables `problem_files` and `validated_fixes`, and what `outcomes` says of files on the judge's side. A kept
text has at most `validation.kept_characters` characters, so what is kept grows with the number of problems and
validated fixes alone.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from touchstone.config.validation import ValidationSettings
from touchstone.validation.files.working_copy import is_executable
from touchstone.validation.fixes.apply_fix import AppliedFix, NotApplied
from touchstone.validation.fixes.line_diff import diff_lines
from touchstone.validation.judging.verdicts import Verdict
from touchstone.validation.protocol import Report
from touchstone.validation.targets import NoTarget, Target

_MAX_TESTS = 2_000
_MAX_MESSAGE = 500
Row = dict[str, Any]


def problem_file_rows(targets: Mapping[str, Target | NoTarget], limit: int) -> Iterator[Row]:
    """One row per problem with files: the file that it is about, as it is validated."""
    for oid, target in targets.items():
        if isinstance(target, Target) and target.problem.path in target.tree.files:
            content = target.tree.read(target.problem.path)
            text = content.decode("utf-8", "replace")
            kept = text if 0 < len(text) <= limit else None
            yield {"oid": oid, "path": target.problem.path, "bytes": len(content), "text": kept}


def fix_columns(target: Target, applied: AppliedFix, report: Report, baseline: Report, limit: int) -> Row:
    """What is kept of a fix that was applied: its diff, if it is not too long, and the result of each test."""
    diff = "\n".join(applied_diff(target, applied)).encode("utf-8", "replace").decode()
    tests = list(_tests(report, baseline))
    return {
        "diff": diff if len(diff) <= limit else None,
        "diff_characters": len(diff),
        "tests": json.dumps(tests[:_MAX_TESTS]) if tests else None,
        "tests_left_out": max(len(tests) - _MAX_TESTS, 0),
    }


def with_judge_note(verdict: Verdict, applied: AppliedFix, settings: ValidationSettings) -> Verdict:
    """The verdict with a note of what the fix changed besides the source."""
    changed = "changed on the judge's side" if settings.test_edits == "allow" else "put back"
    said = {changed: applied.judge_files, "changed, though tests may rely on it": applied.flagged}
    notes = [f"{what}: {', '.join(files)}" for what, files in said.items() if files]
    return replace(verdict, note="; ".join(filter(None, (verdict.note, *notes))))


def side_columns(applied: AppliedFix | NotApplied | NoTarget) -> Row:
    """The files that a fix changed besides the source, one a line."""
    judge = () if isinstance(applied, NoTarget) else applied.judge_files
    flagged = applied.flagged if isinstance(applied, AppliedFix) else ()
    return {"changed_judge_files": _lines(judge), "flagged_files": _lines(flagged)}


def _lines(paths: Sequence[str]) -> str | None:
    return "\n".join(paths).encode("utf-8", "replace").decode() or None


def applied_diff(target: Target, applied: AppliedFix) -> Iterator[str]:
    """The lines of a unified diff of all changed files."""
    files = set(target.tree.files)
    for path, content in applied.changes.items():
        old = target.tree.read(path) if path in files else None
        executable = applied.executable.get(path) if content is not None else None
        if executable is not None and not (path in files and is_executable(target.tree, path) == executable):
            yield f"new mode {'100755' if executable else '100644'} {path}"
        yield from diff_lines(path, old, content)


def _tests(report: Report, baseline: Report) -> Iterator[dict[str, str]]:
    """Every test, those that did not pass first. A test of the unmodified problem may have lost its result."""
    # The summary only repeats the name of the test.
    messages = {found.test: _text(found.detail or found.summary) for found in report.diagnostics if found.test}
    results = dict.fromkeys([*baseline.tests, *baseline.skipped], "no result")
    results |= dict.fromkeys(report.skipped, "skipped")
    results |= {name: "passed" if passed else "failed" for name, passed in report.tests.items()}
    for name, status in sorted(results.items(), key=lambda item: (item[1] == "passed", item[0])):
        yield {"test": _text(name), "status": status, "message": messages.get(name, "") if status != "passed" else ""}


def _text(text: str) -> str:
    return text[:_MAX_MESSAGE].encode("utf-8", "replace").decode()
