"""What each side gets of a problem's files: decided by the unmodified problem, whatever a fix says."""

from pathlib import Path

import pytest

from touchstone.validation.isolated_runner.sides import Sides, divide
from touchstone.validation.protocol import Problem


def divided(root: Path, before: str | None, files: dict[str, str], path: str = "solution.py", below: str = "") -> Sides:
    problem = Problem("p", path, root, below)
    if before is not None:
        (root / problem.path).parent.mkdir(parents=True, exist_ok=True)
        (root / problem.path).write_text(before)
    tests = [name for name in files if Path(name).name.startswith("test_")]
    return divide(problem, files, [name.removeprefix(f"{below}/") for name in tests])


@pytest.mark.parametrize(
    ("before", "modules"),
    [
        ("", ["solution"]),
        ("import rates", ["rates", "solution"]),
        ("from rates import (\n    one,\n)", ["rates", "solution"]),
        ("def f(:\n    import app", ["app", "rates", "solution"]),
        ("from lib import checks", ["lib", "lib.checks", "solution"]),
        ("from .lib.checks import check", ["lib", "lib.checks", "solution"]),
        ("# rates", ["solution"]),
    ],
)
def test_the_program_is_what_the_unmodified_file_imports(tmp_path: Path, before: str, modules: list[str]) -> None:
    files = {"solution.py": "import rates, app, lib.checks", "rates.py": "", "app.py": "import rates"}
    files |= {"lib/__init__.py": "", "lib/checks.py": "", "test_it.py": "", "conftest.py": "import rates"}
    sides = divided(tmp_path, before, files)
    assert sides.tests["modules"] == sides.candidate["modules"] == modules


def test_a_fix_that_creates_its_file_is_taken_at_its_word(tmp_path: Path) -> None:
    (tmp_path / "rates.py").write_text("class B: pass")
    sides = divided(tmp_path, None, {"solution.py": "import rates\nclass A: pass", "rates.py": "class B: pass"})
    assert (sides.tests["modules"], sides.tests["classes"]) == (["rates", "solution"], ["B"])


def test_names_are_those_of_the_unmodified_file(tmp_path: Path) -> None:
    before = "class A(\n    def method(self): ...\nasync def f(): ...\n"
    tests = divided(tmp_path, before, {"solution.py": "class New: pass", "test_it.py": ""}).tests
    assert (tests["classes"], tests["methods"], tests["functions"]) == (["A"], ["method"], ["f"])


@pytest.mark.parametrize(
    ("path", "is_given"),
    [
        ("rates.txt", True),
        ("templates/page.html", True),
        ("unmentioned.txt", True),
        ("expected.json", False),
        ("cases/1.json", False),
        ("tests/in.txt", False),
        ("tests/helper.py", False),
        ("conftest.py", False),
        ("helper.py", True),
    ],
)
def test_the_candidate_gets_no_data_that_only_the_tests_mention(tmp_path: Path, path: str, is_given: bool) -> None:
    before = "open('rates.txt'), open('templates/' + name)"
    files = {"solution.py": "open('expected.json'), open('cases')", path: ""}
    files["tests/test_it.py"] = "open('expected.json'), glob('cases/*.json'), open('rates.txt'), 'templates'"
    sides = divided(tmp_path, before, files)
    assert (path in sides.candidate["files"], path in sides.tests["files"]) == (is_given, True)
    assert (path in sides.tests["withheld"]) is not is_given


def test_the_repaired_file_is_only_on_one_side_and_the_tests_on_the_other(tmp_path: Path) -> None:
    files = {"svc/solution.py": "", "svc/test_it.py": "", "svc/tests/test_more.py": "", "README.md": ""}
    sides = divided(tmp_path, "", files, below="svc")
    assert sorted(sides.candidate["files"]) == ["README.md", "svc/solution.py"]
    assert sorted(sides.tests["files"]) == ["README.md", "svc/test_it.py", "svc/tests/test_more.py"]
    assert (sides.tests["main"], sides.tests["directory"], sides.tests["withheld"]) == ("solution", "svc", [])
