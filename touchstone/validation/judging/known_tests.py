"""Holds pytest's results on a fix to the tests that the problem has and to their negative controls.

A control is a test whose expectations were made false (`pytest_runner.controls`). It accuses a fix only if it works on
the unmodified problem and on the reference fix, so an honest fix is safe from a test that is unusual.
"""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from touchstone.validation.judging.patched_names import patched_names
from touchstone.validation.protocol import Diagnostic, Report, TestControl, Tree
from touchstone.validation.reach import parse_python

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def hold_to_known_tests(
    report: Report,
    baseline: Report,
    reference: Report | None,
    changes: Mapping[str, bytes | None] | None = None,
    before: Tree | None = None,
) -> Report:
    """Add an error for every test that is missing, skipped or new in a fix's report, and for every forged pass.

    Compared with the unmodified problem and the reference fix. If the unmodified problem cannot be collected and there
    is no reference fix, no test is known. Of the controls those stay that a pass can rely on. `changes` are the files
    that the fix changes: what they replace elsewhere is doubted, and so is a doctest that was another one `before`.
    """
    if not report.finished or report.compiled is False:
        return report
    known = [one for one in (baseline, reference) if one is not None and one.finished and one.compiled]
    # A test that must fail, and did not before or otherwise, is mended if it fails now.
    must_fail = {found.test for one in known for found in one.diagnostics if found.detail.startswith("[xfail] ")}
    mended = dict.fromkeys((name for name in report.skipped if name in must_fail), True)
    skipped = tuple(name for name in report.skipped if name not in mended)
    report = replace(report, tests={**report.tests, **mended}, skipped=skipped) if mended else report
    controls = report.control or {}
    evidence = {name: _evidence(name, control, known) for name, control in controls.items() if report.tests.get(name)}
    forged = {name: why for name, why in evidence.items() if why}
    differences = [*_differences(report, known, changes or ())] if known else []
    if (name := _other_parameters(report, known, differences)) and not forged:
        note = f"the parameters of {name} depend on the fix, so its tests are not those of the problem"
        return replace(report, status="validator_unavailable", note=note)
    added = [
        *differences,
        *(Diagnostic("error", f"forged pass: {name}", why, test=name) for name, why in forged.items()),
    ]
    if report.control is not None:
        sound = {name: controls[name] for name, why in evidence.items() if why == ""}
        tests = {name: passed and name not in forged for name, passed in report.tests.items()}
        doubts = [doubt for name, why in evidence.items() if not why for doubt in _doubts(name, controls[name], known)]
        doubts += _doubtful_changes(changes or {}, before, tests)
        report = replace(report, control=sound, tests=tests, doubts=(*report.doubts, *dict.fromkeys(doubts)))
    return replace(report, status="failed", diagnostics=(*report.diagnostics, *added)) if added else report


def _doubtful_changes(
    changes: Mapping[str, bytes | None], before: Tree | None, tests: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Names that the changed files replace or read elsewhere, and examples that they change."""
    own = {part for path in changes for part in PurePosixPath(path).with_suffix("").parts}
    for path, content in changes.items():
        if not path.endswith(".py") or content is None:
            continue
        for name, line in patched_names(content, own):
            # The problem may replace it already, with something else.
            text = f"{name} =" if line.startswith(f"{name} =") else line
            yield f"{path} may change or read {name}: {line[:100]}", text
        if before is not None and path in before.files and any(_is_doctest_of(one, [path]) for one in tests):
            lost = examples(before.read(path)) - examples(content)
            yield from ((f"{path} changes the example {source.strip()[:100]}", "") for source, _ in sorted(lost))


def _differences(report: Report, known: Sequence[Report], changed: Collection[str]) -> Iterator[Diagnostic]:
    ids = {name for one in known for name in (*one.tests, *one.skipped)}
    may_skip = {name for one in known for name in one.skipped}
    for name in known[-1].tests:
        if name not in report.tests and name not in report.skipped:
            yield Diagnostic("error", f"test did not report: {name}", test=name)
    for name in report.skipped:
        if name in ids and name not in may_skip:
            yield Diagnostic("error", f"test skipped: {name}", "it is not skipped without the fix", test=name)
    for name in (*report.tests, *report.skipped):
        if name not in ids and not _is_doctest_of(name, changed):
            yield Diagnostic("error", f"unknown test: {name}", "the problem has no such test", test=name)


def _is_doctest_of(name: str, changed: Collection[str]) -> bool:
    """Whether a test is a doctest of a source file that the fix changes.

    >>> _is_doctest_of("cart.py::cart.add", ["shop/cart.py"]), _is_doctest_of("cart.py::test_add", ["shop/cart.py"])
    (True, False)
    """
    file, _, rest = name.partition("::")
    is_doctest = PurePosixPath(file).stem in rest.split(".")[:-1]
    return is_doctest and any(f"/{path}".endswith(f"/{file}") for path in changed)


def examples(source: bytes) -> set[tuple[str, str]]:
    """The examples in the docstrings of a Python file, each with what it must print.

    >>> examples(b"'>>> 1 + 1'")
    {('1 + 1\\n', '')}
    """
    from doctest import DocTestParser

    nodes = (node for node in ast.walk(parse_python(source) or ast.Module([], [])) if isinstance(node, _DOCUMENTED))
    try:
        parsed = [DocTestParser().get_examples(ast.get_docstring(node) or "") for node in nodes]
    except ValueError:
        return set()
    return {(one.source, one.want) for found in parsed for one in found}


def _other_parameters(report: Report, known: Sequence[Report], found: Sequence[Diagnostic]) -> str | None:
    """The parametrised test whose parameters depend on the fix, if nothing else is wrong; None otherwise."""
    functions = [{name.partition("[")[0] for name in one.tests if "[" in name} for one in (report, *known) if one.tests]
    names = [(one.test or "").partition("[") for one in found]
    shared = set.intersection(*functions) if functions else set()
    if report.status == "passed" and names and all(bracket and name in shared for name, bracket, _ in names):
        return names[0][0]
    return None


def _doubts(name: str, control: TestControl, known: Sequence[Report]) -> Iterator[tuple[str, str]]:
    """Reasons not to judge a test's pass, except those that hold on the problem itself or the reference fix."""
    others = [one.control[name] for one in known if one.control is not None and name in one.control]
    excused = {reason for other in others for reason, _ in other.doubts}
    yield from (doubt for doubt in control.doubts if doubt[0] not in excused)
    # It may be the control that this test does not bear: then it does not bear it with another fix, either.
    solved = [one.control[name] for one in known if one.tests.get(name) and one.control and name in one.control]
    if not control.ended and not control.passed and all(other.ended for other in solved):
        yield f"{name} does not pass again when its values are watched", ""


def _evidence(name: str, control: TestControl, known: Sequence[Report]) -> str | None:
    """Why a test's pass is forged; empty if its control is as it should be, None if the test has no usable control.

    >>> sound, silent = TestControl(ended=True), TestControl(ended=True, passed=True)
    >>> problem = Report("failed", "full", tests={"test_a": False}, control={"test_a": sound})
    >>> [_evidence("test_a", one, [problem]) for one in (sound, silent)]
    ['', 'it also passes with its expectations made false']
    """
    others = [one.control[name] for one in known if one.control is not None and name in one.control]
    if any(other.passed for other in others):
        return None
    if control.passed:
        return "it also passes with its expectations made false"
    excused = {place for other in others for place in other.held}
    held = [place for place in control.held if place not in excused]
    if held:
        return f"its negative control shows that it accepts what is wrong: {', '.join(held[:3])}"
    return "" if control.ended else None
