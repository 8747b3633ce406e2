"""Apply a fix from an input row: choose its text, turn it into changed files, and return the lines it occupies.

A fix that cannot be applied is an outcome with a reason, never an exception. Lines end at a newline byte and count from
1; the position after the last newline is also a line, because parsers report errors at the end of the file there.
In a fix of several files, these are the problem's lines in the problem's file.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Literal

from touchstone.validation.files.locate_files import path_refusal
from touchstone.validation.files.working_copy import LEFT_OUT
from touchstone.validation.fixes.codex_patch import is_codex_patch, parse_codex_patch
from touchstone.validation.fixes.extract_code import extract_code, without_cdata
from touchstone.validation.fixes.judge_changes import judge_changes, used_instead
from touchstone.validation.fixes.line_diff import opcodes
from touchstone.validation.fixes.patching import BOM, Changes, Files, apply_patches
from touchstone.validation.fixes.rust_tests import test_items, with_original_tests
from touchstone.validation.fixes.search_replace import apply_edits, parse_edits
from touchstone.validation.fixes.unified_diff import PatchError, parse_diff, relative
from touchstone.validation.protocol import Problem, Tree
from touchstone.vocabulary import TestEdits

FixKind = Literal["file", "block", "diff", "files", "edits"]

MAX_FIX_BYTES = 2_000_000
_MAX_FILES = 1_000
_BOM = BOM.decode()


@dataclass(frozen=True)
class Fix:
    """A model's text: the whole file, a replacement for the problem's lines, or changes to several files.

    `diff` is a unified diff, `files` a JSON object of contents by path, `edits` are search/replace blocks.
    """

    text: str
    kind: FixKind


@dataclass(frozen=True)
class AppliedFix:
    """The changed files (None is a deleted one), and the first and last line of the fix in the problem's file.

    `executable` says of changed files whether they are, where the fix decides it. `notes` say what in the fix is not
    quite right. `judge_files` are those of the judge's side that it changed, put back unless that is allowed; `flagged`
    those that both sides reach.
    """

    changes: Mapping[str, bytes | None]
    lines: tuple[int, int]
    executable: Mapping[str, bool] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    judge_files: tuple[str, ...] = ()
    flagged: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotApplied:
    """Why the fix could not be applied, and the files of the judge's side that it would have changed."""

    status: str
    reason: str
    judge_files: tuple[str, ...] = ()


def choose_fix(row: Mapping[str, str | None], how: Literal["auto", "file", "block"], has_range: bool) -> Fix | None:
    """The fix in the first non-empty fix column of a row; None if the file has no such column.

    >>> choose_fix({"fixed_file": " ", "fixed_code": "x = 1"}, "auto", has_range=True)
    Fix(text='x = 1', kind='block')
    >>> choose_fix({"fixed_file": None}, "auto", has_range=True)
    Fix(text='', kind='file')
    """
    file: tuple[str, FixKind] = ("fixed_file", "file")
    block: tuple[str, FixKind] = ("fixed_block_content", "block")
    candidates: dict[str, tuple[tuple[str, FixKind], ...]] = {
        "file": (file, ("fixed_code", "file")),
        "block": (block, ("fixed_code", "block")),
        "auto": (file, block, ("fixed_code", "block" if has_range else "file")),
    }
    fixes = [Fix(row[column] or "", kind) for column, kind in (*candidates[how], *_SEVERAL_FILES) if column in row]
    filled = (fix for fix in fixes if fix.text.strip())
    return next(filled, Fix("", fixes[0].kind) if fixes else None)


def apply_fix(tree: Tree, fix: Fix, problem: Problem, test_edits: TestEdits = "ignore") -> AppliedFix | NotApplied:
    r"""Change the tree's files as the fix says. `test_edits` says what becomes of changes of the judge's files.

    >>> from pathlib import Path
    >>> tree = Tree(Path("clones"), ("main.tf",), {"main.tf": b"a\nb\nc\n"})
    >>> problem = Problem("a", "main.tf", Path("clones"), line_start=2, line_end=2)
    >>> apply_fix(tree, Fix("B\nb", "block"), problem).changes
    {'main.tf': b'a\nB\nb\nc\n'}
    >>> apply_fix(tree, Fix("```\n```", "file"), problem).reason
    'the fix is empty'
    """
    refused = _refusal(fix.text)
    if refused:
        return NotApplied("failed", refused)
    if fix.kind not in ("file", "block"):
        applied = _with_several_files(tree, fix, problem, test_edits)
    else:
        applied = _with_one_file(tree, fix, problem)
    return _put_back_inline_tests(tree, applied, problem, test_edits)


def _with_one_file(tree: Tree, fix: Fix, problem: Problem) -> AppliedFix | NotApplied:
    code = extract_code(fix.text.removeprefix(_BOM))
    if not code.strip():
        return NotApplied("failed", "the fix is empty")
    if not problem.filename:
        return NotApplied("validator_unavailable", "the fix is for one file and the problem names none")
    original = tree.read(problem.path)
    if fix.kind == "block":
        return _with_block(original, code.encode(), problem)
    # A BOM belongs to the file only if the file had one before.
    keeps_bom = fix.text.startswith(_BOM) and original.startswith(BOM)
    content = (BOM if keeps_bom else b"") + code.encode()
    return AppliedFix({problem.path: content}, _range_after(original, content, problem))


def _with_several_files(tree: Tree, fix: Fix, problem: Problem, test_edits: TestEdits) -> AppliedFix | NotApplied:
    text = without_cdata(fix.text.removeprefix(_BOM))
    if not text.strip():
        return NotApplied("failed", "the fix is empty")
    try:
        made = _MAKERS[fix.kind](tree, text, problem)
    except PatchError as error:
        return NotApplied("failed", f"the {_NAMES[fix.kind]} {error}")
    changes, modes, reason = made.files, made.modes, ""
    judge = tuple(judge_changes(changes, problem, tree))
    if judge and test_edits == "refuse":
        return _changes_tests(judge[0], judge)
    if judge and test_edits == "ignore":
        changes = {path: content for path, content in changes.items() if path not in judge}
        modes = {path: mode for path, mode in modes.items() if path not in judge}
        reason = "" if changes else f"the fix changes only files {_JUDGES}: {', '.join(judge)}"
    by_tests = problem.test_command or problem.filename.endswith(".py")
    if problem.filename and not by_tests and changes.get(problem.path, b"") is None:
        reason = reason or f"the fix deletes {problem.path}, the file that the problem is about"
    if reason := reason or _layout_error(tree, changes):
        return NotApplied("failed", reason, judge)
    flagged = tuple(sorted(used_instead(changes, problem.shared_files)))
    content = changes.get(problem.path)
    if content is None:  # unchanged, deleted, or the problem names no file
        lines = problem.block_lines or (1, 1)
    else:
        original = tree.read(problem.path) if problem.path in tree.files else b""
        lines = _range_after(original, content, problem)
    return AppliedFix(changes, lines, modes, tuple(made.notes), judge, flagged)


def _put_back_inline_tests(
    tree: Tree, applied: AppliedFix | NotApplied, problem: Problem, test_edits: TestEdits
) -> AppliedFix | NotApplied:
    """The tests inside the Rust sources that a fix changes, as they were, unless the reference changes them too."""
    if isinstance(applied, NotApplied):
        return applied
    changes, judge = dict(applied.changes), list(applied.judge_files)
    for path, content in applied.changes.items():
        if not path.endswith(".rs") or content is None or path not in tree.files:
            continue
        original = tree.read(path)
        restored = with_original_tests(original, content)
        if restored is not None and not _reference_changes_tests(tree, original, path, problem):
            judge.append(f"{path} (tests inside)")
            changes[path] = restored if test_edits == "ignore" else content
    if len(judge) == len(applied.judge_files):
        return applied
    if test_edits == "refuse":
        return _changes_tests(judge[-1], judge)
    content, lines = changes.get(problem.path), applied.lines
    if content is not None and content != applied.changes[problem.path]:
        lines = _range_after(tree.read(problem.path), content, problem)
    return replace(applied, changes=changes, lines=lines, judge_files=tuple(judge))


def _reference_changes_tests(tree: Tree, original: bytes, path: str, problem: Problem) -> bool:
    reference: bytes | None = None
    if problem.reference_fix and path == problem.path:
        reference = extract_code(problem.reference_fix).encode()
    elif problem.reference_patch:
        try:
            reference = _changes_by_diff(tree, problem.reference_patch, problem).files.get(path)
        except PatchError:
            return False
    if reference is None:
        return False
    before, after = (
        {item.text for item in test_items(text.decode("utf-8", "replace"))} for text in (original, reference)
    )
    return bool(after) and before != after


def _changes_tests(path: str, judge: Sequence[str]) -> NotApplied:
    reason = f"the fix changes {path}, {_JUDGES}; 'validation.test_edits' decides if that is allowed"
    return NotApplied("failed", reason, tuple(judge))


def _refuse_paths(changed: Iterable[str]) -> None:
    """Refuse a fix with a path that leaves the tree, or with too many. Before any file is read: a path may lead
    anywhere."""
    paths = dict.fromkeys(changed)
    if len(paths) > _MAX_FILES:
        raise PatchError(f"is refused: it changes {len(paths):,} paths; at most {_MAX_FILES:,} are allowed")
    for path in paths:
        parts = path.split("/")
        plain = "" not in parts and "." not in parts
        reason = path_refusal("path", path) if plain else f"the path {path[:80]!r} is not a plain path"
        if not reason and (left_out := LEFT_OUT.intersection(parts)):
            reason = f"the path {path[:80]!r} is in {min(left_out)}, which is not part of the problem"
        if reason:
            raise PatchError(f"is refused: {reason}")


def _layout_error(tree: Tree, changes: Files) -> str:
    """Why the changed files cannot lie beside the others: one would be a file and a folder."""
    files = tree.with_changes(changes).files
    known = set(files)
    for path in (path for path, content in changes.items() if content is not None):
        parents = map(str, PurePosixPath(path).parents)
        if (taken := next((parent for parent in parents if parent in known), None)) is not None:
            return f"{path} cannot be written: {taken} is a file"
        after = bisect_left(files, f"{path}/")
        if after < len(files) and files[after].startswith(f"{path}/"):
            return f"{path} cannot be written: it is a folder"
    return ""


def _changes_by_diff(tree: Tree, text: str, _: Problem) -> Changes:
    patches = parse_codex_patch(text) if is_codex_patch(text) else parse_diff(text)
    _refuse_paths(path for patch in patches for path in (patch.old, patch.new) if path is not None)
    return apply_patches(tree, patches)


def _changes_by_edits(tree: Tree, text: str, problem: Problem) -> Changes:
    edits = parse_edits(text, tree.files, problem)
    if not edits and is_codex_patch(text):
        return _changes_by_diff(tree, text, problem)
    if not edits:
        raise PatchError("has no search/replace block in it")
    _refuse_paths(edit.path for edit in edits)
    return apply_edits(tree, edits)


def _changes_by_files(tree: Tree, text: str, _: Problem) -> Changes:
    try:
        pairs = json.loads(text if text.lstrip().startswith("{") else extract_code(text), object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise PatchError(f"is not whole JSON ({str(error)[:200]})") from None
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        raise PatchError("is not a JSON object of contents by path")
    changes, seen = Changes(), set()
    files = frozenset(tree.files)
    _refuse_paths(relative(path) for path, _ in pairs)
    for path, content in ((relative(path), content) for path, content in pairs):
        if path in seen:
            raise PatchError(f"has the path {path[:80]!r} twice")
        seen.add(path)
        if not isinstance(content, str | None):
            raise PatchError(f"has something else than text or null at {path[:80]!r}")
        if content is not None and (reason := _refusal(content)):
            raise PatchError(f"is refused at {path[:80]!r}: {reason}")
        if content is None and path not in files:
            changes.notes.append(f"the fix deletes {path}, which is not there")
        else:
            changes.files[path] = None if content is None else content.encode()
    if not pairs:
        raise PatchError("has no file in it")
    return changes


# After the columns for one file: the first that is not blank is used.
_SEVERAL_FILES: tuple[tuple[str, FixKind], ...] = (
    ("fixed_diff", "diff"),
    ("model_patch", "diff"),
    ("fixed_files", "files"),
    ("fixed_edits", "edits"),
)
_MAKERS = {"diff": _changes_by_diff, "files": _changes_by_files, "edits": _changes_by_edits}
_JUDGES = "on the judge's side"
_NAMES = {"diff": "patch", "files": "JSON of files", "edits": "search/replace text"}


def _refusal(text: str) -> str:
    if "\0" in text:
        return "the fix has NUL bytes"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "the fix has lone surrogates, which are no text"
    return f"the fix has {size:,} bytes; at most {MAX_FIX_BYTES:,} are allowed" if size > MAX_FIX_BYTES else ""


def _with_block(original: bytes, block: bytes, problem: Problem) -> AppliedFix | NotApplied:
    if problem.block_lines is None or (problem.block_start is None and None in (problem.line_start, problem.line_end)):
        return NotApplied("validator_unavailable", "the fix is a block and the problem has no line range to put it in")
    lines = original.split(b"\n")
    first, last = problem.block_lines
    if not 1 <= first <= last <= len(lines):
        reason = f"the fix is for lines {first} to {last} and the file has {len(_lines(original))}"
        return NotApplied("validator_unavailable", reason)
    if last == len(lines) and not lines[-1]:
        last -= 1  # keep the final newline: the line after it is empty
    crlf = original.count(b"\r\n") * 2 > original.count(b"\n")
    block_lines = _block_lines(block, crlf=crlf, at_end=last == len(lines))
    content = b"\n".join([*lines[: first - 1], *block_lines, *lines[last:]])
    return AppliedFix({problem.path: content}, (first, first + len(block_lines) - 1))


def _block_lines(block: bytes, *, crlf: bool, at_end: bool) -> list[bytes]:
    """The block's lines, with CR if the file uses CRLF. `at_end`: the block ends a file without a final newline."""
    plain = block.replace(b"\r\n", b"\n")
    plain = plain.rstrip(b"\n") if at_end else plain.removesuffix(b"\n")
    lines = plain.split(b"\n")
    if not crlf:
        return lines
    return [line + (b"" if at_end and number == len(lines) else b"\r") for number, line in enumerate(lines, start=1)]


def _lines(content: bytes) -> list[bytes]:
    return [line.removesuffix(b"\r") for line in content.removesuffix(b"\n").split(b"\n")]


def _range_after(original: bytes, content: bytes, problem: Problem) -> tuple[int, int]:
    """The lines of the new file that correspond to the problem's lines; all lines if the problem has none."""
    old, new = _lines(original), _lines(content)
    start, end = problem.block_lines or (0, 0)
    if not 1 <= start <= end <= len(old) + 1:
        return 1, len(new)
    begin, stop = min(start, len(old)) - 1, min(end, len(old))
    spans = list(_spans_within(old, new, begin, stop))
    first = min(span[0] for span in spans)
    behind = max(span[1] for span in spans)
    # If the lines were deleted, the line that took their place.
    first = min(first, len(new) - 1)
    return first + 1, max(behind, first + 1)


def _spans_within(old: Sequence[bytes], new: Sequence[bytes], begin: int, stop: int) -> Iterator[tuple[int, int]]:
    """The spans of new lines that come from old lines begin..stop, including insertions next to them."""
    for tag, old_begin, old_stop, new_begin, new_stop in opcodes(old, new):
        if tag == "insert":
            if begin <= old_begin <= stop:
                yield new_begin, new_stop
        elif old_begin < stop and begin < old_stop:
            if tag == "equal":
                yield new_begin + max(begin - old_begin, 0), new_stop - max(old_stop - stop, 0)
            else:
                yield new_begin, new_stop
