"""Mutants of reference fixes, each validated as a fix of its own: the rows of the table `mutants`.

A mutant is a copy of a Python file with one small mistake, of the kinds that people and models make.

The operators are the usual ones of mutation testing: another comparison, another arithmetic or logical operator, a
condition negated, a number off by one, a returned value lost, a statement removed. Left alone is what tests seldom mean
to check: texts, annotations, decorators, messages of errors, logging, and the `__main__` block. Mutants are made where
the fix is: first on the lines that it wrote, then in the rest of the functions around them.

No library fits: universalmutator depends on packages under the GPL and on a backport of `typing`, mutmut and cosmic-ray
bring frameworks of their own that run the tests, and importing poodle runs a file of the working folder.

Reference: Offutt, Lee, Rothermel, Untch and Zapf (1996), "An experimental determination of sufficient mutant
operators", ACM Transactions on Software Engineering and Methodology 5(2).
"""

import ast
import codecs
import hashlib
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import accumulate

from touchstone.validation.fixes.apply_fix import AppliedFix
from touchstone.validation.fixes.line_diff import diff_lines, opcodes
from touchstone.validation.outcomes import (
    ExcludedTests,
    Row,
    ValidatedProblem,
    is_final,
    judge_fix,
    reference_verdict,
    validate_problems,
)
from touchstone.validation.protocol import SETTLED, NoTarget
from touchstone.validation.session import Request, ValidationSession
from touchstone.validation.targets import Target

# The replacements of each operator, as they are written.
_COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.In: ("in", ("not in",)),
    ast.Is: ("is", ("is not",)),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
_LOGICAL: dict[type[ast.boolop], tuple[str, str]] = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
_LEFT_OUT_FIELDS = ("annotation", "returns", "decorator_list", "type_params")
# Above, a number one off may be the same number.
_LARGE = 1e15
_LOGGING = ("log", "logger", "logging", "warnings")


@dataclass(frozen=True)
class Mutant:
    """A file with one mistake: its line, the change, and the whole file."""

    path: str
    line: int
    change: str
    content: bytes


@dataclass(frozen=True, order=True)
class _Edit:
    """A part of a file, by byte, in which line it starts, and what to write instead."""

    start: int
    stop: int
    line: int
    text: str
    change: str


def choose_mutants(files: Iterable[tuple[str, bytes | None, bytes]], most: int) -> list[Mutant]:
    """At most so many mutants of the files that a fix changed, each with its path, old and new content.

    Those on lines that the fix wrote come first, and one of each line before a second of any. The choice among them is
    random, but the same for the same files. All compile, no two mean the same, and none is the old file.

    >>> fixed = b"def older(a, b):\\n    return a > b\\n"
    >>> [mutant.change for mutant in choose_mutants([("age.py", fixed.replace(b">", b"<"), fixed)], 10)]
    ['> to <=', 'returns None', '> to >=']
    """
    ranked: list[tuple[tuple[object, ...], str, bytes, _Edit]] = []
    known: dict[str, set[str]] = {}
    for path, old, new in files:
        parsed, before = _parsed(new), _parsed(old or b"")
        if parsed is None:
            continue
        tree, meaning = parsed
        known[path] = {meaning} if before is None else {meaning, before[1]}
        turns: Counter[int] = Counter()
        written, around = _places(old, new, tree)
        drawn = sorted(
            (_draw(path, new, edit), edit) for edit in _all_edits(tree, new) if edit.line in written | around
        )
        for draw, edit in drawn:
            turns[edit.line] += 1
            ranked.append(((edit.line not in written, turns[edit.line], draw), path, new, edit))
    mutants: list[Mutant] = []
    for _, path, new, edit in sorted(ranked):
        content = new[: edit.start] + edit.text.encode() + new[edit.stop :]
        changed = _parsed(content) if len(mutants) < most else None
        if changed is not None and changed[1] not in known[path]:
            known[path].add(changed[1])
            mutants.append(Mutant(path, edit.line, edit.change, content))
    return mutants


def _draw(path: str, content: bytes, edit: _Edit) -> str:
    about = f"{path}\0{edit.start}\0{edit.stop}\0{edit.text}\0".encode("utf-8", "replace")
    return hashlib.sha256(about + content).hexdigest()


def _places(old: bytes | None, new: bytes, tree: ast.Module) -> tuple[set[int], set[int]]:
    """The lines of the new file that the fix wrote, and those of the functions around every change."""
    before, after = (BytesIO(content).readlines() for content in (old or b"", new))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    # The innermost first.
    spans = sorted((range(node.lineno, (node.end_lineno or 0) + 1) for node in functions), key=lambda span: len(span))
    written: set[int] = set()
    around: set[int] = set()
    for tag, _, _, start, stop in opcodes(before, after):
        if tag != "equal":
            written.update(range(start + 1, stop + 1))
            # Lines that were only removed: the function around the line that follows.
            for line in range(start + 1, max(stop, start + 1) + 1):
                around.update(next((span for span in spans if line in span), ()))
    return written, around


def _parsed(source: bytes) -> tuple[ast.Module, str] | None:
    """The file's tree, and its meaning as text; None if it does not compile, or positions in it are unknown."""
    if b"\r" in source.replace(b"\r\n", b"") or source.startswith(codecs.BOM_UTF8):
        return None
    try:
        source.decode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            compile(source, "mutant", "exec", dont_inherit=True)
            return tree, ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _all_edits(tree: ast.Module, source: bytes) -> Iterator[_Edit]:
    starts = list(accumulate(map(len, BytesIO(source).readlines()), initial=0))
    for node in _mutable_nodes(tree):
        yield from _edits(node, source, starts)


def _mutable_nodes(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    # Positions inside f-strings are unknown before Python 3.12, and what an error says is seldom tested.
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return
    for field, value in ast.iter_fields(node):
        if field not in _LEFT_OUT_FIELDS:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_main_block(child) and not _logs(child):
                    yield from _mutable_nodes(child)


def _is_main_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in {
        part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)
    }


def _logs(node: ast.AST) -> bool:
    """Whether a statement is a call of a logger or of `warnings`."""
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    while isinstance(called, ast.Attribute):
        called = called.value
    return isinstance(called, ast.Name) and called.id in _LOGGING


def _edits(node: ast.AST, source: bytes, starts: list[int]) -> Iterator[_Edit]:
    """The edits of one node that make mutants."""

    def start(part: ast.expr | ast.stmt) -> int:
        return starts[part.lineno - 1] + part.col_offset

    def stop(part: ast.expr | ast.stmt) -> int:
        return starts[(part.end_lineno or part.lineno) - 1] + (part.end_col_offset or 0)

    def edit(low: int, high: int, text: str, change: str) -> _Edit:
        return _Edit(low, high, bisect_right(starts, low), text, change)

    def operator(low: int, high: int, written: str, others: Iterable[str]) -> Iterator[_Edit]:
        """Replace an operator between two places, where besides it there are only spaces and parentheses."""
        at = source.find(written.encode(), low, high)
        for other in others if at >= 0 else ():
            yield edit(at, at + len(written), other, f"{written} to {other or 'nothing'}")

    def whole(part: ast.expr | ast.stmt, text: str, change: str) -> _Edit:
        return edit(start(part), stop(part), text, change)

    match node:
        case ast.Compare():
            sides = [node.left, *node.comparators]
            for left, comparison, right in zip(sides, node.ops, sides[1:], strict=False):
                if isinstance(comparison, ast.NotIn | ast.IsNot):
                    yield from operator(stop(left), start(right), "not", ("",))
                else:
                    yield from operator(stop(left), start(right), *_COMPARISONS[type(comparison)])
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            written, other = _ARITHMETIC[type(node.op)]
            yield from operator(stop(node.left), start(node.right), written, (other,))
        case ast.AugAssign():
            if type(node.op) in _ARITHMETIC:
                written, other = _ARITHMETIC[type(node.op)]
                yield from operator(stop(node.target), start(node.value), f"{written}=", (f"{other}=",))
            yield whole(node, "pass", "statement removed")
        case ast.BoolOp():
            written, other = _LOGICAL[type(node.op)]
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from operator(stop(left), start(right), written, (other,))
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield from operator(start(node), start(node.operand), "not" if isinstance(node.op, ast.Not) else "-", ("",))
        case ast.If() | ast.While() | ast.IfExp():
            text = source[start(node.test) : stop(node.test)].decode()
            yield whole(node.test, f"not ({text})", "condition negated")
        case ast.Constant(value=bool()):
            yield whole(node, repr(not node.value), f"{node.value!r} to {not node.value!r}")
        case ast.Constant(value=int() | float() as number) if abs(number) < _LARGE:
            for other_number in (number + 1, number - 1):
                yield whole(node, repr(other_number), f"{number!r} to {other_number!r}")
        case ast.Return(value=ast.expr() as returned):
            yield whole(returned, "None", "returns None")
        case ast.Break():
            yield whole(node, "continue", "break to continue")
        case ast.Continue():
            yield whole(node, "break", "continue to break")
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            yield whole(node, "pass", "statement removed")
        case ast.Assign() if not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets):
            yield whole(node, "pass", "statement removed")


@dataclass(frozen=True)
class _Planned:
    problem: ValidatedProblem
    reference: AppliedFix
    mutant: Mutant
    applied: AppliedFix
    request: Request


def mutant_rows(
    targets: Mapping[str, Target | NoTarget], validation: ValidationSession, excluded: ExcludedTests, most: int
) -> Iterator[Row]:
    """One row per mutant of every reference fix that passes, at most so many per problem, with `SETTLED`."""
    problems = validate_problems(targets, validation, excluded)
    planned = [plan for known in problems.values() for plan in _plan(known, validation, most)]
    reports = validation.reports([plan.request for plan in planned], "validating mutants of the reference fixes")
    numbers: dict[str, int] = {}
    for plan in planned:
        report, verdict = judge_fix(reports[plan.request.key].report, plan.applied, plan.problem, validation)
        oid, mutant, status = plan.problem.target.problem.oid, plan.mutant, verdict.status
        final = is_final(status, report)
        numbers[oid] = numbers.get(oid, 0) + 1
        diff = diff_lines(mutant.path, plan.reference.changes[mutant.path], mutant.content)
        yield {
            "oid": oid,
            "mutant": numbers[oid],
            "path": mutant.path,
            "line": mutant.line,
            "change": mutant.change,
            "status": status,
            "result": "survived" if status == "passed" else "killed" if final else "undecided",
            "diff": "\n".join(diff),
            # The next run tries undecided ones again, as any other fix.
            SETTLED: final,
        }


def _plan(known: ValidatedProblem | NoTarget, validation: ValidationSession, most: int) -> Iterator[_Planned]:
    """The mutants of a problem whose reference fix passes, each as a fix of its own."""
    if isinstance(known, NoTarget) or not isinstance(known.applied, AppliedFix):
        return
    verdict = reference_verdict(known, validation.settings.success)
    if verdict is None or verdict.status != "passed":
        return
    reference, tree, tests = known.applied, known.target.tree, set(known.target.problem.judge_files)
    files = [
        (path, tree.read(path) if path in tree.files else None, content)
        for path, content in sorted(reference.changes.items())
        if content is not None and path.endswith(".py") and path not in tests
    ]
    for mutant in choose_mutants(files, most):
        applied = replace(reference, changes={**reference.changes, mutant.path: mutant.content})
        yield _Planned(known, reference, mutant, applied, validation.request(known.target, applied))
