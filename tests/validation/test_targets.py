"""Problems as validation sees them: with files and a validator, or with the reason why there are none."""

from pathlib import Path

import pytest

from tests.validation.validators.support import tree_of
from touchstone.config.validation import ValidationSettings
from touchstone.validation.protocol import NoTarget
from touchstone.validation.targets import Target, Targets


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    tree_of(tmp_path / "net", {name: f"# {name}\n" for name in ("main.tf", "notes.txt")})
    return tmp_path


def find(clones: Path | None, settings: ValidationSettings | None = None, **row: str | None) -> Target | NoTarget:
    usual = {"oid": "p", "filename": "main.tf", "working_directory": "net"}
    return Targets(clones, settings or ValidationSettings()).find([usual | row])["p"]


def target(clones: Path, settings: ValidationSettings | None = None, **row: str | None) -> Target:
    """What is found of a problem that can be validated."""
    found = find(clones, settings, **row)
    assert isinstance(found, Target), found
    return found


def test_a_problem_with_its_files_and_its_validator(clones: Path) -> None:
    found = target(clones, line_start=" 1 ", line_end="", tests="test_a.py; test_b.py", severity="error")
    assert (found.validator, found.tree.files) == ("hcl", ("main.tf", "notes.txt"))
    assert found.tree.read(found.problem.path) == b"# main.tf\n"
    problem = found.problem
    assert (problem.language, problem.line_start, problem.line_end) == ("terraform", 1, None)
    assert (problem.tests, problem.expected_tests, problem.severity) == (("test_a.py", "test_b.py"), (), "error")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"filename": "notes.txt"}, "no validator for the file notes.txt; name one under 'validation.validators'"),
        ({"language": "COBOL"}, "no validator for the language 'cobol'"),
        ({"line_start": "0"}, "line_start is '0', and lines count from 1"),
        ({"line_end": "²"}, "line_end is '²', and lines count from 1"),
        ({"filename": "gone.tf"}, "gone.tf"),
        ({"filename": "../secret.tf"}, "secret.tf"),
        ({"severity": "Warning"}, "is a warning"),
        ({"filename": None}, "the filename is empty"),
        ({"test_command": "true", "test_patch": "nothing"}, "test_patch: the patch has no unified diff in it"),
        ({"test_command": "true", "fail_to_pass": "[1]"}, "fail_to_pass is not a list of test names: [1]"),
        ({"test_command": "true", "pass_to_pass": "['a'"}, "pass_to_pass is not a list of test names: ['a'"),
    ],
)
def test_what_cannot_be_validated_says_why(clones: Path, row: dict[str, str | None], reason: str) -> None:
    found = find(clones, **row)
    assert isinstance(found, NoTarget) and reason in found.reason


def test_the_lines_of_the_block_are_not_those_of_the_error(clones: Path) -> None:
    lines = {"line_start": "3", "line_end": "3", "impacted_block_start_line": "2.0", "impacted_block_end_line": "4"}
    assert target(clones, **lines).problem.block_lines == (2, 4)
    # -1: the diagnostic has no place
    problem = target(clones, **lines | {"line_start": "-1", "line_end": "-1"}).problem
    assert (problem.line_start, problem.block_lines) == (None, (2, 4))
    assert target(clones, line_start="3").problem.block_lines == (3, 3)


def test_without_a_folder_of_clones_there_is_nothing_to_fix() -> None:
    found = find(None)
    assert isinstance(found, NoTarget) and "set 'clones_dir' in the config" in found.reason


def test_a_language_may_be_given_another_validator(clones: Path) -> None:
    settings = ValidationSettings(validators={"text": "command", "terraform": "terraform"})
    assert target(clones, settings, filename="notes.txt", language="Text").validator == "command"
    assert target(clones, settings, severity="warning"), "Terraform itself shows a warning"


def test_problems_in_one_folder_share_its_tree(clones: Path) -> None:
    rows = [{"oid": oid, "filename": "main.tf", "working_directory": "net"} for oid in "pq"]
    first, second = Targets(clones, ValidationSettings()).find(rows).values()
    assert isinstance(first, Target) and isinstance(second, Target) and first.hashed is second.hashed


class TestTestCommands:
    """Problems that bring their own test command, as SWE-bench's records do."""

    PATCH = "--- /dev/null\n+++ b/tests/test_new.py\n@@ -0,0 +1 @@\n+x = 1\n"

    def test_the_command_validates_whatever_the_language(self, clones: Path) -> None:
        row = {"test_command": " make test ", "setup_command": " "}
        found = target(clones, **row, fail_to_pass='["a"]', PASS_TO_PASS="b[1, 2], c")
        assert found.validator == "command"
        problem = found.problem
        assert (problem.test_command, problem.setup_command) == ("make test", None)
        assert problem.judged_tests == ("a", "b[1, 2]", "c")

    def test_no_file_needs_to_be_named(self, clones: Path) -> None:
        found = target(clones, filename=None, test_command="true")
        assert (found.problem.filename, found.tree.files) == ("", ("main.tf", "notes.txt"))

    def test_the_patch_with_the_tests_is_applied_to_every_tree(self, clones: Path) -> None:
        plain, found = (target(clones, test_command="true", test_patch=patch) for patch in (None, self.PATCH))
        assert found.tree.read("tests/test_new.py") == b"x = 1\n"
        assert found.hashed.hash_of(found.tree) != plain.hashed.hash_of(plain.tree)
