"""Timeouts of fixes: who used up the CPU time is not asked again; who only waited is."""

import os

import pytest

from tests.pipelines.test_retrying import Project, evaluation_of, project, validate
from tests.pipelines.test_run import evaluate
from touchstone.config import load_config
from touchstone.publish.up_to_date import up_to_date
from touchstone.validation.cache import find_cache
from touchstone.validation.outcomes import is_final
from touchstone.validation.protocol import Report
from touchstone.validation.sandbox.command import Command, CommandResult, Limits
from touchstone.validation.sandbox.runner import SandboxRunner

__all__ = ["project"]


def is_settled(folder: Project) -> bool:
    with evaluation_of(folder) as evaluation:
        part = evaluation.store.part("outcomes", "m")
        return part is not None and part.settled


def limit(folder: Project, **limits: float) -> None:
    folder.configure(clones_dir="clones", k_values=[1], validation=folder.settings(limits=limits))


@pytest.mark.services
class TestEndlessFix:
    """One that used up its CPU time."""

    @pytest.fixture(autouse=True)
    def _endless(self, project: Project) -> None:
        project.trouble("endless good")
        limit(project, seconds=0.3, wall_seconds=60)

    def test_is_a_timeout_and_not_tried_again(self, project: Project) -> None:
        assert validate(project)[1] == {"0": "timeout", "1": "failed"}
        project.judged()
        assert is_settled(project)
        assert project.judged() == []

    @pytest.mark.nightly
    def test_of_another_model_comes_from_the_cache_unless_there_is_more_time(self, project: Project) -> None:
        long_ago = 1_700_000_000
        os.utime(project.root / "judge.sh", (long_ago, long_ago))
        assert evaluate(project).exit_code == 0
        assert up_to_date(load_config(project.config)) is not None
        project.judged()
        project.answers("n", ["good"])
        validate(project)
        assert project.judged() == []
        limit(project, seconds=1.5, wall_seconds=10)
        validate(project)
        assert "good" in project.judged()

    @pytest.mark.nightly
    def test_is_the_same_for_a_problem_that_never_ends(self, project: Project) -> None:
        project.trouble("endless broken")
        assert validate(project)[0]["baseline_status"] == "timeout"
        project.judged()
        with evaluation_of(project) as evaluation:
            part = evaluation.store.part("baselines")
        assert part is not None and part.settled
        assert project.judged() == []

    @pytest.mark.nightly
    def test_that_is_the_reference_fix_too_is_asked_again_by_every_run(self, project: Project) -> None:
        project.trouble("endless reference")
        project.answers("m", ["reference", "wrong"])
        for _ in range(2):
            problem, outcomes = validate(project)
            assert (problem["reference_status"], outcomes["0"]) == ("timeout", "timeout")
            assert "reference" in project.judged()
        project.trouble("none")
        assert validate(project)[0]["reference_status"] == "passed"
        with find_cache(project.output) as cache:
            assert cache.statistics().entries == 3, "of the timeout nothing is left"


@pytest.mark.nightly
def test_a_fix_that_only_waited_is_tried_again(project: Project) -> None:
    project.trouble("timeout good")
    limit(project, seconds=1, wall_seconds=3)
    for _ in range(2):
        assert validate(project)[1]["0"] == "timeout"
        assert "good" in project.judged()
    assert not is_settled(project)


@pytest.mark.parametrize(
    ("report", "settled"),
    [
        (Report("timeout", "full", cpu_used=True), True),
        (Report("timeout", "full", cpu_used=True, starved=True), False),
        (Report("timeout", "full"), False),
        (Report("no_report", "full", cpu_used=True), False),
        (Report("sandbox_error", "full", cpu_used=True), False),
    ],
)
def test_which_timeouts_are_settled(report: Report, settled: bool) -> None:
    assert report.settled is settled
    assert is_final(report.status, report) is settled


@pytest.mark.parametrize(("busy_for", "status"), [(1, "passed"), (2, "timeout")])
def test_a_timeout_beside_busy_neighbours_counts_after_a_second_one_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch, busy_for: int, status: str
) -> None:
    """Whether the processor was shared is the machine's doing, so it is put in place of the real one."""
    run, tries = SandboxRunner.run, []

    def start(self: SandboxRunner, command: Command, limits: Limits) -> CommandResult:
        if "a.txt" not in command.tree.files or command.tree.read("a.txt") != b"good":
            return run(self, command, limits)
        tries.append("good")
        shared = CommandResult("timeout", None, starved=True, cpu_used=True)
        return shared if len(tries) <= busy_for else run(self, command, limits)

    monkeypatch.setattr(SandboxRunner, "run", start)
    assert validate(project)[1]["0"] == status
    assert is_settled(project)
    assert len(tries) >= 2  # a real shortage can add one
