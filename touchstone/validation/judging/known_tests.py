"""What pytest's results on a fix are held to: the tests that the problem has, and their negative controls.

A control is a test whose expectations were made false (`pytest_runner.controls`). It accuses a fix only if it works on
the unmodified problem and on the reference fix, so an honest fix is safe from a test that is unusual.
"""

import ast
import builtins
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from touchstone.text import python_lines
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
    # A test that must fail, and did not before, is mended if it fails now.
    must_fail = {found.test for one in known for found in one.diagnostics if found.detail.startswith("[XPASS(strict)]")}
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
        own = {part for path in changes or () for part in PurePosixPath(path).with_suffix("").parts}
        for path, content in (changes or {}).items():
            if path.endswith(".py") and content is not None:
                found = patched_names(content, own)
                for name, line in found:
                    # The problem may replace it already, with something else.
                    text = f"{name} =" if line.startswith(f"{name} =") else line
                    doubts.append((f"{path} may change or read {name}: {line[:100]}", text))
                if before is not None and path in before.files and any(_is_doctest_of(one, [path]) for one in tests):
                    lost = examples(before.read(path)) - examples(content)
                    doubts += [(f"{path} changes the example {source.strip()[:100]}", "") for source, _ in sorted(lost)]
        report = replace(report, control=sound, tests=tests, doubts=(*report.doubts, *dict.fromkeys(doubts)))
    return replace(report, status="failed", diagnostics=(*report.diagnostics, *added)) if added else report


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
    """What keeps a test's pass from being judged, unless it is so on the problem itself or the reference fix."""
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


# Names that a Python file replaces, or reaches for, in code that is not its own, by its syntax. A fix that replaces a
# function which its tests rely on can put it back before anyone looks; its text still shows it.

# Replaced by ordinary programs: streams and settings of the interpreter.
_HARMLESS = {
    *("sys.stdout", "sys.stderr", "sys.stdin", "sys.argv", "sys.path", "sys.excepthook", "sys.tracebacklimit"),
    *("warnings.showwarning", "logging.raiseExceptions", "os.environ"),
}
_NAMES_OF_FUNCTIONS = {
    *("__name__", "__qualname__", "__doc__", "__module__", "__wrapped__", "__signature__", "__annotations__"),
    *("__dict__", "__cause__", "__context__", "__traceback__", "__suppress_context__", "__notes__", "__test__"),
}


# What only a look into other functions and frames needs.
_INSIDES = {
    *("__globals__", "__closure__", "__kwdefaults__", "cell_contents", "getclosurevars"),
    *("f_locals", "f_globals", "f_back"),
}
_JUDGES = {"builtins", "gc", "pytest", "sys", "unittest"}
# Methods of a namespace that change nothing in it.
_LOOKS = {"get", "keys", "values", "items", "copy", "__contains__"}
# Functions that are given modules, and change nothing in them.
_READERS = {"getattr", "hasattr", "vars", "dir", "print", "type", "isinstance", "id", "repr", "getmembers", "reload"}


def patched_names(source: bytes, own: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Each name that is replaced, with the line; `own` are the modules of the problem, which it may change.

    >>> list(patched_names(b"import math, own\\nmath.isclose = max\\nown.x = 1\\nsetattr(math, 'e', 3)", {"own"}))
    [('math.isclose', 'math.isclose = max'), ('math', "setattr(math, 'e', 3)")]
    """
    tree = parse_python(source)
    if tree is None:
        return
    nodes = list(ast.walk(tree))
    # A parameter that has the name of a module is meant where both are; a control sees what tests rely on.
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)} - _JUDGES
    foreign = {name: module for node in nodes for name, module in _imported(node, own) if name not in parameters}
    known = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    lines = python_lines(source)
    for node in nodes:
        found = _replaced(node, foreign, known | {"self", "cls"})
        if found is not None and found not in _HARMLESS:
            line = getattr(node, "lineno", 1)
            yield found, lines[line - 1].strip() if line <= len(lines) else ""


def _imported(node: ast.AST, own: Collection[str]) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for one in node.names:
            if one.name.partition(".")[0] not in own:
                yield one.asname or one.name.partition(".")[0], one.name
    elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] not in own:
        yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)


def _replaced(node: ast.AST, foreign: dict[str, str], known: Collection[str]) -> str | None:
    if isinstance(node, ast.Attribute) and node.attr in _INSIDES and isinstance(node.ctx, ast.Load):
        return ast.unparse(node)
    if isinstance(node, ast.Constant | ast.BinOp) and (name := _text(node)) in _INSIDES:
        return name
    if isinstance(node, ast.Attribute) and node.attr == "__subclasses__" and _root(node) in foreign | vars(builtins):
        return ast.unparse(node)
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        root = _root(node)
        if root in foreign:
            return ast.unparse(node)
        method = node.attr.startswith("__") and node.attr.endswith("__") and node.attr not in _NAMES_OF_FUNCTIONS
        return ast.unparse(node) if method and root not in known else None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        # A table of the standard library.
        module = foreign.get(_root(node.value), "").partition(".")[0]
        is_table = isinstance(node.value, ast.Attribute) and module in sys.stdlib_module_names
        return ast.unparse(node.value) if is_table else _namespace(node.value, foreign)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
        return _root(node.args[0]) if node.args and _root(node.args[0]) in foreign else None
    if isinstance(node, ast.Call) and _called(node) not in _READERS and (given := _modules(node, foreign)):
        return given[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _LOOKS:
        return _namespace(node.func.value, foreign)
    return None


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else _root(node.func)


def _modules(node: ast.Call, foreign: dict[str, str]) -> list[str]:
    """The modules that judge among the arguments of a call, which can change them."""
    given = [one.id for one in node.args if isinstance(one, ast.Name) and foreign.get(one.id) in _JUDGES]
    parts = (one.value for one in node.args if isinstance(one, ast.Subscript))
    return given or [ast.unparse(one) for one in parts if ast.unparse(one).endswith("sys.modules")]


def _namespace(node: ast.expr, foreign: dict[str, str]) -> str | None:
    """The text of an expression that is the namespace of a module or class that is not the file's own."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and node.args
    inner = node.args[0] if isinstance(node, ast.Call) and called else node
    of_names = called or (isinstance(node, ast.Attribute) and node.attr in ("__dict__", "modules", "__globals__"))
    return ast.unparse(node) if of_names and _root(inner) in foreign else None


def _text(node: ast.expr) -> str:
    """The text of a literal that may be put together from parts."""
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
