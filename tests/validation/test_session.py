"""Getting the reports on many trees: each tree once, from the cache where it is known, and made anew if asked."""

import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.config.validation import ValidationSettings
from touchstone.validation.cache import ReportCache
from touchstone.validation.session import Request, ValidationSession, batch_size
from touchstone.validation.targets import Target, Targets

# A program that writes down every file that it is given, and accepts those that do not say no.
JUDGE = '#!/bin/sh\ncat "$1" >> {folder}/log; echo >> {folder}/log\n! grep -q no "$1"\n'


class Project:
    """A file that is to be fixed, and a judge of its contents."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "clones" / "one").mkdir(parents=True)
        (root / "clones" / "one" / "a.txt").write_text("no")
        (root / "judge.sh").write_text(JUDGE.format(folder=root))
        (root / "judge.sh").chmod(0o755)

    def validation(self, fresh: bool = False, **settings: object) -> ValidationSession:
        # With a PATH of its own it gets no interpreter, whose packages take long to look at.
        command = {"arguments": [str(self.root / "judge.sh"), "{file}"], "environment": {"PATH": "/usr/bin:/bin"}}
        usual = {"unsandboxed": True, "workers": 1, "validators": {"text": "command"}, "command": command}
        made = ValidationSettings.model_validate(usual | settings)
        return ValidationSession(made, self.root / "cache", self.root / "scratch", fresh=fresh)

    def ask(self, validation: ValidationSession, *contents: str | None) -> list[tuple[str, bool]]:
        """Status and whether it was cached, for each content of the file; None is the file as it came."""
        requests = self.requests(validation, contents)
        found = validation.reports(requests, "validating")
        return [(found[request.key].report.status, found[request.key].cached) for request in requests]

    def requests(self, validation: ValidationSession, contents: Sequence[str | None]) -> list[Request]:
        row = {"oid": "p", "filename": "a.txt", "working_directory": "one", "language": "text"}
        target = Targets(self.root / "clones", validation.settings).find([row])["p"]
        assert isinstance(target, Target)
        return [validation.request(target, None if text is None else text.encode()) for text in contents]

    def judged(self) -> list[str]:
        """What the judge was given since this was last asked."""
        log = self.root / "log"
        words = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return words


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_equal_trees_are_validated_once_and_then_come_from_the_cache(project: Project) -> None:
    with project.validation() as validation:
        assert project.ask(validation, None, "yes", "yes", "no") == [
            ("failed", False), ("passed", False), ("passed", False), ("failed", False),
        ]  # fmt: skip
        assert sorted(project.judged()) == ["no", "yes"], "the file as it came is a tree like another"
        assert project.ask(validation, "yes", "new") == [("passed", True), ("passed", False)]
    assert not (project.root / "scratch").exists()
    with project.validation() as validation:
        assert project.ask(validation, "yes") == [("passed", True)]
    assert project.judged() == ["new"]


@given(st.integers(1, 10**8), st.integers(1, 5000), st.booleans())
def test_no_worker_is_without_a_batch_and_batches_grow_with_workers_and_fixes(
    jobs: int, workers: int, together: bool
) -> None:
    size = batch_size(jobs, workers, together=together)
    assert 1 <= size <= batch_size(2 * jobs, workers, together=together)
    assert (size - 1) * 4 * workers < jobs, "a worker would have fewer than four batches"
    largest = batch_size(10**9, workers, together=together)
    # If a worker validates 20 fixes a second, or runs one command, the scheduler gets so many batches a second.
    assert workers * (20 if together else 1) / largest <= (41 if together else 200)


def test_fresh_validates_what_is_known_once_more_and_once_only(project: Project) -> None:
    with project.validation() as validation:
        project.ask(validation, "yes")
    with project.validation(fresh=True) as validation:
        assert project.ask(validation, "yes") == [("passed", False)]
        assert project.ask(validation, "yes") == [("passed", True)]
    assert project.judged() == ["yes", "yes"]


def test_verdicts_edited_or_made_by_others_are_validated_again_and_said_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("touchstone.validation.session.report_warning", said.append)
    with monkeypatch.context() as there, project.validation() as validation:
        there.setenv("TOUCHSTONE_CACHE_KEY", "the key of others")
        project.ask(validation, "no", "yes")
    with project.validation() as validation:
        assert project.ask(validation, "no", "yes") == [("failed", False), ("passed", False)]
        with ReportCache(validation.cache_dir) as cache:
            cache._database.execute("UPDATE reports SET report = replace(report, 'failed', 'passed')")
        assert project.ask(validation, "no", "yes") == [("failed", False), ("passed", True)]
    assert [text.split(": ")[1][:53] for text in said] == ["2 reports were edited or made by others, and not used"]


def test_a_settled_report_on_a_problem_is_looked_up_once_per_run(project: Project) -> None:
    with project.validation() as validation:
        (request,) = project.requests(validation, [None])
        first = validation.problem_reports([request])[request.key]
        with ReportCache(validation.cache_dir) as cache:
            cache.forget([request.key])
        assert validation.problem_reports([request])[request.key] is first
        assert project.judged() == ["no"]


def test_a_validator_that_is_missing_decides_nothing(project: Project) -> None:
    (project.root / "judge.sh").unlink()
    with project.validation() as validation:
        assert not validation.available("command").usable
        assert project.ask(validation, "yes") == [("validator_unavailable", False)]
        project.root.joinpath("judge.sh").write_text(JUDGE.format(folder=project.root))
        project.root.joinpath("judge.sh").chmod(0o755)
    with project.validation() as validation:
        assert project.ask(validation, "yes") == [("passed", False)], "what was not decided was not kept"


def test_a_changed_judge_judges_again(project: Project) -> None:
    with project.validation() as validation:
        assert project.ask(validation, "yes") == [("passed", False)]
    project.root.joinpath("judge.sh").write_text("#!/bin/sh\nexit 1\n")
    with project.validation() as validation:
        assert project.ask(validation, "yes") == [("failed", False)]


# Limits that this process was started with: they decide no verdict.

# So much that it limits nothing here.
TEBIBYTE = 2**40


@pytest.fixture
def limited() -> Iterator[None]:
    """This process may have a tebibyte of address space."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (TEBIBYTE, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_what_could_fail_for_an_inherited_limit_is_undecided(limited: None, tmp_path: Path) -> None:
    project = Project(tmp_path)
    with project.validation(limits={"memory_mb": 2**20}) as too_much:
        assert project.ask(too_much, "yes") == [("validator_unavailable", False)]
        found = too_much.available("command")
    assert found.detail == "`ulimit -v` allows 1,048,576 MiB of address space, a validation may use 1,048,832"
    assert found.remedy == "raise that limit, or lower validation.limits"
    with project.validation() as usual:
        assert project.ask(usual, "yes") == [("passed", False)]
