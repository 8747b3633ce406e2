"""A worker on another machine: it gets the problems' files, and is refused if it would answer differently."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from touchstone.config.validation import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.validation.cluster import (
    CarriedBatch,
    ClusterWorker,
    FilesToCarry,
    identity_facts,
    open_cluster_worker,
    validate_carried,
)
from touchstone.validation.files.working_copy import HashedTree, list_files
from touchstone.validation.protocol import Job, Problem, Tree
from touchstone.validation.worker import Batch, open_registry
from touchstone.workers import WorkerRefusedError

COMMAND = {"arguments": ["/bin/sh", "-c", "ls -l; cat a.txt; test -x run.sh"]}
SETTINGS = ValidationSettings.model_validate(
    {"unsandboxed": True, "validators": {"text": "command"}, "command": COMMAND}
)


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    root = tmp_path / "clones" / "one"
    (root / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("before")
    (root / "deep" / "empty").touch()
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a.txt")
    return Problem("p", "a.txt", root, language="text")


def hashed(problem: Problem) -> HashedTree:
    files = list_files(problem.root)
    assert isinstance(files, tuple)
    return HashedTree(problem.root, files)


def open_worker(expected: dict[str, str]) -> ClusterWorker:
    return open_cluster_worker("none", SETTINGS, expected, ["command"])


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return identity_facts(open_registry("none", tmp_path_factory.mktemp("scratch"), SETTINGS), ["command"])


@pytest.fixture
def worker(facts: dict[str, str]) -> Iterator[ClusterWorker]:
    made = open_worker(facts)
    yield made
    made.close()
    assert not made.folder.exists()


def received(worker: ClusterWorker, problem: Problem) -> str:
    """The name of the problem's folder, after the worker has received it, with a part twice and in another order."""
    files = FilesToCarry()
    name = files.name_of(problem.root, hashed(problem))
    assert missing(worker, name) == [name]
    for part in [*files.parts([name]), *reversed(list(files.parts([name])))]:
        worker.receive(part)
    worker.complete([name])
    assert missing(worker, name) == []
    return name


def missing(worker: ClusterWorker, *names: str) -> list[str]:
    return worker.missing(CarriedBatch(Batch("command", [], []), names, []))


def test_a_carried_folder_is_the_one_that_was_hashed(worker: ClusterWorker, problem: Problem) -> None:
    name = received(worker, problem)
    there = worker.root(name)
    files = list_files(there)
    assert files == hashed(problem).files == ("a.txt", "deep/empty", "link", "run.sh")
    assert HashedTree(there, files).hash_of(Tree(there, files)) == name
    for path in ("a.txt", "run.sh"):
        here, copy = (problem.root / path).stat(), (there / path).stat()
        assert (here.st_mode, here.st_mtime_ns) == (copy.st_mode, copy.st_mtime_ns)


def test_the_report_is_the_one_that_was_asked_for(worker: ClusterWorker, problem: Problem) -> None:
    batch, expected = batch_of(worker, problem)
    name = received(worker, problem)
    [report] = validate_carried(worker, CarriedBatch(batch, [name], [expected]))
    assert report.status == "passed"


def batch_of(worker: ClusterWorker, problem: Problem) -> tuple[Batch, str]:
    tree = Tree(problem.root, hashed(problem).files).with_file("a.txt", b"after")
    return Batch("command", ["key"], [Job(problem, tree)]), worker.registry.conditions_key(problem, "command")


def test_other_conditions_refuse_the_worker_before_anything_runs(worker: ClusterWorker, problem: Problem) -> None:
    batch, _ = batch_of(worker, problem)
    with pytest.raises(WorkerRefusedError, match=r"that the validator command uses for the problem p differ"):
        validate_carried(worker, CarriedBatch(batch, [received(worker, problem)], ["other conditions"]))


@pytest.mark.parametrize(
    ("fact", "reason"),
    [("Touchstone", "Touchstone is 0.1.0 there, other here"), ("Python", r"Python is 3\.\d+\.\d+ there, other here")],
)
def test_other_tools_refuse_the_worker_with_the_reason(facts: dict[str, str], fact: str, reason: str) -> None:
    with pytest.raises(WorkerRefusedError, match=f"^{reason}$"):
        open_worker(facts | {fact: "other"})


def test_a_sandbox_that_does_not_hold_refuses_the_worker(
    facts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "it does not hold: no network"
    monkeypatch.setattr("touchstone.validation.cluster.probe_backend", lambda *_: why)
    with pytest.raises(WorkerRefusedError, match="the sandbox landlock does not work there: it does not hold"):
        open_cluster_worker("landlock", SETTINGS.model_copy(update={"unsandboxed": False}), facts, ["command"])


def test_a_file_that_changes_on_the_way_is_an_error(problem: Problem) -> None:
    files = FilesToCarry()
    name = files.name_of(problem.root, hashed(problem))
    (problem.root / "a.txt").write_text("later")
    with pytest.raises(TouchstoneError, match=r"a\.txt: changed during validation; run again"):
        list(files.parts([name]))


def test_folders_that_were_used_last_are_kept(worker: ClusterWorker, problem: Problem) -> None:
    worker.kept_bytes = 2 * 1000
    carried = FilesToCarry()
    (part,) = carried.parts([carried.name_of(problem.root, hashed(problem))])
    for name in ("first", "second", "third"):
        worker.receive([replace(part[0], folder=name, content=os.urandom(900))])
        worker.complete([name])
        missing(worker, "first")
    assert missing(worker, "first", "second", "third") == ["second"]
    assert not worker.root("second").exists()
