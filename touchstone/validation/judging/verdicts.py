"""The verdict on a fix: whether the target errors are gone, and which diagnostics the fix introduced.

The report on the fixed tree is compared with the baseline, the report on the unmodified tree. Diagnostics are compared
as multisets of `Diagnostic.identity`, so their order and line numbers do not matter. Uncertainty counts against the
fix; if nothing is known, the verdict is undecided.

Of a problem that names its tests, as SWE-bench does, `fail_to_pass` and `pass_to_pass` and nothing else decide: a fix
passes if all of them pass. A test that did not report, or was skipped, did not pass.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import PurePosixPath

from touchstone.validation.judging.removed_blocks import removed_blocks
from touchstone.validation.protocol import NOT_REPORTED, UNDECIDED, Diagnostic, Problem, Report, Severity
from touchstone.vocabulary import Success


@dataclass(frozen=True)
class Verdict:
    """The verdict on a fix. None means unknown; `fixed=None` means undecided.

    `introduced_block`, `introduced_file` and `introduced_module` count new errors and warnings in the block, its file
    and the whole tree; each scope includes the one before. `introduced_errors` counts new errors in the whole tree.
    `block_errors` and `module_errors` count all errors, old and new, with the fix applied: in the target's block (None
    if the problem has no lines) and in the whole tree.
    """

    status: str
    fixed: bool | None = None
    introduced_block: int | None = None
    introduced_file: int | None = None
    introduced_module: int | None = None
    introduced_errors: int | None = None
    block_errors: int | None = None
    module_errors: int | None = None
    plausible: bool | None = None
    note: str = ""


def target_diagnostics(baseline: Report, problem: Problem) -> tuple[Diagnostic, ...]:
    """The baseline diagnostics that the problem is about; all errors if it names neither lines nor a summary.

    A failed test has no meaningful position, so it is a target unless the problem's summary names another diagnostic.

    >>> from pathlib import Path
    >>> here = Diagnostic("error", "Unclosed block", file="main.tf", line=3)
    >>> there = Diagnostic("error", "Unclosed block", file="main.tf", line=9)
    >>> problem = Problem("a", "main.tf", Path("clones"), line_start=1, line_end=5)
    >>> target_diagnostics(Report("failed", "syntax", (here, there)), problem) == (here,)
    True
    """
    severity = named_severity(problem)
    candidates = [found for found in baseline.diagnostics if found.severity == severity]
    summary = _folded(problem.summary)
    named = [
        found for found in baseline.diagnostics if summary and summary in (_folded(found.summary), _folded(found.test))
    ]
    lines = _named_lines(problem)
    if not summary and lines is None:
        return tuple(candidates)

    def is_target(found: Diagnostic) -> bool:
        if found.test is not None:
            return not named or found in named
        return (not summary or found in named) and _is_in(found, problem.path, lines)

    return tuple(found for found in candidates if is_target(found))


def named_severity(problem: Problem) -> Severity:
    """Validators have two severities; any other severity in a data set ("high", "bug") means error."""
    return "warning" if _folded(problem.severity) in ("warning", "warn") else "error"


def _folded(text: str | None) -> str:
    return (text or "").strip().casefold()


def _named_lines(problem: Problem) -> tuple[int, int] | None:
    """The lines of the error, else those of its block."""
    if problem.line_start is None and problem.line_end is None:
        return problem.block_lines
    return replace(problem, block_start=None).block_lines


def _is_in(found: Diagnostic, path: str, lines: tuple[int, int] | None) -> bool:
    """Whether a diagnostic may concern these lines of the file. Without a position it may concern any line."""
    if found.test is not None or found.file is None:
        return True
    if str(PurePosixPath(found.file)) != path:
        return False
    if lines is None or found.line is None:
        return True
    return found.line <= lines[1] and lines[0] <= max(found.line, found.end_line or found.line)


def compute_verdict(
    baseline: Report,
    report: Report,
    problem: Problem,
    first_line: int,
    last_line: int,
    success: Success = "plausible",
    reference: Report | None = None,
) -> Verdict:
    """The verdict on a fix whose block occupies first_line..last_line of the problem's file.

    `reference` is the report on the reference fix, if there is one: a fix may remove the blocks that it removes.

    >>> from pathlib import Path
    >>> problem = Problem("a", "main.tf", Path("clones"))
    >>> broken = Report("failed", "syntax", (Diagnostic("error", "Unclosed block", file="main.tf", line=3),))
    >>> compute_verdict(broken, Report("passed", "syntax"), problem, 1, 5).status
    'passed'
    >>> compute_verdict(broken, broken, problem, 1, 5).note
    'still there: error: Unclosed block (main.tf:3)'
    """
    baseline, report = only_judged(baseline, problem), only_judged(report, problem)
    target_errors = target_diagnostics(baseline, problem)
    known = (
        _without_a_baseline(baseline, target_errors)
        or _without_time(baseline, report, reference)
        or _without_a_report(report)
    )
    if known:
        return known
    remaining = _remaining(baseline, report, target_errors, problem.path, (first_line, last_line))
    removed = removed_blocks(baseline, report, reference)
    new = [*_introduced(baseline, report), *((1, [lost]) for lost in (*_lost_tests(baseline, report), *removed))]
    # Code that no longer compiles hides the errors that only show after compilation.
    hidden = report.compiled is False and baseline.compiled is not False
    fixed = not remaining and not hidden and not removed and (baseline.finished or report.status == "passed")
    errors = sum(excess for excess, alike in new if alike[0].severity == "error")
    left = _left_in_block(baseline, report, problem, (first_line, last_line))
    verdict = Verdict(
        "failed",
        fixed=fixed,
        introduced_block=_count_in(new, problem.path, (first_line, last_line)),
        introduced_file=_count_in(new, problem.path, None),
        introduced_module=sum(excess for excess, _ in new),
        introduced_errors=errors,
        block_errors=len(left) if problem.block_lines else None,
        module_errors=sum(found.severity == "error" for found in report.diagnostics),
        plausible=fixed and errors == 0 and not left,
        note=_note(remaining, left, new),
    )
    # A problem that names its tests is judged by them, and by no other rule.
    passed = report.status == "passed" if problem.judged_tests else succeeded(verdict, success)
    doubts = [reason for reason, _ in report.doubts if reference is None or reason not in dict(reference.doubts)]
    if passed and doubts:
        who = "a negative control" if report.control is not None else f"fidelity {report.fidelity}"
        return Verdict("validator_unavailable", note=f"{who} cannot tell: {doubts[0]}")
    return replace(verdict, status="passed") if passed else verdict


def new_doubts(report: Report, baseline: Report, originals: Iterable[bytes]) -> tuple[tuple[str, str], ...]:
    """The doubts that a fix brings: not those of the unmodified problem, nor about text that its files have already.

    >>> doubted = Report("passed", "static", doubts=(("not looked into", "module x {}"),))
    >>> new_doubts(doubted, Report("failed", "static"), [b"module  x { }"])
    ()
    >>> doubted = Report("passed", "full", doubts=(("answers", "def x():\\n  return a\\n"),))
    >>> len(new_doubts(doubted, Report("failed", "full"), [b"def x():\\n    return a and b\\n"]))
    1
    """
    known = dict(baseline.doubts)
    left = [doubt for doubt in report.doubts if doubt[0] not in known]
    texts = [content.decode("utf-8", "replace") for content in originals] if left else []
    return tuple(
        (reason, doubted)
        for reason, doubted in left
        if not (doubted.strip() and any(_squeezed(doubted, doubted) in _squeezed(text, doubted) for text in texts))
    )


def _squeezed(text: str, doubted: str) -> str:
    """A text without spaces, by lines if the doubted one is whole lines, of which a part is something else."""
    lines = ("".join(line.split()) for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line) if doubted.endswith("\n") else "".join(lines)


def succeeded(verdict: Verdict, success: Success) -> bool | None:
    """Whether a fix succeeds under the chosen rule; None if undecided.

    >>> one_new_warning = Verdict("passed", True, 0, 0, 1, 0, 0, 0, True)
    >>> succeeded(one_new_warning, "strict_block"), succeeded(one_new_warning, "strict_module")
    (True, False)
    """
    if verdict.fixed is None:
        return None
    repaired = verdict.fixed and not verdict.block_errors
    return {
        "plausible": verdict.plausible is True,
        "clean": verdict.plausible is True and verdict.module_errors == 0,
        "fixed": verdict.fixed,
        "strict_block": repaired and verdict.introduced_block == 0,
        "strict_module": repaired and verdict.introduced_module == 0,
    }[success]


def _without_a_baseline(baseline: Report, target_errors: Sequence[Diagnostic]) -> Verdict | None:
    """The verdict if there is no usable baseline to compare with, else None."""
    if not baseline.decided:
        reason = f": {baseline.note}" if baseline.note else ""
        return Verdict(baseline.status, note=f"the unmodified problem was not validated{reason}")
    if not baseline.finished:
        return None
    if _contradicts_itself(baseline):
        return Verdict("validator_unavailable", note="the report on the unmodified problem contradicts itself")
    if not target_errors:
        note = f"the unmodified problem shows no such error at fidelity {baseline.fidelity}"
        return Verdict("validator_unavailable", note=note)
    return None


def _without_time(baseline: Report, report: Report, reference: Report | None) -> Verdict | None:
    """The verdict if the problem's tests may need more time than they have, else None."""
    has_failed = any(found.detail != NOT_REPORTED for found in report.diagnostics)
    in_time = reference is not None and reference.finished
    if not (baseline.steady and report.steady) or has_failed or in_time:
        return None
    note = "its tests reach the limit of CPU time one after another, as those of the unmodified problem do"
    return Verdict("validator_unavailable", note=f"{note}; raise validation.limits.seconds")


def _without_a_report(report: Report) -> Verdict | None:
    """The verdict if the validator did not finish, or its report contradicts itself, else None."""
    if report.status in UNDECIDED:
        return Verdict(report.status, note=report.note)
    if not report.finished:
        return Verdict(report.status, fixed=False, plausible=False, note=report.note)
    if _contradicts_itself(report):
        note = report.note or "the validator's exit and its report contradict each other"
        return Verdict("no_report", fixed=False, plausible=False, note=note)
    return None


def _contradicts_itself(report: Report) -> bool:
    has_errors = any(found.severity == "error" for found in report.diagnostics)
    return not report.consistent or has_errors != (report.status == "failed")


def _remaining(
    baseline: Report, report: Report, target_errors: Sequence[Diagnostic], path: str, lines: tuple[int, int]
) -> list[Diagnostic]:
    """The target diagnostics that remain, as the fix shows them. A failed test that no longer runs counts as one."""
    before, after = _counts(baseline.diagnostics), _counts(report.diagnostics)
    wanted = _counts(target_errors)

    def remains(target: Diagnostic) -> bool:
        test = target.test
        vanished = test is not None and test in baseline.tests and not report.tests.get(test, False)
        return vanished or after[target.identity] > before[target.identity] - wanted[target.identity]

    # Of several alike, one in the block.
    shown = {found.identity: found for found in sorted(report.diagnostics, key=lambda one: _is_in(one, path, lines))}

    return [
        shown.get(target.identity) or _without_pass(target.test or "", report, target.severity)
        for target in target_errors
        if remains(target)
    ]


def _left_in_block(baseline: Report, report: Report, problem: Problem, lines: tuple[int, int]) -> list[Diagnostic]:
    """The errors in the repaired block, plus those of the broken block that the fix only moved out of it.

    Only errors with a position count: an old error without one cannot be attributed to the block, and a new one counts
    as introduced anyway. An old error from outside the block stays outside, even if a rewritten file shares no line
    with the original and the repaired block is therefore the whole file.
    """
    if problem.block_lines is None:
        return []
    broken = [found for found in baseline.diagnostics if _is_error_at(found, problem.path, problem.block_lines)]
    before, after, was_here = _counts(baseline.diagnostics), _counts(report.diagnostics), _counts(broken)
    inside = [
        found
        for found in report.diagnostics
        if _is_error_at(found, problem.path, lines)
        and (was_here[found.identity] or after[found.identity] > before[found.identity])
    ]
    is_here = _counts(inside)
    outside: defaultdict[tuple[str, ...], list[Diagnostic]] = defaultdict(list)
    for found in report.diagnostics:
        if not _is_error_at(found, problem.path, lines):
            outside[found.identity].append(found)
    moved: list[Diagnostic] = []
    for identity in was_here:
        kept = after[identity] - (before[identity] - was_here[identity])
        moved += outside[identity][: max(0, kept - is_here[identity])]
    return [*inside, *moved]


def _is_error_at(found: Diagnostic, path: str, lines: tuple[int, int]) -> bool:
    """Whether it is an error with a known position within these lines of the file."""
    placed = found.test is None and found.file is not None and found.line is not None
    return found.severity == "error" and placed and _is_in(found, path, lines)


def _counts(diagnostics: Iterable[Diagnostic]) -> Counter[tuple[str, ...]]:
    return Counter(found.identity for found in diagnostics)


def _introduced(baseline: Report, report: Report) -> list[tuple[int, list[Diagnostic]]]:
    """For each identity that became more frequent: the excess, and all of its diagnostics in the report."""
    before = _counts(baseline.diagnostics)
    alike: dict[tuple[str, ...], list[Diagnostic]] = {}
    for found in report.diagnostics:
        alike.setdefault(found.identity, []).append(found)
    excess = ((len(group) - before[identity], group) for identity, group in alike.items())
    return [(count, group) for count, group in excess if count > 0]


def _lost_tests(baseline: Report, report: Report) -> list[Diagnostic]:
    """Tests that passed in the baseline and no longer report: deleting a test must not help a fix."""
    if report.compiled is False:
        return []
    lost = sorted(name for name, passed in baseline.tests.items() if passed and name not in report.tests)
    return [Diagnostic("error", f"test did not report: {name}", test=name) for name in lost]


def _count_in(new: Sequence[tuple[int, list[Diagnostic]]], path: str, lines: tuple[int, int] | None) -> int:
    """How many new diagnostics a scope has. Among identical ones, as many as possible count as new in this scope."""
    return sum(min(excess, sum(_is_in(found, path, lines) for found in alike)) for excess, alike in new)


def _note(
    remaining: Sequence[Diagnostic], left: Sequence[Diagnostic], new: Sequence[tuple[int, list[Diagnostic]]]
) -> str:
    """The first remaining target, the first other old error left in the block, and the first new diagnostic.

    Errors come before warnings, whatever their order in the report.
    """
    come = [found for _, alike in new for found in alike]
    shown = {found.identity for found in (*remaining, *come)}
    groups = {
        "still there": remaining,
        "left in the block": [found for found in left if found.identity not in shown],
        "new": come,
    }
    first = {
        label: min(group, key=lambda found: (found.severity, str(found))) for label, group in groups.items() if group
    }
    return "; ".join(f"{label}: {found}" for label, found in first.items())


# Problems that name their tests


def only_judged(report: Report, problem: Problem) -> Report:
    """A finished report reduced to the tests that the problem names, if any; any other report stays as it is.

    >>> from pathlib import Path
    >>> problem = Problem("a", "shop.py", Path("clones"), fail_to_pass=("test_a",), pass_to_pass=("test_b",))
    >>> report = only_judged(Report("failed", "full", tests={"test_a": True, "test_c": False}), problem)
    >>> report.status, report.tests, [str(found) for found in report.diagnostics]
    ('failed', {'test_a': True, 'test_b': False}, ['error: test did not report: test_b'])
    """
    if not problem.judged_tests or not report.finished or not report.consistent:
        return report
    tests = {name: report.tests.get(name, False) for name in problem.judged_tests}
    known = {found.test: found for found in report.diagnostics if found.test is not None}
    failures = [known.get(name, _without_pass(name, report)) for name, passed in tests.items() if not passed]
    # Errors outside tests, such as a file that cannot be imported, explain failures; alone they decide nothing.
    others = [found for found in report.diagnostics if found.test is None and (failures or found.severity == "warning")]
    status = "failed" if failures else "passed"
    # What the tests need was compiled, whatever else was not.
    compiled = True if not failures and report.compiled is False else report.compiled
    return replace(report, status=status, tests=tests, diagnostics=(*failures, *others), compiled=compiled)


def _without_pass(name: str, report: Report, severity: Severity = "error") -> Diagnostic:
    """The diagnostic for a test that did not pass, if the report has none."""
    verb = "failed" if name in report.tests else "did not report"
    return Diagnostic(severity, f"test {verb}: {name}", test=name)


def unlike_recorded(baseline: Report, problem: Problem, reference: Report | None = None) -> str:
    """Which test contradicts the problem's lists in a finished report on the unmodified problem; empty if none does.

    A test that neither it nor the reference fix reports may still be in a file that could not be loaded.
    """
    known = [one for one in (baseline, reference) if one is not None]
    for name in problem.fail_to_pass:
        if baseline.tests.get(name, False):
            return f"the unmodified problem passes {name}, which is in fail_to_pass"
        if baseline.compiled and not any(name in one.tests or name in one.skipped for one in known):
            return f"no test is called {name}, which is in fail_to_pass"
    for name in problem.pass_to_pass:
        if not baseline.tests.get(name, False):
            return f"the unmodified problem does not pass {name}, which is in pass_to_pass"
    return ""


# What neither a problem nor its fix brings: where the environment lacks it, nothing can be judged

# As Python and Node say it; a name that starts with a dot or a slash is a file of the project.
_MISSING = re.compile(r"(?:No module named|Cannot find (?:module|package)) ['\"]?([@\w][\w@-]*)")
# What else may be missing, and how that is said.
_OTHER_NEEDS = (
    (
        re.compile(r"can't start new thread|Resource temporarily unavailable"),
        "more threads (validation.limits.processes)",
    ),
    (re.compile(r"Too many open files"), "more than 1,024 open files"),
    (re.compile(r"Sanitizer failed to allocate"), "terabytes to reserve (validation.limits.memory_mb)"),
    (re.compile(r"Connection refused|Connect call failed|ECONNREFUSED"), "a server that it connects to"),
    (
        re.compile(
            "EAI_AGAIN|ENOTFOUND|UnknownHostException"
            "|Temporary failure in name resolution|Name or service not known|Could not resolve host"
        ),
        "a network",
    ),
    (re.compile(r"ENOTCACHED"), "packages that npm would have to fetch"),
    (re.compile(r"externally-managed-environment"), "an environment that pip may change"),
    # No fix can add one of these: they are on the judge's side.
    (
        re.compile(
            r"(?:^|: )(?:make(?:\[\d+\])?: \*\*\* No (?:rule to make target '[^']*'\.  Stop|targets specified)"
            r"|npm (?:ERR!|error) Missing script: |\S*python[\d.]*: can't open file '"
            r"|\S*sh: (?:line )?\d+: (?:cannot open \S+: No such file|cd: )"
            r"|ERROR: (?:file or directory not found|not found): |ERROR: Config file '[^'\n]*' not found)"
            r"|code: 'MODULE_NOT_FOUND',\s+requireStack: \[\]",
            re.MULTILINE,
        ),
        "a file, target or test that the command names",
    ),
    (re.compile(r"the program ended with exit code 5: =+ test session starts"), "a test that pytest finds"),
    (re.compile(r"PytestConfigWarning: (Unknown config option: \w+)"), r"a plugin of pytest (\1)"),
    (re.compile(r"(?:pytest|__main__\.py): error: (unrecognized arguments: \S+)"), r"a plugin of pytest (\1)"),
)
_LEAKS = re.compile(r"LeakSanitizer has encountered a fatal error")
_PLUGIN = re.compile(r"No module named '((?:pytest_|anyio|trio)\w*)")
# Of Python 2's standard library, those whose names are unlike any of today's.
_OLD_MODULES = ("__builtin__", "cPickle", "commands", "cStringIO", "HTMLParser", "httplib", "StringIO", "urlparse")


def missing_need(baseline: Report, report: Report, reference: Report | None, files: Iterable[str]) -> str | None:
    """Name what the environment lacks, if the problem and its fix fail for that alone: a package, a server, threads.

    The environment has all that is needed if a reference fix passes. A name that is like that of one of the problem's
    `files`, or of a module of the standard library of any time, is a mistake to be repaired, not a package.

    >>> lost = Report("no_report", "full", note="exit code 1: python: No module named pytest")
    >>> missing_need(lost, lost, None, ["shop/price.py"]), missing_need(lost, lost, None, ["pytest.py"])
    ("'pytest', which is not installed", None)
    """
    before = set().union(*map(_missing, _failures(baseline)))
    if not before or (reference is not None and reference.status == "passed"):
        return None
    own = {PurePosixPath(part).stem.casefold() for path in files for part in path.split("/")}
    known = own.union(map(str.casefold, (*sys.stdlib_module_names, *_OLD_MODULES)))
    packages = {name for name in before if not get_close_matches(name.casefold(), known, n=1, cutoff=0.8)}
    each = [_missing(failure) & packages for failure in _failures(report)]
    if not each or not all(each):
        return None
    name = min(set().union(*each))
    return name if " " in name else f"'{name}', which is not installed"


def needs_leak_detection(report: Report, reference: Report | None) -> bool:
    """Whether a command failed because C's leak detection cannot run here.

    It comes after all else, so the unmodified problem may have failed before.
    """
    can_run = reference is not None and reference.status == "passed"
    return not can_run and any(map(_LEAKS.search, _failures(report)))


def _failures(report: Report) -> list[str]:
    if report.status == "no_report":
        return [report.note]
    return [str(found) for found in report.diagnostics if found.severity == "error"]


def _missing(failure: str) -> set[str]:
    others = {found.expand(need) for said, need in _OTHER_NEEDS if (found := said.search(failure))}
    return {*_MISSING.findall(failure), *others}


def missing_plugin(message: str) -> str | None:
    """The package to install, if tests could not be imported for lack of a plugin of pytest."""
    found = _PLUGIN.search(message)
    return f"the tests import {found[1]}, which is not installed in its environment" if found else None
