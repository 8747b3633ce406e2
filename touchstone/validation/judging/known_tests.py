"""What pytest's results on a fix are held to: the tests that the problem has, and their negative controls.

A control is a test whose expectations were made false (`pytest_runner.controls`). It accuses a fix only if it works on
the unmodified problem and on the reference fix, so an honest fix is safe from a test that is unusual.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from touchstone.validation.judging.patched_names import patched_names
from touchstone.validation.protocol import Diagnostic, Report, TestControl

_FINISHED = ("passed", "failed")


def hold_to_known_tests(
    report: Report, baseline: Report, reference: Report | None, changes: Mapping[str, bytes | None] | None = None
) -> Report:
    """Add an error for every test that is missing, skipped or new in a fix's report, and for every forged pass.

    Compared with the unmodified problem and the reference fix. If the unmodified problem cannot be collected and there
    is no reference fix, no test is known. Of the controls those stay that a pass can rely on. `changes` are the files
    that the fix changes: what they replace elsewhere is doubted.
    """
    if report.status not in _FINISHED or report.compiled is False:
        return report
    known = [one for one in (baseline, reference) if one is not None and one.status in _FINISHED and one.compiled]
    controls = report.control or {}
    evidence = {name: _evidence(name, control, known) for name, control in controls.items() if report.tests.get(name)}
    forged = {name: why for name, why in evidence.items() if why}
    differences = [*_differences(report, known)] if known else []
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
        own = {part for path in changes or () for part in PurePosixPath(path).with_suffix("").parts}
        for path, content in (changes or {}).items():
            if path.endswith(".py") and content is not None:
                found = patched_names(content, own)
                doubts += [(f"{path} may change or read {name}: {line[:100]}", line) for name, line in found]
        report = replace(report, control=sound, tests=tests, doubts=(*report.doubts, *dict.fromkeys(doubts)))
    return replace(report, status="failed", diagnostics=(*report.diagnostics, *added)) if added else report


def _differences(report: Report, known: Sequence[Report]) -> Iterator[Diagnostic]:
    ids = {name for one in known for name in (*one.tests, *one.skipped)}
    may_skip = {name for one in known for name in one.skipped}
    for name in known[-1].tests:
        if name not in report.tests and name not in report.skipped:
            yield Diagnostic("error", f"test did not report: {name}", test=name)
    for name in report.skipped:
        if name in ids and name not in may_skip:
            yield Diagnostic("error", f"test skipped: {name}", "it is not skipped without the fix", test=name)
    for name in (*report.tests, *report.skipped):
        if name not in ids:
            yield Diagnostic("error", f"unknown test: {name}", "the problem has no such test", test=name)


def _other_parameters(report: Report, known: Sequence[Report], found: Sequence[Diagnostic]) -> str | None:
    """The parametrised test whose parameters depend on the fix, if nothing else is wrong; None otherwise."""
    functions = [{name.partition("[")[0] for name in one.tests if "[" in name} for one in (report, *known) if one.tests]
    names = [(one.test or "").partition("[") for one in found]
    shared = set.intersection(*functions) if functions else set()
    if report.status == "passed" and names and all(bracket and name in shared for name, bracket, _ in names):
        return names[0][0]
    return None


def _doubts(name: str, control: TestControl, known: Sequence[Report]) -> Iterator[tuple[str, str]]:
    """What keeps a test's pass from being judged, unless it is so on the problem itself or the reference fix."""
    others = [one.control[name] for one in known if one.control is not None and name in one.control]
    excused = {doubt for other in others for doubt in other.doubts}
    yield from (doubt for doubt in control.doubts if doubt not in excused)
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
