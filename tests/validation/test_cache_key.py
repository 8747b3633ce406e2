"""The key of a cached report: whatever can change the report changes the key."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from touchstone.config.validation import PythonProgram, ValidationSettings, ValidatorName
from touchstone.validation.cache import PROBLEM_FIELDS_LEFT_OUT, SETTINGS_LEFT_OUT, conditions_key, report_key
from touchstone.validation.files import file_identity
from touchstone.validation.files.working_copy import HashedTree
from touchstone.validation.protocol import Problem, Tree
from touchstone.validation.registry import VALIDATORS, ValidatorRegistry
from touchstone.validation.sandbox.backends import Unsandboxed
from touchstone.validation.sandbox.command import Limits
from touchstone.validation.sandbox.runner import SandboxRunner
from touchstone.validation.validators.python import PythonValidator

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
    shared = {"filename", "working_directory"} & PROBLEM_FIELDS_LEFT_OUT.keys()
    assert not shared, "the same tree, but another file of it is judged: unrepaired fixes passed with its report"
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


def test_an_executable_file_is_another_tree(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("exit 0")
    tree = Tree(tmp_path, ("run.sh",))
    trees = (tree, tree.with_file("run.sh", b"exit 1"))

    before = [HashedTree(tmp_path, tree.files).hash_of(one) for one in trees]
    (tmp_path / "run.sh").chmod(0o755)
    assert not {HashedTree(tmp_path, tree.files).hash_of(one) for one in trees} & set(before)


WORDS = [
    "check.sh --fast",
    "cd src && {folder}/check.sh",
    "sh -e {folder}/check.sh",
    "timeout 9 check.sh",
    "cd src\nif ! check.sh; then false; fi",
    "sh -c 'cd src; check.sh'",
    "echo $(check.sh)",
    "by-interpreter.sh",
    "{folder}/by-env.sh",
]
# With a PATH of its own a command gets no interpreter, whose thousands of files take a second to look at.
OWN_PATH = {"PATH": "/usr/bin:/bin"}
CHECK = {"arguments": ["{folder}/check.sh"], "environment": OWN_PATH}
RULE, PACKAGE = "rules/deep/rule.txt", "lib/python3.11/site-packages/checker.py"
PYTHON = ({"environment": {"PATH": "{folder}/bin"}}, {"test_command": "python3 -m checker"})
# What changes, the configured command, and the problem's own.
CHANGES: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("check.sh", CHECK, {}),
    (RULE, {**CHECK, "readable": ["{folder}/rules"]}, {}),
    (RULE, {**CHECK, "readable": [f"{{folder}}/{RULE}"]}, {}),
    ("rules/new.txt", {**CHECK, "readable": ["{folder}/rules"]}, {}),
    (RULE, {**CHECK, "arguments": ["/bin/sh", f"{{folder}}/{RULE}"]}, {}),
    (RULE, {**CHECK, "arguments": ["/bin/sh", f"--rules={{folder}}/{RULE}"]}, {}),
    (RULE, {**CHECK, "environment": {**OWN_PATH, "RULES": f"/none:{{folder}}/{RULE}"}}, {}),
    *(
        ("check.sh", {"environment": {"PATH": "{folder}"}}, {column: words})
        for column in ("test_command", "setup_command")
        for words in WORDS
    ),
    (PACKAGE, *PYTHON),
    ("installed by the system", *PYTHON),
]


@pytest.mark.parametrize(("changed", "command", "problem"), CHANGES, ids=repr)
def test_whatever_a_command_is_made_of_is_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, command: dict[str, Any], problem: dict[str, str]
) -> None:
    """Its program, the files that it may read or names, their interpreters and packages, and those of the system."""
    scripts = {"by-interpreter.sh": f"#!{tmp_path}/check.sh -e\n", "by-env.sh": "#!/usr/bin/env -S check.sh -e\n"}
    scripts |= dict.fromkeys(("check.sh", RULE, PACKAGE, "bin/python3", "installed by the system"), "#!/bin/sh\n")
    for name, text in scripts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(file_identity, "_INSTALLED", (str(tmp_path / "installed by the system"),))
    given, own = json.loads(json.dumps([command, problem]).replace("{folder}", str(tmp_path)))

    def made() -> str:
        settings = ValidationSettings.model_validate({"command": given})
        registry = ValidatorRegistry(SandboxRunner(Unsandboxed(), tmp_path), settings)
        return key(problem=replace(PROBLEM, **own), validator=registry.validator("command"), settings=settings)

    before = made()
    assert made() == before
    (tmp_path / changed).write_text("#!/bin/sh\nexit 1\n")
    assert made() != before


def test_the_tests_packages_and_the_interpreter_are_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("touchstone.validation.validators.python.packages_folder", lambda: tmp_path)

    def identity() -> Mapping[str, Any]:
        validator = PythonValidator(SandboxRunner(Unsandboxed(), tmp_path), Limits(), PythonProgram(lint=False))
        return validator.identity(PROBLEM)

    seen = [identity()]
    (tmp_path / "helper.py").write_text("answer = 1\n")
    seen.append(identity())
    (tmp_path / "helper.py").write_text("answer = 2\n")
    seen.append(identity())
    assert identity() == seen[-1]
    assert len({repr(one) for one in seen}) == 3
