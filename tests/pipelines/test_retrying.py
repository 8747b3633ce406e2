"""A run that failed because of the machine does not stay failed: what was undecided or timed out is tried again.

The judge is a program of its own whose trouble can be switched on and off, as that of a machine comes and goes.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Folder, nightly_but
from tests.load import one_crowded_processor
from tests.pipelines.test_run import evaluate, summary
from touchstone.config import load_config
from touchstone.evaluation import Evaluation
from touchstone.storage.snapshots import list_snapshots, pin, pins
from touchstone.validation.cache import find_cache

# Passes what neither is broken nor wrong, writes down what it was given, and has the trouble that it is told to have.
JUDGE = """#!/bin/sh
word=$(cat "$1")
echo "$word" >> {folder}/log
case "$(cat {folder}/trouble)" in
  "endless $word") while :; do :; done;;
  "timeout $word") sleep 600;;
  "no_report $word") kill -9 $$;;
  "leniency $word") exit 0;;
esac
case "$word" in broken*|wrong*) echo no; exit 1;; esac
"""


class Project(Folder):
    """One problem with a reference fix, one model, and a judge beside them."""

    def trouble(self, words: str) -> None:
        (self.root / "trouble").write_text(words)

    def judged(self) -> list[str]:
        """What the judge was given since this was last asked."""
        log = self.root / "log"
        words = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(words)

    def settings(self, **more: object) -> dict[str, object]:
        arguments = [str(self.root / "judge.sh"), "{file}"]
        return {
            "unsandboxed": True,
            "validators": {"text": "command"},
            "command": {"arguments": arguments},
            "workers": 1,
            "limits": {"seconds": 1, "wall_seconds": 10},
            **more,
        }

    def write_judge(self) -> None:
        judge = self.root / "judge.sh"
        judge.write_text(JUDGE.format(folder=self.root))
        judge.chmod(0o755)

    def answers(self, model: str, fixes: Sequence[str]) -> None:
        lines = [("p", str(number), fix) for number, fix in enumerate(fixes)]
        self.fixes(model, table(("oid", "iteration_id", "fixed_file"), *lines))


def table(*rows: tuple[object, ...]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    clone = tmp_path / "clones" / "one"
    clone.mkdir(parents=True)
    (clone / "a.txt").write_text("broken")
    header = ("oid", "filename", "working_directory", "language", "reference_fix")
    made.problems(table(header, ("p", "a.txt", "one", "text", "reference")))
    made.answers("m", ["good", "wrong"])
    made.write_judge()
    made.trouble("none")
    made.configure(clones_dir="clones", k_values=[1], validation=made.settings())
    return made


@contextmanager
def evaluation_of(folder: Folder, **options: Any) -> Iterator[Evaluation]:
    """The steps of a run up to the outcomes, without Dagster and without gates."""
    evaluation = Evaluation(load_config(folder.config), **options)
    with closing(evaluation):
        for table in ("problems", "attempts", "validator_noise", "baselines", "outcomes"):
            evaluation.materialize(table)
        yield evaluation


def validate(folder: Folder, **options: Any) -> tuple[dict[str, object], dict[str, str]]:
    """What a run finds of the problem and of the attempts of the model m."""
    with evaluation_of(folder, **options) as evaluation:
        problem = evaluation.store.scan("baselines").collect().row(0, named=True)
        outcomes = evaluation.store.scan("outcomes", ["m"]).collect()
        return problem, dict(outcomes.select("iteration_id", "status").iter_rows())


EVERYTHING = ["broken", "good", "reference", "wrong"]


class TestNextRun:
    @pytest.mark.services
    @pytest.mark.parametrize(
        ("status", "place"),
        nightly_but([("no_report", "good")], product(["timeout", "no_report"], ["broken", "reference", "good"])),
    )
    def test_what_was_the_machines_doing_is_tried_again_and_nothing_else(
        self, project: Project, status: str, place: str
    ) -> None:
        project.trouble(f"{status} {place}")
        problem, outcomes = validate(project)
        found = {"broken": problem["baseline_status"], "reference": problem["reference_status"], "good": outcomes["0"]}
        assert found[place] == status
        project.judged()
        assert validate(project) == (problem, outcomes), "trouble that lasts gives the same results"
        assert set(project.judged()) == {place}
        project.trouble("none")
        problem, outcomes = validate(project)
        assert set(project.judged()) == {place}
        assert (problem["baseline_status"], problem["reference_status"]) == ("failed", "passed")
        assert outcomes == {"0": "passed", "1": "failed"}
        validate(project)
        assert project.judged() == [], "what is settled is not validated again"

    @pytest.mark.nightly
    def test_a_timeout_costs_one_try_per_run_however_often_it_is_asked_for(self, project: Project) -> None:
        project.answers("m", ["good", "good", "wrong"])
        project.trouble("endless broken")
        validate(project)
        found = project.judged()
        assert found.count("broken") <= 2, "once more, alone, if the processor was shared"
        assert [word for word in found if word != "broken"] == ["good", "reference", "wrong"]

    @pytest.mark.services
    def test_a_validator_that_was_missing_is_used_once_it_is_there(self, project: Project) -> None:
        (project.root / "judge.sh").unlink()
        problem, outcomes = validate(project)
        assert problem["baseline_status"] == "validator_unavailable"
        assert set(outcomes.values()) == {"validator_unavailable"}
        project.write_judge()
        problem, outcomes = validate(project)
        assert (problem["baseline_status"], problem["reference_status"]) == ("failed", "passed")
        assert outcomes == {"0": "passed", "1": "failed"}

    def test_what_follows_from_the_inputs_alone_is_not_tried_again(self, project: Project) -> None:
        project.problems(table(("oid", "filename", "working_directory", "language"), ("p", "gone.txt", "one", "text")))
        with evaluation_of(project) as evaluation:
            parts = [evaluation.store.part("baselines"), evaluation.store.part("outcomes", "m")]
            assert set(evaluation.store.scan("outcomes").collect()["status"]) == {"validator_unavailable"}
        assert [part is not None and part.settled for part in parts] == [True, True]

    @pytest.mark.nightly
    def test_with_only_the_others_stay_as_they_are(self, project: Project) -> None:
        project.answers("n", ["wrong"])
        project.trouble("no_report good")
        validate(project)
        project.judged()
        validate(project, only=frozenset({"n"}))
        assert project.judged() == []
        validate(project)
        assert project.judged() == ["good"]

    @pytest.mark.nightly
    def test_figures_follow_an_outcome_that_was_decided_later(self, project: Project) -> None:
        checks = {"max_undecided_share": 0.5}
        project.configure(clones_dir="clones", k_values=[1], validation=project.settings(), checks=checks)
        project.trouble("no_report good")
        assert evaluate(project).exit_code == 0
        assert summary(project)["m"]["pass@1"] == 0.0
        project.trouble("none")
        again = evaluate(project)
        assert again.exit_code == 0 and again.made > 0
        assert summary(project)["m"]["pass@1"] == 0.5


class TestFresh:
    @pytest.mark.nightly
    def test_everything_is_done_again_and_snapshots_and_pins_stay(self, project: Project) -> None:
        """A file that the judge reads, and no setting names, has changed: no fingerprint can see that."""
        assert evaluate(project).exit_code == 0
        assert project.judged() == EVERYTHING
        pin(project.output, "latest", "baseline")
        before, pinned = list_snapshots(project.output), pins(project.output)
        project.trouble("leniency wrong")
        validate(project)
        assert project.judged() == []
        again = evaluate(project, fresh=True)
        assert (again.exit_code, again.reused) == (0, 0)
        assert project.judged() == EVERYTHING
        assert summary(project)["m"]["pass@1"] == 1.0
        first, second = list_snapshots(project.output)
        assert ([first], pins(project.output)) == (before, pinned) and second != first

    @pytest.mark.nightly
    def test_a_changed_judge_needs_no_fresh_run(self, project: Project) -> None:
        validate(project)
        project.judged()
        judge = project.root / "judge.sh"
        judge.write_text(judge.read_text().replace("broken*|wrong*)", "broken*)"))
        validate(project)
        assert project.judged() == EVERYTHING

    @pytest.mark.nightly
    def test_a_file_is_validated_once_also_where_two_models_wrote_it(self, project: Project) -> None:
        project.answers("n", ["good", "wrong"])
        validate(project)
        project.judged()
        validate(project, fresh=True)
        assert project.judged() == [], "without a new draft the tables are still there"
        Evaluation(load_config(project.config)).store.discard_draft()
        validate(project, fresh=True)
        assert project.judged() == EVERYTHING


class TestPrune:
    @pytest.mark.nightly
    def test_what_is_removed_from_the_cache_is_validated_again(self, project: Project) -> None:
        validate(project)
        assert project.judged() == EVERYTHING
        for days, expected in ((1.0, []), (0.0, EVERYTHING)):
            with find_cache(project.output) as cache:
                cache.prune(days)
            validate(project)
            assert project.judged() == expected

    @pytest.mark.nightly
    def test_the_same_results_make_no_new_figures(self, project: Project) -> None:
        fingerprints = []
        for _ in range(2):
            with evaluation_of(project) as evaluation:
                fingerprints.append([evaluation.store.fingerprint(table) for table in ("baselines", "outcomes")])
            with find_cache(project.output) as cache:
                cache.prune(0)
        assert fingerprints[0] == fingerprints[1]


@pytest.mark.nightly
class TestBusyMachine:
    """Verdicts are the same however much else the machine has to do."""

    SLOW = """\
import time


def add(a, b):
    begun = time.process_time()
    while time.process_time() - begun < 0.8:
        pass
    return a + b
"""
    TESTS = "from calc import add\n\n\ndef test_one():\n    assert add(1, 2) == 3\n"

    def test_a_slow_fix_passes_and_an_endless_one_times_out(self, tmp_path: Path) -> None:
        folder = Folder(tmp_path)
        clone = tmp_path / "clones" / "calc"
        clone.mkdir(parents=True)
        (clone / "calc.py").write_text("def add(a, b):\n    return a - b\n")
        (clone / "test_calc.py").write_text(self.TESTS)
        header = ("oid", "filename", "working_directory", "reference_fix")
        folder.problems(table(header, ("p", "calc.py", "calc", self.SLOW)))
        endless = "def add(a, b):\n    while True:\n        pass\n"
        lines = [("p", number, fix) for number, fix in enumerate([f"{self.SLOW}# 1\n", endless])]
        folder.fixes("m", table(("oid", "iteration_id", "fixed_code"), *lines))
        folder.configure(clones_dir="clones", k_values=[1], validation={"limits": {"seconds": 2}})
        with one_crowded_processor(others=3):
            problem, outcomes = validate(folder)
        assert (problem["baseline_status"], problem["reference_status"]) == ("failed", "passed")
        assert outcomes == {"0": "passed", "1": "timeout"}


@pytest.mark.nightly
class TestStarved:
    def test_what_timed_out_for_want_of_a_processor_is_tried_once_more_alone(self, project: Project) -> None:
        """The first try at a file never ends, on a processor that it has to share; the second passes."""
        judge = project.root / "judge.sh"
        script = f'#!/bin/sh\nword=$(cat "$1")\necho "$word" >> {project.root}/log\n'
        script += f'if [ "$word" = good ] && mkdir {project.root}/tried 2>/dev/null; then while :; do :; done; fi\n'
        judge.write_text(script + '[ "$word" != broken ] && [ "$word" != wrong ]\n')
        limits = {"seconds": 2, "wall_seconds": 60}
        project.configure(clones_dir="clones", k_values=[1], validation=project.settings(limits=limits))
        with one_crowded_processor(others=3):
            outcomes = validate(project)[1]
        assert project.judged().count("good") == 2
        assert outcomes["0"] == "passed"
