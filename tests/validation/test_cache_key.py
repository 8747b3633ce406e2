"""The key of a cached report: whatever can change the report changes the key."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from touchstone.config.validation import ValidationSettings, ValidatorName
from touchstone.validation.cache_key import (
    PROBLEM_FIELDS_LEFT_OUT,
    SETTINGS_LEFT_OUT,
    conditions_key,
    report_key,
)
from touchstone.validation.files import program_identity
from touchstone.validation.files.working_copy import HashedTree, tree_hash
from touchstone.validation.protocol import Problem, Tree
from touchstone.validation.registry import VALIDATORS, ValidatorRegistry
from touchstone.validation.sandbox.backends import Unsandboxed
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.validators.python import PythonSettings, PythonValidator

PROBLEM = Problem("p1", "a.py", Path("/one"), "code", resource_schema="{}", tests=("test_a.py",))


@dataclass
class Stub:
    """A validator as the key sees it."""

    name: str = "python"
    version: str = "3.11"
    more: Mapping[str, Any] = field(default_factory=dict)

    def identity(self, problem: Problem) -> Mapping[str, Any]:
        return self.more


def key(**changes: Any) -> str:
    usual = {"problem": PROBLEM, "validator": Stub(), "limits": Limits(), "sandbox": "bubblewrap"}
    given = {**usual, "settings": ValidationSettings(), **changes}
    return report_key(given.pop("tree", "t"), conditions_key(**given))


def another(value: object) -> object:
    """A value of the same kind that differs."""
    match value:
        case tuple():
            return (*value, "more")
        case Path():
            return value / "more"
        case int():
            return value + 1
    return f"{value} more"


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Problem)])
def test_every_field_of_a_problem_is_part_of_the_key_unless_listed(name: str) -> None:
    changed = replace(PROBLEM, **{name: another(getattr(PROBLEM, name))})
    assert (key(problem=changed) == key()) == (name in PROBLEM_FIELDS_LEFT_OUT)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("name", ValidationSettings.model_fields)
def test_every_setting_is_part_of_the_key_unless_listed_or_of_another_validator(name: str) -> None:
    settings = ValidationSettings().model_copy(update={name: {"another": "value"}})
    elsewhere = name in get_args(ValidatorName) and name != "python"
    assert (key(settings=settings) == key()) == (name in SETTINGS_LEFT_OUT or elsewhere)
    if elsewhere:
        assert key(settings=settings, validator=Stub(name)) != key(validator=Stub(name))


def test_what_is_left_out_exists_and_has_a_reason() -> None:
    assert PROBLEM_FIELDS_LEFT_OUT.keys() <= {field.name for field in dataclasses.fields(Problem)}
    assert SETTINGS_LEFT_OUT.keys() <= ValidationSettings.model_fields.keys()
    assert all({**PROBLEM_FIELDS_LEFT_OUT, **SETTINGS_LEFT_OUT}.values())
    assert set(get_args(ValidatorName)) == set(VALIDATORS)


@pytest.mark.parametrize(
    "change",
    [
        {"tree": "another"},
        {"validator": Stub(name="hcl")},
        {"validator": Stub(version="3.12")},
        {"validator": Stub(more={"lint": True})},
        {"sandbox": "landlock"},
        *({"limits": Limits(**{name: (value or 0) + 1})} for name, value in asdict(Limits()).items()),
    ],
    ids=repr,
)
def test_so_are_tree_validator_sandbox_and_limits(change: dict[str, Any]) -> None:
    assert key(**change) != key()


def test_the_order_of_files_is_not() -> None:
    files = {"a.py": b"1", "b/c.py": b"2", "b.py": b"3"}
    there, back = (Tree(Path("x"), tuple(sorted(files, reverse=reverse)), files) for reverse in (False, True))
    assert key(tree=tree_hash(there)) == key(tree=tree_hash(back))


def test_an_executable_file_is_another_tree(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("exit 0")
    tree = Tree(tmp_path, ("run.sh",))
    trees = (tree, tree.with_file("run.sh", b"exit 1"))

    def hashes() -> list[str]:
        hashed = HashedTree(tmp_path, tree.files)
        found = [hashed.hash_of(one) for one in trees]
        assert found == [tree_hash(one) for one in trees]
        return found

    before = hashes()
    (tmp_path / "run.sh").chmod(0o755)
    assert not set(before) & set(hashes())


@pytest.mark.parametrize("validator", VALIDATORS)
def test_two_files_of_one_project_do_not_share_a_report(tmp_path: Path, validator: str) -> None:
    """The same tree, but another file or folder of it is judged: unrepaired fixes passed with the other's report."""
    settings = ValidationSettings.model_validate({"command": {"arguments": ["true"]}})
    registry = ValidatorRegistry(SandboxRunner(Unsandboxed(), tmp_path), settings)
    made = registry.validator(validator)
    problems = [Problem("p", name, tmp_path, folder) for name, folder in (("a", "x"), ("b", "x"), ("a", "y"))]
    assert len({key(problem=problem, validator=made, settings=settings) for problem in problems}) == 3
    registry.close()


class TestCommand:
    """What a checker is made of: its program, the files that it may read, and those that its arguments name."""

    def key(self, folder: Path, **command: Any) -> str:
        settings = ValidationSettings.model_validate({"command": {"arguments": [str(folder / "check.sh")], **command}})
        registry = ValidatorRegistry(SandboxRunner(Unsandboxed(), folder), settings)
        return key(validator=registry.validator("command"), settings=settings)

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name in ("check.sh", "rules/deep/rule.txt"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("#!/bin/sh\nexit 0\n")
            (tmp_path / name).chmod(0o755)
        return tmp_path

    @pytest.mark.parametrize(
        ("changed", "command"),
        [
            ("check.sh", {}),
            ("rules/deep/rule.txt", {"readable": ["{folder}/rules"]}),
            ("rules/deep/rule.txt", {"readable": ["{folder}/rules/deep/rule.txt"]}),
            ("rules/new.txt", {"readable": ["{folder}/rules"]}),
            ("rules/deep/rule.txt", {"arguments": ["/bin/sh", "{folder}/rules/deep/rule.txt"]}),
            ("rules/deep/rule.txt", {"arguments": ["/bin/sh", "--rules={folder}/rules/deep/rule.txt"]}),
            ("rules/deep/rule.txt", {"environment": {"RULES": "/none:{folder}/rules/deep/rule.txt"}}),
        ],
        ids=repr,
    )
    def test_changed_contents_change_the_key(self, folder: Path, changed: str, command: dict[str, Any]) -> None:
        there = json.loads(json.dumps(command).replace("{folder}", str(folder)))
        before = self.key(folder, **there)
        assert self.key(folder, **there) == before
        (folder / changed).write_text("#!/bin/sh\nexit 1\n")
        assert self.key(folder, **there) != before

    @pytest.mark.parametrize("field", ["test_command", "setup_command"])
    @pytest.mark.parametrize(
        "words",
        [
            "check.sh --fast",
            "cd src && {folder}/check.sh",
            "sh -e {folder}/check.sh",
            "timeout 9 check.sh",
            "cd src\nif ! check.sh; then false; fi",
            "sh -c 'cd src; check.sh'",
            "echo $(check.sh)",
            "by-interpreter.sh",
            "{folder}/by-env.sh",
        ],
    )
    def test_so_do_the_programs_that_a_problems_own_command_names(self, folder: Path, field: str, words: str) -> None:
        given: dict[str, Any] = {field: words.replace("{folder}", str(folder))}
        problem = replace(PROBLEM, **given)
        (folder / "by-interpreter.sh").write_text(f"#!{folder}/check.sh -e\n")
        (folder / "by-env.sh").write_text("#!/usr/bin/env -S check.sh -e\n")
        (folder / "by-interpreter.sh").chmod(0o755)

        def made() -> str:
            settings = ValidationSettings.model_validate({"command": {"environment": {"PATH": str(folder)}}})
            registry = ValidatorRegistry(SandboxRunner(Unsandboxed(), folder), settings)
            return key(problem=problem, validator=registry.validator("command"), settings=settings)

        before = made()
        assert made() == before
        (folder / "check.sh").write_text("#!/bin/sh\nexit 1\n")
        assert made() != before


def test_so_do_the_packages_of_a_python_and_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed, package = tmp_path / "status", tmp_path / "lib" / "python3.11" / "site-packages" / "checker.py"
    for path in (installed, package, tmp_path / "bin" / "python3"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one")
        path.chmod(0o755)
    monkeypatch.setattr(program_identity, "_INSTALLED", (str(installed),))
    settings = ValidationSettings.model_validate({"command": {"environment": {"PATH": str(tmp_path / "bin")}}})

    def made() -> str:
        registry = ValidatorRegistry(SandboxRunner(Unsandboxed(), tmp_path), settings)
        problem = replace(PROBLEM, test_command="python3 -m checker")
        return key(problem=problem, validator=registry.validator("command"), settings=settings)

    seen = [made()]
    for changed in (installed, package):
        changed.write_text("two")
        seen.append(made())
    assert made() == seen[-1] and len(set(seen)) == 3


def test_the_tests_packages_and_the_interpreter_are_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("touchstone.validation.validators.python.packages_folder", lambda: tmp_path)

    def identity() -> Mapping[str, Any]:
        validator = PythonValidator(SandboxRunner(Unsandboxed(), tmp_path), Limits(), PythonSettings(lint=False))
        return validator.identity(PROBLEM)

    seen = [identity()]
    (tmp_path / "helper.py").write_text("answer = 1\n")
    seen.append(identity())
    (tmp_path / "helper.py").write_text("answer = 2\n")
    seen.append(identity())
    assert identity() == seen[-1]
    assert len({repr(one) for one in seen}) == 3
